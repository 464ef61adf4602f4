package emit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// views prints the file with the views of the structs of a definition. All that can be is
// left to the runtime: a method is a call that says which field.
func (p *printer) views(source *schema.File) {
	for _, s := range source.Structs {
		view := p.names.views[s]
		if view == nil {
			continue
		}
		r := p.declaredRecord(s)
		members := slices.SortedFunc(slices.Values(r.members), func(a, b member) int { return cmp.Compare(a.ID, b.ID) })
		p.viewType(s, view)
		p.viewShape(s, r, view, members)
		p.endDeclaration()
		p.viewCodec(s, view)
		p.viewText(s, view)
		p.endDeclaration()
		for _, m := range r.members {
			m.asMap = false // views take and return sets as lists
			number := slices.IndexFunc(members, func(other member) bool { return other.Field == m.Field })
			f := viewField{member: m, view: view, record: r, methods: view.fields[m.Field], number: number}
			p.viewGetter(f)
			p.viewSetters(f)
			p.endDeclaration()
		}
	}
}

// viewField is a field of a view, with its number in the shape.
type viewField struct {
	member
	view    *viewNames
	record  *record
	methods viewMethods
	number  int
}

// slot is the expression for the slot of a field.
func (f viewField) slot() string { return fmt.Sprintf("v.slots[%d]", f.number) }

// arguments are those of the methods of view.View that change a field.
func (f viewField) arguments() string {
	return fmt.Sprintf("v.slots[:], &%s, %d", f.view.shape, f.number)
}

func (p *printer) viewType(s *schema.Struct, view *viewNames) {
	p.P()
	p.doc(withDeprecation(sentence(view.goName, " is a view of a ", s.GoName, ": it reads and changes fields where they are in a message. See view.View for who may use it, and for how long."), s.Annotations))
	p.P("type ", view.goName, " struct {")
	p.P("view ", p.imports.view("View"))
	p.P("slots [", len(s.Fields), "]", p.imports.view("Slot"))
	p.P("}")
}

// viewShape prints what the runtime has to know of a struct.
func (p *printer) viewShape(s *schema.Struct, r *record, view *viewNames, members []member) {
	required := newRequiredSet(r)
	p.P()
	p.P("var ", view.shape, " = ", p.imports.view("Shape"), "{")
	p.P("Name: ", strconv.Quote(r.wireName), ",")
	if len(members) > 0 {
		p.P("Fields: []", p.imports.view("Field"), "{")
		for _, m := range members {
			parts := []string{"Key: " + keyText(m.Field), "Name: " + strconv.Quote(m.GoName)}
			if m.form == formNil {
				parts = append(parts, "Optional: true")
			}
			if p.unknownKeys(m.Type) == keysBinary {
				parts = append(parts, "BinaryKeys: true")
			}
			if number, found := required.numbers[m.Field]; found {
				parts = append(parts, "Required: "+strconv.Itoa(number+1))
			}
			if m.Type.Kind == schema.KindStruct || isContainer(m.Type) {
				parts = append(parts, "Value: "+p.viewTypeLiteral(m.Type))
			}
			p.P("{", strings.Join(parts, ", "), "}, // ", m.ID, ": ", idlType(m.Type), " ", identifierText(m.Name))
		}
		p.P("},")
	}
	if len(required.names) > 0 {
		quoted := make([]string, len(required.names))
		for i, name := range required.names {
			quoted[i] = strconv.Quote(name)
		}
		p.P("Required: []string{", strings.Join(quoted, ", "), "},")
	}
	if r.union {
		p.P("Union: true,")
	}
	if r.union && r.unknown != "" {
		p.P("KeepsUnknown: true,")
	}
	if p.isPlain(s) {
		p.P("Plain: true,")
	}
	p.P("New: func() ", p.imports.thrift("Struct"), " { return ", p.constructor(s), "() },")
	if r.isEmbedding() || slices.ContainsFunc(members, func(m member) bool { return p.unknownKeys(m.Type) != keysKnown }) {
		p.P("OwnJSON: true,")
	}
	p.P("}")
}

