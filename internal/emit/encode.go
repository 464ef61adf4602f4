package emit

import (
	"slices"
	"strconv"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// codec prints the file with the methods that write and read the structs of a
// definition and the arguments and results of its services.
func (p *printer) codec(source *schema.File) {
	if source.Payload == schema.PayloadProtobuf {
		return
	}
	hasMethods := slices.ContainsFunc(source.Services, func(s *schema.Service) bool { return slices.ContainsFunc(s.Methods, hasRecords) })
	if len(source.Structs) == 0 && !hasMethods && !p.describes(source) {
		return
	}
	p.handshake(p.imports.thrift)
	p.reuseAssertions(source)
	for _, s := range source.Structs {
		p.recordCodec(p.declaredRecord(s), s)
	}
	for _, service := range source.Services {
		for _, method := range service.Methods {
			if !hasRecords(method) {
				continue
			}
			p.recordCodec(p.argumentRecord(method), nil)
			if !method.Oneway {
				p.recordCodec(p.resultRecord(method), nil)
			}
		}
	}
	p.descriptor(source)
}

// recordCodec prints the methods of a record, which is that of struct s, if of any.
func (p *printer) recordCodec(r *record, s *schema.Struct) {
	p.writeMethod(r)
	p.endDeclaration()
	p.readMethod(r, s)
	p.reuseMethod(r)
	p.keepMethod(r)
	p.endDeclaration()
}

// writeMethod prints WriteThrift. Fields of a fixed size come first, because one
// look at the room is enough for all of them.
func (p *printer) writeMethod(r *record) {
	p.P()
	p.doc("WriteThrift appends the fields and the end mark to b, which w fills.")
	p.P("func (s *", r.goName, ") WriteThrift(w *", p.imports.thrift("Writer"), ", b []byte) []byte {")
	begin, end := "BeginStruct", "EndStruct"
	if isLeaf(r) {
		begin, end = "BeginLeaf", "EndLeaf"
	}
	p.P("if !w.", begin, "() {")
	p.P("return b")
	p.P("}")
	if p.options.Kitex {
		p.writeKitexNil(end)
	}
	if r.union {
		p.P("set := 0")
		for _, m := range r.members {
			p.writeMember(r, m)
		}
		p.writeUnknown(r)
		p.P("if set != 1 {")
		p.P("w.FailUnion(", strconv.Quote(r.wireName), ", set)")
		p.P("}")
	} else {
		rest := p.writeFixed(r.members)
		for _, m := range rest {
			p.writeMember(r, m)
		}
		p.writeUnknown(r)
	}
	p.P("return w.", end, "(b)")
	p.P("}")
}

// isLeaf reports whether nothing nests in a struct.
func isLeaf(r *record) bool {
	return r.unknown == "" && !slices.ContainsFunc(r.members, func(m member) bool {
		switch m.Type.Kind {
		case schema.KindStruct, schema.KindList, schema.KindSet, schema.KindMap:
			return true
		}
		return false
	})
}

// runBytes is for how many bytes of fields room is made at once: what is left of a
// chunk when there is not enough is lost.
const runBytes = 256

// writeFixed prints what writes the members of a fixed size, and returns the others.
func (p *printer) writeFixed(members []member) (rest []member) {
	if p.options.Kitex {
		return p.writeKitexFixed(members)
	}
	var values, optional []member
	for _, m := range members {
		switch {
		case fieldBytes(m) == 0:
			rest = append(rest, m)
		case m.form == formValue:
			values = append(values, m)
		case m.form == formOpt:
			optional = append(optional, m)
		default:
			rest = append(rest, m)
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
			p.P("if v, ok := s.", m.GoName, ".Get(); ok {")
			p.writePut(m, "v")
			p.P("}")
		}
	}
	return rest
}

// takeRun takes members from the list, so that size stays below runBytes if it can.
func takeRun(list []member, size int) (rest, taken []member, total int) {
	for i, m := range list {
		if n := fieldBytes(m); size > 0 && size+n > runBytes {
			return list[i:], list[:i], size
		}
		size += fieldBytes(m)
	}
	return nil, list, size
}

// fieldHeader is how many bytes the type and id of a field take.
const fieldHeader = 3

// fieldBytes is how many bytes a field takes on the wire, 0 if that varies.
func fieldBytes(m member) int {
	if size := wireTypes[m.Type.Kind].wireBytes; size > 0 {
		return fieldHeader + size
	}
	return 0
}

// writeRun prints what writes members one behind the other. The array has the
// compiler check their places once.
func (p *printer) writeRun(run []member, size int, array string) {
	p.P(array, " := (*[", size, "]byte)(b[len(b) : len(b)+", size, "])")
	at := 0
	for _, m := range run {
		end := at + fieldBytes(m)
		p.P(p.putter(m), "(", array, "[", at, ":", end, "], ", m.ID, ", ", p.putValue(m, "s."+m.GoName), ")")
		at = end
	}
	p.P("b = b[:len(b)+", size, "]")
}

// writePut prints what writes a field of a fixed size, for which there is room.
func (p *printer) writePut(m member, value string) {
	size := fieldBytes(m)
	p.P(p.putter(m), "(b[len(b):len(b)+", size, "], ", m.ID, ", ", p.putValue(m, value), ")")
	p.P("b = b[:len(b)+", size, "]")
}

// putter is the function that writes a field of a fixed size.
func (p *printer) putter(m member) string {
	if m.Type.Kind == schema.KindEnum {
		return p.imports.thrift("PutI32")
	}
	return p.imports.thrift("Put" + accessor(m.Type))
}

func (p *printer) putValue(m member, value string) string {
	if m.Type.Kind == schema.KindEnum {
		return "int32(" + value + ")"
	}
	return p.fromField(m, value)
}

// writeMember prints what writes a field if it holds something.
func (p *printer) writeMember(r *record, m member) {
	if p.options.Kitex {
		p.writeKitexMember(r, m)
		return
	}
	value := "s." + m.GoName
	switch m.form {
	case formValue:
		p.writeField(r, m, value)
		return
	case formOpt:
		p.P("if v, ok := ", value, ".Get(); ok {")
		p.writeField(r, m, "v")
	case formNil, formPointer:
		p.P("if ", value, " != nil {")
		p.writeField(r, m, value)
	}
	if r.union {
		p.P("set++")
	}
	if m.absence == absenceRefused {
		p.P("} else {")
		p.P("w.FailNil(", errorName(r, m), ")")
	}
	p.P("}")
}

// writeField prints what writes the header and the value of a field.
func (p *printer) writeField(r *record, m member, value string) {
	field := errorName(r, m)
	p.unique, p.octets = m.unique, m.isBytes()
	if m.isBytes() {
		p.writeCheckedSet(field, m.Type, value, 1)
		p.P("b = w.ByteList(b, ", keyText(m.Field), ", ", value, ")")
		return
	}
	if m.asMap {
		p.writeMapSet(m, value)
		return
	}
	switch m.Type.Kind {
	case schema.KindStruct:
		p.P("b = ", p.imports.thrift("PutField"), "(w.Room(b, 4), ", keyText(m.Field), ")")
		p.writeValue(field, m.Type, value, "0", 1)
	case schema.KindList, schema.KindSet, schema.KindMap:
		p.writeValue(field, m.Type, value, keyText(m.Field), 1)
	case schema.KindString, schema.KindBinary:
		p.P("b = w.Field", accessor(m.Type), "(b, ", m.ID, ", ", p.fromField(m, value), ")")
	default:
		p.P("b = w.Room(b, ", fieldBytes(m), ")")
		p.writePut(m, value)
	}
}

// errorName is what errors call a field, quoted.
func errorName(r *record, m member) string { return strconv.Quote(r.wireName + ": " + m.Name) }

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

// writeValue prints what writes a value within field, which is what errors call that.
// key is the header of the field that a container is the value of, "0" if it is none.
// depth is how many containers deep the value is, so that inner variables have names of
// their own.
func (p *printer) writeValue(field string, t *schema.Type, value, key string, depth int) {
	switch t.Kind {
	case schema.KindStruct:
		p.P("b = ", value, ".WriteThrift(w, b)")
	case schema.KindList, schema.KindSet:
		p.writeList(field, t, value, key, depth)
	case schema.KindMap:
		p.writeMap(field, t, value, key, depth)
	case schema.KindEnum:
		p.P("b = w.I32(b, int32(", value, "))")
	default:
		p.P("b = w.", accessor(t), "(b, ", value, ")")
	}
}

func (p *printer) writeList(field string, t *schema.Type, value, key string, depth int) {
	p.writeCheckedSet(field, t, value, depth)
	switch t.Element.Kind {
	case schema.KindStruct, schema.KindList, schema.KindSet, schema.KindMap:
		p.P("b = w.BeginList(b, ", key, ", ", p.wireType(t.Element), ", len(", value, "))")
		index := numbered("i", depth)
		p.P("for ", index, " := range ", value, " {")
		p.endLoopOnError(t)
		p.writeValue(field, t.Element, value+"["+index+"]", "0", depth+1)
		p.P("}")
		p.P("w.EndList()")
	case schema.KindEnum:
		p.P("b = ", p.imports.thrift("WriteEnumList"), "(w, b, ", key, ", ", value, ")")
	default:
		p.P("b = w.", accessor(t.Element), "List(b, ", key, ", ", value, ")")
	}
}

func (p *printer) writeMap(field string, t *schema.Type, value, key string, depth int) {
	p.P("b = w.BeginMap(b, ", key, ", ", p.innerTypes(t), ", len(", value, "))")
	if p.isPairs(t) {
		index, pair := numbered("i", depth), numbered("pair", depth)
		p.P("for ", index, " := range ", value, " {")
		p.endLoopOnError(t)
		p.P(pair, " := &", value, "[", index, "]")
		p.endLoopOnNil(field, t, pair+".Value")
		p.writeValue(field, t.Key, pair+".Key", "0", depth+1)
		p.writeValue(field, t.Element, pair+".Value", "0", depth+1)
	} else {
		key, element := numbered("key", depth), numbered("value", depth)
		p.P("for ", key, ", ", element, " := range ", value, " {")
		p.endLoopOnError(t)
		p.endLoopOnNil(field, t, element)
		p.writeKey(field, t.Key, key, depth+1)
		p.writeValue(field, t.Element, element, "0", depth+1)
	}
	p.P("}")
	p.P("w.EndMap()")
}

// endLoopOnNil prints what refuses a map with a value that is nil where a struct has to
// be. In the shape of Kitex that is an empty one.
func (p *printer) endLoopOnNil(field string, t *schema.Type, value string) {
	if t.Element.Kind != schema.KindStruct || p.options.Kitex {
		return
	}
	p.P("if ", value, " == nil {")
	p.P("w.FailNil(", field, ")")
	p.P("break")
	p.P("}")
}

// endLoopOnError prints what leaves the loop over a container of containers after an
// error. Structs end by themselves, but a program can have one list stand for all of
// another's elements, and so on: they would be gone through long after the message is too
// long.
func (p *printer) endLoopOnError(t *schema.Type) {
	if isContainer(t.Element) || t.Key != nil && isContainer(t.Key) {
		p.P("if w.Failed() {")
		p.P("break")
		p.P("}")
	}
}

// writeKey is writeValue for the key of a Go map.
func (p *printer) writeKey(field string, t *schema.Type, key string, depth int) {
	if t.Kind == schema.KindBinary {
		p.P("b = w.String(b, ", key, ")")
		return
	}
	p.writeValue(field, t, key, "0", depth)
}

// numbered is name for what is used at depth 1, and name2 and so on inside.
func numbered(name string, depth int) string {
	if depth == 1 {
		return name
	}
	return name + strconv.Itoa(depth)
}
