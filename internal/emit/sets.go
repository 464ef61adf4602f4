package emit

import (
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// isUnique says that the sets in a field are refused if elements of one are equal.
func (g *generator) isUnique(field *schema.Field) bool {
	if annotation := findAnnotation(field.Annotations, annotationSet); annotation != nil && holdsSets(field.Type) {
		return annotation.Value == "unique"
	}
	return g.options.UniqueSets
}

// checkSetForm checks go.set at a field of a struct if inStruct says so, and else at an
// argument, which is always a list.
func (g *generator) checkSetForm(field *schema.Field, inStruct bool) {
	annotation := findAnnotation(field.Annotations, annotationSet)
	if annotation == nil || !holdsSets(field.Type) {
		return // which was said
	}
	switch {
	case annotation.Value == "unique" || annotation.Value == "list":
	case annotation.Value != "map":
		g.errorf(annotation.Position, "annotation %s: %.80q is not known, expected unique, list or map", annotationSet, annotation.Value)
	case g.options.Kitex:
		g.warningf(annotation.Position, "annotation %s: map has no effect in the shape of Kitex, where sets are lists", annotationSet)
	case !inStruct:
		g.warningf(annotation.Position, "annotation %s: map has no effect on arguments, which are lists", annotationSet)
	case field.Type.Kind != schema.KindSet:
		g.errorf(annotation.Position, "annotation %s: only a field that is a set can be a map, not sets in it", annotationSet)
	case fieldTypeOf(field) != nil:
		g.errorf(annotation.Position, "annotation %s: a field with %s cannot be a map", annotationSet, annotationType)
	case !canBeInSet(field.Type.Element):
		g.errorf(annotation.Position, "annotation %s: elements of a map cannot be of type %s, expected bool, i8, i16, i32, i64, string, uuid or an enum",
			annotationSet, field.Type.Element.Kind)
	}
}

// isMapSet says that a field of a struct is a thrift.SetOf.
func isMapSet(field *schema.Field) bool {
	annotation := findAnnotation(field.Annotations, annotationSet)
	return annotation != nil && annotation.Value == "map" && field.Type.Kind == schema.KindSet && canBeInSet(field.Type.Element) && fieldTypeOf(field) == nil
}

// canBeInSet says that Go compares values of a type as Equal does, and binary is not among
// them because there would be no telling it from string.
func canBeInSet(t *schema.Type) bool {
	switch t.Kind {
	case schema.KindBool, schema.KindI8, schema.KindI16, schema.KindI32, schema.KindI64, schema.KindString, schema.KindUUID, schema.KindEnum:
		return true
	default:
		return false
	}
}

// setType is the Go type of a set that is a map. It has no names of typedefs in it, for the
// reason that pairType has.
func (p *printer) setType(t *schema.Type) string {
	return p.imports.thrift("SetOf") + "[" + p.expandedType(t.Element) + "]"
}

// setValue is the expression for a set that is a map.
func (p *printer) setValue(t *schema.Type, v *schema.Value) string {
	var parts expressions
	for _, element := range v.List {
		if !p.collect(&parts, p.value(element)) {
			return ""
		}
	}
	return p.imports.thrift("NewSet") + "[" + p.expandedType(t.Element) + "](" + strings.Join(parts.list, ", ") + ")"
}

// writeMapSet prints what writes a field that is a thrift.SetOf.
func (p *printer) writeMapSet(m member, set string) {
	p.P("b = w.BeginList(b, ", keyText(m.Field), ", ", p.wireType(m.Type.Element), ", len(", set, "))")
	p.P("for element := range ", set, " {")
	p.writeValue("", m.Type.Element, "element", "0", 1)
	p.P("}")
	p.P("w.EndList()")
}

// readMapSet prints what reads one, and then what stored prints. old is what has memory for
// it.
func (p *printer) readMapSet(m member, old string, stored func()) {
	element := p.expandedType(m.Type.Element)
	p.P("n, next, ok := r.BeginList(p+3, ", p.wireType(m.Type.Element), ")")
	p.P("p = next")
	p.P("if ok {")
	p.P("set := ", p.imports.thrift("MakeMap"), "[", element, ", struct{}](r, p, n, ", old, ")")
	p.P("for i := 0; i < n && !r.Failed(); i++ {")
	p.P("var element ", element)
	p.readScalar(m.Type.Element, "element")
	p.P("set[element] = struct{}{}")
	p.P("}")
	p.P("p = r.EndList(p)")
	stored()
	p.P("}")
}

// sizeMapSet prints what adds to n what one takes beyond its header.
func (p *printer) sizeMapSet(t *schema.Type, set string) {
	p.P("n += ", leastSize(t.Element), " * len(", set, ")")
	if isText(t.Element) {
		p.P("for element := range ", set, " {")
		p.P("n += len(element)")
		p.P("}")
	}
}

// detachMapSet prints what gives one memory of its own.
func (p *printer) detachMapSet(t *schema.Type, set string) {
	element := "nil"
	if isText(t.Element) {
		element = p.imports.methods("DetachString")
	}
	p.P(p.imports.methods("DetachMap"), "((*map[", p.expandedType(t.Element), "]struct{})(&", set, "), ", element, ", nil)")
}

// holdsSets says that there are sets in values of a type that are not in structs.
func holdsSets(t *schema.Type) bool {
	switch t.Kind {
	case schema.KindSet:
		return true
	case schema.KindList:
		return holdsSets(t.Element)
	case schema.KindMap:
		return holdsSets(t.Key) || holdsSets(t.Element)
	default:
		return false
	}
}

// checksSet says that the elements of a set in the field that is printed are compared.
func (p *printer) checksSet(t *schema.Type) bool { return p.unique && t.Kind == schema.KindSet }

// writeCheckedSet prints what compares the elements of a set that is written next.
func (p *printer) writeCheckedSet(field string, t *schema.Type, set string, depth int) {
	if p.checksSet(t) {
		p.compareElements("w.CheckSet("+field, field, t, set, depth)
	}
}

// readCheckedSet prints what compares the elements of a set that ends at p.
func (p *printer) readCheckedSet(t *schema.Type, set string, depth int) {
	if p.checksSet(t) {
		p.compareElements("p = r.CheckSet(p", `""`, t, set, depth) // who reads knows which field it is
	}
}

// compareElements prints a call that compares the elements of a set, of which the first
// argument is there already, with the function that it needs. Sets of one or none take no
// memory for that, and all sets are in variables that never change, which Go keeps in place.
func (p *printer) compareElements(call, field string, t *schema.Type, value string, depth int) {
	set, write, index := numbered("set", depth), numbered("write", depth), numbered("i", depth)
	p.P("if len(", value, ") > 1 {")
	p.P(set, " := ", value)
	p.P(write, " := func(w *", p.imports.thrift("Writer"), ", b []byte, ", index, " int) []byte {")
	element := set + "[" + index + "]"
	if p.octets {
		element = "int8(" + element + ")"
	}
	p.unique = false // sets in elements are compared where they are written, or were read
	p.writeValue(field, t.Element, element, "0", depth+1)
	p.unique = true
	p.P("return b")
	p.P("}")
	p.P(call, ", len(", set, "), ", p.wireType(t.Element), ", ", write, ")")
	p.P("}")
}
