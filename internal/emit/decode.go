package emit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// fieldBytesLeast is how long the shortest field is. Where fewer bytes are left there
// can only be the end mark.
const fieldBytesLeast = 4

// readMethod prints ReadThrift.
func (p *printer) readMethod(r *record, s *schema.Struct) {
	required := newRequiredSet(r)
	p.P()
	p.doc("ReadThrift sets the fields that arrive and keeps the others.")
	p.P("func (s *", r.goName, ") ReadThrift(r *", p.imports.thrift("Reader"), ", p int) int {")
	p.beginReuse(r, s)
	p.P("b := r.BeginStruct()")
	p.P("var field ", p.imports.thrift("FieldKey"))
	if len(required.names) > 0 {
		p.P("var seen ", required.goType())
	}
	p.unknownVariable(r)
	p.readRun(r, required)
	checks := len(required.names) > 0 || r.unknown != "" && !r.union || slices.ContainsFunc(r.members, func(m member) bool { return m.filled })
	if checks {
		p.P("fields:")
	}
	p.P("for len(b)-p >= ", fieldBytesLeast, " {")
	p.P("switch field = ", p.imports.thrift("KeyAt"), "(b, p); field {")
	for _, m := range r.members {
		p.P(fmt.Sprintf("case %s: // %d: %s %s", keyText(m.Field), m.ID, idlType(m.Type), identifierText(m.Name)))
		policy := ""
		if holdsStrings(m.Type) {
			policy = stringPolicy(m.Annotations)
		}
		if policy != "" {
			p.P("before := r.UseStrings(", p.imports.thrift(policy), ")")
		}
		p.unique, p.octets = m.unique, m.isBytes()
		if p.options.Kitex {
			p.readKitexMember(r, m, required)
		} else {
			p.readMember(r, m, required)
		}
		if policy != "" {
			p.P("r.UseStrings(before)")
		}
	}
	p.P("default:")
	p.P("if field.IsStop() {")
	if checks {
		p.P("break fields")
	} else {
		p.P("return r.PastStop(p)")
	}
	p.P("}")
	p.readUnknown(r)
	p.P("}")
	p.P("}")
	p.storeUnknown(r)
	p.checkRequired(required)
	for _, m := range r.members {
		if m.filled {
			p.fillStruct(m)
		}
	}
	p.P("return r.EndStruct(p, field, ", strconv.Quote(r.wireName), ")")
	p.P("}")
}

// fillStruct prints what makes the struct of a member that did not arrive. An empty
// message asks for as many as there are such members, so they are charged as well.
func (p *printer) fillStruct(m member) {
	n := p.defaultBytes(m.Type.Struct)
	if n > 0 {
		p.P("if s.", m.GoName, " == nil && !r.Failed() {")
		p.P("if p, field = r.ChargeDefaults(p, ", n, "), ", keyText(m.Field), "; !r.Failed() {")
	} else {
		p.P("if s.", m.GoName, " == nil {")
	}
	p.P("s.", m.GoName, " = ", p.constructor(m.Type.Struct), "()")
	if n > 0 {
		p.P("}")
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
	case m.asMap:
		p.readMapSet(m, r.old(m), func() {
			store("set")
			seen()
		})
	case isPlainList(m.Type) && (r.union || m.required || r.reuse || p.checksSet(m.Type)):
		p.P("var list ", p.valueType(m))
		p.readMemberList(m, "list", r.old(m))
		p.P("if list != nil {")
		p.readCheckedSet(m.Type, "list", 1)
		store("list")
		seen()
		p.P("}")
	case isPlainList(m.Type):
		p.readMemberList(m, field, field)
	case isContainer(m.Type):
		container := containerName(m.Type)
		p.readContainer(m.Type, container, ":=", "p+3", r.old(m), 1, func() {
			store(container)
			seen()
		})
	case m.form == formPointer:
		p.makePointer(r, m)
		p.P("p = value.ReadThrift(r, p+3)")
		store("value")
		seen()
	case m.Type.Kind == schema.KindStruct:
		p.makeStruct(r, m, field)
		p.P("p = ", field, ".ReadThrift(r, p+3)")
		seen()
	case fieldBytes(m) > 0 && m.Type.Kind != schema.KindUUID:
		if fieldBytes(m) > fieldBytesLeast {
			p.P("if len(b)-p < ", fieldBytes(m), " {")
			p.P("p = r.Short(p+3, ", p.wireType(m.Type), ")")
			p.P("break")
			p.P("}")
		}
		store(p.toField(m, p.scalarAt(m.Type, "b", "b", "p+3")))
		p.P("p += ", fieldBytes(m))
		seen()
	case m.form == formOpt || r.union || m.custom != nil && m.Type.Kind == schema.KindString:
		p.P("value, next := r.", accessor(m.Type), "(p + 3)")
		store(p.toField(m, "value"))
		p.P("p = next")
		seen()
	default:
		p.P(field, ", p = r.", accessor(m.Type), "(p + 3)")
		seen()
	}
}

