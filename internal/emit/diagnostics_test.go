package emit_test

import (
	"bytes"
	"fmt"
	"go/build"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

func load(t *testing.T, files idl.Memory) *schema.Program {
	t.Helper()
	program, diagnostics := idl.Load(idl.Options{Files: []string{"/main.thrift"}, FileSystem: files})
	if program == nil {
		t.Fatal(diagnostics)
	}
	return program
}

// wantDiagnostics fails the test unless generating gives no files and these
// messages, by their beginnings and in this order.
func wantDiagnostics(t *testing.T, program *schema.Program, options emit.Options, want ...string) {
	t.Helper()
	files, diagnostics := emit.Generate(program, options)
	if len(files) > 0 {
		t.Error("files although there are errors")
	}
	same := slices.EqualFunc(diagnostics, want, func(d idl.Diagnostic, text string) bool {
		return strings.HasPrefix(d.String(), text)
	})
	if !same {
		t.Errorf("got\n%swant\n%s", diagnostics, strings.Join(want, "\n"))
	}
}

func TestGenerate_ReportsEveryAnnotationItCannotFollow(t *testing.T) {
	program := load(t, idl.Memory{"/main.thrift": `namespace go x
struct S { 1: i32 a (go.name = "lower"), 2: i32 b (go.tag = "no tag") } (go.name = "not valid")
enum E { A (go.name = "a") }
service V {
  void m(1: i32 a (go.tag = "no tag"))
  S watch() (streaming.mode = "server")
  S plain() (streaming.mode = "unary")
  S unknown(1: S s) (streaming.mode = "both")
  oneway void oneway(1: S s) (streaming.mode = "client")
  S throws(1: S s) throws (1: X x) (streaming.mode = "client")
  S two(1: S s, 2: S t) (streaming.mode = "client")
  S number(1: i32 n) (streaming.mode = "client")
  i32 result(1: S s) (streaming.mode = "bidirectional")
}
exception X {}`})
	wantDiagnostics(t, program, emit.Options{},
		`/main.thrift:2:22: annotation go.name: "lower"`,
		`/main.thrift:2:52: annotation go.tag: "no tag"`,
		`/main.thrift:2:74: annotation go.name: "not valid"`,
		`/main.thrift:3:13: annotation go.name: "a" is not a name`,
		`/main.thrift:5:20: annotation go.tag: "no tag"`,
		`/main.thrift:6:5: method V.watch: streams, so it has one argument`,
		`/main.thrift:8:22: method V.unknown: streaming.mode: "both" is not known`,
		`/main.thrift:9:31: method V.oneway: is oneway`,
		`/main.thrift:10:33: method V.throws: streams, and cannot declare exceptions`,
		`/main.thrift:11:5: method V.two: streams, so it has one argument`,
		`/main.thrift:12:5: method V.number: streams, so it has one argument`,
		`/main.thrift:13:7: method V.result: streams, so its result is a struct`,
	)
}

// TestGenerate_WarnsOfAnnotationsWithoutEffect has each annotation that changes
// Go in the places where it does not.
func TestGenerate_WarnsOfAnnotationsWithoutEffect(t *testing.T) {
	program := load(t, idl.Memory{"/main.thrift": `namespace go x
const i32 C = 1 (go.tag = 'json:"c"')
typedef list<i32 (go.type = "int")> (go.name = "List") T (go.pkg = "t")
enum E { A (streaming.mode = "unary") } (go.type = "string")
struct S { 1: T a (thrift.nested = "true"), 2: map<i32, i64 (go.name = "L")> b (other = "x") } (thrift.is_interface = "true", deprecated = "x")
service V { i32 (go.type = "int") m(1: i32 a (thrift.is_alias)) throws (1: P p (go.type = "P")) (go.tag = "x") } (go.tag = "x")
exception P {}
`})
	files, diagnostics := emit.Generate(program, emit.Options{})
	if len(files) != 4 {
		t.Fatalf("%d files\n%s", len(files), diagnostics)
	}
	const want = `/main.thrift:2:18: warning: annotation go.tag: has no effect here
/main.thrift:3:19: warning: annotation go.type: has no effect here
/main.thrift:3:38: warning: annotation go.name: has no effect here
/main.thrift:3:59: warning: annotation go.pkg: has no effect here
/main.thrift:4:13: warning: annotation streaming.mode: has no effect here
/main.thrift:4:42: warning: annotation go.type: has no effect here
/main.thrift:5:20: warning: annotation thrift.nested: has no effect here
/main.thrift:5:62: warning: annotation go.name: has no effect here
/main.thrift:5:97: warning: annotation thrift.is_interface: struct S stays what it is, because an interface does not say what to read into it
/main.thrift:6:18: warning: annotation go.type: has no effect here
/main.thrift:6:47: warning: annotation thrift.is_alias: has no effect here
/main.thrift:6:81: warning: annotation go.type: has no effect here
/main.thrift:6:98: warning: annotation go.tag: has no effect here
/main.thrift:6:115: warning: annotation go.tag: has no effect here
`
	if got := diagnostics.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	mustCheck(t, newChecker(t), files, "example.com/gen")
}

// TestGenerate_WarnsOfAnnotationsThatAreReplaced has annotations of which the last one
// counts, at each kind of declaration, and others, of which all count.
func TestGenerate_WarnsOfAnnotationsThatAreReplaced(t *testing.T) {
	program := load(t, idl.Memory{"/main.thrift": `namespace go x
const i32 C = 1 (go.name = "C1", go.name = "C2")
enum E { A (go.name = "A1", go.name = "A2", other = "x", other = "y") } (deprecated = "a", deprecated = "b")
struct S { 1: i64 a (go.type = "time.Duration", go.type = "time.Month", go.type = "time.Weekday"), 2: i32 b (go.tag = 'a:"b"', go.tag = 'a:"b"') } (go.unknown = "keep", go.unknown = "drop")
service V { void m(1: i32 a (go.name = "b", go.name = "C")) (go.encoding = "canonical", go.encoding = "plain") } (go.strings = "own", go.strings = "auto")
`})
	files, diagnostics := emit.Generate(program, emit.Options{})
	const want = `/main.thrift:2:18: warning: annotation go.name: is given again, and the last one counts
/main.thrift:3:13: warning: annotation go.name: is given again, and the last one counts
/main.thrift:3:74: warning: annotation deprecated: is given again, and the last one counts
/main.thrift:4:22: warning: annotation go.type: is given again, and the last one counts
/main.thrift:4:49: warning: annotation go.type: is given again, and the last one counts
/main.thrift:4:110: warning: annotation go.tag: is given again, and the last one counts
/main.thrift:4:149: warning: annotation go.unknown: is given again, and the last one counts
/main.thrift:5:30: warning: annotation go.name: is given again, and the last one counts
/main.thrift:5:62: warning: annotation go.encoding: is given again, and the last one counts
/main.thrift:5:115: warning: annotation go.strings: is given again, and the last one counts
`
	if got := diagnostics.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	types := string(files[0].Content())
	for _, text := range []string{"C2 int32", "A2 E = 0", "A time.Weekday", "Deprecated: b"} {
		if !strings.Contains(types, text) {
			t.Errorf("without %q:\n%s", text, types)
		}
	}
}

// TestGenerate_ShowsErrorsBesideManyWarnings has more warnings than are shown.
func TestGenerate_ShowsErrorsBesideManyWarnings(t *testing.T) {
	text := "namespace go x\nstruct S {\n" + numbered(150, "%d: i32 f%[1]d (go.pkg = 'x')\n") +
		numbered(150, "-%d: i32 g%[1]d (go.name = 'y')\n") + "}"
	program, diagnostics := idl.Load(idl.Options{Files: []string{"/main.thrift"}, FileSystem: idl.Memory{"/main.thrift": text}, AllowNegativeIDs: true})
	if program == nil {
		t.Fatal(diagnostics)
	}
	files, diagnostics := emit.Generate(program, emit.Options{})
	lines := strings.Split(strings.TrimSpace(diagnostics.String()), "\n")
	warnings := strings.Count(diagnostics.String(), ": warning: ")
	if len(files) > 0 || warnings != 100 || len(lines) != 201 || !strings.HasPrefix(lines[200], "fulmar gen: too many errors (limit 100)") {
		t.Errorf("%d files, %d warnings of %d lines, the last %q", len(files), warnings, len(lines), lines[len(lines)-1])
	}
}

func TestGenerate_NeedsPrefixOnlyForImports(t *testing.T) {
	alone := load(t, idl.Memory{"/main.thrift": "namespace go x\nstruct S { 1: i32 a }"})
	if _, diagnostics := emit.Generate(alone, emit.Options{ImportPrefix: "not a path"}); len(diagnostics) > 0 {
		t.Errorf("one package alone: %s", diagnostics)
	}
	importing := idl.Memory{
		"/main.thrift":  "namespace go x\ninclude 'other.thrift'\nstruct S { 1: other.T a, 2: other.T b }",
		"/other.thrift": "namespace go y\nstruct T {}",
	}
	wantDiagnostics(t, load(t, importing), emit.Options{},
		"main.thrift: package x imports package y, but the import path of the output folder is not known")
	for _, prefix := range []string{"not a path", "a//b", "../a", "a/..", `a"b`, "a\nb", "/a"} {
		wantDiagnostics(t, load(t, importing), emit.Options{ImportPrefix: prefix},
			"main.thrift: package x imports package y, but ")
	}
}

func TestGenerate_ChecksItsOwnOptions(t *testing.T) {
	program := load(t, idl.Memory{"/main.thrift": "namespace go x\nstruct S {}"})
	files, diagnostics := emit.Generate(program, emit.Options{ThriftImport: "x\"\nimport \"C"})
	if len(files) > 0 || len(diagnostics) != 1 {
		t.Errorf("%d files, %s", len(files), diagnostics)
	}
	files, diagnostics = emit.Generate(program, emit.Options{ThriftImport: "example.com/other/v2"})
	if len(diagnostics) > 0 || !strings.Contains(string(files[1].Content()), `thrift "example.com/other/v2"`) {
		t.Errorf("%s\n%s", diagnostics, files[1].Content())
	}
}

// TestGenerate_TrustsNoFrontEnd changes a program to what package idl refuses.
func TestGenerate_TrustsNoFrontEnd(t *testing.T) {
	text := idl.Memory{"/main.thrift": "namespace go x\n/** doc */\nstruct S { 1: i32 a }"}
	for _, folder := range []string{"../x", "/x", "x/../../y", "", "x y", "x\\y", ".x", "x/", "ä"} {
		program := load(t, text)
		program.Packages[0].Path = folder
		wantDiagnostics(t, program, emit.Options{}, "main.thrift: package path ")
	}
	for _, name := range []string{"func", "", "x y", "x\nimport", "_"} {
		program := load(t, text)
		program.Packages[0].Name = name
		wantDiagnostics(t, program, emit.Options{}, "main.thrift: package name ")
	}
	program := load(t, text)
	program.Files[0].Path = "main\nvar X = 1\x00\xff.thrift"
	program.Files[0].Base = "../.main\x00"
	program.Files[0].Structs[0].Doc = "a\x00\xff\u2028\u202e\r\n//go:embed x\n\x0b+build ignore\n\ufeff*/ var Y = 1"
	files, diagnostics := emit.Generate(program, emit.Options{})
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	for _, file := range files {
		checkHarmless(t, file)
		if !strings.HasPrefix(file.Path, "x/main_") {
			t.Errorf("path %q", file.Path)
		}
		if strings.Contains(strings.Replace(string(file.Content()), "\nvar MainDescriptor = descriptor.File{", "", 1), "\nvar") {
			t.Errorf("a variable was injected:\n%s", file.Content())
		}
	}
}

func TestGenerate_NamesFilesSafely(t *testing.T) {
	for base, want := range map[string]string{
		"orders":       "x/orders_types.go",
		"Orders":       "x/orders_types.go",
		"foo_linux":    "x/foo_linux_types.go",
		"foo_test":     "x/foo_test_types.go",
		"_hidden":      "x/hidden_types.go",
		".hidden":      "x/hidden_types.go",
		"a-b c.v1":     "x/a_b_c_v1_types.go",
		"\u00e4\u00f6": "x/idl_types.go",
		"con":          "x/con_types.go",
		"com1":         "x/com1_types.go",

		strings.Repeat("x", 250): "x/" + strings.Repeat("x", 120) + "_types.go",
	} {
		program := load(t, idl.Memory{"/main.thrift": "namespace go x\nconst i32 A = 1"})
		program.Files[0].Base = base
		files, diagnostics := emit.Generate(program, emit.Options{})
		if len(diagnostics) > 0 || len(files) != 1 || files[0].Path != want {
			t.Errorf("%s: %v, %s", base, files, diagnostics)
		}
	}
}

// TestGenerate_FilesAreForAllPlatforms asks Go about files of definitions whose
// names end like those that are for tests or for one platform only.
func TestGenerate_FilesAreForAllPlatforms(t *testing.T) {
	systems := []string{"linux", "windows", "darwin", "plan9", "js", "wasip1", "unix", "test"}
	processors := []string{"amd64", "arm64", "386", "wasm", "test"}
	bases := slices.Concat(systems, processors)
	for _, system := range systems {
		bases = append(bases, "orders_"+system)
		for _, processor := range processors {
			bases = append(bases, "orders_"+processor, "orders_"+system+"_"+processor)
		}
	}
	for _, base := range bases {
		program := load(t, idl.Memory{"/main.thrift": "namespace go x\nstruct S {}\nservice V {}"})
		program.Files[0].Base = base
		files, _ := emit.Generate(program, emit.Options{})
		if len(files) != 4 {
			t.Fatalf("%d files of %s", len(files), base)
		}
		for _, file := range files {
			platform := build.Context{GOOS: "aix", GOARCH: "ppc64", Compiler: "gc"}
			platform.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Content())), nil }
			if match, err := platform.MatchFile(path.Split(file.Path)); err != nil || !match || strings.HasSuffix(file.Path, "_test.go") {
				t.Errorf("%s is not for every platform: %t, %v", file.Path, match, err)
			}
		}
	}
}

