package emit_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// goldenPrefix is where the golden files are packages that tests can import.
// Wildcards do not reach into testdata, so nothing else builds them.
const goldenPrefix = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/"

// cases are the folders of testdata with a definition of the same name, which
// is what is generated; it may include others.
var cases = []string{"bounds", "deep", "deepreuse", "enumtext", "fieldtypes", "hostile", "ids", "inherit", "kitex", "kitexnested", "kitexown", "names", "nested", "orders", "recursion", "retention", "reuse", "sets", "shapes", "streams", "unknown", "values", "viewmethods", "views"}

func TestGenerate_MatchesGoldenFiles(t *testing.T) {
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join("testdata", name)
			files := generateFile(t, filepath.Join(folder, name+".thrift"), goldenPrefix+name+"/golden")
			var expected []string
			for _, file := range files {
				target := filepath.Join(folder, "golden", filepath.FromSlash(file.Path))
				testkit.Golden(t, target, file.Content())
				expected = append(expected, target)
			}
			for _, found := range goFiles(t, filepath.Join(folder, "golden")) {
				if !slices.Contains(expected, found) {
					t.Errorf("%s is not generated any more; remove it", found)
				}
			}
		})
	}
}

func TestGenerate_Compiles(t *testing.T) {
	for _, name := range cases {
		files := generateFile(t, filepath.Join("testdata", name, name+".thrift"), "example.com/gen")
		mustCheck(t, newChecker(t), files, "example.com/gen")
	}
}

// TestGenerate_ReuseAsksItOfOtherPackages: in a struct that cannot be read into where it
// is there would stay what was there before.
func TestGenerate_ReuseAsksItOfOtherPackages(t *testing.T) {
	program, diagnostics := idl.Load(idl.Options{Files: []string{filepath.Join("testdata", "reuse", "reuse.thrift")}})
	if program == nil {
		t.Fatal(diagnostics)
	}
	both := map[bool][]emit.File{}
	for _, reuse := range []bool{false, true} {
		files, diagnostics := emit.Generate(program, emit.Options{ImportPrefix: "example.com/gen", Reuse: reuse})
		if len(diagnostics) > 0 {
			t.Fatal(diagnostics)
		}
		both[reuse] = files
	}
	mixed := slices.Clone(both[true])
	for i, file := range mixed {
		if strings.HasPrefix(file.Path, "reuse/other/") {
			mixed[i] = both[false][i]
		}
	}
	mustCheck(t, newChecker(t), both[true], "example.com/gen")
	if err := newChecker(t).check(mixed, "example.com/gen"); err == nil || !strings.Contains(err.Error(), "missing method ReusesThrift") {
		t.Errorf("%v; want it not to compile", err)
	}
}

// TestGenerate_ReuseIsNotPromoted embeds a struct of a package that was generated with
// --reuse in one of a package that was not.
func TestGenerate_ReuseIsNotPromoted(t *testing.T) {
	program, diagnostics := idl.Load(idl.Options{Files: []string{filepath.Join("testdata", "nested", "nested.thrift")}})
	if program == nil {
		t.Fatal(diagnostics)
	}
	var mixed []emit.File
	for _, reuse := range []bool{true, false} {
		files, diagnostics := emit.Generate(program, emit.Options{ImportPrefix: "example.com/gen", Reuse: reuse})
		if len(diagnostics) > 0 {
			t.Fatal(diagnostics)
		}
		for _, file := range files {
			if reuse == strings.HasPrefix(file.Path, "nested/common/") {
				mixed = append(mixed, file)
			}
		}
	}
	c := newChecker(t)
	mustCheck(t, c, mixed, "example.com/gen")
	for name, parameters := range map[string]int{"Base": 0, "Request": 1} {
		pkg := c.checked["example.com/gen/nested"]
		if name == "Base" {
			pkg = c.checked["example.com/gen/nested/common"]
		}
		methods := types.NewMethodSet(types.NewPointer(pkg.Scope().Lookup(name).Type()))
		method := methods.Lookup(pkg, "ReusesThrift")
		if method == nil || method.Obj().Type().(*types.Signature).Params().Len() != parameters {
			t.Errorf("%s: %v", name, method)
		}
	}
}

