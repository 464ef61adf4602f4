package emit

import (
	"slices"
	"strconv"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// writeKitexNil prints what makes of a nil struct an empty one, as Kitex does.
func (p *printer) writeKitexNil(end string) {
	p.P("if s == nil {")
	p.P("return w.", end, "(b)")
	p.P("}")
}

// writeKitexFixed is writeFixed for the shape of Kitex.
func (p *printer) writeKitexFixed(members []member) (rest []member) {
	var values, optional []member
	for _, m := range members {
		switch {
		case fieldBytes(m) == 0:
			rest = append(rest, m)
		case m.form == formValue && !m.optional:
			values = append(values, m)
		default:
			optional = append(optional, m)
		}
	}
	for number := 1; len(values)+len(optional) > 0; number++ {
		var run, maybe []member
		size := 0
		values, run, size = takeRun(values, size)
		fixed := size
		if len(values) == 0 {
			optional, maybe, size = takeRun(optional, size)
		}
		p.P("b = w.Room(b, ", size, ")")
		if len(run) > 0 {
			p.writeRun(run, fixed, numbered("fixed", number))
		}
		for _, m := range maybe {
			p.writePut(m, p.beginKitexMember(m))
			p.P("}")
		}
	}
	return rest
}

// beginKitexMember prints the condition for a member that may be absent to be
// written, and returns its value.
func (p *printer) beginKitexMember(m member) (value string) {
	field := "s." + m.GoName
	switch {
	case m.form == formOpt:
		p.P("if v, ok := ", field, ".Get(); ok {")
		return "v"
	case m.form == formPointer && m.Type.Kind != schema.KindStruct:
		p.P("if ", field, " != nil {")
		return "*" + field
	default:
		p.P("if ", p.holds(m), " {")
		return field
	}
}

// writeKitexMember is writeMember for the shape of Kitex. A nil struct that is not
// optional is written as an empty one.
func (p *printer) writeKitexMember(r *record, m member) {
	if m.form == formValue && !m.optional || m.form == formPointer && !m.optional {
		p.writeField(r, m, "s."+m.GoName)
		return
	}
	value := p.beginKitexMember(m)
	p.writeField(r, m, value)
	if r.union {
		p.P("set++")
	}
	p.P("}")
}

// readKitexMember is readMember for the shape of Kitex.
func (p *printer) readKitexMember(r *record, m member, required requiredSet) {
	field := "s." + m.GoName
	store := func(value string) { p.storeKitex(r, m, value) }
	seen := func() {
		if number, found := required.numbers[m.Field]; found {
			p.P(required.mark(number))
		}
	}
	switch {
	case isPlainList(m.Type) && (r.union || m.required || p.checksSet(m.Type)):
		p.P("var list ", p.goType(m.Type))
		p.readPlainList(m.Type, "list", "p+3", "nil")
		p.P("if list != nil {")
		p.readCheckedSet(m.Type, "list", 1)
		store("list")
		seen()
		p.P("}")
	case isPlainList(m.Type):
		p.readPlainList(m.Type, field, "p+3", field)
	case isContainer(m.Type):
		container := containerName(m.Type)
		p.readContainer(m.Type, container, ":=", "p+3", "nil", 1, func() {
			store(container)
			seen()
		})
	case m.Type.Kind == schema.KindStruct:
		p.P("value := ", p.newKitex(m.Type))
		p.initKitex(m.Type, "value")
		p.P("p = value.ReadThrift(r, p+3)")
		store("value")
		seen()
	case fieldBytes(m) > 0 && m.Type.Kind != schema.KindUUID:
		if fieldBytes(m) > fieldBytesLeast {
			p.P("if len(b)-p < ", fieldBytes(m), " {")
			p.P("p = r.Short(p+3, ", p.wireType(m.Type), ")")
			p.P("break")
			p.P("}")
		}
		store(p.scalarAt(m.Type, "b", "b", "p+3"))
		p.P("p += ", fieldBytes(m))
		seen()
	case m.form == formValue && !r.union || m.form == formNil && !r.union:
		p.P(field, ", p = r.", accessor(m.Type), "(p + 3)")
		seen()
	default:
		p.P("value, next := r.", accessor(m.Type), "(p + 3)")
		store("value")
		p.P("p = next")
		seen()
	}
}

// storeKitex prints what puts a value into a member. Of several members of a union
// the last one stays.
func (p *printer) storeKitex(r *record, m member, value string) {
	switch {
	case m.form == formOpt:
		value = p.imports.thrift("Some") + "(" + value + ")"
	case m.form == formPointer && m.Type.Kind == schema.KindEnum:
		value = "(*" + p.goType(m.Type) + ")(r.NewI64(p, int64(" + value + ")))"
	case m.form == formPointer && m.Type.Kind != schema.KindStruct:
		value = "r.New" + accessor(m.Type) + "(p, " + value + ")"
	}
	if r.union {
		p.emptyUnion(r, m.Field)
	}
	p.P("s.", m.GoName, " = ", value)
}

// emptyUnion prints what makes a union hold nothing, before the field next is set. A
// member that is absent when it equals its default then has that. A binary has it in
// memory of its own: who changes one must not change the default of others.
func (p *printer) emptyUnion(r *record, next *schema.Field) {
	preset := slices.IndexFunc(r.members, func(m member) bool { return m.isPreset() && m.Field != next })
	if preset < 0 {
		p.P("*s = ", r.goName, "{}")
		return
	}
	m := r.members[preset] // and the only one: unions have one default
	if m.Type.Kind != schema.KindBinary {
		p.P("*s = ", r.goName, "{", m.GoName, ": ", p.memberValue(m, m.Default), "}")
		return
	}
	p.P("*s = ", r.goName, "{", m.GoName, ": s.", m.GoName, "}")
	p.P("if ", p.holds(m), " {")
	p.P("if r.ChargeDefaults(p, ", p.valueBytes(m.Default), "); !r.Failed() {")
	p.P("s.", m.GoName, " = ", p.memberValue(m, m.Default))
	p.P("}")
	p.P("}")
}

// initKitex prints what gives a new struct its defaults.
func (p *printer) initKitex(t *schema.Type, target string) {
	if p.hasDefaults(t.Struct) {
		p.chargeDefaults(t.Struct, func() { p.P(target, ".InitDefault()") })
	}
}

// newKitex returns the expression for a pointer to a new struct of zeros.
func (p *printer) newKitex(t *schema.Type) string {
	return "new(" + p.imports.thrift("Structs") + "[" + p.goType(t) + "]).New(r, p)"
}

// kitexMethods prints the file with what values can do besides: the text form and
// Kitex's own methods to write and read. Arguments and results have the text form
// only.
func (p *printer) kitexMethods(source *schema.File) {
	for _, s := range source.Structs {
		p.kitexText(s.GoName)
		p.kitexLength(s, p.declaredRecord(s))
		p.kitexFast(s)
		p.endDeclaration()
	}
	for _, service := range source.Services {
		for _, method := range service.Methods {
			if !hasRecords(method) {
				continue
			}
			p.kitexText(argsName(method.Service.GoName, method.GoName))
			if !method.Oneway {
				p.kitexText(resultName(method.Service.GoName, method.GoName))
			}
			p.endDeclaration()
		}
	}
}

func (p *printer) kitexText(goName string) {
	if p.options.NoMethods {
		return
	}
	p.P()
	p.doc("String returns a text for logs.")
	p.P("func (s *", goName, ") String() string {")
	p.P("return ", p.imports.methods("Text"), "(s)")
	p.P("}")
}

// kitexFast prints the methods that copy a struct to bytes that are there, and back.
func (p *printer) kitexFast(s *schema.Struct) {
	p.P()
	p.doc("FastWrite writes s to buf, which must have BLength bytes, and returns how many it\ntook. It panics if s cannot be written.")
	p.P("func (s *", s.GoName, ") FastWrite(buf []byte) int {")
	p.P("return ", p.imports.thrift("Binary"), ".FastWrite(buf, s)")
	p.P("}")
	p.P()
	p.doc("FastWriteNocopy is FastWrite: all is copied to buf, and w is not used.")
	p.P("func (s *", s.GoName, ") FastWriteNocopy(buf []byte, w ", p.imports.methods("NocopyWriter"), ") int {")
	p.P("return ", p.imports.thrift("Binary"), ".FastWrite(buf, s)")
	p.P("}")
	p.P()
	p.doc("FastRead reads a struct at the beginning of buf and returns how many bytes it took.\nFields that do not arrive keep their values.")
	p.P("func (s *", s.GoName, ") FastRead(buf []byte) (int, error) {")
	p.P("return ", p.imports.thrift("Binary"), ".FastRead(buf, s)")
	p.P("}")
}

// kitexLength prints BLength.
func (p *printer) kitexLength(s *schema.Struct, r *record) {
	const stop = 1
	p.P()
	p.doc("BLength returns how many bytes FastWrite writes.")
	p.P("func (s *", s.GoName, ") BLength() int {")
	if p.cycles[s] != 0 {
		p.P("return s.bLength(new(", p.imports.methods("Nesting"), "))")
		p.P("}")
		p.P()
		p.P("func (s *", s.GoName, ") bLength(nesting *", p.imports.methods("Nesting"), ") int {")
	}
	p.P("if s == nil {")
	p.P("return ", stop)
	p.P("}")
	if p.cycles[s] != 0 {
		p.P("if !nesting.Enter() {")
		p.P("return 0")
		p.P("}")
	}
	always, lengths := stop, ""
	var rest []member
	for _, m := range r.members {
		if m.optional {
			rest = append(rest, m)
			continue
		}
		always += fieldHeaderBytes + leastSize(m.Type)
		switch {
		case isText(m.Type):
			lengths += " + len(s." + m.GoName + ")"
		case !isFixed(m.Type):
			rest = append(rest, m)
		}
	}
	if r.unknown != "" {
		lengths += " + s." + r.unknown + ".SizeThrift()"
	}
	if len(rest) == 0 && p.cycles[s] == 0 {
		p.P("return ", always, lengths)
		p.P("}")
		return
	}
	p.P("n := ", always, lengths)
	for _, m := range rest {
		if !m.optional {
			p.kitexValueLength(s, m.Type, "s."+m.GoName, 1)
			continue
		}
		value := p.beginKitexMember(m)
		p.P("n += ", strconv.Itoa(fieldHeaderBytes+leastSize(m.Type)))
		p.kitexValueLength(s, m.Type, value, 1)
		p.P("}")
	}
	if p.cycles[s] != 0 {
		p.P("nesting.Leave()")
	}
	p.P("return n")
	p.P("}")
}

// kitexValueLength prints what adds to n what a value within struct s takes beyond the
// leastSize of its type.
func (p *printer) kitexValueLength(s *schema.Struct, t *schema.Type, value string, depth int) {
	switch {
	case isFixed(t):
	case isText(t):
		p.P("n += len(", value, ")")
	case t.Kind == schema.KindStruct && p.sameCycle(s, t.Struct):
		p.P("n += ", value, ".bLength(nesting)")
	case t.Kind == schema.KindStruct:
		p.P("n += ", value, ".BLength()")
	case t.Kind == schema.KindMap:
		p.kitexMapLength(s, t, value, depth)
	default:
		if least := leastSize(t.Element); least > 0 {
			p.P("n += ", least, " * len(", value, ")")
		}
		if isFixed(t.Element) {
			return
		}
		element := numbered("element", depth)
		p.P("for _, ", element, " := range ", value, " {")
		p.kitexValueLength(s, t.Element, element, depth+1)
		p.P("}")
	}
}

func (p *printer) kitexMapLength(s *schema.Struct, t *schema.Type, value string, depth int) {
	if least := leastSize(t.Key) + leastSize(t.Element); least > 0 {
		p.P("n += ", least, " * len(", value, ")")
	}
	key, element, pair := numbered("key", depth), numbered("value", depth), numbered("pair", depth)
	switch {
	case isFixed(t.Key) && isFixed(t.Element):
		return
	case p.isPairs(t):
		p.P("for _, ", pair, " := range ", value, " {")
		key, element = pair+".Key", pair+".Value"
	case isFixed(t.Key):
		p.P("for _, ", element, " := range ", value, " {")
	case isFixed(t.Element):
		p.P("for ", key, " := range ", value, " {")
	default:
		p.P("for ", key, ", ", element, " := range ", value, " {")
	}
	p.kitexValueLength(s, t.Key, key, depth+1)
	p.kitexValueLength(s, t.Element, element, depth+1)
	p.P("}")
}
