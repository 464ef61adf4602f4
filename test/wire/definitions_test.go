package wire_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// refused are definitions of Apache Thrift that fulmar gen refuses, by their
// place in its repository, with the beginning of the reason.
var refused = map[string]string{
	// Meant to be refused: it is called so.
	"test/BrokenConstants.thrift": "number 9876543210987654321: does not fit 64 bits",
	// Includes another file of this name, and neither has a namespace for Go.
	"lib/php/test/Resources/ThriftTest.thrift": "Go package thrifttest: its files ",
}

// includeFolders are where Apache's definitions expect others to be found.
var includeFolders = []string{
	"test", "lib/rs/test_recursive/src", "lib/rs/test_recursive/src/transit",
	"lib/rs/test_recursive/src/transit/light", "lib/rs/test_recursive/src/transit/services",
}

// output runs a command in a folder and returns what it says.
func output(t *testing.T, folder, name string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK=off")
	said, err := command.CombinedOutput()
	return string(said), err
}

func mustOutput(t *testing.T, folder, name string, arguments ...string) string {
	t.Helper()
	said, err := output(t, folder, name, arguments...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, said)
	}
	return strings.TrimSpace(said)
}

// TestDefinitions_OfApacheThriftAreGenerated runs fulmar gen on every definition
// in the module of Apache Thrift, which has them for its own tests, and compiles
// what comes of them. Some give no ids, or negative ones.
func TestDefinitions_OfApacheThriftAreGenerated(t *testing.T) {
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	fulmar := filepath.Join(folder, "fulmar")
	mustOutput(t, filepath.Join(repository, "cmd", "fulmar"), "go", "build", "-o", fulmar, ".")
	apache := mustOutput(t, ".", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/apache/thrift")
	names := definitions(t, apache)
	if len(names) < 150 {
		t.Fatalf("only %d definitions in %s", len(names), apache)
	}
	module := "module example.com/definitions\n\ngo 1.26.0\n\nrequire github.com/fulmar-rpc/fulmar v0.0.0\n\nreplace github.com/fulmar-rpc/fulmar => " + repository + "\n"
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte(module), 0o644); err != nil {
		t.Fatal(err)
	}
	for number, name := range names {
		arguments := []string{"gen", "--implicit-ids=apache", "--allow-negative-ids", "-o", fmt.Sprintf("gen/d%d", number)}
		for _, include := range includeFolders {
			arguments = append(arguments, "-I", filepath.Join(apache, include))
		}
		said, err := output(t, folder, fulmar, append(arguments, filepath.Join(apache, name))...)
		switch reason := refused[filepath.ToSlash(name)]; {
		case reason == "" && err != nil:
			t.Errorf("%s: %v\n%s", name, err, said)
		case reason != "" && (err == nil || !strings.Contains(said, ": "+reason)):
			t.Errorf("%s: %v, expected %q\n%s", name, err, reason, said)
		}
	}
	mustOutput(t, folder, "go", "vet", "-mod=mod", "./...")
}

// definitions returns the names of the definitions below a folder.
func definitions(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".thrift" {
			name, relErr := filepath.Rel(folder, path)
			names, err = append(names, name), relErr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