// containerName is what a container is called while it is read.
func containerName(t *schema.Type) string {
	if t.Kind == schema.KindMap {
		return "entries"
	}
	return "list"
}

// scalarAt returns the expression for the scalar of a field at a place in bytes, of which
// all are there. array is what bytes is a slice of, or bytes.
func (p *printer) scalarAt(t *schema.Type, array, bytes, place string) string {
	switch t.Kind {
	case schema.KindBool:
		return array + "[" + place + "] == 1"
	case schema.KindI8:
		return "int8(" + array + "[" + place + "])"
	case schema.KindEnum:
		return p.goType(t) + "(" + p.imports.thrift("I32At") + "(" + bytes + ", " + place + "))"
	default:
		return p.imports.thrift(accessor(t)+"At") + "(" + bytes + ", " + place + ")"
	}
}

// readScalar prints what reads a scalar, string or binary at p into target, and
// moves p.
func (p *printer) readScalar(t *schema.Type, target string) {
	if t.Kind == schema.KindEnum {
		p.P(target, ", p = ", p.imports.thrift("ReadEnum"), "[", p.goType(t), "](r, p)")
		return
	}
	p.P(target, ", p = r.", accessor(t), "(p)")
}

// isPlainList says that a list or set has elements that the runtime reads all at
// once.
func isPlainList(t *schema.Type) bool {
	return (t.Kind == schema.KindList || t.Kind == schema.KindSet) && !isContainer(t.Element) && t.Element.Kind != schema.KindStruct
}

// readMemberList is readPlainList for the value of a member.
func (p *printer) readMemberList(m member, target, old string) {
	if m.isBytes() {
		p.P(target, ", p = r.ByteList(p+3, ", old, ")")
		return
	}
	p.readPlainList(m.Type, target, "p+3", old)
}

// readPlainList prints what reads such a list at the place into target, and moves p.
// What target holds when the elements are of another type is old.
func (p *printer) readPlainList(t *schema.Type, target, place, old string) {
	if t.Element.Kind == schema.KindEnum {
		p.P(target, ", p = ", p.imports.thrift("ReadEnumList"), "[", p.goType(t.Element), "](r, ", place, ", ", old, ")")
		return
	}
	p.P(target, ", p = r.", accessor(t.Element), "List(", place, ", ", old, ")")
}

// readStruct prints what reads a struct at p into target, which operator assigns to
// or declares, and moves p.
func (p *printer) readStruct(t *schema.Type, target, operator string) {
	if p.options.Reuse && p.hasDefaults(t.Struct) || p.defaultBytes(t.Struct) > 0 {
		if operator == ":=" {
			p.P("var ", target, " ", p.goType(t))
		}
		p.unlessReused(t, true, target)
	} else {
		p.P(target, " ", operator, " ", p.newStruct(t))
	}
	p.P("p = ", target, ".ReadThrift(r, p)")
}

// chargeDefaults prints what charges for the memory of a struct's defaults, and makes one
// for what is at p only if there was enough: a byte on the wire can stand for a long list.
// Without it the struct stays zero, and as reading has failed nothing is read into it.
func (p *printer) chargeDefaults(s *schema.Struct, printMake func()) {
	n := p.defaultBytes(s)
	if n == 0 {
		printMake()
		return
	}
	p.P("if p = r.ChargeDefaults(p, ", n, "); !r.Failed() {")
	printMake()
	p.P("}")
}

