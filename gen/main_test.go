package gen_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// inFolder makes a folder with these files, pairs of name and content, the
// working directory.
func inFolder(t testing.TB, files ...string) string {
	t.Helper()
	folder := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(folder, files[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if test, ok := t.(interface{ Chdir(string) }); ok {
		test.Chdir(folder)
	}
	return folder
}

// runMain calls Main as a program would.
func runMain(arguments []string, plugins ...gen.Plugin) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = gen.Main(append([]string{filepath.Join("some", "where", "generate")}, arguments...), &out, &err, plugins...)
	return code, out.String(), err.String()
}

func TestMain_Generates(t *testing.T) {
	inFolder(t, "go.mod", "module example.com/shop\n", "idl/a b.thrift", "namespace go a\nstruct S {}", "$x/keep", "")
	code, stdout, stderr := runMain([]string{"-o", "out", "-I", "$x", "idl/a b.thrift"}, twoPlugins()...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	// The test binary is no program of a module that go run could start.
	for _, want := range []string{"generate: 1 package, 3 files (3 written, 0 unchanged, 0 removed)\n", `-o out -I ${DOLLAR}x "idl/a b.thrift"` + "\n", "\n//go:generate "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("standard output has no %q:\n%s", want, stdout)
		}
	}
	t.Setenv("GOFILE", "main.go")
	t.Setenv("GOLINE", "7")
	if _, stdout, _ := runMain([]string{"-o", "out", "idl/a b.thrift"}); strings.Contains(stdout, "go:generate") {
		t.Errorf("go generate is told of itself: %s", stdout)
	}
}

func twoPlugins() []gen.Plugin {
	return []gen.Plugin{&plugin{name: "one"}, &plugin{name: "two"}}
}

func TestMain_ExitCodes(t *testing.T) {
	inFolder(t, "a.thrift", "struct S {}", "bad.thrift", "struct S { 1: X x }")
	for _, test := range []struct {
		arguments string
		code      int
		stderr    string
	}{
		{"a.thrift", 0, ""},
		{"--check a.thrift", 0, ""},
		{"--check -o other a.thrift", 1, "other/a/a_codec.go: is missing\nother/a/a_methods.go: is missing\nother/a/a_types.go: is missing\n"},
		{"bad.thrift", 1, "bad.thrift:1:15: "},
		{"-o a.thrift a.thrift", 1, "--output a.thrift: a.thrift is a file, expected a folder\n"},
		{"", 2, "no files to generate from"},
		{"-nonsense", 2, "flag provided but not defined: -nonsense"},
		{"-o= a.thrift", 2, "is empty, expected the name of a folder"},
		{"-help", 0, "Flags:"},
	} {
		code, _, stderr := runMain(strings.Fields(test.arguments))
		if code != test.code || !strings.Contains(filepath.ToSlash(stderr), test.stderr) {
			t.Errorf("%s: exit code %d, want %d\n%s", test.arguments, code, test.code, stderr)
		}
	}
	if code, _, stderr := runMain([]string{"a.thrift"}, &plugin{name: "Bad Name"}); code != 1 || !strings.Contains(stderr, "plugin name") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestConfig_FlagsSetEveryField(t *testing.T) {
	var config gen.Config
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	config.Bind(flags)
	if err := flags.Parse(strings.Fields("-o a -I b -I c -package-prefix d -allow-negative-ids -implicit-ids thriftgo -namespace old=new -ignore-initialisms -json-enums text -no-methods -keep-unknown -unique-sets -reuse -shape kitex -kitex-nested -no-descriptors -check")); err != nil {
		t.Fatal(err)
	}
	if config.ImplicitIDs != gen.ImplicitIDsThriftgo || config.Namespaces["old"] != "new" || !config.IgnoreInitialisms || !config.EnumsAsText || !config.NoMethods || !config.KeepUnknown || !config.UniqueSets || !config.Reuse || config.Shape != gen.ShapeKitex || !config.KitexNested || !config.NoDescriptors {
		t.Errorf("%+v", config)
	}
	for _, bad := range []string{"-implicit-ids=", "-implicit-ids=other", "-namespace=old", "-json-enums=", "-json-enums=names", "-namespace==new", "-namespace=old=again"} {
		if err := flags.Parse([]string{bad}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	if config.Output != "a" || strings.Join(config.IncludeDirs, " ") != "b c" || config.PackagePrefix != "d" || !config.AllowNegativeIDs || !config.Check {
		t.Errorf("%+v", config)
	}
}

func TestConfig_ValidateReportsAllProblems(t *testing.T) {
	err := gen.Config{Files: []string{""}, IncludeDirs: []string{""}, ImplicitIDs: "other"}.Validate()
	if err == nil || len(strings.Split(err.Error(), "\n")) != 3 {
		t.Errorf("%v", err)
	}
	if _, err := gen.Run(gen.Config{}); err == nil || !strings.Contains(err.Error(), "no files") {
		t.Errorf("%v", err)
	}
}
