package gen_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// find returns the struct of shop.thrift with a name.
func find(program *schema.Program, name string) *schema.Struct {
	for _, file := range program.Files {
		for _, s := range file.Structs {
			if s.Name == name {
				return s
			}
		}
	}
	return nil
}

// TestTransform_ChangesWhatIsGenerated does what the documentation of Transform
// promises: adds, changes and removes.
func TestTransform_ChangesWhatIsGenerated(t *testing.T) {
	shop(t)
	change := func(model *gen.Model) error {
		order, money := find(model.Program, "Order"), find(model.Program, "Money")
		file := order.File
		order.Doc = "Order was changed."
		order.Fields[0].Annotations = append(order.Fields[0].Annotations, schema.Annotation{Key: "go.name", Value: "Number"})
		order.Fields = append(order.Fields, &schema.Field{ID: 100, Name: "tenant", Type: &schema.Type{Kind: schema.KindString}})
		file.Structs = append(file.Structs, &schema.Struct{Name: "Page", File: file, Fields: []*schema.Field{
			{ID: 1, Name: "orders", Type: &schema.Type{Kind: schema.KindList, Element: &schema.Type{Kind: schema.KindStruct, Struct: order}}},
		}})
		file.Services[0].Methods = slices.DeleteFunc(file.Services[0].Methods, func(m *schema.Method) bool { return m.Name == "viewed" })
		// What the package imports is found again: common did not know time.
		file.Constants = append(file.Constants, &schema.Constant{
			Name: "ONE", File: file, Type: &schema.Type{Kind: schema.KindStruct, Struct: money},
			Value: &schema.Value{Kind: schema.ValueStruct, Type: &schema.Type{Kind: schema.KindStruct, Struct: money}},
		})
		return nil
	}
	mustRun(t, gen.Config{}, &plugin{name: "change", transform: change})
	files := output(t, "gen")
	for file, parts := range map[string][]string{
		"shop/shop_types.go": {"// Order was changed.\ntype Order struct", "Number int64", "Tenant string", "type Page struct", "Orders []Order", "ONE"},
		"shop/shop_codec.go": {"s.Tenant", "s.Number"},
	} {
		for _, part := range parts {
			if !strings.Contains(files[file], part) {
				t.Errorf("%s has no %q:\n%s", file, part, files[file])
			}
		}
	}
	if strings.Contains(files["shop/shop_rpc.go"], "Viewed") {
		t.Error("a method was not removed")
	}
}

func TestTransform_MayReplaceTheProgram(t *testing.T) {
	shop(t)
	seen := 0
	replace := &plugin{name: "replace", transform: func(model *gen.Model) error {
		copied := *model.Program
		model.Program = &copied
		return nil
	}}
	look := &plugin{name: "look", transform: func(model *gen.Model) error { seen = len(model.Program.Files); return nil }}
	mustRun(t, gen.Config{}, replace, look)
	if seen != 2 {
		t.Errorf("the second plugin saw %d files", seen)
	}
}

// TestTransform_LeavesAWholeModel has plugins that break it. None gets as far as
// the printer, and all are named.
func TestTransform_LeavesAWholeModel(t *testing.T) {
	shop(t)
	for name, test := range brokenModels() {
		t.Run(name, func(t *testing.T) {
			breaks := &plugin{name: "x", transform: func(model *gen.Model) error {
				order := find(model.Program, "Order")
				test.change(model.Program, order, order.File.Services[0])
				return nil
			}}
			result, err := gen.Run(gen.Config{Files: []string{"shop.thrift"}}, breaks)
			if text := fmt.Sprint(result.Diagnostics); !errors.Is(err, gen.ErrInvalid) || !strings.Contains(text, test.want) {
				t.Errorf("%v\n%s\nwant %s", err, text, test.want)
			}
			if files := output(t, "gen"); len(files) > 0 {
				t.Errorf("%d files were written", len(files))
			}
		})
	}
}

// TestTransform_IsWarnedAsDefinitionsAre: a plugin may leave what a definition may
// say, with the same warning.
func TestTransform_IsWarnedAsDefinitionsAre(t *testing.T) {
	shop(t)
	requires := &plugin{name: "x", transform: func(model *gen.Model) error {
		find(model.Program, "Order").Fields[3].Requiredness = schema.RequirednessRequired
		return nil
	}}
	result, err := gen.Run(gen.Config{Files: []string{"shop.thrift"}}, requires)
	if err != nil || len(result.Diagnostics) != 1 || !result.Diagnostics[0].Warning || !strings.Contains(result.Diagnostics[0].Message, "required cycle") {
		t.Errorf("%v\n%v", err, result.Diagnostics)
	}
}

// TestTransform_TooMuchIsRefused leaves a value that is short in memory and would
// be endless in print.
func TestTransform_TooMuchIsRefused(t *testing.T) {
	shop(t)
	double := &plugin{name: "x", transform: func(model *gen.Model) error {
		order := find(model.Program, "Order")
		t := &schema.Type{Kind: schema.KindI64}
		value := &schema.Value{Kind: schema.ValueInt, Type: t}
		for range 40 {
			t = &schema.Type{Kind: schema.KindList, Element: t}
			value = &schema.Value{Kind: schema.ValueList, Type: t, List: []*schema.Value{value, value}}
		}
		order.Fields[0].Type, order.Fields[0].Default = t, value
		return nil
	}}
	result, err := gen.Run(gen.Config{Files: []string{"shop.thrift"}}, double)
	if text := fmt.Sprint(result.Diagnostics); !errors.Is(err, gen.ErrInvalid) || !strings.Contains(text, "too many types and values (limit 1048576)") {
		t.Errorf("%v\n%s", err, text)
	}
}