func (p *printer) newStruct(t *schema.Type) string {
	if p.hasDefaults(t.Struct) {
		return "*" + p.constructor(t.Struct) + "()"
	}
	return p.goType(t) + "{}"
}

// readContainer prints what reads a container at the place into target, which
// operator assigns to or declares, moves p, and then what stored prints. Target is
// not touched and stored not reached if the elements are not of the expected types. old
// is what has memory for it.
func (p *printer) readContainer(t *schema.Type, target, operator, place, old string, depth int, stored func()) {
	kind := "Map"
	var empty string
	var readOne func()
	switch {
	case t.Kind != schema.KindMap:
		kind = "List"
		empty = p.imports.thrift("MakeSlice") + "[" + p.goType(t.Element) + "](r, p, n, " + old + ")"
		if p.isPointed(t) {
			empty = "structs.List(r, p, n)"
		}
		readOne = func() { p.readElement(t.Element, target, depth) }
	case p.isPairs(t):
		empty = p.imports.thrift("MakeSlice") + "[" + p.pairType(t) + "](r, p, n, " + old + ")"
		readOne = func() { p.readPair(t, target, depth) }
	default:
		empty = p.imports.thrift("MakeMap") + "[" + p.keyType(t.Key, p.goType) + ", " + mapValueType(t.Element, p.goType) + "](r, p, n, " + old + ")"
		readOne = func() { p.readEntry(t, target, depth) }
	}
	p.P("n, next, ok := r.Begin", kind, "(", place, ", ", p.innerTypes(t), ")")
	p.P("p = next")
	p.P("if ok {")
	p.declareStructs(t)
	p.P(target, " ", operator, " ", empty)
	p.P("for i := 0; i < n && !r.Failed(); i++ {")
	readOne()
	p.P("}")
	p.P("p = r.End", kind, "(p)")
	p.readCheckedSet(t, target, depth)
	stored()
	p.P("}")
}

// innerTypes are the type codes of what is in a container.
func (p *printer) innerTypes(t *schema.Type) string {
	if t.Kind != schema.KindMap {
		return p.wireType(t.Element)
	}
	return p.wireType(t.Key) + ", " + p.wireType(t.Element)
}

// isPointed says that the elements or values of a container are pointers to structs.
func (p *printer) isPointed(t *schema.Type) bool {
	return t.Element.Kind == schema.KindStruct && (t.Kind == schema.KindMap || p.options.Kitex)
}

// declareStructs prints what declares where the structs of a container come from that
// are pointed to: structs, and keys for those that are keys in the shape of Kitex.
func (p *printer) declareStructs(t *schema.Type) {
	declare := func(name string, inner *schema.Type, expected bool) {
		p.P("var ", name, " ", p.imports.thrift("Structs"), "[", p.goType(inner), "]")
		if expected {
			p.P(name, ".Expect(r, n)")
		}
	}
	if p.options.Kitex && t.Kind == schema.KindMap && t.Key.Kind == schema.KindStruct {
		declare("keys", t.Key, true)
	}
	if p.isPointed(t) {
		declare("structs", t.Element, t.Kind == schema.KindMap) // List says it for lists
	}
}

// takeStruct prints what reads a struct at p into a new one of structs, sets target to
// a pointer to that, as operator says, and moves p.
func (p *printer) takeStruct(t *schema.Type, target, operator, structs string) {
	p.P(target, " ", operator, " ", structs, ".New(r, p)")
	if p.options.Kitex {
		p.initKitex(t, target)
	} else {
		p.unlessReused(t, p.hasDefaults(t.Struct), "*"+target)
	}
	p.P("p = ", target, ".ReadThrift(r, p)")
}

// readInner is readContainer for a container within another one, which keeps
// what it could not read as nil.
func (p *printer) readInner(t *schema.Type, target string, depth int) {
	if isPlainList(t) {
		p.readPlainList(t, target, "p", "nil")
		p.readCheckedSet(t, target, depth)
		return
	}
	p.readContainer(t, target, "=", "p", "nil", depth, func() {})
}

