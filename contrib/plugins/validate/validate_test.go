package validate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/contrib/plugins/validate"
	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// generate runs the generator on a definition with the plugin.
func generate(t *testing.T, text string) (folder string, result gen.Result, err error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("shop.thrift", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	plugin, err := validate.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err = gen.Run(gen.Config{Files: []string{"shop.thrift"}, PackagePrefix: "example.com/gen"}, plugin)
	return "gen/shop", result, err
}

const shopIDL = `namespace go shop
struct Plain { 1: i64 id }
struct Line {
  1: required string sku (validate.pattern = "^[A-Z]{3}-[0-9]+$")
  2: i32 quantity (validate.min = "1", validate.max = "99")
  3: string weight (go.type = "encoding/json.Number", validate.max_length = "9", validate.pattern = "^[0-9.]*$")
}
struct Order {
  1: list<Line> lines (validate.min_length = "1", validate.max_length = "50")
  2: optional double discount (validate.min = "0", validate.max = "0.5")
  3: optional string note (validate.required = "true", validate.max_length = "20")
  4: string customer (validate.required)
  5: map<string, list<Line>> extras
  6: optional Order parent
  7: optional binary token (validate.max_length = "16")
  8: Plain plain
  9: map<list<i32>, Line> odd
  10: map<string, Line> spares
  11: list<i8> digest (go.type = "[]byte", validate.required, validate.max_length = "32")
}
struct Rush {
  1: Line line (thrift.nested = "true")
  2: optional Plain plain (thrift.nested = "true")
}
service Shop {
  Order place(1: Order order, 2: i64 i1 (validate.min = "1"))
  Plain plain(1: Plain plain)
  Order follow(1: Order order) (streaming.mode = "bidirectional")
}
service Nothing { void ping() }
`

func TestValidate_MatchesGoldenFiles(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	folder, result, err := generate(t, shopIDL)
	if err != nil {
		t.Fatalf("%v\n%v", err, result.Diagnostics)
	}
	for _, name := range []string{"shop_types.go", "shop_rpc.go"} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		testkit.Golden(t, filepath.Join(here, "testdata", name+".txt"), content)
	}
}

// TestValidate_WrongAnnotationsAreErrors has one mistake a line, and wants each
// where its annotation stands.
func TestValidate_WrongAnnotationsAreErrors(t *testing.T) {
	for annotated, want := range map[string]string{
		`i32 a (validate.min = "x")`:                                        `3:11: plugin validate: annotation validate.min: "x" is no i32`,
		`i8 a (validate.max = "128")`:                                       `annotation validate.max: "128" is no i8`,
		`double a (validate.max = "NaN")`:                                   `"NaN" is no finite double`,
		`double a (validate.max = "1e999")`:                                 `"1e999" is no finite double`,
		`string a (validate.min = "1")`:                                     `annotation validate.min: is for numbers, and not for a string`,
		`i32 a (validate.min_length = "1")`:                                 `is for strings, binaries and containers, and not for a i32`,
		`string a (validate.max_length = "-1")`:                             `"-1" is no length`,
		`string a (validate.pattern = "(")`:                                 "annotation validate.pattern: error parsing regexp: missing closing )",
		`string a (validate.pattern = "")`:                                  "is empty, and would match everything",
		`i64 a (validate.pattern = "x")`:                                    "is for strings, and not for a i64",
		`i64 a (validate.required = "true")`:                                "a i64 that is not optional is always there",
		`string a (validate.required = "yes")`:                              `"yes" is no truth value`,
		`i64 a (validate.maximum = "1")`:                                    "annotation validate.maximum: is not known, expected one of required, min",
		`i64 a (validate.min = "1", validate.min = "2")`:                    "annotation validate.min: is there twice",
		`i64 a (validate.min = "2", validate.max = "1")`:                    "field a: validate.min 2 is more than validate.max 1, so nothing is valid",
		`string a (validate.pattern = "` + strings.Repeat("x", 1001) + `")`: "is too long (limit 1000 bytes, got 1001)",
	} {
		_, result, err := generate(t, "namespace go shop\nstruct S {\n1: "+annotated+"\n}\n")
		if text := fmt.Sprint(result.Diagnostics); !errors.Is(err, gen.ErrInvalid) || !strings.Contains(text, "shop.thrift:3:") || !strings.Contains(text, want) {
			t.Errorf("%.80s: %v\n%s\nwant %s", annotated, err, text, want)
		}
	}
	_, result, err := generate(t, `namespace go shop
typedef string T (validate.min_length = "1")
enum E { A } (validate.min = "1")
struct S { 1: i32 a } (validate.min = "1")
service V {
  void m(1: i32 a (validate.min = "x")) (validate.min = "1")
} (validate.min = "1")
`)
	for _, place := range []string{"2:19", "3:15", "4:24", "6:20", "6:42", "7:4"} {
		if !errors.Is(err, gen.ErrInvalid) || !strings.Contains(fmt.Sprint(result.Diagnostics), "shop.thrift:"+place+": plugin validate: ") {
			t.Errorf("nothing at %s: %v", place, result.Diagnostics)
		}
	}
}

func TestValidate_HasNoOptions(t *testing.T) {
	if _, err := validate.New(map[string]string{"a": "b"}); err == nil {
		t.Error("an option is accepted")
	}
}

func TestValidate_CollisionsAreExplained(t *testing.T) {
	_, result, err := generate(t, "namespace go shop\nstruct S { 1: i32 validate (validate.min = \"1\") }")
	if text := fmt.Sprint(result.Diagnostics); !errors.Is(err, gen.ErrInvalid) || !strings.Contains(text, "shop.thrift:2:8: plugin validate: struct.after: declares S.Validate, which package shop has already") {
		t.Errorf("%v\n%s", err, text)
	}
}
