package emit

import (
	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// The shape of Kitex differs from the default one in what a member is in Go:
//
//	struct, union, exception      *S, whatever its requiredness, and within containers
//	optional scalar, enum, string *T, or T if it has a default
//	everything else               as in the default shape
//
// A member that is optional and a formValue is absent when it equals its default.

// kitexMember is the member for a field of a declared struct.
func kitexMember(s *schema.Struct, field *schema.Field) member {
	m := member{
		Field:    field,
		optional: isOptional(s, field),
		required: field.Requiredness == schema.RequirednessRequired,
	}
	switch {
	case field.Type.Kind == schema.KindStruct:
		m.form = formPointer
	case !m.optional:
	case isContainer(field.Type), field.Type.Kind == schema.KindBinary && field.Default == nil:
		m.form = formNil
	case field.Default == nil:
		m.form = formPointer
	}
	return m
}

// isPreset says that a member is absent when it equals its default.
func (m member) isPreset() bool { return m.form == formValue && m.optional }

// elementType is the type of an element of a list or set, or of the key of a map; see
// mapValueType for the values.
func (p *printer) elementType(t *schema.Type, inner func(*schema.Type) string) string {
	if p.options.Kitex && t.Kind == schema.KindStruct {
		return "*" + inner(t)
	}
	return inner(t)
}

// kitexStructValue returns the expression for a pointer to a struct, as a composite
// literal that starts with typeName, or within another literal if that is empty.
// Fields that the definition does not give are zero, as Kitex has them, and do not
// have their defaults.
func (p *printer) kitexStructValue(v *schema.Value, typeName string) string {
	if typeName != "" {
		typeName = "&" + typeName
	}
	r := p.declaredRecord(v.Type.Struct)
	given := givenFields(v)
	var parts expressions
	for _, i := range r.given(v) {
		m := r.members[i]
		if !p.collect(&parts, m.GoName+": "+p.memberValue(m, given[m.Field])) {
			return ""
		}
	}
	return typeName + literal(parts.list)
}