// viewTypeLiteral is the expression for a type in a shape.
func (p *printer) viewTypeLiteral(t *schema.Type) string {
	text := "&" + p.imports.view("Type") + "{Type: " + p.wireType(t)
	switch {
	case t.Kind == schema.KindStruct:
		text += ", Struct: " + p.imports.view("ShapeOf") + "[" + p.viewOf(t.Struct) + "]"
	case t.Kind == schema.KindMap:
		text += ", Key: " + p.viewTypeLiteral(t.Key) + ", Element: " + p.viewTypeLiteral(t.Element)
	case isContainer(t):
		text += ", Element: " + p.viewTypeLiteral(t.Element)
	}
	if p.holdsPlain(t) {
		text += ", Plain: true"
	}
	return text + "}"
}

// isPlain says that nothing is required in a struct or in what it holds. Of a struct of
// another package that is not known: that could be generated anew and this one not.
func (p *printer) isPlain(s *schema.Struct) bool {
	seen := map[*schema.Struct]bool{}
	for queue := []*schema.Struct{s}; len(queue) > 0; queue = queue[1:] {
		inner := queue[0]
		if seen[inner] {
			continue
		}
		seen[inner] = true
		if inner.File.Package != p.pkg {
			return false
		}
		for _, field := range inner.Fields {
			if field.Requiredness == schema.RequirednessRequired {
				return false
			}
			queue = structsWithin(queue, field.Type)
		}
	}
	return true
}

// holdsPlain says that there are structs in a container, and that all of them are plain.
func (p *printer) holdsPlain(t *schema.Type) bool {
	structs := structsWithin(nil, t)
	return isContainer(t) && len(structs) > 0 && !slices.ContainsFunc(structs, func(s *schema.Struct) bool { return !p.isPlain(s) })
}

// viewOf is the type of the view of a struct.
func (p *printer) viewOf(s *schema.Struct) string {
	return p.imports.generated(s.File.Package, p.names.views[s].goName)
}

// viewCodec prints what makes a view and what becomes of it.
func (p *printer) viewCodec(s *schema.Struct, view *viewNames) {
	receiver := "func (v *" + view.goName + ") "
	p.P()
	p.doc(sentence(view.constructor, " returns a view of what s is written as."))
	p.P("func ", view.constructor, "(s *", s.GoName, ") (v ", view.goName, ", err error) {")
	p.P("b, err := ", p.imports.thrift("Marshal"), "(s)")
	p.P("if err == nil {")
	p.P("err = v.Load(b)")
	p.P("}")
	p.P("return v, err")
	p.P("}")
	p.P()
	p.doc(sentence("Load makes v a view of b, which belongs to it from now on. It checks all of b."))
	p.P(receiver, "Load(b []byte) error { return v.view.Load(b, v.slots[:], &", view.shape, ") }")
	p.P()
	p.doc(sentence("LoadUntil is Load that stops behind the fields with the ids, which alone may be used then. What is behind is not checked: see view.View.LoadUntil for what that risks."))
	p.P(receiver, "LoadUntil(b []byte, ids ...int16) error { return v.view.LoadUntil(b, v.slots[:], &", view.shape, ", ids) }")
	p.P()
	p.doc(sentence("Struct decodes what v is now."))
	p.P(receiver, "Struct() (*", s.GoName, ", error) {")
	p.P("s := ", p.constructor(s), "()")
	p.P("if err := v.view.Decode(v.slots[:], &", view.shape, ", s); err != nil {")
	p.P("return nil, err")
	p.P("}")
	p.P("return s, nil")
	p.P("}")
	p.P()
	p.doc("WriteThrift appends what v is now to b, which w fills.")
	p.P(receiver, "WriteThrift(w *", p.imports.thrift("Writer"), ", b []byte) []byte {")
	p.P("return v.view.Write(w, b, v.slots[:], &", view.shape, ")")
	p.P("}")
	p.P()
	p.doc(sentence("AppendTo appends what v is now to b. On an error it returns b."))
	p.P(receiver, "AppendTo(b []byte) ([]byte, error) {")
	p.P("if list, ok := v.view.AppendTo(b, &", view.shape, "); ok {")
	p.P("return list, nil")
	p.P("}")
	p.P("c := *v // it goes to the heap, so that v need not")
	p.P("return ", p.imports.thrift("Append"), "(b, &c)")
	p.P("}")
	p.P()
	p.doc(sentence("AppendPieces is AppendTo for a vectored write: it appends pieces of the message, one behind the other. " +
		"Those of 8 KiB and more that came with the message are not copied, the others are behind memory; all is one copied piece if other views were set in it, parts of fields were changed, or what it is of is only lent. It returns what both are then; pieces are valid until that memory is used again, or the view's message is."))
	p.P(receiver, "AppendPieces(pieces [][]byte, memory []byte) ([][]byte, []byte, error) {")
	p.P("if list, copied, ok := v.view.AppendPieces(pieces, memory, &", view.shape, "); ok {")
	p.P("return list, copied, nil")
	p.P("}")
	p.P("c := *v // it goes to the heap, so that v need not")
	p.P("return ", p.imports.view("AppendPiece"), "(pieces, memory, &c)")
	p.P("}")
	p.P()
	p.doc("ReadThrift makes v a view of what is at p.")
	p.P(receiver, "ReadThrift(r *", p.imports.thrift("Reader"), ", p int) int { return v.view.Read(r, p, v.slots[:], &", view.shape, ") }")
	p.P()
	p.doc("BindThrift is for package view: it makes v a view of bytes that were checked.")
	p.P(receiver, "BindThrift(b []byte) int { return v.view.Bind(b, v.slots[:], &", view.shape, ") }")
	p.P()
	p.doc("ForgetThrift is for servers: it makes v the zero view.")
	p.P(receiver, "ForgetThrift() { v.view.Forget(v.slots[:]) }")
	p.P()
	p.doc("ViewShape is for package view.")
	p.P("func (*", view.goName, ") ViewShape() *", p.imports.view("Shape"), " { return &", view.shape, " }")
}

