package gen_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// plugin does what a test wants.
type plugin struct {
	name      string
	transform func(*gen.Model) error
	generate  func(*gen.Output) error
}

func (p *plugin) Name() string { return p.name }

func (p *plugin) Transform(model *gen.Model) error {
	if p.transform == nil {
		return nil
	}
	return p.transform(model)
}

func (p *plugin) Generate(output *gen.Output) error {
	if p.generate == nil {
		return nil
	}
	return p.generate(output)
}

const shopIDL = `/** A shop. */
namespace go shop
include "common.thrift"

enum State { OPEN = 1, CLOSED }

const i64 LIMIT = 9007199254740993
const list<State> STATES = [State.OPEN, State.CLOSED]
const binary RAW = "\xff\xfe"
const map<string, double> RATES = {"a": 1.5}

struct Empty {}

struct Order {
  1: required i64 id (db.column = "order_id")
  2: optional string note
  3: list<common.Money> prices
  4: optional Order parent
  5: common.Money total = {"cents": 3}
  6: optional set<i32> tags
}

exception Gone { 1: string what }

union Payment { 1: i64 card, 2: string voucher }

service Orders extends common.Base {
  Order get(1: i64 id, 2: common.Money limit) throws (1: Gone gone)
  oneway void viewed(1: i64 id)
}
`

const commonIDL = `namespace go common
struct Money { 1: i64 cents }
service Base { list<Money> all() }
`

func shop(t testing.TB) string {
	t.Helper()
	return inFolder(t, "go.mod", "module example.com/shop\n", "shop.thrift", shopIDL, "common.thrift", commonIDL)
}

// everywhere adds something at every point, with what the model says for
// plugins.
func everywhere(output *gen.Output) error {
	slog := schema.Import{Name: "slog", Path: "log/slog"}
	for _, file := range output.Program().Files {
		for _, s := range file.Structs {
			output.StructFields(s, "trace  string // kept here only\n\tmutex sync.Mutex", schema.Import{Name: "sync", Path: "sync"})
			output.AfterStruct(s, "// LogValue is for logs.\nfunc (s *"+s.GoName+") LogValue() slog.Value {\nreturn slog.StringValue(s.trace)\n}", slog)
			output.AfterStruct(s, "func another"+s.GoName+"() *"+s.GoName+" { return "+s.GoConstructor+"() }")
			for _, field := range s.Fields {
				output.FieldTag(field, fmt.Sprintf("db:%q presence:%q", field.Name, field.GoPresence))
				output.AfterStruct(s, "func "+"typeOf"+s.GoName+field.GoName+"(s *"+s.GoName+") "+field.GoType+" { return s."+field.GoName+" }")
			}
		}
		for _, enum := range file.Enums {
			output.AfterEnum(enum, "func Must"+enum.GoParser+"(name string) "+enum.GoName+" { e, err := "+enum.GoParser+"(name); if err != nil { panic(err) }; return e }")
		}
		for _, service := range file.Services {
			var methods strings.Builder
			for _, method := range service.GoMethods {
				fmt.Fprintf(&methods, "%s(ctx context.Context", method.Name)
				for _, parameter := range method.Parameters {
					fmt.Fprintf(&methods, ", %s %s", parameter.Name, parameter.Type)
				}
				if method.Result == "" {
					methods.WriteString(") error\n")
				} else {
					fmt.Fprintf(&methods, ") (%s, error)\n", method.Result)
				}
			}
			name := "same" + service.GoServer
			output.AfterService(service, "type "+name+" interface {\n"+methods.String()+"}\n\nvar _ "+service.GoServer+" = "+name+"(nil)\nvar _ = "+service.GoNewClient)
			output.AfterService(service, "var _ "+service.GoClient)
		}
		output.EndOfFile(file, "// The end.\nvar _ slog.Value", slog)
		output.AddFile(file, "extra", "// Version says which.\nconst Version"+" = 1\n\nvar _ = json.Marshal", schema.Import{Name: "json", Path: "encoding/json"}, slog)
	}
	return nil
}

// output returns the files below a folder with their content.
func output(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		below, _ := filepath.Rel(folder, name)
		files[filepath.ToSlash(below)] = string(content)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return files
}

func mustRun(t *testing.T, config gen.Config, plugins ...gen.Plugin) gen.Result {
	t.Helper()
	config.Files = []string{"shop.thrift"}
	result, err := gen.Run(config, plugins...)
	if err != nil {
		t.Fatalf("%v\n%v", err, result.Diagnostics)
	}
	return result
}

