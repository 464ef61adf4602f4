package syntax_test

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
)

// generator makes trees that the grammar allows, whether they mean something or
// not.
type generator struct{ *rand.Rand }

func (g generator) file() *ast.File {
	file := &ast.File{}
	for range g.IntN(3) {
		file.Namespaces = append(file.Namespaces, ast.Namespace{Language: g.name(), Value: g.name(), Annotations: g.annotations()})
	}
	for range g.IntN(3) {
		file.Includes = append(file.Includes, ast.Include{Path: g.text()})
	}
	for range g.IntN(8) {
		file.Declarations = append(file.Declarations, g.declaration())
	}
	return file
}

func (g generator) declaration() ast.Declaration {
	head := g.head(g.name())
	switch g.IntN(7) {
	case 0:
		value := g.value(0)
		return &ast.Constant{Head: head, Type: g.typeUse(0), Value: &value}
	case 1:
		return &ast.Typedef{Head: head, Type: g.typeUse(0)}
	case 2:
		enum := &ast.Enum{Head: head}
		for range g.IntN(4) {
			enum.Values = append(enum.Values, ast.EnumValue{Head: g.head(g.memberName()), Number: g.integer(), HasNumber: true})
		}
		return enum
	case 3:
		service := &ast.Service{Head: head}
		if g.IntN(2) == 0 {
			service.Extends = g.name()
		}
		for range g.IntN(4) {
			service.Methods = append(service.Methods, g.method())
		}
		return service
	default:
		return &ast.Struct{Head: head, Category: schema.Category(g.IntN(3)), Fields: g.fields()}
	}
}

func (g generator) method() ast.Method {
	m := ast.Method{Head: g.head(g.memberName()), Oneway: g.IntN(2) == 0, Arguments: g.fields(), Throws: g.fields()}
	if g.IntN(2) == 0 {
		m.Result = g.typeUse(0)
	}
	return m
}

func (g generator) fields() []ast.Field {
	var fields []ast.Field
	for range g.IntN(4) {
		field := ast.Field{
			Head: g.head(g.memberName()), ID: g.integer(), HasID: true,
			Requiredness: schema.Requiredness(g.IntN(3)), Type: g.typeUse(0),
		}
		if g.IntN(3) == 0 {
			value := g.value(0)
			field.Default = &value
		}
		fields = append(fields, field)
	}
	return fields
}

func (g generator) head(name ast.Name) ast.Head {
	head := ast.Head{Name: name, Annotations: g.annotations()}
	if g.IntN(3) == 0 {
		head.Doc = []string{"One line.", "Two\nlines.", "With a blank\n\n  and an indented line."}[g.IntN(3)]
	}
	return head
}

func (g generator) annotations() []ast.Annotation {
	var list []ast.Annotation
	for range max(0, g.IntN(6)-3) {
		list = append(list, ast.Annotation{Key: g.name(), Value: []string{"1", g.text()}[g.IntN(2)]})
	}
	return list
}

func (g generator) name() ast.Name {
	return ast.Name{Text: []string{"a", "Order", "_", "x1", "orders_2", "Structure", "I32", "T_"}[g.IntN(8)]}
}

func (g generator) memberName() ast.Name {
	keywords := []string{"struct", "list", "required", "i32", "void", "throws", "async", "true"}
	if g.IntN(4) == 0 {
		return ast.Name{Text: keywords[g.IntN(len(keywords))]}
	}
	return g.name()
}

func (g generator) text() string {
	var b strings.Builder
	for range g.IntN(6) {
		b.WriteString([]string{"a", `"`, `'`, `\`, "\n", "\t", "\x00", "é", "\xff", "//", "/*", "{"}[g.IntN(12)])
	}
	return b.String()
}

func (g generator) integer() int64 {
	return []int64{0, 1, -1, 7, 8, 255, -300, math.MaxInt32, math.MinInt64, math.MaxInt64}[g.IntN(10)]
}

func (g generator) typeUse(depth int) *ast.Type {
	t := &ast.Type{Name: []string{"bool", "byte", "i64", "string", "uuid", "Order", "base.Order"}[g.IntN(7)]}
	if depth < 4 {
		switch g.IntN(6) {
		case 0:
			t.Name, t.Element = "list", g.typeUse(depth+1)
		case 1:
			t.Name, t.Element = "set", g.typeUse(depth+1)
		case 2:
			t.Name, t.Key, t.Element = "map", g.typeUse(depth+1), g.typeUse(depth+1)
		}
	}
	t.Annotations = g.annotations()
	return t
}

func (g generator) value(depth int) ast.Value {
	kinds := 6
	if depth > 3 {
		kinds = 4
	}
	v := ast.Value{Kind: ast.ValueKind(g.IntN(kinds))}
	switch v.Kind {
	case ast.ValueInt:
		v.Int = g.integer()
	case ast.ValueDouble:
		v.Double = []float64{0, 1.5, -2e-300, math.MaxFloat64, math.SmallestNonzeroFloat64}[g.IntN(5)]
	case ast.ValueText:
		v.Text = g.text()
	case ast.ValueName:
		v.Text = []string{"true", "X", "base.X", "base.Enum.VALUE"}[g.IntN(4)]
	case ast.ValueList, ast.ValueMap:
		for range 2 * g.IntN(3) {
			v.Items = append(v.Items, g.value(depth+1))
		}
	}
	return v
}
