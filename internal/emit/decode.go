package emit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// readMethod prints ReadThrift.
func (p *printer) readMethod(r *record) {
	required := newRequiredSet(r)
	p.P()
	p.doc("ReadThrift sets the fields that arrive and keeps the others.")
	p.P("func (s *", r.goName, ") ReadThrift(r *", p.imports.thrift("Reader"), ") {")
	p.P("if !r.BeginStruct() {")
	p.P("return")
	p.P("}")
	if len(required.names) > 0 {
		p.P("var seen ", required.goType())
	}
	p.P("for key, ok := r.Field(); ok; key, ok = r.Field() {")
	if len(r.members) == 0 {
		p.P("r.Skip(key)")
	} else {
		p.P("switch key {")
		for _, m := range r.members {
			p.P(fmt.Sprintf("case %#08x: // %d: %s %s", fieldKey(m.Field), m.ID, idlType(m.Type), identifierText(m.Name)))
			p.readMember(r, m, required)
		}
		p.P("default:")
		p.P("r.Skip(key)")
		p.P("}")
	}
	p.P("}")
	p.checkRequired(required)
	p.P("r.EndStruct(", strconv.Quote(r.wireName), ")")
	for _, m := range r.members {
		if m.filled {
			p.P("if s.", m.GoName, " == nil {")
			p.P("s.", m.GoName, " = ", p.constructor(m.Type.Struct), "()")
			p.P("}")
		}
	}
	p.P("}")
}

// constructor returns the function NewX of a struct.
func (p *printer) constructor(s *schema.Struct) string {
	return p.imports.generated(s.File.Package, p.names.constructors[s])
}

// readMember prints what reads the value of a field. It replaces what the field
// held: nothing is merged, neither into a reused struct nor when a field is
// repeated.
func (p *printer) readMember(r *record, m member, required requiredSet) {
	field := "s." + m.GoName
	store := func(value string) {
		switch {
		case r.union && m.form == formOpt:
			p.P("*s = ", r.goName, "{", m.GoName, ": ", p.imports.thrift("Some"), "(", value, ")}")
		case r.union:
			p.P("*s = ", r.goName, "{", m.GoName, ": ", value, "}")
		case m.form == formOpt:
			p.P(field, " = ", p.imports.thrift("Some"), "(", value, ")")
		default:
			p.P(field, " = ", value)
		}
	}
	seen := func() {
		if number, found := required.numbers[m.Field]; found {
			p.P(required.mark(number))
		}
	}
	switch {
	case isContainer(m.Type):
		container := "list"
		if m.Type.Kind == schema.KindMap {
			container = "entries"
		}
		p.readContainer(m.Type, container, ":=", 1, func() {
			store(container)
			seen()
		})
	case m.form == formPointer:
		p.P("value := ", p.imports.thrift("Allocate"), "[", p.goType(m.Type), "](r)")
		if p.hasDefaults(m.Type.Struct) {
			p.P("*value = *", p.constructor(m.Type.Struct), "()")
		}
		p.P("value.ReadThrift(r)")
		store("value")
		seen()
	case m.Type.Kind == schema.KindStruct:
		p.readStruct(m.Type, field, "=")
		seen()
	default:
		store(p.readScalar(m.Type))
		seen()
	}
}

// readScalar returns an expression. Its value needs no statements, unlike that of
// structs and containers.
func (p *printer) readScalar(t *schema.Type) string {
	if t.Kind == schema.KindEnum {
		return p.goType(t) + "(r.I32())"
	}
	return "r." + accessor(t) + "()"
}

// readStruct prints what reads a struct into target, which operator assigns to
// or declares.
func (p *printer) readStruct(t *schema.Type, target, operator string) {
	p.P(target, " ", operator, " ", p.newStruct(t))
	p.P(target, ".ReadThrift(r)")
}

func (p *printer) newStruct(t *schema.Type) string {
	if p.hasDefaults(t.Struct) {
		return "*" + p.constructor(t.Struct) + "()"
	}
	return p.goType(t) + "{}"
}

// readContainer prints what reads a container into target, which operator
// assigns to or declares, and then what stored prints. Neither happens if the
// elements are not of the expected types.
func (p *printer) readContainer(t *schema.Type, target, operator string, depth int, stored func()) {
	var begin, end, empty string
	var readOne func()
	element := p.wireType(t.Element)
	switch {
	case t.Kind != schema.KindMap:
		begin, end = "BeginList("+element+")", "EndList"
		empty = p.imports.thrift("MakeSlice") + "[" + p.goType(t.Element) + "](r, n)"
		readOne = func() { p.readElement(t.Element, target, depth) }
	case p.isPairs(t):
		begin, end = "BeginMap("+p.wireType(t.Key)+", "+element+")", "EndMap"
		empty = p.imports.thrift("MakeSlice") + "[" + p.pairType(t) + "](r, n)"
		readOne = func() { p.readPair(t, target, depth) }
	default:
		begin, end = "BeginMap("+p.wireType(t.Key)+", "+element+")", "EndMap"
		empty = p.imports.thrift("MakeMap") + "[" + keyType(t.Key, p.goType) + ", " + p.goType(t.Element) + "](r, n)"
		readOne = func() { p.readEntry(t, target, depth) }
	}
	p.P("if n, ok := r.", begin, "; ok {")
	p.P(target, " ", operator, " ", empty)
	p.P("for i := 0; i < n && !r.Failed(); i++ {")
	readOne()
	p.P("}")
	p.P("r.", end, "()")
	stored()
	p.P("}")
}