// TestPlugin_AddsAtEveryPoint compares what is generated with golden files and
// compiles it.
func TestPlugin_AddsAtEveryPoint(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	folder := shop(t)
	mustRun(t, gen.Config{Output: "gen"}, &plugin{name: "everywhere", generate: everywhere})
	for name, content := range output(t, "gen") {
		if !strings.HasSuffix(name, "_codec.go") { // codecs have no points
			testkit.Golden(t, filepath.Join(here, "testdata", "everywhere", filepath.Base(name)+".txt"), []byte(content))
		}
	}
	module := "module example.com/shop\n\ngo 1.26.0\n\nrequire github.com/fulmar-rpc/fulmar v0.0.0\n\nreplace github.com/fulmar-rpc/fulmar => " + filepath.Dir(here) + "\n"
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte(module), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "./...")
	build.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOSUMDB=off") // what the cache holds was verified
	if said, err := build.CombinedOutput(); err != nil {
		t.Errorf("what was generated does not compile: %v\n%s", err, said)
	}
}

// program makes a plugin do its work behind the protocol, as in a program of its
// own.
func program(inner gen.Plugin) gen.Plugin {
	return gen.External(inner.Name(), map[string]string{"key": "value"}, func(request []byte) ([]byte, error) {
		var stdout, stderr bytes.Buffer
		code := gen.PluginMain(bytes.NewReader(request), &stdout, &stderr, func(options map[string]string) (gen.Plugin, error) {
			if options["key"] != "value" {
				return nil, errors.New("the options are lost")
			}
			return inner, nil
		})
		if code != 0 {
			return nil, errors.New(strings.TrimSpace(stderr.String()))
		}
		return stdout.Bytes(), nil
	})
}

func TestPlugin_IsTheSameInAProgram(t *testing.T) {
	shop(t)
	warn := func(output *gen.Output) error {
		for _, constant := range output.Program().Files[1].Constants {
			output.Warningf(constant.Position, "%s is %d, %q, %d values", constant.Name, constant.Value.Int, constant.Value.String, len(constant.Value.List))
		}
		return everywhere(output)
	}
	inner := &plugin{name: "everywhere", generate: warn}
	near := mustRun(t, gen.Config{Output: "near"}, inner)
	far := mustRun(t, gen.Config{Output: "far", PackagePrefix: "example.com/shop/near"}, program(inner))
	if len(near.Diagnostics) != 4 || fmt.Sprint(near.Diagnostics) != fmt.Sprint(far.Diagnostics) {
		t.Errorf("diagnostics\n%v\nand\n%v", near.Diagnostics, far.Diagnostics)
	}
	if !strings.Contains(fmt.Sprint(near.Diagnostics), `shop.thrift:7:11: warning: plugin everywhere: LIMIT is 9007199254740993, "", 0 values`) {
		t.Errorf("diagnostics %v", near.Diagnostics)
	}
	want, got := output(t, "near"), output(t, "far")
	if len(want) != 10 || len(got) != len(want) {
		t.Errorf("%d files and %d files", len(want), len(got))
	}
	for name, content := range want {
		if got[name] != content {
			t.Errorf("%s differs:\n%s\nand\n%s", name, content, got[name])
		}
	}
}

func TestPlugin_OrderIsThatOfTheCalls(t *testing.T) {
	shop(t)
	var plugins []gen.Plugin
	for _, name := range []string{"b", "a"} {
		plugins = append(plugins, &plugin{name: name, generate: func(output *gen.Output) error {
			file := output.Program().Files[1]
			output.EndOfFile(file, "const "+name+"1 = 0")
			output.EndOfFile(file, "const "+name+"2 = 0")
			return nil
		}})
	}
	mustRun(t, gen.Config{}, plugins...)
	if types := output(t, "gen")["shop/shop_types.go"]; !strings.HasSuffix(types, "\n\nconst b1 = 0\n\nconst b2 = 0\n\nconst a1 = 0\n\nconst a2 = 0\n") {
		t.Errorf("%s", types)
	}
}

