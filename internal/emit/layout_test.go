package emit

import (
	"strings"
	"testing"
)

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
