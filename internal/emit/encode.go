package emit

import (
	"slices"
	"strconv"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// codec prints the file with the methods that write and read the structs of a
// definition and the arguments and results of its services.
func (p *printer) codec(source *schema.File) {
	hasMethods := slices.ContainsFunc(source.Services, func(s *schema.Service) bool { return len(s.Methods) > 0 })
	if len(source.Structs) == 0 && !hasMethods {
		return
	}
	p.handshake(p.imports.thrift)
	for _, s := range source.Structs {
		p.recordCodec(p.declaredRecord(s))
	}
	for _, service := range source.Services {
		for _, method := range service.Methods {
			p.recordCodec(p.argumentRecord(method))
			if !method.Oneway {
				p.recordCodec(resultRecord(method))
			}
		}
	}
}

func (p *printer) recordCodec(r *record) {
	p.writeMethod(r)
	p.endDeclaration()
	p.readMethod(r)
	p.endDeclaration()
}

// writeMethod prints WriteThrift.
func (p *printer) writeMethod(r *record) {
	p.P()
	p.doc("WriteThrift appends the fields and the end mark to w.")
	p.P("func (s *", r.goName, ") WriteThrift(w *", p.imports.thrift("Writer"), ") {")
	p.P("if !w.BeginStruct() {")
	p.P("return")
	p.P("}")
	if r.union {
		p.P("set := 0")
	}
	for _, m := range r.members {
		p.writeMember(r, m)
	}
	if r.union {
		p.P("if set != 1 {")
		p.P("w.FailUnion(", strconv.Quote(r.wireName), ", set)")
		p.P("}")
	}
	p.P("w.EndStruct()")
	p.P("}")
}

// writeMember prints what writes a field if it holds something.
func (p *printer) writeMember(r *record, m member) {
	value := "s." + m.GoName
	switch m.form {
	case formValue:
		p.writeField(m, value)
		return
	case formOpt:
		p.P("if v, ok := ", value, ".Get(); ok {")
		p.writeField(m, "v")
	case formNil, formPointer:
		p.P("if ", value, " != nil {")
		p.writeField(m, value)
	}
	if r.union {
		p.P("set++")
	}
	if m.absence == absenceRefused {
		p.P("} else {")
		p.P("w.FailNil(", strconv.Quote(r.wireName+": "+m.Name), ")")
	}
	p.P("}")
}

// writeField prints what writes the header and the value of a field.
func (p *printer) writeField(m member, value string) {
	switch m.Type.Kind {
	case schema.KindStruct, schema.KindList, schema.KindSet, schema.KindMap:
		p.P("w.Field(", p.wireType(m.Type), ", ", m.ID, ")")
		p.writeValue(m.Type, value, 1)
	case schema.KindEnum:
		p.P("w.FieldI32(", m.ID, ", int32(", value, "))")
	default:
		p.P("w.Field", accessor(m.Type), "(", m.ID, ", ", value, ")")
	}
}

// accessor is the method of thrift.Writer and thrift.Reader for a scalar or
// string.
func accessor(t *schema.Type) string {
	switch t.Kind {
	case schema.KindBinary:
		return "Binary"
	case schema.KindUUID:
		return "UUID"
	default:
		return wireTypes[t.Kind].name
	}
}

// writeValue prints what writes a value without a header. depth is how many
// containers deep it is, so that inner variables have names of their own.
func (p *printer) writeValue(t *schema.Type, value string, depth int) {
	switch t.Kind {
	case schema.KindStruct:
		p.P(value, ".WriteThrift(w)")
	case schema.KindList, schema.KindSet:
		p.writeList(t, value, depth)
	case schema.KindMap:
		p.writeMap(t, value, depth)
	case schema.KindEnum:
		p.P("w.I32(int32(", value, "))")
	default:
		p.P("w.", accessor(t), "(", value, ")")
	}
}

func (p *printer) writeList(t *schema.Type, value string, depth int) {
	p.P("if w.BeginList(", p.wireType(t.Element), ", len(", value, ")) {")
	if t.Element.Kind == schema.KindStruct {
		index := numbered("i", depth)
		p.P("for ", index, " := range ", value, " {")
		p.writeValue(t.Element, value+"["+index+"]", depth+1)
	} else {
		element := numbered("element", depth)
		p.P("for _, ", element, " := range ", value, " {")
		p.writeValue(t.Element, element, depth+1)
	}
	p.P("}")
	p.P("w.EndList()")
	p.P("}")
}

func (p *printer) writeMap(t *schema.Type, value string, depth int) {
	p.P("if w.BeginMap(", p.wireType(t.Key), ", ", p.wireType(t.Element), ", len(", value, ")) {")
	if p.isPairs(t) {
		index, pair := numbered("i", depth), numbered("pair", depth)
		p.P("for ", index, " := range ", value, " {")
		p.P(pair, " := &", value, "[", index, "]")
		p.writeValue(t.Key, pair+".Key", depth+1)
		p.writeValue(t.Element, pair+".Value", depth+1)
	} else {
		key, element := numbered("key", depth), numbered("value", depth)
		p.P("for ", key, ", ", element, " := range ", value, " {")
		p.writeKey(t.Key, key, depth+1)
		p.writeValue(t.Element, element, depth+1)
	}
	p.P("}")
	p.P("w.EndMap()")
	p.P("}")
}

// writeKey is writeValue for the key of a Go map.
func (p *printer) writeKey(t *schema.Type, key string, depth int) {
	if t.Kind == schema.KindBinary {
		p.P("w.String(", key, ")")
		return
	}
	p.writeValue(t, key, depth)
}

// numbered is name for what is used at depth 1, and name2 and so on inside.
func numbered(name string, depth int) string {
	if depth == 1 {
		return name
	}
	return name + strconv.Itoa(depth)
}
