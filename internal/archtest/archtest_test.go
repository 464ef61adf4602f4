package archtest

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func root(t *testing.T) fs.FS {
	t.Helper()
	return os.DirFS("../..")
}

func mustLoad(t *testing.T, fsys fs.FS) *tree {
	t.Helper()
	source, _, err := loadTree(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestTree_KeepsTheRules(t *testing.T) {
	findings, err := judge(root(t), exceptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
}

// exportsMax bounds what one import gives a reader to look through. connect-go
// needs 83 for three protocols.
func exportsMax(folder string) int {
	switch folder {
	case ".":
		return 80 // ADR-0043, ADR-0062, ADR-0063, ADR-0068, ADR-0073
	case "policy":
		return 50 // a dozen structs of data, and as many state machines with what they show (ADR-0070)
	case "thrift":
		return 46 // two thirds are for generated code, and no user looks for them
	default:
		return 40
	}
}

func TestAPI_IsReviewed(t *testing.T) {
	source := mustLoad(t, root(t))
	folders := publicPackages(source)
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			got, exported, err := printAPI(source, folder)
			if err != nil {
				t.Fatal(err)
			}
			if limit := exportsMax(folder); exported > limit {
				t.Errorf("%d exported types and functions, at most %d", exported, limit)
			}
			testkit.Golden(t, apiFile(folder), []byte(got))
		})
	}
	stale, err := staleAPIFiles(os.DirFS("."), folders)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stale {
		t.Errorf("%s describes a package that does not exist", name)
	}
}

// TestLimits_AreDocumented compares the table in the guide with the constants.
func TestLimits_AreDocumented(t *testing.T) {
	const name = "docs/guide/limits.md"
	source := mustLoad(t, root(t))
	want, err := withLimits(source, string(source.texts[name]))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "../../"+name, []byte(want))
}

// TestLimits_AreQuotedAsTheyAre compares every limit that a comment or a
// document gives a value for with the constant. With -update a changed limit is
// written everywhere.
func TestLimits_AreQuotedAsTheyAre(t *testing.T) {
	source := mustLoad(t, root(t))
	values, _, err := limitValues(source)
	if err != nil {
		t.Fatal(err)
	}
	quoting := 0
	for _, name := range source.names() {
		if within(name, "internal/archtest") {
			continue // Its examples are no quotes.
		}
		text := string(source.texts[name])
		want, quotes := rewriteQuotes(text, values)
		if quotes > 0 {
			quoting++
		}
		if want != text {
			testkit.Golden(t, "../../"+name, []byte(want))
		}
	}
	if quoting < 4 {
		t.Errorf("only %d files quote a limit: rewriteQuotes does not see them", quoting)
	}
}

// TestLimits_FieldsAreDocumented wants the guide to have a row for every field
// of a configuration that is a limit, and the field's documentation to quote
// the limit that the row names.
func TestLimits_FieldsAreDocumented(t *testing.T) {
	const document = "docs/guide/limits.md"
	source := mustLoad(t, root(t))
	fields := limitFields(source.goFiles)
	if len(fields) < 10 {
		t.Errorf("found only %v: limitFields does not see the configuration structs", fields)
	}
	for _, field := range fields {
		limit := limitOfField(string(source.texts[document]), field)
		switch {
		case limit == "":
			t.Errorf("%s has no row for %s", document, field)
		case !strings.Contains(field.doc, "("+limit+")"):
			t.Errorf("the documentation of %s does not give the value of %s, which %s says is its default", field, limit, document)
		}
	}
}

// TestProtocol_ExceptionTableIsTheCodes compares the table in the description
// of the protocol with the code.
func TestProtocol_ExceptionTableIsTheCodes(t *testing.T) {
	const name = "docs/protocol/thrift.md"
	source := mustLoad(t, root(t))
	want, err := withExceptionCodes(source, string(source.texts[name]))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "../../"+name, []byte(want))
}