// TestGenerate_ImportsPackagesOfAnyName has packages that cannot be imported by
// their own names.
func TestGenerate_ImportsPackagesOfAnyName(t *testing.T) {
	for _, name := range []string{"init", "string", "nil", "context", "fulmar", "thrift", "n", "key2", "C"} {
		program := load(t, idl.Memory{
			"/main.thrift":  "namespace go x\ninclude 'other.thrift'\nstruct S { 1: other.T a }",
			"/other.thrift": "namespace go y.z\nstruct T {}",
		})
		imported := program.Packages[0]
		imported.Path, imported.Name = "y/"+name, name
		files, diagnostics := emit.Generate(program, emit.Options{ImportPrefix: "example.com/gen"})
		if len(diagnostics) > 0 {
			t.Fatal(diagnostics)
		}
		mustCheck(t, newChecker(t), files, "example.com/gen")
	}
}

func TestGenerate_FilesOfAPackageShareItsNames(t *testing.T) {
	files, diagnostics := emit.Generate(load(t, idl.Memory{
		"/main.thrift": "namespace go x\ninclude 'b.thrift'\nstruct user_name { 1: b.userName other }\nservice Users { b.userName get() }",
		"/b.thrift":    "namespace go x\nstruct userName {}\nservice users {}",
	}), emit.Options{})
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	var paths []string
	for _, file := range files {
		paths = append(paths, file.Path)
	}
	want := []string{
		"x/b_types.go", "x/b_codec.go", "x/b_methods.go", "x/b_rpc.go",
		"x/main_types.go", "x/main_codec.go", "x/main_methods.go", "x/main_rpc.go",
	}
	if !slices.Equal(paths, want) {
		t.Errorf("files %v, want %v", paths, want)
	}
	if types := string(files[4].Content()); !strings.Contains(types, "type UserName_ struct {\n\tOther UserName `json:\"other\"`\n}") {
		t.Errorf("types:\n%s", types)
	}
	mustCheck(t, newChecker(t), files, "example.com/gen")
}

