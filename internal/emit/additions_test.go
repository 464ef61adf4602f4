package emit_test

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
)

const additionsIDL = `namespace go a
enum E { A }
struct S { 1: i64 id }
service V { i64 get() }
`

func prepareText(t testing.TB, text string) (*emit.Prepared, *schema.File) {
	t.Helper()
	program, diagnostics := idl.Load(idl.Options{Files: []string{"/main.thrift"}, FileSystem: idl.Memory{"/main.thrift": text}})
	if program == nil {
		t.Fatal(diagnostics)
	}
	prepared, diagnostics := emit.Prepare(program, emit.Options{ImportPrefix: "example.com/gen"})
	if prepared == nil {
		t.Fatal(diagnostics)
	}
	return prepared, program.Files[0]
}

// points returns all of them with what they are of.
func points(file *schema.File) []emit.Addition {
	return []emit.Addition{
		{Point: emit.StructFields, Of: file.Structs[0]},
		{Point: emit.AfterStruct, Of: file.Structs[0]},
		{Point: emit.FieldTag, Of: file.Structs[0].Fields[0]},
		{Point: emit.AfterEnum, Of: file.Enums[0]},
		{Point: emit.AfterService, Of: file.Services[0]},
		{Point: emit.EndOfFile, Of: file},
	}
}

func TestAdd_PointsBelongToSomething(t *testing.T) {
	prepared, file := prepareText(t, additionsIDL)
	for i, addition := range points(file) {
		for j, other := range points(file) {
			addition.Of, addition.Text = other.Of, `db:"x"`
			err := prepared.Add(addition)
			fits := i == j || i < 2 && j < 2 // both are of structs
			if !fits && (err == nil || !strings.Contains(err.Error(), "has no point "+string(addition.Point))) {
				t.Errorf("%s of %T: %v", addition.Point, addition.Of, err)
			}
		}
	}
	if err := prepared.Add(emit.Addition{Point: "codec.end", Of: file}); err == nil || err.Error() != `there is no point "codec.end"` {
		t.Errorf("%v", err)
	}
}

func TestAdd_NothingChangesNothing(t *testing.T) {
	base, _ := prepareText(t, additionsIDL)
	before, _ := base.Print()
	prepared, file := prepareText(t, additionsIDL)
	for _, addition := range points(file) {
		addition.Text = " \n\t\n"
		if err := prepared.Add(addition); err != nil && addition.Point != emit.FieldTag {
			t.Errorf("%s: %v", addition.Point, err)
		}
	}
	after, diagnostics := prepared.Print()
	for i := range before {
		if len(diagnostics) > 0 || !bytes.Equal(before[i].Content(), after[i].Content()) {
			t.Errorf("%s has changed: %v\n%s", before[i].Path, diagnostics, after[i].Content())
		}
	}
}

func TestAdd_BoundsAllText(t *testing.T) {
	prepared, file := prepareText(t, additionsIDL)
	text := "// " + strings.Repeat("x", 8<<20-3)
	for i := range 9 {
		err := prepared.Add(emit.Addition{Point: emit.EndOfFile, Of: file, Text: text})
		if full := i == 8; full != (err != nil) {
			t.Fatalf("addition %d: %v", i, err)
		}
	}
}

func TestAdd_ImportsWhatIsNamedOnly(t *testing.T) {
	prepared, file := prepareText(t, additionsIDL)
	given := []schema.Import{{Name: "yaml", Path: "example.com/go-yaml"}, {Name: "rand", Path: "math/rand/v2"}, {Name: "unused", Path: "example.com/unused"}}
	text := "func use(fmt yaml.Node) int {\n\tunused := fmt\n\t_ = unused.Kind\n\treturn rand.Int() + strconv.IntSize\n}"
	if err := prepared.Add(emit.Addition{Point: emit.EndOfFile, Of: file, Text: text, Imports: given}); err != nil {
		t.Fatal(err)
	}
	files, diagnostics := prepared.Print()
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	want := "import (\n\t\"fmt\"\n\trand \"math/rand/v2\"\n\t\"strconv\"\n\n\tyaml \"example.com/go-yaml\"\n)\n"
	if types := string(files[0].Content()); !strings.Contains(types, want) {
		t.Errorf("no\n%s in\n%s", want, types)
	}
}