// readElement prints what reads an element at p and appends it to list.
func (p *printer) readElement(t *schema.Type, list string, depth int) {
	element := numbered("element", depth)
	switch {
	case t.Kind == schema.KindStruct && p.options.Kitex:
		p.takeStruct(t, element, ":=", "structs")
	case t.Kind == schema.KindStruct:
		// In place, because copying a large struct costs more than decoding it.
		p.extendStructs(t, list)
		p.P("p = ", list, "[i].ReadThrift(r, p)")
		return
	default:
		p.P("var ", element, " ", p.goType(t))
		p.readInner(t, element, depth+1)
	}
	p.P(list, " = append(", list, ", ", element, ")")
}

// readEntry prints what reads a key and a value at p and adds them to the map
// entries.
func (p *printer) readEntry(t *schema.Type, entries string, depth int) {
	key, value := numbered("key", depth), numbered("value", depth)
	switch {
	case t.Key.Kind == schema.KindStruct && p.options.Kitex:
		p.takeStruct(t.Key, key, ":=", "keys")
	case t.Key.Kind == schema.KindStruct:
		p.readStruct(t.Key, key, ":=")
	case t.Key.Kind == schema.KindBinary:
		p.P("var ", key, " string")
		p.P(key, ", p = r.String(p)")
	default:
		p.P("var ", key, " ", p.goType(t.Key))
		p.readScalar(t.Key, key)
	}
	switch {
	case t.Element.Kind == schema.KindStruct:
		p.takeStruct(t.Element, value, ":=", "structs")
	case isContainer(t.Element):
		p.P("var ", value, " ", p.goType(t.Element))
		p.readInner(t.Element, value, depth+1)
	default:
		p.readScalar(t.Element, entries+"["+key+"]")
		return
	}
	p.P(entries, "[", key, "] = ", value)
}

// readPair prints what reads a key and a value at p and appends them to pairs.
func (p *printer) readPair(t *schema.Type, pairs string, depth int) {
	pair := numbered("pair", depth)
	p.P("var ", pair, " ", p.pairType(t))
	switch key := pair + ".Key"; {
	case isContainer(t.Key):
		p.readHalf(t.Key, key, depth)
	case p.hasDefaults(t.Key.Struct):
		p.readStruct(t.Key, key, "=")
	default:
		p.P("p = ", key, ".ReadThrift(r, p)")
	}
	switch value := pair + ".Value"; {
	case t.Element.Kind == schema.KindStruct:
		p.takeStruct(t.Element, value, "=", "structs")
	case isContainer(t.Element):
		p.readHalf(t.Element, value, depth)
	default:
		p.readScalar(t.Element, value)
	}
	p.P(pairs, " = append(", pairs, ", ", pair, ")")
}

// readHalf is readInner for a half of a pair: both may need the same names.
func (p *printer) readHalf(t *schema.Type, half string, depth int) {
	p.P("{")
	p.readInner(t, half, depth+1)
	p.P("}")
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

// markAll prints the statements that note the arrival of several fields.
func (r requiredSet) markAll(p *printer, numbers []int) {
	words := make([]uint64, r.words())
	for _, number := range numbers {
		words[number/wordBits] |= 1 << (number % wordBits)
	}
	for i, bits := range words {
		switch {
		case bits == 0:
		case len(words) == 1:
			p.P(fmt.Sprintf("seen |= %#x", bits))
		default:
			p.P(fmt.Sprintf("seen[%d] |= %#x", i, bits))
		}
	}
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

// checkRequired prints what refuses a struct without a required field. After another error
// the field that this one is in stays the one that is to blame.
func (p *printer) checkRequired(required requiredSet) {
	switch len(required.names) {
	case 0:
		return
	case 1:
		p.P("if seen == 0 && !r.Failed() {")
		p.P("p, field = r.FailMissing(p, ", strconv.Quote(required.names[0]), "), 0")
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
	p.P("if seen != ", required.complete(), " && !r.Failed() {")
	p.P("var missing []string")
	p.P("for i, name := range [...]string{", strings.Join(quoted, ", "), "} {")
	p.P("if ", bit, " == 0 {")
	p.P("missing = append(missing, name)")
	p.P("}")
	p.P("}")
	p.P("p, field = r.FailMissing(p, missing...), 0")
	p.P("}")
}