// viewGetter prints the method that returns a field.
func (p *printer) viewGetter(f viewField) {
	result := p.viewValueType(f.Type)
	if f.custom != nil {
		result = p.valueType(f.member)
	}
	p.P()
	p.doc(withDeprecation(f.Doc, f.Annotations))
	head := "func (v *" + f.view.goName + ") " + f.methods.get + "() " + result + " {"
	switch {
	case f.Type.Kind == schema.KindBinary && f.Default != nil, isContainer(f.Type), f.Type.Kind == schema.KindStruct:
		p.P(head)
		p.viewLongGetter(f)
		p.P("}")
	default:
		p.P(head, " return ", p.toField(f.member, p.viewScalar(f)), " }")
	}
}

// viewScalar is the expression for a scalar, string or binary.
func (p *printer) viewScalar(f viewField) string {
	absent := p.zeroValue(f.Type)
	if f.Default != nil {
		absent = p.value(f.Default)
	}
	switch f.Type.Kind {
	case schema.KindBinary:
		return "v.view.Binary(" + f.slot() + ")"
	case schema.KindString:
		return "v.view.Text(" + f.slot() + ", " + absent + ")"
	case schema.KindEnum:
		if f.Default != nil {
			absent = "int32(" + absent + ")"
		}
		return p.goType(f.Type) + "(v.view.I32(" + f.slot() + ", " + absent + "))"
	default:
		return "v.view." + accessor(f.Type) + "(" + f.slot() + ", " + absent + ")"
	}
}

// viewLongGetter prints the body of a getter that takes more than an expression.
func (p *printer) viewLongGetter(f viewField) {
	if f.isBytes() && f.Default == nil {
		p.P("return ", p.imports.view("Bytes"), "(v.view.Value(", f.slot(), "))")
		return
	}
	if changeable := p.viewChangeable(f); changeable != "" {
		if f.Default != nil {
			p.P("if !v.view.Has(", f.slot(), ") {")
			p.viewDefault("b := ", f)
			p.P("return ", p.viewContainer(f.Type))
			p.P("}")
		}
		p.P("return ", changeable)
		return
	}
	if f.Type.Kind != schema.KindStruct && isContainer(f.Type) {
		p.P("b := v.view.Value(", f.slot(), ")")
		if f.Default != nil {
			p.P("if b == nil {")
			p.viewDefault("b = ", f)
			p.P("}")
		}
		if f.isBytes() {
			p.P("return ", p.imports.view("Bytes"), "(b)")
		} else {
			p.P("return ", p.viewContainer(f.Type))
		}
		return
	}
	if f.Default != nil {
		p.P("if !v.view.Has(", f.slot(), ") {")
		if f.Type.Kind == schema.KindBinary {
			p.P("return ", p.value(f.Default))
		} else {
			constructor := p.imports.generated(f.Type.Struct.File.Package, p.names.views[f.Type.Struct].constructor)
			p.P("value, _ := ", constructor, "(", p.structPointer(f.Default), ")")
			p.P("return value")
		}
		p.P("}")
	}
	if f.Type.Kind == schema.KindBinary {
		p.P("return v.view.Binary(", f.slot(), ")")
		return
	}
	p.P("if set, ok := v.view.Part(", f.slot(), ").(*", p.viewOf(f.Type.Struct), "); ok {")
	p.P("return *set")
	p.P("}")
	p.P("var value ", p.viewOf(f.Type.Struct))
	p.P("value.BindThrift(v.view.Value(", f.slot(), "))")
	p.P("return value")
}