// TestGenerate_SetsInSetsAreNotMuchCode: what compares a set has no part that compares the
// sets in it, which would double the code with each level.
func TestGenerate_SetsInSetsAreNotMuchCode(t *testing.T) {
	const levels = 20
	files := generateText(t, "namespace go x\nstruct S { 1: "+strings.Repeat("set<", levels)+"i32"+strings.Repeat(">", levels)+" a (go.set = \"unique\") }")
	mustCheck(t, newChecker(t), files, "example.com/gen")
	for _, file := range files {
		if len(file.Content()) > 200_000 {
			t.Errorf("%s has %d bytes", file.Path, len(file.Content()))
		}
	}
}

// TestGenerate_CompilesInTheShapeOfKitex has the definitions that are meant for the
// other shape.
func TestGenerate_CompilesInTheShapeOfKitex(t *testing.T) {
	for _, name := range cases {
		program, diagnostics := idl.Load(idl.Options{Files: []string{filepath.Join("testdata", name, name+".thrift")}, AllowNegativeIDs: true})
		if program == nil {
			t.Fatal(diagnostics)
		}
		files, diagnostics := emit.Generate(program, emit.Options{ImportPrefix: "example.com/gen", Kitex: true})
		if diagnostics.HasErrors() {
			t.Fatal(diagnostics)
		}
		mustCheck(t, newChecker(t), files, "example.com/gen")
		for _, file := range files {
			checkHarmless(t, file)
		}
	}
}

// TestGenerate_CompilesWithUniqueSets has sets of everything, in both shapes.
func TestGenerate_CompilesWithUniqueSets(t *testing.T) {
	for _, name := range cases {
		for _, kitex := range []bool{false, true} {
			program, diagnostics := idl.Load(idl.Options{Files: []string{filepath.Join("testdata", name, name+".thrift")}, AllowNegativeIDs: true})
			if program == nil {
				t.Fatal(diagnostics)
			}
			files, diagnostics := emit.Generate(program, emit.Options{ImportPrefix: "example.com/gen", Kitex: kitex, UniqueSets: true, Reuse: !kitex, Views: !kitex})
			if diagnostics.HasErrors() && name == "kitexnested" && !kitex {
				continue // which is for the other shape only
			}
			if diagnostics.HasErrors() {
				t.Fatal(diagnostics)
			}
			mustCheck(t, newChecker(t), files, "example.com/gen")
		}
	}
}

// TestGenerate_NamesAreThoseOfKitex has what its tool makes of names that it does not
// compile well with; test/kitexshape compares the others.
func TestGenerate_NamesAreThoseOfKitex(t *testing.T) {
	names := map[string]string{
		"_hidden": "X_Hidden", "_": "X__", "__": "X___", "a_1": "A_1", "a_B": "A_B", "user_id": "UserId", "URL": "URL", "aURL": "AURL",
		"new": "New_", "newer": "Newer_", "my_args": "MyArgs_", "result": "Result_", "Results": "Results", "tail_": "Tail_", "write": "Write_",
	}
	var fields []string
	for name := range names {
		fields = append(fields, fmt.Sprintf("%d: i32 %s", len(fields)+1, name))
	}
	memory := idl.Memory{"/main.thrift": "namespace go x\nstruct S { " + strings.Join(fields, ", ") + " }"}
	program, diagnostics := idl.Load(idl.Options{Files: []string{"/main.thrift"}, FileSystem: memory})
	if program == nil {
		t.Fatal(diagnostics)
	}
	files, diagnostics := emit.Generate(program, emit.Options{Kitex: true})
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	mustCheck(t, newChecker(t), files, "example.com/gen")
	for _, field := range program.Files[0].Structs[0].Fields {
		if want := names[field.Name]; field.GoName != want {
			t.Errorf("%s is called %s, want %s", field.Name, field.GoName, want)
		}
	}
}

