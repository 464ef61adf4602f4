package emit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// How many bytes there are in front of fields, and of what is in strings, lists and
// maps.
const (
	fieldHeaderBytes  = 3
	stringHeaderBytes = 4
	listHeaderBytes   = 5
	mapHeaderBytes    = 6
)

// termsMost is how many lengths one expression adds up. A struct may have 65,536 fields,
// and to put one after the other behind what there is takes the square of that.
const termsMost = 64

// sizeMethod prints SizeThrift.
func (p *printer) sizeMethod(s *schema.Struct, r *record) {
	p.P()
	p.doc("SizeThrift returns how many bytes WriteThrift writes.")
	if head := "func (s *" + s.GoName + ") SizeThrift() int {"; p.cycles[s] == 0 {
		p.P(head)
	} else {
		p.P(head)
		p.P("return s.size(new(", p.imports.methods("Nesting"), "))")
		p.P("}")
		p.P()
		p.P("func (s *", s.GoName, ") size(nesting *", p.imports.methods("Nesting"), ") int {")
		p.P("if !nesting.Enter() {")
		p.P("return 0")
		p.P("}")
	}
	const stop = 1
	always, varies := stop, false
	var lengths []string
	for _, m := range r.members {
		if m.form == formValue {
			always += fieldHeaderBytes + leastSize(m.Type)
		}
		if m.form == formValue && isText(m.Type) {
			lengths = append(lengths, "len(s."+m.GoName+")")
		} else {
			varies = varies || m.form != formValue || !isFixed(m.Type)
		}
	}
	if r.unknown != "" {
		lengths = append(lengths, "s."+r.unknown+".SizeThrift()")
	}
	if !varies && len(lengths) <= termsMost {
		p.P("return ", strings.Join(append([]string{strconv.Itoa(always)}, lengths...), " + "))
		p.P("}")
		return
	}
	first := min(len(lengths), termsMost)
	p.P("n := ", strings.Join(append([]string{strconv.Itoa(always)}, lengths[:first]...), " + "))
	for terms := range slices.Chunk(lengths[first:], termsMost) {
		p.P("n += ", strings.Join(terms, " + "))
	}
	for _, m := range r.members {
		p.sizeMember(s, m)
	}
	if p.cycles[s] != 0 {
		p.P("nesting.Leave()")
	}
	p.P("return n")
	p.P("}")
}

func isText(t *schema.Type) bool { return t.Kind == schema.KindString || t.Kind == schema.KindBinary }

// isFixed says that all values of a type take leastSize bytes.
func isFixed(t *schema.Type) bool { return wireTypes[t.Kind].wireBytes > 0 }

// leastSize is how many bytes every value of a type takes that takes any, headers
// included. Structs say themselves what they take.
func leastSize(t *schema.Type) int {
	switch t.Kind {
	case schema.KindString, schema.KindBinary:
		return stringHeaderBytes
	case schema.KindList, schema.KindSet:
		return listHeaderBytes
	case schema.KindMap:
		return mapHeaderBytes
	default:
		return wireTypes[t.Kind].wireBytes
	}
}

func (p *printer) sizeMember(s *schema.Struct, m member) {
	field, size := "s."+m.GoName, fieldHeaderBytes+leastSize(m.Type)
	switch {
	case m.form == formValue && isText(m.Type): // see sizeMethod
		return
	case m.form == formValue && m.asMap:
		p.sizeMapSet(m.Type, field)
		return
	case m.form == formValue:
		p.sizeValue(s, m.Type, field, 1)
		return
	case m.form == formOpt && isFixed(m.Type):
		p.P("if ", field, ".IsSet() {")
		p.P("n += ", size)
	case m.form == formOpt && m.custom != nil:
		p.P("if v, ok := ", field, ".Get(); ok {")
		p.P("n += ", size, " + len(v)")
	case m.form == formOpt:
		p.P("n += ", p.imports.methods("SizeOptString"), "(", field, ")")
		return
	case isText(m.Type):
		p.P("if ", field, " != nil {")
		p.P("n += ", size, " + len(", field, ")")
	case m.Type.Kind == schema.KindStruct:
		p.P("if ", field, " != nil {")
		p.P("n += ", size, " + ", p.sizeOfStruct(s, m.Type, field))
	default:
		p.P("if ", field, " != nil {")
		p.P("n += ", size)
		if m.asMap {
			p.sizeMapSet(m.Type, field)
		} else {
			p.sizeValue(s, m.Type, field, 1)
		}
	}
	p.P("}")
}

