package emit

import "github.com/fulmar-rpc/fulmar/gen/schema"

// isUnique says that the sets in a field are refused if elements of one are equal.
func (g *generator) isUnique(field *schema.Field) bool {
	if annotation := findAnnotation(field.Annotations, annotationSet); annotation != nil && holdsSets(field.Type) {
		return annotation.Value == "unique"
	}
	return g.options.UniqueSets
}

func (g *generator) checkSetForm(annotations schema.Annotations) {
	annotation := findAnnotation(annotations, annotationSet)
	if annotation != nil && annotation.Value != "unique" && annotation.Value != "list" {
		g.errorf(annotation.Position, "annotation %s: %.80q is not known, expected unique or list", annotationSet, annotation.Value)
	}
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