// doubling declares count structs of two fields of the next one each.
func doubling(count int, format string) string {
	var text strings.Builder
	text.WriteString("namespace go x\nstruct S0 { 3: i32 m }\n")
	for i := range count {
		fmt.Fprintf(&text, "struct S%d { "+format+" }\n", i+1, i, i)
	}
	return text.String()
}

// TestGenerate_DefaultsDoNotMultiply writes defaults that, written out, would
// be half a megabyte of code.
func TestGenerate_DefaultsDoNotMultiply(t *testing.T) {
	files := generateText(t, doubling(11, "1: S%d a = {'m': 2}, 2: S%d b = {'m': 3}, 3: i32 m"))
	total := 0
	for _, file := range files {
		total += len(file.Content())
	}
	if total > 80<<10 {
		t.Errorf("%d bytes of code", total)
	}
	mustCheck(t, newChecker(t), files, "example.com/gen")
}

func TestGenerate_RefusesStructsOfAnySize(t *testing.T) {
	program := load(t, idl.Memory{"/main.thrift": doubling(60, "1: S%d a, 2: required S%d b")})
	wantDiagnostics(t, program, emit.Options{}, "/main.thrift:20:8: struct S18: takes about ")
	optional := doubling(60, "1: optional S%d a, 2: list<S%d> b")
	generateText(t, optional)
}