// sizeValue prints what adds to n what a value within struct s takes beyond the
// leastSize of its type.
func (p *printer) sizeValue(s *schema.Struct, t *schema.Type, value string, depth int) {
	switch t.Kind {
	case schema.KindString, schema.KindBinary:
		p.P("n += len(", value, ")")
	case schema.KindStruct:
		p.P("n += ", p.sizeOfStruct(s, t, value))
	case schema.KindList, schema.KindSet:
		p.sizeList(s, t, value, depth)
	case schema.KindMap:
		p.sizeMap(s, t, value, depth)
	}
}

// sizeOfStruct is the expression for the size of a struct within struct s.
func (p *printer) sizeOfStruct(s *schema.Struct, t *schema.Type, value string) string {
	if p.sameCycle(s, t.Struct) {
		return value + ".size(nesting)"
	}
	return value + ".SizeThrift()"
}

func (p *printer) sizeList(s *schema.Struct, t *schema.Type, value string, depth int) {
	switch element := t.Element; {
	case isFixed(element) && leastSize(element) == 1:
		p.P("n += len(", value, ")")
	case isFixed(element):
		p.P("n += ", leastSize(element), " * len(", value, ")")
	case element.Kind == schema.KindString:
		p.P("n += ", p.imports.methods("SizeStrings"), "(", value, ")")
	case element.Kind == schema.KindBinary:
		p.P("n += ", p.imports.methods("SizeBinaries"), "(", value, ")")
	case element.Kind == schema.KindStruct && !p.sameCycle(s, element.Struct):
		p.P("n += ", p.imports.methods("SizeStructs"), "(", value, ")")
	default:
		i := numbered("i", depth)
		if least := leastSize(element); least > 0 {
			p.P("n += ", least, " * len(", value, ")")
		}
		p.P("for ", i, " := range ", value, " {")
		p.sizeValue(s, element, value+"["+i+"]", depth+1)
		p.sizeBreak(element)
		p.P("}")
	}
}

// sizeBreak ends a loop over values of these types when there is more than any message
// has: values that share their parts can have as many as there are combinations. Loops
// that have no loop in them end by themselves.
func (p *printer) sizeBreak(types ...*schema.Type) {
	if slices.ContainsFunc(types, sizeLoops) {
		p.P("if n > ", p.imports.methods("SizeMost"), " {")
		p.P("break")
		p.P("}")
	}
}

// sizeLoops says that a value of a type is gone through to know its size.
func sizeLoops(t *schema.Type) bool {
	switch t.Kind {
	case schema.KindStruct:
		return true
	case schema.KindList, schema.KindSet:
		return !isFixed(t.Element)
	case schema.KindMap:
		return !isFixed(t.Key) || !isFixed(t.Element)
	default:
		return false
	}
}

func (p *printer) sizeMap(s *schema.Struct, t *schema.Type, value string, depth int) {
	if least := leastSize(t.Key) + leastSize(t.Element); least > 0 {
		p.P("n += ", least, " * len(", value, ")")
	}
	i, key, element := numbered("i", depth), numbered("key", depth), numbered("value", depth)
	switch {
	case isFixed(t.Key) && isFixed(t.Element):
		return
	case p.isPairs(t):
		p.P("for ", i, " := range ", value, " {")
		key, element = value+"["+i+"].Key", value+"["+i+"].Value"
	case isFixed(t.Key):
		p.P("for _, ", element, " := range ", value, " {")
	case isFixed(t.Element):
		p.P("for ", key, " := range ", value, " {")
	default:
		p.P("for ", key, ", ", element, " := range ", value, " {")
	}
	if isText(t.Key) && isText(t.Element) {
		p.P("n += len(", key, ") + len(", element, ")")
	} else {
		p.sizeValue(s, t.Key, key, depth+1)
		p.sizeMapValue(s, t.Element, element, depth+1)
	}
	p.sizeBreak(t.Key, t.Element)
	p.P("}")
}

// sizeMapValue is sizeValue for the value of a map. Nil takes nothing; it cannot be
// written.
func (p *printer) sizeMapValue(s *schema.Struct, t *schema.Type, value string, depth int) {
	if t.Kind != schema.KindStruct {
		p.sizeValue(s, t, value, depth)
		return
	}
	p.P("if ", value, " != nil {")
	p.sizeValue(s, t, value, depth)
	p.P("}")
}