// TestGenerate_CompilesContainersOfNothing has containers with nothing in them that
// loops would be for.
func TestGenerate_CompilesContainersOfNothing(t *testing.T) {
	files := generateText(t, `namespace go x
struct Empty {}
struct Key { 1: Empty e }
union None {}
struct S {
  1: map<Key, i64> pairs
  2: list<map<Key, Key>> list
  3: map<i32, map<Key, i8>> map
  4: map<list<Empty>, None> nothing
  5: optional set<list<map<Empty, Empty>>> deep
}`)
	mustCheck(t, newChecker(t), files, "example.com/gen")
}

// TestGenerate_FieldTypesAreChecked has types that are not in Go what the definition
// says, most of which a conversion would take.
func TestGenerate_FieldTypesAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		`i64 a (go.type = "time.Duration")`:                      "",
		`i32 a (go.type = "time.Duration")`:                      "cannot convert",
		`optional i64 a (go.type = "time.Month")`:                "cannot convert",
		`string a (go.type = "encoding/json.RawMessage")`:        "cannot convert",
		`binary a (go.type = "encoding/json.Number")`:            "cannot convert",
		`i64 a (go.type = "time.Now")`:                           "is not a type",
		`string a (go.type = "S")`:                               "invalid recursive type",
		`string a (go.type = "time.Nothing")`:                    "undefined: time.Nothing",
		`i64 a (go.type = "example.com/gen/x.T")`:                "may not be imported",
		`i64 time (go.type = "time.Duration", go.name = "Time")`: "",
	} {
		err := newChecker(t).check(generateText(t, "namespace go x\nstruct S { 1: "+text+" }"), "example.com/gen")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestGenerate_LongDescriptorsAreSeveralConstants has much to say about a few structs,
// and then too much.
func TestGenerate_LongDescriptorsAreSeveralConstants(t *testing.T) {
	text := "namespace go x\n"
	for n := range 5 {
		text += fmt.Sprintf("struct S%d { 1: string a } (note = '%s')\n", n, strings.Repeat("\x01", 300_000))
	}
	files := generateText(t, text)
	mustCheck(t, newChecker(t), files, "example.com/gen")
	code := ""
	for _, file := range files {
		code += string(file.Content())
		checkHarmless(t, file)
	}
	for _, part := range []string{"const mainDescriptor1 = ", "const mainDescriptor2 = ", "Encoded: mainDescriptor1 +\n\t\tmainDescriptor2 +\n"} {
		if !strings.Contains(code, part) {
			t.Errorf("%q is not in the code", part)
		}
	}
	program := load(t, idl.Memory{"/main.thrift": "namespace go x\nstruct S {} (" + strings.Repeat("aa,", 1_000_000) + ")"})
	files, diagnostics := emit.Generate(program, emit.Options{})
	if got := diagnostics.String(); files != nil || !strings.Contains(got, "what describes the definition is too long (limit 16777216 bytes); --no-descriptors leaves it out") {
		t.Errorf("%d files, %s", len(files), got)
	}
	if files, diagnostics = emit.Generate(program, emit.Options{NoDescriptors: true}); files == nil {
		t.Errorf("without descriptors: %s", diagnostics)
	}
}

// TestGenerate_NoMethodsLeavesThemOut wants what JSON needs to stay.
func TestGenerate_NoMethodsLeavesThemOut(t *testing.T) {
	const methods, prefix = "func (s *Keys) UnmarshalJSON", "example.com/gen"
	program, diagnostics := idl.Load(idl.Options{Files: []string{filepath.Join("testdata", "shapes", "shapes.thrift")}})
	if program == nil {
		t.Fatal(diagnostics)
	}
	files, diagnostics := emit.Generate(program, emit.Options{ImportPrefix: prefix, NoMethods: true})
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	mustCheck(t, newChecker(t), files, prefix)
	found := false
	for _, file := range files {
		found = found || strings.Contains(string(file.Content()), methods)
		for _, name := range []string{") Equal(", ") Clone(", ") Detach(", ") SizeThrift(", "s *Point) String("} {
			if strings.Contains(string(file.Content()), name) {
				t.Errorf("%s has %s", file.Path, name)
			}
		}
	}
	if !found {
		t.Errorf("no file has %s", methods)
	}
}

func TestGenerate_IsDeterministic(t *testing.T) {
	for _, name := range cases {
		first := generateFile(t, filepath.Join("testdata", name, name+".thrift"), "example.com/gen")
		second := generateFile(t, filepath.Join("testdata", name, name+".thrift"), "example.com/gen")
		if !slices.EqualFunc(first, second, func(a, b emit.File) bool {
			return a.Path == b.Path && bytes.Equal(a.Content(), b.Content())
		}) {
			t.Errorf("%s: two runs differ", name)
		}
	}
}

// TestGenerate_CarriesNoInstructions looks for everything in the hostile case
// that would be more than text.
func TestGenerate_CarriesNoInstructions(t *testing.T) {
	for _, file := range generateFile(t, "testdata/hostile/hostile.thrift", "example.com/gen") {
		checkHarmless(t, file)
	}
}

// checkHarmless fails the test unless the file is formatted Go without
// directives, with the comments, imports and declarations of generated code
// only.
func checkHarmless(t *testing.T, file emit.File) {
	t.Helper()
	if !fs.ValidPath(file.Path) || path.Ext(file.Path) != ".go" {
		t.Errorf("path %q", file.Path)
	}
	tree, err := parser.ParseFile(token.NewFileSet(), file.Path, file.Content(), parser.ParseComments)
	if err != nil {
		t.Fatalf("%s: %v\n%s", file.Path, err, file.Content())
	}
	if formatted, err := format.Source(file.Content()); err != nil || !bytes.Equal(formatted, file.Content()) {
		t.Errorf("%s: gofmt changes it (%v)\n%s", file.Path, err, file.Content())
	}
	for _, group := range tree.Comments {
		for _, comment := range group.List {
			text, isLine := strings.CutPrefix(comment.Text, "//")
			if !isLine || text != "" && text[0] != ' ' && text[0] != '\t' {
				t.Errorf("%s: comment %q", file.Path, comment.Text)
			}
			if strings.HasPrefix(strings.TrimSpace(text), "+build") {
				t.Errorf("%s: build constraint %q", file.Path, comment.Text)
			}
		}
	}
	for _, spec := range tree.Imports {
		if spec.Path.Value == `"C"` || spec.Path.Value == `"os"` {
			t.Errorf("%s: imports %s", file.Path, spec.Path.Value)
		}
	}
	for _, declaration := range tree.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil && !function.Name.IsExported() {
			t.Errorf("%s: function %s", file.Path, function.Name)
		}
	}
}