func TestPlugin_FailuresNameIt(t *testing.T) {
	shop(t)
	for name, test := range map[string]struct {
		plugin gen.Plugin
		want   string
	}{
		"error":              {&plugin{name: "x", generate: func(*gen.Output) error { return errors.New("no luck") }}, "plugin x: no luck"},
		"transform error":    {&plugin{name: "x", transform: func(*gen.Model) error { return errors.New("no luck") }}, "plugin x: no luck"},
		"panic":              {&plugin{name: "x", generate: func(*gen.Output) error { panic("no luck") }}, "plugin x: panics: no luck ("},
		"transform panic":    {&plugin{name: "x", transform: func(model *gen.Model) error { model.Program.Files[5] = nil; return nil }}, "plugin x: panics: runtime error: index out of range [5] with length 2 ("},
		"panic in a program": {program(&plugin{name: "x", generate: func(*gen.Output) error { panic("no luck") }}), "plugin x: panics: no luck ("},
		"nil":                {nil, "a plugin is nil"},
		"nobody":             {(*plugin)(nil), "the name of a plugin: panics: "},
		"name":               {&plugin{name: "X"}, `plugin name "X"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gen.Run(gen.Config{Files: []string{"shop.thrift"}}, test.plugin)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
			if strings.Contains(test.want, "panics: no luck") && !strings.Contains(err.Error(), "plugin_test.go:") {
				t.Errorf("%v does not say where", err)
			}
			if files := output(t, "gen"); len(files) > 0 {
				t.Errorf("%d files were written", len(files))
			}
		})
	}
	if _, err := gen.Run(gen.Config{Files: []string{"shop.thrift"}}, &plugin{name: "x"}, &plugin{name: "x"}); err == nil || err.Error() != "plugin x: is there twice" {
		t.Errorf("%v", err)
	}
}

// TestPlugin_WhatItAddsIsChecked has texts that are not what their point takes.
// Each is refused with the plugin, the point and the place in the definition, in
// the process and in a program.
func TestPlugin_WhatItAddsIsChecked(t *testing.T) {
	shop(t)
	stray := &schema.Struct{Name: "Stray", GoName: "Stray"}
	sync := schema.Import{Name: "sync", Path: "sync"}
	cases := map[string]struct {
		add  func(output *gen.Output, order *schema.Struct)
		want string
	}{
		"no Go":              {func(o *gen.Output, s *schema.Struct) { o.AfterStruct(s, "var X =\n(") }, "shop.thrift:14:8: plugin x: struct.after: is not Go: line 2:"},
		"import":             {func(o *gen.Output, s *schema.Struct) { o.AfterStruct(s, `import "os"`) }, "struct.after: an import stands in the text"},
		"cgo":                {func(o *gen.Output, s *schema.Struct) { o.AfterStruct(s, "import \"C\"") }, "struct.after: an import stands in the text"},
		"directive":          {func(o *gen.Output, s *schema.Struct) { o.AfterStruct(s, "var X int\n//go:linkname X y") }, "struct.after: line 2: the comment \"//go:linkname X y\" is an instruction to a tool"},
		"line directive":     {func(o *gen.Output, s *schema.Struct) { o.AfterStruct(s, "var X int /*line x.go:1:1*/") }, "is an instruction to a tool"},
		"package":            {func(o *gen.Output, s *schema.Struct) { o.AfterStruct(s, "package main") }, "struct.after: is not Go: line 1:"},
		"more than fields":   {func(o *gen.Output, s *schema.Struct) { o.StructFields(s, "x int }; type y struct {") }, "struct.fields: the text is more than fields"},
		"more than fields 2": {func(o *gen.Output, s *schema.Struct) { o.StructFields(s, "x int\n}\nfunc f() { type _ struct {\n}") }, "struct.fields: the text is more than fields"},
		"taken field":        {func(o *gen.Output, s *schema.Struct) { o.StructFields(s, "ID int") }, "struct.fields: declares Order.ID, which package shop has already"},
		"taken method": {func(o *gen.Output, s *schema.Struct) {
			o.AfterStruct(s, "func (s *Order) GetNote() string { return \"\" }")
		}, "struct.after: declares Order.GetNote, which package shop has already"},
		"taken type":   {func(o *gen.Output, s *schema.Struct) { o.AfterStruct(s, "type Orders"+"Server int") }, "shop.thrift:14:8: plugin x: struct.after: declares OrdersServer, which package shop has already"},
		"taken twice":  {func(o *gen.Output, s *schema.Struct) { o.AfterStruct(s, "var X int"); o.AfterStruct(s, "var X int") }, "declares X, which package shop has already"},
		"taken import": {func(o *gen.Output, s *schema.Struct) { o.AfterStruct(s, "var strconv int") }, "declares strconv, which is the name of an import"},
		"tag":          {func(o *gen.Output, s *schema.Struct) { o.FieldTag(s.Fields[0], "db") }, "shop.thrift:15:19: plugin x: field.tag: \"db\" is not part of a struct tag"},
		"taken tag":    {func(o *gen.Output, s *schema.Struct) { o.FieldTag(s.Fields[0], `json:"x"`) }, "field.tag: the tag has the key \"json\" already"},
		"stray":        {func(o *gen.Output, s *schema.Struct) { o.AfterStruct(stray, "var X int") }, "struct.after: the *schema.Struct is not part of the model"},
		"nothing":      {func(o *gen.Output, s *schema.Struct) { o.AfterStruct(nil, "var X int") }, "struct.after: the *schema.Struct is not part of the model"},
		"import path": {func(o *gen.Output, s *schema.Struct) {
			o.AfterStruct(s, "var X int", schema.Import{Name: "x", Path: "a\"b"})
		}, "import path \"a\\\"b\" is not valid"},
		"import name": {func(o *gen.Output, s *schema.Struct) {
			o.AfterStruct(s, "var X int", schema.Import{Name: ".", Path: "a"})
		}, "the name \".\" is not one"},
		"taken import name": {func(o *gen.Output, s *schema.Struct) {
			o.AfterStruct(s, "var X int", schema.Import{Name: "common", Path: "a"})
		}, "import \"a\": the name common stands for \"example.com/shop/gen/common\" in this package"},
		"two meanings": {func(o *gen.Output, s *schema.Struct) {
			o.AfterStruct(s, "var _ sync.Mutex", sync)
			o.AfterStruct(s, "var _ sync.Other", schema.Import{Name: "sync", Path: "example.com/sync"})
		}, "import \"example.com/sync\": the name sync stands for \"sync\" in this package"},
		"suffix":       {func(o *gen.Output, s *schema.Struct) { o.AddFile(s.File, "../x", "var X int") }, "shop.thrift: plugin x: file ../x: suffix \"../x\": expected small letters"},
		"taken suffix": {func(o *gen.Output, s *schema.Struct) { o.AddFile(s.File, "types", "var X int") }, "suffix \"types\": is taken"},
		"test suffix":  {func(o *gen.Output, s *schema.Struct) { o.AddFile(s.File, "test", "var X int") }, "suffix \"test\": is taken, or has a meaning of its own to Go"},
		"same suffix": {func(o *gen.Output, s *schema.Struct) {
			o.AddFile(s.File, "x", "var X int")
			o.AddFile(s.File, "x", "var Y int")
		}, "suffix \"x\": another file of this definition has it"},
		"empty file": {func(o *gen.Output, s *schema.Struct) { o.AddFile(s.File, "x", " \n") }, "file x: the file declares nothing"},
		"too long":   {func(o *gen.Output, s *schema.Struct) { o.AfterStruct(s, strings.Repeat(" ", 8<<20+1)) }, "struct.after: the text is too long (limit 8388608 bytes, got 8388609)"},
		"own error":  {func(o *gen.Output, s *schema.Struct) { o.Errorf(s.Fields[1].Position, "bad\x1b[2J\nnews") }, "shop.thrift:16:22: plugin x: bad[2J news"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			inner := &plugin{name: "x", generate: func(output *gen.Output) error {
				test.add(output, output.Program().Files[1].Structs[1])
				return nil
			}}
			for _, one := range []gen.Plugin{inner, program(inner)} {
				result, err := gen.Run(gen.Config{Files: []string{"shop.thrift"}}, one)
				if text := fmt.Sprint(result.Diagnostics); !errors.Is(err, gen.ErrInvalid) || !strings.Contains(text, test.want) || !strings.Contains(text, "plugin x: ") {
					t.Errorf("%v\n%v\nwant %s", err, text, test.want)
				}
			}
			if files := output(t, "gen"); len(files) > 0 {
				t.Errorf("%d files were written", len(files))
			}
		})
	}
}

func TestRun_ChecksWithoutWriting(t *testing.T) {
	shop(t)
	config := gen.Config{Files: []string{"shop.thrift"}, Output: "gen"}
	mustRun(t, config, &plugin{name: "everywhere", generate: everywhere})
	before := output(t, "gen")
	config.Check = true
	if err := os.Remove("gen/common/common_rpc.go"); err != nil {
		t.Fatal(err)
	}
	result, err := gen.Run(config)
	want := "[{gen/common/common_extra.go is left over, nothing generates it any more} {gen/common/common_rpc.go is missing} {gen/common/common_types.go differs from what the definitions give} " +
		"{gen/shop/shop_extra.go is left over, nothing generates it any more} {gen/shop/shop_rpc.go differs from what the definitions give} {gen/shop/shop_types.go differs from what the definitions give}]"
	if got := filepath.ToSlash(fmt.Sprint(result.Stale)); !errors.Is(err, gen.ErrStale) || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	delete(before, "common/common_rpc.go")
	if after := output(t, "gen"); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Error("the check has changed something")
	}
}
