package idl_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/idl"
)

// tree writes files below a new folder, which becomes the working directory if
// a name says so, and returns the folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Skipf("symbolic links are not available: %v", err)
	}
}

// expectError loads with the files of the operating system and looks for one
// message.
func expectError(t *testing.T, options idl.Options, message string) {
	t.Helper()
	program, diagnostics := idl.Load(options)
	if program != nil || !strings.Contains(diagnostics.String(), message) {
		t.Errorf("expected an error with %q, got\n%s", message, diagnostics)
	}
}

func expectPaths(t *testing.T, options idl.Options, paths ...string) {
	t.Helper()
	program, diagnostics := idl.Load(options)
	if program == nil {
		t.Fatalf("does not load:\n%s", diagnostics)
	}
	var got []string
	for _, file := range program.Files {
		got = append(got, file.Path)
	}
	if strings.Join(got, " ") != strings.Join(paths, " ") {
		t.Errorf("paths are %q, expected %q", got, paths)
	}
}

func TestLoad_ReadsOnlyBelowNamedFolders(t *testing.T) {
	root := tree(t, map[string]string{
		"work/here.thrift":         "struct Here {}",
		"project/main.thrift":      `include "sub/inner.thrift"`,
		"project/sub/inner.thrift": `include "../other.thrift"`,
		"project/other.thrift":     "",
		"project/escape.thrift":    `include "../secret/secret.thrift"`,
		"project/absolute.thrift":  "",
		"project/linked.thrift":    `include "link.thrift"`,
		"project/folder.thrift":    `include "outside/secret.thrift"`,
		"project/working.thrift":   `include "../work/here.thrift"`,
		"secret/secret.thrift":     "struct Secret {}",
	})
	t.Chdir(filepath.Join(root, "work"))
	project, secret := filepath.Join(root, "project"), filepath.Join(root, "secret")
	absolute := filepath.ToSlash(filepath.Join(secret, "secret.thrift"))
	if err := os.WriteFile(filepath.Join(project, "absolute.thrift"), []byte(`include "`+absolute+`"`), 0o644); err != nil {
		t.Fatal(err)
	}
	link(t, absolute, filepath.Join(project, "link.thrift"))
	link(t, secret, filepath.Join(project, "outside"))
	load := func(name string, includeDirs ...string) idl.Options {
		return idl.Options{Files: []string{filepath.Join(project, name)}, IncludeDirs: includeDirs}
	}

	expectPaths(t, load("main.thrift"), "other.thrift", "sub/inner.thrift", "main.thrift")
	expectPaths(t, load("working.thrift"), "here.thrift", "working.thrift")
	for _, name := range []string{"escape.thrift", "absolute.thrift", "linked.thrift", "folder.thrift"} {
		expectError(t, load(name), "allow its folder with -I")
		if _, diagnostics := idl.Load(load(name, secret)); diagnostics.HasErrors() {
			t.Errorf("%s with -I: %s", name, diagnostics)
		}
	}
}

func TestLoad_ShowsNoFoldersOfTheMachine(t *testing.T) {
	root := tree(t, map[string]string{
		"work/idl/main.thrift":   `include "far.thrift"`,
		"vendor/dir/far.thrift":  "",
		"above/main.thrift":      "",
		"work/vendor/far.thrift": "",
	})
	t.Chdir(filepath.Join(root, "work"))
	expectPaths(t, idl.Options{Files: []string{"idl/main.thrift"}, IncludeDirs: []string{"../vendor/dir"}}, "far.thrift", "idl/main.thrift")
	expectPaths(t, idl.Options{Files: []string{"./idl/../idl/main.thrift"}, IncludeDirs: []string{"vendor"}}, "far.thrift", "idl/main.thrift")
	expectPaths(t, idl.Options{Files: []string{"../above/main.thrift"}}, "main.thrift")
	expectPaths(t, idl.Options{Files: []string{filepath.Join(root, "above/main.thrift")}}, "main.thrift")
}

func TestLoad_LoadsEachFileOnce(t *testing.T) {
	root := tree(t, map[string]string{
		"a.thrift":      "include \"b.thrift\"\ninclude \"sub/../c.thrift\"\nstruct A { 1: b.B b, 2: c.C c }",
		"b.thrift":      "include \"sub/../c.thrift\"\nstruct B { 1: c.C c }",
		"c.thrift":      "struct C {}",
		"sub/.keep":     "",
		"linked.thrift": "include \"c2/c.thrift\"\nstruct L { 1: c.C c }",
	})
	t.Chdir(root)
	link(t, ".", filepath.Join(root, "c2"))
	expectPaths(t, idl.Options{Files: []string{"a.thrift", "c.thrift", "./a.thrift", "linked.thrift"}}, "c.thrift", "b.thrift", "a.thrift", "linked.thrift")
}

func TestLoad_RefusesWhatIsNoFile(t *testing.T) {
	root := tree(t, map[string]string{
		"main.thrift":        `include "folder.thrift"`,
		"folder.thrift/file": "",
		"huge.thrift":        strings.Repeat(" ", 16<<20+1),
		"two.thrift":         "include \"half.thrift\"\n" + strings.Repeat(" ", 9<<20),
		"half.thrift":        strings.Repeat(" ", 9<<20),
		"below.thrift":       `include "main.thrift/x.thrift"`,
	})
	t.Chdir(root)
	expectError(t, idl.Options{}, "no file given")
	expectError(t, idl.Options{Files: []string{"nothing.thrift"}}, "nothing.thrift: cannot be read")
	expectError(t, idl.Options{Files: []string{"a\nb.thrift"}}, "control character")
	expectError(t, idl.Options{Files: []string{"main.thrift"}}, `main.thrift:1:9: include "folder.thrift": cannot be read: not a regular file`)
	expectError(t, idl.Options{Files: []string{"folder.thrift"}}, "not a regular file")
	expectError(t, idl.Options{Files: []string{"huge.thrift"}}, "limit 16777216 bytes")
	expectError(t, idl.Options{Files: []string{"two.thrift"}}, `two.thrift:1:9: include "half.thrift": cannot be read: too long`)
	expectError(t, idl.Options{Files: []string{"below.thrift"}}, `include "main.thrift/x.thrift"`)
	expectError(t, idl.Options{Files: []string{"main.thrift"}, IncludeDirs: []string{"nowhere"}}, "-I nowhere: folder cannot be used")
}

func TestLoad_LimitsChainsOfIncludes(t *testing.T) {
	files := idl.Memory{"f0.thrift": ""}
	for i := 1; i < 70; i++ {
		files[name(i)] = `include "` + name(i-1) + `"`
	}
	if _, diagnostics := idl.Load(idl.Options{Files: []string{name(64)}, FileSystem: files}); diagnostics.HasErrors() {
		t.Errorf("64 includes: %s", diagnostics)
	}
	expectError(t, idl.Options{Files: []string{name(65)}, FileSystem: files}, "nested too deeply (limit 64 includes)")
}

func name(i int) string { return "f" + strconv.Itoa(i) + ".thrift" }