// brokenModel is something that a plugin does to the model, to the struct Order
// and to the service Orders, and what is said about it.
type brokenModel struct {
	change func(p *schema.Program, order *schema.Struct, service *schema.Service)
	want   string
}

func brokenModels() map[string]brokenModel {
	all := brokenTypes()
	maps.Copy(all, map[string]brokenModel{
		"own parent":   {func(_ *schema.Program, _ *schema.Struct, v *schema.Service) { v.Extends = v }, "service Orders extends itself"},
		"method twice": {func(_ *schema.Program, _ *schema.Struct, v *schema.Service) { v.Methods[1].Name = "all" }, "a method is nil, of another service, or there twice"},
		"no result":    {func(_ *schema.Program, _ *schema.Struct, v *schema.Service) { v.Methods[0].Result = nil }, "the result is nil, expected the kind void"},
		"oneway":       {func(_ *schema.Program, _ *schema.Struct, v *schema.Service) { v.Methods[0].Oneway = true }, "is oneway and has a result"},
		"optional argument": {func(_ *schema.Program, _ *schema.Struct, v *schema.Service) {
			v.Methods[0].Arguments[0].Requiredness = schema.RequirednessOptional
		}, "is optional, which arguments cannot be"},
		"thrown struct": {func(_ *schema.Program, s *schema.Struct, v *schema.Service) {
			v.Methods[0].Throws[0].Type = &schema.Type{Kind: schema.KindStruct, Struct: s}
		}, "expected an exception with an id"},
		"required in union": {func(p *schema.Program, _ *schema.Struct, _ *schema.Service) {
			find(p, "Payment").Fields[0].Requiredness = schema.RequirednessRequired
		}, "is required, which fields of unions cannot be"},
		"enum value": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) { s.File.Enums[0].Values[1].Name = "OPEN" }, "a value is nil, of another enum, or there twice"},
	})
	return all
}

func brokenTypes() map[string]brokenModel {
	stray := &schema.Struct{Name: "Stray"}
	str := &schema.Type{Kind: schema.KindString}
	cyclic := &schema.Type{Kind: schema.KindList}
	cyclic.Element = cyclic
	endless := &schema.Value{Kind: schema.ValueList, Type: &schema.Type{Kind: schema.KindList, Element: str}}
	return map[string]brokenModel{
		"nil file":   {func(p *schema.Program, _ *schema.Struct, _ *schema.Service) { p.Files[0] = nil }, "has a file or a package that is nil"},
		"nil struct": {func(p *schema.Program, s *schema.Struct, _ *schema.Service) { s.File.Structs[0] = nil }, "shop.thrift: plugin x: a declaration is nil"},
		"nil field":  {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) { s.Fields[0] = nil }, "shop.thrift:14:8: plugin x: struct Order: a field is nil"},
		"nil type":   {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) { s.Fields[0].Type = nil }, "a type is nil"},
		"no file":    {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) { s.File = nil }, "its File is another one"},
		"no package": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) { s.File.Package = nil }, "the file is in no package of the model"},
		"declared twice": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) {
			s.File.Structs = append(s.File.Structs, s)
		}, "is declared in two places"},
		"name":     {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) { s.Name = "a b\nc" }, `struct "a b\nc": the name is not one`},
		"id taken": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) { s.Fields[0].ID = 2 }, "has the name or the id of another"},
		"category": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) { s.Category = 9 }, "category 9 is not known"},
		"kind": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) {
			s.Fields[0].Type = &schema.Type{Kind: 99}
		}, "a type of kind Kind(99) is not whole"},
		"void": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) {
			s.Fields[0].Type = &schema.Type{Kind: schema.KindVoid}
		}, "a type of kind void is not whole"},
		"half a map": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) {
			s.Fields[0].Type = &schema.Type{Kind: schema.KindMap, Element: str}
		}, "a type of kind map is not whole"},
		"stray struct": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) {
			s.Fields[0].Type = &schema.Type{Kind: schema.KindStruct, Struct: stray}
		}, "refers to something that the model has not"},
		"endless type": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) { s.Fields[0].Type = cyclic }, "nested too deep (limit 64)"},
		"default": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) {
			s.Fields[0].Default = &schema.Value{Kind: schema.ValueString, Type: s.Fields[0].Type}
		}, "a value does not fit its type i64"},
		"default range": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) {
			s.Fields[0].Type = &schema.Type{Kind: schema.KindI8}
			s.Fields[0].Default = &schema.Value{Kind: schema.ValueInt, Int: 128, Type: s.Fields[0].Type}
		}, "a value does not fit its type i8"},
		"endless default": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) {
			endless.Type.Element = endless.Type
			endless.List = []*schema.Value{endless}
			s.Fields[0].Type = endless.Type
			s.Fields[0].Default = endless
		}, "nested too deep (limit 64)"},
		"package cycle": {func(p *schema.Program, s *schema.Struct, _ *schema.Service) {
			money, list := find(p, "Money"), &schema.Type{Kind: schema.KindList, Element: &schema.Type{Kind: schema.KindStruct, Struct: s}}
			money.Fields = append(money.Fields, &schema.Field{ID: 9, Name: "orders", Type: list})
		}, "Go packages import each other"},
		"package path": {func(_ *schema.Program, s *schema.Struct, _ *schema.Service) { s.File.Package.Path = "../x" }, `package path "../x"`},
	}
}
