package emit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
)

// FuzzGenerate turns every definition that loads into Go that compiles, has no
// directives and stays below the output folder.
func FuzzGenerate(f *testing.F) {
	names, err := filepath.Glob("testdata/*/*.thrift")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("main.thrift", string(text))
	}
	newChecker(f) // compiles what is imported, which may take the 10 s after which an input counts as hung
	f.Add("../a-b_linux.x.thrift", "namespace go a.b\nconst map<string, i32> M = {'a': 1}")
	f.Fuzz(func(t *testing.T, base, text string) {
		name := filepath.ToSlash(filepath.Join("/", base))
		memory := idl.Memory{name: text, "/included.thrift": "namespace go other.thrift\nstruct S { 1: i32 i = 1 }\nenum E { A, B }\nconst E C = E.B\nservice V { S get() }"}
		program, _ := idl.Load(idl.Options{Files: []string{name}, FileSystem: memory})
		if program == nil {
			return
		}
		const prefix = "example.com/gen"
		for _, options := range []emit.Options{{}, {Kitex: true}, {Kitex: true, KitexNested: true}} {
			options.ImportPrefix = prefix
			files, diagnostics := emit.Generate(program, options)
			if diagnostics.HasErrors() {
				if len(files) > 0 {
					t.Error("files although there are errors")
				}
				return
			}
			for _, file := range files {
				checkHarmless(t, file)
			}
			if options.Kitex || !strings.Contains(text, "go.type") { // which may name types that there are not
				mustCheck(t, newChecker(t), files, prefix)
			}
		}
	})
}
