package emit

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// newTestPrinter returns a printer for a run that has printed that many bytes.
func newTestPrinter(bytes int) *printer {
	return &printer{generator: &generator{bytes: bytes}, layout: gofmt, pkg: &schema.Package{Name: "x"}, imports: &imports{}, header: "//"}
}

func TestPrinter_LimitsWhatARunGenerates(t *testing.T) {
	const declaration = "\nvar x int\n"
	p := newTestPrinter(limits.GoBytes - len(declaration))
	p.P("var x int")
	if content, err := p.finish(); err != nil || !strings.HasSuffix(string(bytes.Join(content, nil)), declaration) {
		t.Errorf("%q, %v", content, err)
	}
	p = newTestPrinter(limits.GoBytes - len(declaration) + 1)
	p.P("var x int")
	const want = "too much code is generated in one run (limit 536870912 bytes)"
	if content, err := p.finish(); content != nil || err == nil || err.Error() != want {
		t.Errorf("%q, %v, want %s", content, err, want)
	}
}

func TestPrinter_LimitsDeclarations(t *testing.T) {
	p := newTestPrinter(0)
	p.P("var x = ``")
	p.endDeclaration()
	line := strings.Repeat("x", 1<<20)
	for range 2 * limits.GoDeclarationBytes / len(line) {
		p.P(line)
		p.doc(line)
		if p.piece.Len() > limits.GoDeclarationBytes+2*len(line) {
			t.Fatalf("holds %d bytes", p.piece.Len())
		}
	}
	const want = "one declaration, or one group of constants, is too long (limit 16777216 bytes)"
	if content, err := p.finish(); content != nil || err == nil || err.Error() != want || p.body != nil {
		t.Errorf("%q, %v, want %s", content, err, want)
	}
}

func TestIndent_RefusesWhatIsNotInPairs(t *testing.T) {
	for source, want := range map[string]string{
		"func f() {\n":              `line 1: the end, expected "}"`,
		"f(\n)\n}\n":                `line 3: unexpected '}'`,
		"if a[0) {\n":               `line 1: unexpected ')'`,
		"x = \"open\ny = \"\n":      `line 1: unexpected '\n'`,
		"x = \"open\\\ny\"\n":       `line 2: unexpected '\n'`,
		"x = `raw`\n":               "line 1: unexpected '`'",
		"x = 'c'\n":                 `line 1: unexpected '\''`,
		"x\r\n":                     `line 1: unexpected '\r'`,
		"x = \"}\"\n{ // {\n":       `line 2: the end, expected "}"`,
		"//go:embed (\nvar x int\n": `line 2: the end, expected ")"`,
		"func f() { return }\n":     "line 1: a function on one line, which gofmt breaks if names are long",
	} {
		out, err := indent([]byte(source))
		if err == nil || err.Error() != want || out != nil {
			t.Errorf("%q: %q, %v, want %s", source, out, err, want)
		}
	}
}

// TestIndent_IsWhatGofmtDoes has the forms of statements that codecs are made
// of. That there are no others, the golden files and fuzzing show.
func TestIndent_IsWhatGofmtDoes(t *testing.T) {
	source := strings.Join([]string{
		"", "// f does \"this {", "func f() {", "if a {", "b(\"{\\\"(\")", "} else {", "c([]int{1}, d{}) // )", "}",
		"for key, ok := f(); ok; key, ok = f() {", "switch key {", "case 1: // {", "for i := range x {", "y[i] = z", "}",
		"default:", "w()", "}", "}", "}", "", "const c = 1", "",
	}, "\n")
	want, err := gofmt([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := indent([]byte(source)); err != nil || string(got) != string(want) {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}
