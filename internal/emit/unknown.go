package emit

import "github.com/fulmar-rpc/fulmar/gen/schema"

// unknownField is what the Go field for unknown fields is called, if no field of the
// definition is.
const unknownField = "UnknownFields"

// keepsUnknown says that a struct keeps the fields that its definition does not have.
func (g *generator) keepsUnknown(s *schema.Struct) bool {
	if annotation := findAnnotation(s.Annotations, annotationUnknown); annotation != nil {
		return annotation.Value == "keep"
	}
	return g.options.KeepUnknown
}

func (g *generator) checkUnknown(annotations schema.Annotations) {
	annotation := findAnnotation(annotations, annotationUnknown)
	if annotation != nil && annotation.Value != "keep" && annotation.Value != "drop" {
		g.errorf(annotation.Position, "annotation %s: %.80q is not known, expected keep or drop", annotationUnknown, annotation.Value)
	}
}

// declareUnknown prints the field of the Go struct.
func (p *printer) declareUnknown(r *record) {
	if r.unknown == "" {
		return
	}
	if len(r.members) > 0 {
		p.P()
	}
	p.doc(sentence(r.unknown, " are those that came and that the definition does not have."))
	p.P(r.unknown, " ", p.imports.thrift("Unknown"), " `json:\"-\"`")
}

// writeUnknown prints what writes what was kept. In a union that is an arm.
func (p *printer) writeUnknown(r *record) {
	switch {
	case r.unknown == "":
	case r.union:
		p.P("if !s.", r.unknown, ".IsZero() {")
		p.P("set++")
		p.P("b = w.Unknown(b, s.", r.unknown, ")")
		p.P("}")
	default:
		p.P("b = w.Unknown(b, s.", r.unknown, ")")
	}
}

// unknownVariable prints the declaration of what collects unknown fields.
func (p *printer) unknownVariable(r *record) {
	if r.unknown != "" && !r.union {
		p.P("unknown := r.KeepUnknown()")
	}
}

// readUnknown prints what passes over the field at p, of which neither the id nor
// the type together with it is in the definition.
func (p *printer) readUnknown(r *record) {
	switch {
	case r.unknown == "":
		p.P("p = r.Skip(p, field)")
	case r.union:
		p.emptyUnion(r, nil)
		p.P("p = r.KeepUnknownArm(p, field, &s.", r.unknown, ")")
	default:
		p.P("p = unknown.Add(r, p, field)")
	}
}

// storeUnknown prints what puts the collected fields into the struct.
func (p *printer) storeUnknown(r *record) {
	if r.unknown != "" && !r.union {
		p.P("p = unknown.Store(r, p, &s.", r.unknown, ")")
	}
}

// unknownConditions returns what compares the fields that were kept.
func unknownConditions(r *record) []condition {
	if r.unknown == "" {
		return nil
	}
	return []condition{{left: "s." + r.unknown, right: "other." + r.unknown}}
}

// detachUnknown prints what gives the fields that were kept memory of their own.
func (p *printer) detachUnknown(r *record) {
	if r.unknown != "" {
		p.P("s.", r.unknown, ".Detach()")
	}
}