// FuzzAdd inserts any text at any point, and adds it as a file. What is accepted
// leaves every declaration where it was, and is formatted Go without instructions
// and with no other imports than it may have.
func FuzzAdd(f *testing.F) {
	f.Add(uint8(0), "x int", "")
	f.Add(uint8(1), "func (s *S) F() { os.Exit(1) }", "os")
	f.Add(uint8(2), `db:"x"`, "")
	f.Add(uint8(5), "var (\n\tX = 1\n)", "")
	f.Add(uint8(6), "// Text.\ntype T struct{}", "fmt")
	base, _ := prepareText(f, additionsIDL)
	before, diagnostics := base.Print()
	if len(diagnostics) > 0 {
		f.Fatal(diagnostics)
	}
	f.Fuzz(func(t *testing.T, point uint8, text, imported string) {
		prepared, file := prepareText(t, additionsIDL)
		given := []schema.Import{{Name: imported, Path: imported}}
		if imported == "" {
			given = nil
		}
		var err error
		if all := points(file); int(point)%7 < len(all) {
			addition := all[point%7]
			addition.Origin, addition.Text, addition.Imports = "plugin x", text, given
			err = prepared.Add(addition)
		} else {
			err = prepared.AddFile("plugin x", file, "added", text, given)
		}
		if err != nil {
			return
		}
		after, diagnostics := prepared.Print()
		if len(diagnostics) > 0 {
			return // a name that is taken
		}
		for _, old := range before {
			found := false
			for _, one := range after {
				found = found || one.Path == old.Path && keeps(t, old.Content(), one.Content())
			}
			if !found {
				t.Errorf("%s is not what it was", old.Path)
			}
		}
		for _, one := range after {
			checkAdded(t, one, imported)
		}
	})
}

// keeps says that every line of code of a file is in another, apart from layout,
// tags and imports.
func keeps(t *testing.T, old, changed []byte) bool {
	rest := string(changed)
	for line := range strings.Lines(string(old)) {
		line = strings.Join(strings.Fields(line), " ")
		if strings.HasPrefix(line, "//") || strings.Contains(line, "`") || strings.Contains(line, "import") || strings.HasPrefix(line, `"`) {
			continue
		}
		if !strings.Contains(strings.Join(strings.Fields(rest), " "), line) {
			t.Logf("no %q", line)
			return false
		}
	}
	return true
}

func checkAdded(t *testing.T, file emit.File, imported string) {
	tree, err := parser.ParseFile(token.NewFileSet(), file.Path, file.Content(), parser.ParseComments)
	if err != nil {
		t.Fatalf("%v\n%s", err, file.Content())
	}
	if formatted, err := format.Source(file.Content()); err != nil || !bytes.Equal(formatted, file.Content()) {
		t.Errorf("gofmt changes %s: %v\n%s", file.Path, err, file.Content())
	}
	for _, spec := range tree.Imports {
		switch path := strings.Trim(spec.Path.Value, `"`); path {
		case imported, "context", "errors", "fmt", "math", "strconv", "github.com/fulmar-rpc/fulmar", "github.com/fulmar-rpc/fulmar/thrift", "github.com/fulmar-rpc/fulmar/thrift/methods",
			"github.com/fulmar-rpc/fulmar/thrift/descriptor":
		default:
			t.Errorf("%s imports %s", file.Path, path)
		}
	}
	for _, declaration := range tree.Decls {
		if group, ok := declaration.(*ast.GenDecl); ok && group.Tok == token.IMPORT && group != tree.Decls[0] {
			t.Errorf("%s has a second import declaration", file.Path)
		}
	}
	for _, group := range tree.Comments {
		for _, comment := range group.List {
			for _, prefix := range []string{"//go:", "//line ", "/*line ", "//export "} {
				if strings.HasPrefix(comment.Text, prefix) {
					t.Errorf("%s: %q", file.Path, comment.Text)
				}
			}
		}
	}
}