// viewChangeable is the expression for a list whose elements are read where they are when
// some of them were changed, "" if the field holds none.
func (p *printer) viewChangeable(f viewField) string {
	if !isContainer(f.Type) || f.Type.Kind == schema.KindMap || f.isBytes() {
		return ""
	}
	switch element := f.Type.Element; {
	case isFixed(element):
		return p.imports.view("NumbersIn") + "[" + p.expandedType(element) + "](v.view.Elements(" + f.slot() + ", " + p.wireType(element) + "), " + p.wireType(element) + ")"
	case element.Kind == schema.KindString, element.Kind == schema.KindBinary:
		return p.imports.view("TextsIn") + "(v.view.Elements(" + f.slot() + ", " + p.wireType(element) + "), " + p.viewReader(element) + ")"
	}
	return ""
}

// viewDefault prints that b is what the default of a container is written as.
func (p *printer) viewDefault(assign string, f viewField) {
	p.P(assign, p.imports.view("Default"), "(func(w *", p.imports.thrift("Writer"), ", b []byte) []byte {")
	p.P("value := ", p.fieldValue(f.member, f.Default))
	p.writeViewed(f)
	p.P("return b")
	p.P("})")
}

// viewValueType is the Go type of a value in a view.
func (p *printer) viewValueType(t *schema.Type) string {
	switch {
	case t.Kind == schema.KindStruct:
		return p.viewOf(t.Struct)
	case t.Kind == schema.KindMap:
		return p.imports.view("Map") + "[" + p.viewKeyType(t.Key) + ", " + p.viewElementType(t.Element) + "]"
	case isContainer(t) && isFixed(t.Element):
		return p.imports.view("Numbers") + "[" + p.viewElementType(t.Element) + "]"
	case isContainer(t):
		return p.imports.view("List") + "[" + p.viewElementType(t.Element) + "]"
	default:
		return p.goType(t)
	}
}

// viewElementType is viewValueType without the names of typedefs; see pairType.
func (p *printer) viewElementType(t *schema.Type) string {
	if t.Kind == schema.KindStruct || isContainer(t) {
		return p.viewValueType(t)
	}
	return p.expandedType(t)
}

// viewKeyType is the type of the key of a map, in which binaries are strings.
func (p *printer) viewKeyType(t *schema.Type) string {
	if t.Kind == schema.KindBinary {
		return "string"
	}
	return p.viewElementType(t)
}

// viewReader is the function that reads a value within a view.
func (p *printer) viewReader(t *schema.Type) string {
	switch t.Kind {
	case schema.KindString:
		return p.imports.view("Text")
	case schema.KindBinary:
		return p.imports.view("Binary")
	case schema.KindStruct:
		return "func(b []byte) (value " + p.viewOf(t.Struct) + ", size int) {\nsize = value.BindThrift(b)\nreturn value, size\n}"
	case schema.KindList, schema.KindSet, schema.KindMap:
		return "func(b []byte) (" + p.viewValueType(t) + ", int) {\nreturn " +
			p.viewContainer(t) + ", " + p.imports.view("Size") + "(b, " + p.wireType(t) + ")\n}"
	default:
		return p.imports.view("Number") + "[" + p.expandedType(t) + "]"
	}
}

// viewContainer is the expression for the container that is in b.
func (p *printer) viewContainer(t *schema.Type) string {
	switch {
	case t.Kind == schema.KindMap:
		key := p.viewReader(t.Key)
		if t.Key.Kind == schema.KindBinary {
			key = p.imports.view("Text")
		}
		return p.imports.view("MapOf") + "(b, " + p.innerTypes(t) + ", " + key + ", " + p.viewReader(t.Element) + ")"
	case isFixed(t.Element):
		return p.imports.view("NumbersOf") + "[" + p.expandedType(t.Element) + "](b, " + p.wireType(t.Element) + ")"
	default:
		return p.imports.view("ListOf") + "(b, " + p.wireType(t.Element) + ", " + p.viewReader(t.Element) + ")"
	}
}