// TestGenerate_RefusesStructsOfAnyDepth has structs that are there always, each in the next:
// 64 of them can be written, and only the first that cannot is to blame.
func TestGenerate_RefusesStructsOfAnyDepth(t *testing.T) {
	const always, sometimes = "1: S%d a, 2: list<S%d> b", "1: optional S%d a, 2: list<S%d> b"
	generateText(t, doubling(limits.Depth-1, always))
	program := load(t, idl.Memory{"/main.thrift": doubling(1000, always)})
	wantDiagnostics(t, program, emit.Options{}, fmt.Sprintf("/main.thrift:66:8: struct S64: nests 65 deep with the structs in its fields, and no message may (limit %d)", limits.Depth))
	generateText(t, doubling(1000, sometimes))
	if _, diagnostics := emit.Generate(program, emit.Options{Kitex: true}); len(diagnostics) > 0 {
		t.Errorf("behind pointers: %s", diagnostics)
	}
}

// TestGenerate_RefusesDefaultsOfAnySize has defaults that double with each struct. The
// first that takes too much is to blame for all behind it, however large they are.
func TestGenerate_RefusesDefaultsOfAnySize(t *testing.T) {
	tripling := func(count int, extra string) *schema.Program {
		text := "namespace go x\nstruct S0 { 1: list<i64> a = [1, 2, 3, 4] }\n"
		for i := range count {
			text += fmt.Sprintf("struct S%d { 1: list<S%d> a = [{}, {}], 2: S%[2]d b }\n", i+1, i)
		}
		return load(t, idl.Memory{"/main.thrift": text + extra})
	}
	refusal := fmt.Sprintf("/main.thrift:16:8: struct S14: its defaults take about 422096808 bytes in Go with those of the structs in them (limit %d)", limits.GoDefaultBytes)
	const warning = "/main.thrift:9:8: warning: struct S7: its defaults take about 192884 bytes in Go: messages of less than 1990 bytes that have one"
	wantDiagnostics(t, tripling(60, ""), emit.Options{}, warning, refusal)
	wantDiagnostics(t, tripling(60, ""), emit.Options{Reuse: true}, warning, refusal)
	wantDiagnostics(t, tripling(12, "service V { void m(1: list<S12> a = [{}, {}, {}], 2: list<S12> b = [{}, {}, {}]) }"), emit.Options{},
		warning, "/main.thrift:15:18: method m: the defaults of its arguments take about 281")
	// A request without arguments asks for the defaults of the structs that it lacks.
	files, diagnostics := emit.Generate(tripling(6, "service V { void m(1: S6 a), void n(1: S6 a, 2: S0 b), void o(1: S5 a, 2: S6 b) }"), emit.Options{})
	text := "/main.thrift:9:61: warning: method o: the defaults of the structs in its arguments take about 85579 bytes in Go: requests of less than 314 bytes cannot be decoded (65536 bytes, and 64 for each byte of the message)\n"
	if got := diagnostics.String(); len(files) == 0 || got != text {
		t.Errorf("%d files, got\n%swant\n%s", len(files), got, text)
	}
	if files, diagnostics := emit.Generate(tripling(13, ""), emit.Options{}); len(files) == 0 || len(diagnostics) != 1 {
		t.Errorf("what can be decoded: %d files, %s", len(files), diagnostics)
	}
	// In the shape of Kitex defaults of defaults are not made, so these only add up.
	if _, diagnostics := emit.Generate(tripling(60, ""), emit.Options{Kitex: true}); len(diagnostics) > 0 {
		t.Errorf("in the shape of Kitex: %s", diagnostics)
	}
	structs := "namespace go x\nstruct Large {" + numbered(7000, "%d: i64 f%[1]d,") + "}\n"
	large := structs + "struct S { 1: list<Large> a = [" + strings.Repeat("{},", 5000) + "] }"
	wantDiagnostics(t, load(t, idl.Memory{"/main.thrift": large}), emit.Options{Kitex: true}, "/main.thrift:3:8: struct S: its defaults take about ")
}

