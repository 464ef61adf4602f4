package syntax

import (
	"slices"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// fields reads fields. They are gathered on a stack that all lists share: lists
// that grow by themselves would take three times the memory, which for fields is
// the most of what parsing takes.
func (p *parser) fields(closing byte, depth int) (list []ast.Field, ok bool) {
	below := len(p.fieldStack)
	ok = p.members(closing, "a field", func() bool {
		field := ast.Field{}
		if !p.field(&field, depth) {
			return false
		}
		p.fieldStack = append(p.fieldStack, field)
		return true
	}, func() { p.fieldStack = p.fieldStack[:len(p.fieldStack)-1] })
	list = append(list, p.fieldStack[below:]...)
	clear(p.fieldStack[below:])
	p.fieldStack = p.fieldStack[:below]
	return list, ok
}

func (p *parser) field(field *ast.Field, depth int) (ok bool) {
	p.node()
	field.Doc = p.token.trivia.doc.text(p.lexer.source)
	if p.token.kind == tokenInt {
		field.ID, field.HasID, field.IDPlace = p.token.int, true, p.token.place
		p.next()
		if !p.expectMark(':') {
			return false
		}
	}
	field.RequirednessPlace = p.token.place
	if p.takeWord("required") {
		field.Requiredness = schema.RequirednessRequired
	} else if p.takeWord("optional") {
		field.Requiredness = schema.RequirednessOptional
	}
	if field.Type, ok = p.typeUse(0); !ok {
		return false
	}
	if p.isMark('&') {
		p.ignore("&", "structs are pointers where they are optional or contain themselves")
		p.next()
	}
	if !p.memberName(&field.Head, "the name of a field") {
		return false
	}
	if !field.HasID && p.atArguments() {
		return p.expected("')' before the next method")
	}
	if p.takeMark('=') {
		field.Default = new(ast.Value)
		if !p.value(field.Default, 0) {
			return false
		}
	}
	if !p.schemaHints(depth) || !p.endMember(&field.Head) {
		return false
	}
	if !isBytes(field) {
		p.warnOfByteLists(field.Type)
	}
	return true
}

// isBytes says that a field asks for a list of bytes to be bytes in Go: whoever writes that
// knows.
func isBytes(field *ast.Field) bool {
	return slices.ContainsFunc(field.Annotations, func(annotation ast.Annotation) bool {
		return annotation.Key.Text == "go.type" && annotation.Value == "[]byte"
	})
}

// warnOfByteLists warns of what is not what it looks like.
func (p *parser) warnOfByteLists(t *ast.Type) {
	if t.Key != nil {
		p.warnOfByteLists(t.Key)
	}
	if t.Element == nil {
		return
	}
	if t.Name == "list" && t.Element.Name == "byte" {
		p.warnOnce(t.Element.Place, "list<byte>", `list<byte>: []int8 in Go, unless a field has go.type = "[]byte", and numbers of 8 bits on the wire; for bytes binary costs less, but is something else to peers`)
	}
	p.warnOfByteLists(t.Element)
}

// schemaHints reads and drops what some generator for XML schemas once used.
func (p *parser) schemaHints(depth int) bool {
	p.skipWord("xsd_optional", onlyXSD)
	p.skipWord("xsd_nillable", onlyXSD)
	if !p.skipWord("xsd_attrs", onlyXSD) {
		return true
	}
	if depth == limits.IDLTypeDepth {
		return p.refuse("xsd_attrs: nested too deeply (limit %d)", limits.IDLTypeDepth)
	}
	if !p.expectMark('{') {
		return false
	}
	_, ok := p.fields('}', depth+1)
	return ok
}

// typeUse reads a type. depth counts the lists, sets and maps around it.
func (p *parser) typeUse(depth int) (*ast.Type, bool) {
	p.node()
	if p.token.kind != tokenName {
		return nil, p.expected("a type")
	}
	t := &ast.Type{Name: p.token.text, Place: p.token.place}
	var ok bool
	switch {
	case t.Name == "list" || t.Name == "set" || t.Name == "map":
		ok = p.container(t, depth)
	case t.Name == "slist":
		ok = p.refuse("type slist: not supported any more, expected string, which it was on the wire")
	case t.Name == "void":
		ok = p.refuse("type void: only a method can return it, expected another type")
	case isKeyword(t.Name) && !isBaseType(t.Name):
		ok = p.expected("a type")
	default:
		ok = true
		p.next()
	}
	if !ok {
		return nil, false
	}
	t.Annotations, ok = p.annotations()
	return t, ok
}

func (p *parser) container(t *ast.Type, depth int) (ok bool) {
	if depth == limits.IDLTypeDepth {
		p.refuse("type: nested too deeply (limit %d lists, sets and maps)", limits.IDLTypeDepth)
		p.skipAngles()
		return false
	}
	p.next()
	if !p.cppType() || !p.expectMark('<') {
		return false
	}
	if t.Name == "map" {
		if t.Key, ok = p.typeUse(depth + 1); !ok || !p.expectMark(',') {
			return false
		}
	}
	if t.Element, ok = p.typeUse(depth + 1); !ok {
		return false
	}
	return p.expectMark('>') && p.cppType()
}

// skipAngles moves behind a type that is too deep to be read, or to what no
// type contains.
func (p *parser) skipAngles() {
	for depth := 0; p.token.kind == tokenName || p.isMark('<') || p.isMark('>') || p.isMark(','); p.next() {
		if p.isMark('<') {
			depth++
		}
		if p.isMark('>') {
			if depth--; depth == 0 {
				p.next()
				return
			}
		}
	}
}

// cppType reads and drops the C++ type that may be given for a container.
func (p *parser) cppType() bool {
	if !p.skipWord("cpp_type", onlyCPP) {
		return true
	}
	if p.token.kind != tokenText {
		return p.expected("a string behind cpp_type")
	}
	p.next()
	return true
}

// value reads a constant expression. depth counts the lists and maps around
// it.
func (p *parser) value(v *ast.Value, depth int) bool {
	p.node()
	v.Place = p.token.place
	switch {
	case p.token.kind == tokenInt:
		v.Kind, v.Int = ast.ValueInt, p.token.int
	case p.token.kind == tokenDouble:
		v.Kind, v.Double = ast.ValueDouble, p.token.double
	case p.token.kind == tokenText:
		v.Kind, v.Text = ast.ValueText, p.token.text
	case p.atLineKeyword():
		return p.expected("a value")
	case p.token.kind == tokenName:
		v.Kind, v.Text = ast.ValueName, p.token.text
	case p.isMark('[') || p.isMark('{'):
		return p.valueItems(v, depth)
	default:
		return p.expected("a value")
	}
	p.next()
	return true
}

func (p *parser) valueItems(v *ast.Value, depth int) bool {
	if depth == limits.IDLTypeDepth {
		return p.refuse("value: nested too deeply (limit %d lists and maps)", limits.IDLTypeDepth)
	}
	item := func() bool {
		v.Items = append(v.Items, ast.Value{})
		return p.value(&v.Items[len(v.Items)-1], depth+1)
	}
	if p.takeMark('[') {
		v.Kind = ast.ValueList
		return p.items(']', "a value", func() bool {
			ok := item()
			p.separator()
			return ok
		})
	}
	p.next()
	v.Kind = ast.ValueMap
	return p.items('}', "a key", func() bool {
		ok := item() && p.expectMark(':') && item()
		p.separator()
		return ok
	})
}