// readInner is readContainer for a container within another one, which keeps
// what it could not read as nil.
func (p *printer) readInner(t *schema.Type, target string, depth int) {
	p.readContainer(t, target, "=", depth, func() {})
}

// readElement prints what reads an element and appends it to list.
func (p *printer) readElement(t *schema.Type, list string, depth int) {
	switch {
	case t.Kind == schema.KindStruct:
		// In place, because copying a large struct costs more than decoding it.
		p.P(list, " = append(", list, ", ", p.newStruct(t), ")")
		p.P(list, "[i].ReadThrift(r)")
	case isContainer(t):
		element := numbered("element", depth)
		p.P("var ", element, " ", p.goType(t))
		p.readInner(t, element, depth+1)
		p.P(list, " = append(", list, ", ", element, ")")
	default:
		p.P(list, " = append(", list, ", ", p.readScalar(t), ")")
	}
}

// readEntry prints what reads a key and a value and adds them to the map
// entries.
func (p *printer) readEntry(t *schema.Type, entries string, depth int) {
	key, value := numbered("key", depth), numbered("value", depth)
	switch t.Key.Kind {
	case schema.KindStruct:
		p.readStruct(t.Key, key, ":=")
	case schema.KindBinary:
		p.P(key, " := r.String()")
	default:
		p.P(key, " := ", p.readScalar(t.Key))
	}
	switch {
	case t.Element.Kind == schema.KindStruct:
		p.readStruct(t.Element, value, ":=")
	case isContainer(t.Element):
		p.P("var ", value, " ", p.goType(t.Element))
		p.readInner(t.Element, value, depth+1)
	default:
		value = p.readScalar(t.Element)
	}
	p.P(entries, "[", key, "] = ", value)
}

// readPair prints what reads a key and a value and appends them to pairs.
func (p *printer) readPair(t *schema.Type, pairs string, depth int) {
	pair := numbered("pair", depth)
	p.P("var ", pair, " ", p.pairType(t))
	for _, half := range []struct {
		t      *schema.Type
		target string
	}{{t.Key, pair + ".Key"}, {t.Element, pair + ".Value"}} {
		switch {
		case half.t.Kind == schema.KindStruct && p.hasDefaults(half.t.Struct):
			p.readStruct(half.t, half.target, "=")
		case half.t.Kind == schema.KindStruct:
			p.P(half.target, ".ReadThrift(r)")
		case isContainer(half.t):
			p.readInner(half.t, half.target, depth+1)
		default:
			p.P(half.target, " = ", p.readScalar(half.t))
		}
	}
	p.P(pairs, " = append(", pairs, ", ", pair, ")")
}

// requiredSet is the set of required fields of a record, kept as bits in the
// variable seen.
type requiredSet struct {
	names   []string
	numbers map[*schema.Field]int
}

const wordBits = 64

func newRequiredSet(r *record) requiredSet {
	required := requiredSet{numbers: map[*schema.Field]int{}}
	for _, m := range r.members {
		if m.required {
			required.numbers[m.Field] = len(required.names)
			required.names = append(required.names, m.Name)
		}
	}
	return required
}

// words is how many words the set takes.
func (r requiredSet) words() int { return (len(r.names) + wordBits - 1) / wordBits }

func (r requiredSet) goType() string {
	if r.words() == 1 {
		return "uint64"
	}
	return fmt.Sprintf("[%d]uint64", r.words())
}

// mark is the statement that notes the arrival of a field.
func (r requiredSet) mark(number int) string {
	if r.words() == 1 {
		return fmt.Sprintf("seen |= 1 << %d", number)
	}
	return fmt.Sprintf("seen[%d] |= 1 << %d", number/wordBits, number%wordBits)
}

// complete is the value of seen when all have arrived.
func (r requiredSet) complete() string {
	words := make([]string, r.words())
	for i := range words {
		bits := min(wordBits, len(r.names)-i*wordBits)
		words[i] = fmt.Sprintf("%#x", ^uint64(0)>>(wordBits-bits))
	}
	if len(words) == 1 {
		return words[0]
	}
	return "(" + r.goType() + "{" + strings.Join(words, ", ") + "})"
}

// checkRequired prints what refuses a struct without a required field.
func (p *printer) checkRequired(required requiredSet) {
	switch len(required.names) {
	case 0:
		return
	case 1:
		p.P("if seen == 0 {")
		p.P("r.FailMissing(", strconv.Quote(required.names[0]), ")")
		p.P("}")
		return
	}
	quoted := make([]string, len(required.names))
	for i, name := range required.names {
		quoted[i] = strconv.Quote(name)
	}
	bit := "seen&(1<<i)"
	if required.words() > 1 {
		bit = fmt.Sprintf("seen[i/%d]&(1<<(i%%%d))", wordBits, wordBits)
	}
	p.P("if seen != ", required.complete(), " {")
	p.P("var missing []string")
	p.P("for i, name := range [...]string{", strings.Join(quoted, ", "), "} {")
	p.P("if ", bit, " == 0 {")
	p.P("missing = append(missing, name)")
	p.P("}")
	p.P("}")
	p.P("r.FailMissing(missing...)")
	p.P("}")
}
