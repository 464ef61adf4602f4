// Package plugins_test tries the plugins out on the definitions of the examples.
package plugins_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	folder := newModule(t)
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
	goCommand(t, folder, "vet", "-mod=mod", "./...")
}

// newModule returns the folder of a module that uses Fulmar.
func newModule(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	module := "module example.com/shop\n\ngo 1.26.0\n\nrequire github.com/fulmar-rpc/fulmar v0.0.0\n\nreplace github.com/fulmar-rpc/fulmar => " + root + "\n"
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte(module), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

// goCommand runs go in a folder of generated code.
func goCommand(t *testing.T, folder string, arguments ...string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "go", arguments...)
	run.Dir = folder
	run.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOSUMDB=off") // what the cache holds was verified
	if said, err := run.CombinedOutput(); err != nil {
		t.Errorf("what was generated: go %s: %v\n%s", strings.Join(arguments, " "), err, said)
	}
}

// TestPlugins_KnowViews generates from one definition in which the methods ask for views
// and from one where the flag does, in the process and with programs, and runs a test of
// what came of them: arguments that are views are validated.
func TestPlugins_KnowViews(t *testing.T) {
	programs := asPrograms(t)
	folder := newModule(t)
	for _, test := range []struct {
		name, views string
		flag        gen.ViewMethods
	}{
		{name: "annotated", views: ` (go.views = "both")`},
		{name: "flagged", flag: gen.ViewMethodsBoth},
	} {
		definition := filepath.Join(folder, test.name+".thrift")
		if err := os.WriteFile(definition, []byte(strings.ReplaceAll(viewsIDL, " VIEWS", test.views)), 0o644); err != nil {
			t.Fatal(err)
		}
		output := filepath.Join(folder, test.name)
		config := gen.Config{Files: []string{definition}, Output: output, ViewMethods: test.flag}
		if result, err := gen.Run(config, inProcess(t)...); err != nil {
			t.Fatalf("%s: %v\n%v", test.name, err, result.Diagnostics)
		}
		config.Check = true
		if result, err := gen.Run(config, programs...); err != nil {
			t.Errorf("%s: the programs make something else: %v\n%v\n%v", test.name, err, result.Stale, result.Diagnostics)
		}
		if err := os.WriteFile(filepath.Join(output, "vv", "views_test.go"), []byte(viewsTest), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goCommand(t, folder, "vet", "-mod=mod", "./...")
	goCommand(t, folder, "test", "-mod=mod", "./...")
}

const viewsIDL = `namespace go vv
struct S { 1: i32 a (validate.min = "1") }
struct Plain { 1: i32 a }
struct A { 1: string BC (validate.pattern = "a") }
struct AB { 1: string C (validate.pattern = "b"), 2: list<A> a }
service Base { S inherited(1: S held) VIEWS }
service V extends Base {
  S get(1: S s, 2: list<S> more, 3: i32 n (validate.min = "1")) VIEWS
  Plain plain(1: Plain plain, 2: S result) VIEWS
  void put(1: S s = {"a": 7}) VIEWS
}
`

// viewsTest is of the package that is generated from viewsIDL.
const viewsTest = `package vv

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
)

func TestViews(t *testing.T) {
	mock := &MockV{}
	var good, bad SView
	good.SetA(1)
	bad.SetA(0)
	mock.GetReturns(good, nil)
	mock.PlainReturns(PlainView{}, nil)
	mock.InheritedReturns(good, nil)
	mock.PutReturns(nil)
	server := ValidatedVServer(mock)
	ctx := context.Background()
	if got, err := server.Get(ctx, good, []S{{A: 1}}, 1); err != nil || got.A() != 1 {
		t.Errorf("%v, %v", got.A(), err)
	}
	if _, err := server.Plain(ctx, PlainView{}, good); err != nil {
		t.Error(err)
	}
	if _, err := server.Inherited(ctx, good); err != nil {
		t.Error(err)
	}
	if err := server.Put(ctx, &S{A: 1}); err != nil {
		t.Error(err)
	}
	calls := mock.GetCalls()
	if len(calls) != 1 || calls[0].S.A() != 1 {
		t.Errorf("%d calls", len(calls))
	}
	want := func(err error, text string) {
		t.Helper()
		var failure *fulmar.Error
		if !errors.As(err, &failure) || failure.Code() != fulmar.InvalidArgument || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
	_, err := server.Get(ctx, bad, nil, 1)
	want(err, "s.a: 0 is not at least 1")
	_, err = server.Get(ctx, good, []S{{A: 1}, {}}, 1)
	want(err, "more[1].a: 0 is not at least 1")
	_, err = server.Get(ctx, good, nil, 0)
	want(err, "n: 0 is not at least 1")
	_, err = server.Plain(ctx, PlainView{}, bad)
	want(err, "result.a: 0 is not at least 1")
	_, err = server.Inherited(ctx, bad)
	want(err, "held.a: 0 is not at least 1")
	want(server.Put(ctx, &S{}), "s.a: 0 is not at least 1")
	if got := len(mock.GetCalls()); got != 1 {
		t.Errorf("%d calls", got)
	}
}

// TestPatterns has fields whose names, behind those of their structs, are alike.
func TestPatterns(t *testing.T) {
	if err := (&AB{C: "b", A: []A{{BC: "a"}}}).Validate(); err != nil {
		t.Error(err)
	}
	if err := (&AB{C: "a"}).Validate(); err == nil {
		t.Error("no error")
	}
	if err := (&A{BC: "b"}).Validate(); err == nil {
		t.Error("no error")
	}
}
`