// TestGenerate_RefusesDeclarationsOfAnySize has a definition of 6 MB whose codec
// and methods would have functions of 18 MB and more.
func TestGenerate_RefusesDeclarationsOfAnySize(t *testing.T) {
	var text strings.Builder
	text.WriteString("namespace go x\nstruct S {\n")
	name := strings.Repeat("x", 1000)
	for i := range 6000 {
		fmt.Fprintf(&text, "%d: optional map<string, i32> %s%d\n", i+1, name, i)
	}
	text.WriteString("}\nstruct T {}")
	wantDiagnostics(t, load(t, idl.Memory{"/main.thrift": text.String()}), emit.Options{},
		"main.thrift: main_codec.go: one declaration, or one group of constants, is too long (limit 16777216 bytes)",
		"main.thrift: main_methods.go: one declaration, or one group of constants, is too long (limit 16777216 bytes)")
}

func TestGenerate_RefusesNamesOfAnyLength(t *testing.T) {
	program := load(t, idl.Memory{"/main.thrift": "namespace go x\nstruct S {} (go.name = '" + strings.Repeat("A", 1025) + "')"})
	wantDiagnostics(t, program, emit.Options{}, "/main.thrift:2:14: annotation go.name: ")
}

// TestGenerate_TellsDefinitionsApart has names that differ only in what comments
// cannot show.
func TestGenerate_TellsDefinitionsApart(t *testing.T) {
	headers := map[string]string{}
	for _, name := range []string{"a.thrift", "a\u202e.thrift", "a\x01.thrift", "a\u2028.thrift", "a\xff.thrift", "a .thrift"} {
		program := load(t, idl.Memory{"/main.thrift": "namespace go x\nstruct S {}"})
		program.Files[0].Path = name
		files, diagnostics := emit.Generate(program, emit.Options{})
		if len(diagnostics) > 0 {
			t.Fatal(diagnostics)
		}
		checkHarmless(t, files[0])
		header, _, _ := strings.Cut(string(files[0].Content()), "\n")
		if other, found := headers[header]; found {
			t.Errorf("%q and %q have the header %s", name, other, header)
		}
		headers[header] = name
	}
}