// generateFile loads a definition from disk, which may have ids below 1, and
// generates it.
func generateFile(t testing.TB, name, prefix string) []emit.File {
	t.Helper()
	return generate(t, idl.Options{Files: []string{name}, AllowNegativeIDs: true}, prefix)
}

// generateText generates the definition main.thrift with this text.
func generateText(t testing.TB, text string) []emit.File {
	t.Helper()
	memory := idl.Memory{"/main.thrift": text}
	return generate(t, idl.Options{Files: []string{"/main.thrift"}, FileSystem: memory}, "example.com/gen")
}

func generate(t testing.TB, options idl.Options, prefix string) []emit.File {
	t.Helper()
	program, diagnostics := idl.Load(options)
	if program == nil {
		t.Fatalf("loading:\n%s", diagnostics)
	}
	of := func(name string) bool {
		return slices.Contains(options.Files, filepath.Join("testdata", name, name+".thrift"))
	}
	files, diagnostics := emit.Generate(program, emit.Options{ImportPrefix: prefix, Kitex: of("kitex") || of("kitexown") || of("kitexnested"), KitexNested: of("kitexnested"), EnumText: of("enumtext"), Reuse: of("reuse") || of("deepreuse"), Views: of("views")})
	if warned := of("deep") || of("deepreuse"); len(diagnostics) > 0 && !warned || diagnostics.HasErrors() {
		t.Fatalf("generating:\n%s", diagnostics)
	}
	return files
}

func goFiles(t testing.TB, folder string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, name)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return found
}
