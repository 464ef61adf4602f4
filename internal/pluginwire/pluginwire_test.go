package pluginwire_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/pluginwire"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// load returns the model of a definition.
func load(t testing.TB, name string) *schema.Program {
	t.Helper()
	program, diagnostics := idl.Load(idl.Options{Files: []string{name}, AllowNegativeIDs: true})
	if program == nil {
		t.Fatalf("%s:\n%s", name, diagnostics)
	}
	return program
}

// TestRequest_SurvivesTheWay encodes, decodes and encodes again the models of all
// definitions that the printer is tested with.
func TestRequest_SurvivesTheWay(t *testing.T) {
	names, err := filepath.Glob("../emit/testdata/*/*.thrift")
	if err != nil || len(names) < 7 {
		t.Fatalf("%d definitions, %v", len(names), err)
	}
	header := pluginwire.Request{Generator: "test", Plugin: "mock", Options: map[string]string{"a": "b"}}
	for _, name := range names {
		first, err := pluginwire.EncodeRequest(header, load(t, name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		request, program, err := pluginwire.DecodeRequest(first)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if request.Plugin != "mock" || fmt.Sprint(request.Options) != "map[a:b]" {
			t.Errorf("%s: header %+v", name, request)
		}
		second, err := pluginwire.EncodeRequest(header, program)
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: %v\n%s\nand\n%s", name, err, first, second)
		}
	}
}

// TestRequest_IsWhatTheDocumentSays pins the bytes of a small model.
func TestRequest_IsWhatTheDocumentSays(t *testing.T) {
	text, err := pluginwire.EncodeRequest(pluginwire.Request{Generator: "test", Plugin: "mock"}, load(t, "testdata/small.thrift"))
	if err != nil {
		t.Fatal(err)
	}
	// One declaration a line, for those who read the difference.
	pretty := strings.NewReplacer(`},{"`, "},\n{\"", `],"`, "],\n\"").Replace(string(text))
	testkit.Golden(t, "testdata/small.json.txt", []byte(pretty))
}

func TestRequest_BrokenOnesAreRefused(t *testing.T) {
	text, err := pluginwire.EncodeRequest(pluginwire.Request{}, load(t, "testdata/small.thrift"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ old, new, want string }{
		{`"protocol":1`, `"protocol":2`, "protocol 2, expected 1"},
		{`"protocol":1,`, ``, "protocol: there is none"},
		{`"kind":"i64"`, `"kind":"i65"`, `kind "i65" is not known`},
		{`"kind":"i64"`, `"kind":"list"`, "a list without what it is made of"},
		{`"enum":0`, `"enum":7`, "enum 7: there are 1"},
		{`"struct":0`, `"struct":-1`, "struct -1: there are 3"},
		{`"enumValue":1`, `"enumValue":2`, "enum value 2: there are 2"},
		{`"enums":[0]`, `"enums":[]`, "enum 0: its file lists it 0 times"},
		{`"structs":[0,1,2]`, `"structs":[0,1,2,1]`, "struct 1: its file lists it 2 times"},
		{`"kind":"int","text":"9`, `"kind":"int","text":"x`, `value "x`},
		{`"kind":"int","text"`, `"kind":"map","text"`, "a value of kind map for a i64"},
		{`"category":"union"`, `"category":"onion"`, `category "onion" is not known`},
		{`"goMethods"`, `"gomethods2"`, "unknown field"},
		{"\n", "{}", "invalid character '{' after top-level value"},
	} {
		broken := strings.Replace(string(text), test.old, test.new, 1)
		if broken == string(text) && test.old != `"goMethods"` {
			t.Errorf("there is no %s in %s", test.old, text)
		}
		if test.old == `"goMethods"` {
			broken = strings.Replace(string(text), `"services":[{`, `"services":[{"gomethods2":1,`, 1)
		}
		if _, _, err := pluginwire.DecodeRequest([]byte(broken)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s in place of %s: %v, want %s", test.new, test.old, err, test.want)
		}
	}
	for length := range text {
		if _, _, err := pluginwire.DecodeRequest(text[:length]); err == nil && length < len(text)-1 {
			t.Fatalf("the first %d bytes of %d are accepted", length, len(text))
		}
	}
}

func TestResponse_IsRead(t *testing.T) {
	response, err := pluginwire.ParseResponse([]byte(` {
		"insertions": [{"point": "struct.after", "struct": 0, "field": 1, "text": "x", "imports": {"b": "y", "a": "x"}}],
		"files": [{"file": 1, "suffix": "mock", "text": "y"}],
		"protocol": 1,
		"diagnostics": [{"severity": "error", "position": "a:b.thrift:3:4", "message": "m"}, {"severity": "warning", "message": "n"}]
	} `))
	if err != nil {
		t.Fatal(err)
	}
	one := response.Insertions[0]
	if one.Point != "struct.after" || *one.Struct != 0 || *one.Field != 1 || one.Text != "x" || fmt.Sprint(one.Imports.List()) != "[{a x} {b y}]" {
		t.Errorf("%+v", one)
	}
	if len(response.Files) != 1 || response.Files[0].Suffix != "mock" || len(response.Diagnostics) != 2 {
		t.Errorf("%+v", response)
	}
	position := pluginwire.DecodePosition(response.Diagnostics[0].Position)
	if position != (schema.Position{File: "a:b.thrift", Line: 3, Column: 4}) || pluginwire.EncodePosition(position) != "a:b.thrift:3:4" {
		t.Errorf("%+v", position)
	}
}

func TestResponse_HostileOnesAreRefused(t *testing.T) {
	manyImports := `{"protocol":1,"insertions":[{"imports":{"a":"` + strings.Repeat("x", limits.PluginImportBytes) + `"}}]}`
	for text, want := range map[string]string{
		"":                                      "response: is empty",
		" \n":                                   "response: is empty",
		"{":                                     "response: ends too early",
		`{"protocol":1`:                         "response: ends too early",
		`{"protocol":1,"files":[`:               "response: ends too early",
		`{"protocol":1}{}`:                      "response: something follows its end, at byte 15",
		`{"protocol":1} x`:                      "response: something follows its end",
		"[]":                                    `response: "[" in place of an object`,
		"null":                                  `response: "<nil>" in place of an object`,
		"hello":                                 "response: is not JSON, at byte 1: invalid character 'h'",
		"{\"protocol\":1,\"a\xff\":1}":          "response: is not UTF-8",
		"{}":                                    "response: protocol: there is none",
		`{"protocol":null}`:                     "response: protocol: there is none",
		`{"protocol":2}`:                        "response: protocol 2, expected 1",
		`{"protocol":"1"}`:                      "response: json: cannot unmarshal string",
		`{"protocol":1,"protocol":1}`:           `response: key "protocol" comes twice`,
		`{"protocol":1,"more":1}`:               `response: key "more" is not known`,
		`{"protocol":1,"files":{}}`:             `response: "{" in place of the list files`,
		`{"protocol":1,"files":[{"path":"x"}]}`: `response: files 0: json: unknown field "path"`,
		`{"protocol":1,"files":[{"file":1e9999}]}`:          "response: files 0: json: cannot unmarshal number",
		`{"protocol":1,"diagnostics":[{"severity":"bad"}]}`: `response: severity "bad", expected "error" or "warning"`,
		manyImports: "imports: too long (limit 65536 bytes",
		`{"protocol":1,"insertions":[{"point":` + strings.Repeat("[", 20000):                "response: is not JSON, at byte",
		strings.Repeat(" ", limits.PluginResponseBytes+1):                                   "response: too long (limit 134217728 bytes, got 134217729)",
		`{"protocol":1,"insertions":[` + strings.Repeat("{},", limits.PluginItems) + "{}]}": "insertions: too many (limit 1048576)",
	} {
		if _, err := pluginwire.ParseResponse([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "response: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

func TestTargets_RefersBothWays(t *testing.T) {
	program := load(t, "testdata/small.thrift")
	targets := pluginwire.NewTargets(program)
	file := program.Files[0]
	for _, of := range []any{file, file.Structs[1], file.Structs[0].Fields[1], file.Enums[0], file.Services[0]} {
		var insertion pluginwire.Insertion
		if err := targets.Refer(&insertion, of); err != nil {
			t.Errorf("%T: %v", of, err)
		}
		if found, err := targets.Of(insertion); err != nil || found != of {
			t.Errorf("%T: %v, %v", of, found, err)
		}
	}
	var insertion pluginwire.Insertion
	for _, of := range []any{&schema.Struct{}, (*schema.Field)(nil), nil, program} {
		if err := targets.Refer(&insertion, of); err == nil {
			t.Errorf("%T is found", of)
		}
	}
	index, far := 0, 9
	for _, wrong := range []pluginwire.Insertion{
		{}, {Field: &index}, {File: &index, Struct: &index}, {Enum: &index, Field: &index},
		{File: &far}, {Struct: &far}, {Struct: &index, Field: &far}, {Enum: &far}, {Service: &far},
	} {
		if _, err := targets.Of(wrong); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}
