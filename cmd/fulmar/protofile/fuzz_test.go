package protofile_test

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
)

// FuzzLoad: any text, alone and as what another file imports, is an error with its place,
// or becomes Go below the output folder, the same each time.
func FuzzLoad(f *testing.F) {
	f.Add("syntax = \"proto3\"; message M { string s = 1; map<int32, M> m = 2; oneof o { int32 i = 3; } } service S { rpc Do(M) returns (stream M); }", "message N {}")
	f.Add("syntax = \"proto2\"; package a.b; option go_package = \"./x;y\"; message M { extensions 1 to 5; optional group G = 9 {} } extend M { optional int32 e = 1; }", "")
	f.Add("edition = \"2023\"; import \"google/protobuf/go_features.proto\"; option features.(pb.go).api_level = API_HYBRID; enum E { A = 0; } message M { E e = 1; }", "syntax = \"proto3\";")
	f.Add("import public \"b.proto\"; message M { N n = 1; } service S { rpc Do(N) returns (M) { option deprecated = true; } }", "syntax = \"proto3\"; message N {}")
	f.Fuzz(func(t *testing.T, a, b string) {
		files := idl.Memory{"a.proto": a, "b.proto": b}
		front, request := archive("# load: a.proto b.proto\n")
		front.FileSystem = files
		loaded := front.Load(request)
		wrong := false
		for _, one := range loaded.Diagnostics {
			wrong = wrong || !one.Warning
			if one.Position.File == "" || one.Message == "" || strings.ContainsAny(one.Message, "\n\x1b") {
				t.Fatalf("%q", one)
			}
		}
		if wrong != (loaded.Program == nil) {
			t.Fatalf("program %v, but said %s", loaded.Program, said(loaded.Diagnostics))
		}
		if wrong {
			return
		}
		printed, diagnostics := emit.Generate(loaded.Program, emit.Options{ImportPrefix: prefix})
		if diagnostics.HasErrors() {
			t.Fatalf("%s", diagnostics)
		}
		again := front.Load(request)
		if len(again.Files) != len(loaded.Files) {
			t.Fatalf("%d files, then %d", len(loaded.Files), len(again.Files))
		}
		names := map[string]bool{}
		check := func(name string, content []byte) {
			if names[name] || !strings.HasSuffix(name, ".go") || strings.Contains(name, "..") || !strings.HasPrefix(string(content), emit.Header) {
				t.Fatalf("file %q begins %.80q", name, content)
			}
			names[name] = true
			if _, err := parser.ParseFile(token.NewFileSet(), name, content, 0); err != nil {
				t.Fatal(err)
			}
		}
		for i, file := range loaded.Files {
			check(file.Path, file.Content)
			if string(file.Content) != string(again.Files[i].Content) {
				t.Fatalf("%s differs in another run", file.Path)
			}
		}
		for _, file := range printed {
			check(file.Path, file.Content())
		}
	})
}