func TestGenerate_EmptyFilesAreLeftOut(t *testing.T) {
	files := generateText(t, "namespace go x\n")
	if len(files) != 0 {
		t.Errorf("files %v", files)
	}
}

func TestGenerate_GoNames(t *testing.T) {
	for name, want := range map[string]string{
		"sku": "Sku", "order_id": "OrderID", "orderId": "OrderID", "ID": "ID", "id": "ID", "ids": "IDs", "orderIDs": "OrderIDs",
		"URL": "URL", "urlPath": "URLPath", "URLPath": "URLPath", "HTTPServer": "HTTPServer", "httpserver": "Httpserver",
		"outOfStock": "OutOfStock", "MAX_SIZE": "MaxSize", "MAX": "MAX", "MAX_URL": "MaxURL", "sha256Sum": "Sha256Sum",
		"v1_2": "V1_2", "_1": "X1", "__": "X", "_foo": "Foo", "foo_": "Foo", "foo__bar": "FooBar", "aB": "AB", "iOS": "IOS",
		"https": "HTTPS", "utf8": "UTF8", "apiKeys": "APIKeys", "uuids": "UUIDs", "rhs": "RHS",
	} {
		program := load(t, idl.Memory{"/main.thrift": "namespace go x\nstruct S { 1: i32 " + name + " }"})
		if _, diagnostics := emit.Generate(program, emit.Options{}); len(diagnostics) > 0 {
			t.Fatal(diagnostics)
		}
		if got := program.Files[0].Structs[0].Fields[0].GoName; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestGenerate_GoNamesWithoutInitialisms leaves words as the definition has
// them.
func TestGenerate_GoNamesWithoutInitialisms(t *testing.T) {
	for name, want := range map[string]string{
		"order_id": "OrderId", "orderId": "OrderId", "ID": "ID", "id": "Id", "ids": "Ids", "orderIDs": "OrderIDs", "urlPath": "UrlPath",
		"URLPath": "URLPath", "MAX_URL": "MaxUrl", "v1_2": "V1_2", "_1": "X1",
	} {
		program := load(t, idl.Memory{"/main.thrift": "namespace go x\nstruct S { 1: i32 " + name + " }\nservice V { void m(1: i32 " + name + ") }"})
		files, diagnostics := emit.Generate(program, emit.Options{IgnoreInitialisms: true})
		if len(diagnostics) > 0 {
			t.Fatal(diagnostics)
		}
		if got := program.Files[0].Structs[0].Fields[0].GoName; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
		mustCheck(t, newChecker(t), files, "example.com/gen")
	}
}

// TestGenerate_ManySpellingsOfAName has names that differ only in where their
// underscores are, and so not at all in Go.
func TestGenerate_ManySpellingsOfAName(t *testing.T) {
	const bits = 12
	var fields, structs, methods strings.Builder
	for number := range 1 << bits {
		name := "a"
		for bit := range bits {
			name += strings.Repeat("_", 1+number>>bit&1) + "b"
		}
		fmt.Fprintf(&fields, "%d: i32 %s\n", number+1, name)
		fmt.Fprintf(&structs, "struct %s {}\n", name)
		fmt.Fprintf(&methods, "void %s()\n", name)
	}
	program := load(t, idl.Memory{"/main.thrift": "namespace go x\n" + structs.String() +
		"struct S {" + fields.String() + "}\nservice V {" + methods.String() + "}"})
	if _, diagnostics := emit.Generate(program, emit.Options{}); len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	last := program.Files[0].Structs[1<<bits-1]
	if want := "ABBBBBBBBBBBB_4095"; last.GoName != want {
		t.Errorf("last name %s, want %s", last.GoName, want)
	}
}
