// Package plugins_test tries the plugins out on the definitions of the examples.
package plugins_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fulmar-rpc/fulmar/contrib/plugins/mock"
	"github.com/fulmar-rpc/fulmar/contrib/plugins/validate"
	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// inProcess returns the plugins as parts of a generator.
func inProcess(t *testing.T) []gen.Plugin {
	t.Helper()
	var plugins []gen.Plugin
	for _, build := range []func(map[string]string) (gen.Plugin, error){mock.New, validate.New} {
		plugin, err := build(nil)
		if err != nil {
			t.Fatal(err)
		}
		plugins = append(plugins, plugin)
	}
	return plugins
}

// asPrograms returns the same plugins as the programs that they also are.
func asPrograms(t *testing.T) []gen.Plugin {
	t.Helper()
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", folder+string(filepath.Separator), "./cmd/...")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var plugins []gen.Plugin
	for _, name := range []string{"mock", "validate"} {
		plugins = append(plugins, gen.External(name, nil, func(request []byte) ([]byte, error) {
			run := exec.CommandContext(t.Context(), filepath.Join(folder, "fulmar-gen-"+name))
			run.Stdin, run.Stderr = bytes.NewReader(request), os.Stderr
			return run.Output()
		}))
	}
	return plugins
}

// TestPlugins_ExamplesCompile generates from every definition of the examples, in
// the process and with programs, wants the same of both, and compiles it.
func TestPlugins_ExamplesCompile(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := filepath.Glob(filepath.Join(root, "examples", "*", "*.thrift"))
	if err != nil || len(definitions) < 5 {
		t.Fatalf("%d definitions, %v", len(definitions), err)
	}
	folder := t.TempDir()
	module := "module example.com/shop\n\ngo 1.26.0\n\nrequire github.com/fulmar-rpc/fulmar v0.0.0\n\nreplace github.com/fulmar-rpc/fulmar => " + root + "\n"
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte(module), 0o644); err != nil {
		t.Fatal(err)
	}
	programs := asPrograms(t)
	for _, definition := range definitions {
		example := filepath.Base(filepath.Dir(definition))
		config := gen.Config{Files: []string{definition}, Output: filepath.Join(folder, example)}
		if result, err := gen.Run(config, inProcess(t)...); err != nil {
			t.Fatalf("%s: %v\n%v", definition, err, result.Diagnostics)
		}
		config.Check = true
		if result, err := gen.Run(config, programs...); err != nil {
			t.Errorf("%s: the programs make something else: %v\n%v\n%v", definition, err, result.Stale, result.Diagnostics)
		}
	}
	vet := exec.CommandContext(t.Context(), "go", "vet", "-mod=mod", "./...")
	vet.Dir = folder
	vet.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOSUMDB=off") // what the cache holds was verified
	if said, err := vet.CombinedOutput(); err != nil {
		t.Errorf("what was generated does not compile: %v\n%s", err, said)
	}
}
