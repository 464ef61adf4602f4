package emit

import (
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// A field with annotationNested is embedded: its name in Go is that of its type, and what
// that has is what its struct has too. On the wire and in JSON it is a field as any other.

// isTrue reads the value of an annotation that is true or false, as thriftgo writes it. A
// key alone is true.
func isTrue(value string) (yes, ok bool) {
	switch strings.ToLower(value) {
	case "true", "1":
		return true, true
	case "false", "0":
		return false, true
	default:
		return false, false
	}
}

// canEmbed says that a field of a struct can be embedded. In the shape of Kitex it is if
// that is asked for, because the tool of Kitex does it with an option only.
func (g *generator) canEmbed(field *schema.Field) bool {
	return field.Type.Kind == schema.KindStruct && (!g.options.Kitex || g.options.KitexNested)
}

// embeds says that a field of a struct is embedded.
func (g *generator) embeds(field *schema.Field) bool {
	annotation := findAnnotation(field.Annotations, annotationNested)
	if annotation == nil || !g.canEmbed(field) {
		return false
	}
	yes, _ := isTrue(annotation.Value)
	return yes
}

// checkNested reports what cannot be embedded in s.
func (g *generator) checkNested(s *schema.Struct, field *schema.Field) {
	annotation := findAnnotation(field.Annotations, annotationNested)
	if annotation == nil {
		return
	}
	if !g.canEmbed(field) {
		g.warningf(annotation.Position, "annotation %s: has no effect without --kitex-nested, which is what enable_nested_struct is to the tool of Kitex", annotationNested)
		return
	}
	if _, ok := isTrue(annotation.Value); !ok {
		g.errorf(annotation.Position, "annotation %s: %.80q is not known, expected true or false", annotationNested, annotation.Value)
	}
	if g.embeds(field) && !g.options.Kitex && field.Type.Struct.Category == schema.CategoryException && s.Category != schema.CategoryException {
		g.errorf(annotation.Position, "annotation %s: %s %s would be an error in Go, because exception %s is one", annotationNested, s.Category, s.Name, field.Type.Struct.Name)
	}
}

// embeddedName is the name that Go gives to an embedded field of the type.
func embeddedName(t *schema.Type) string {
	if t.Typedef != nil {
		return t.Typedef.GoName
	}
	return t.Struct.GoName
}

// nameEmbedded names the fields of s that are embedded, after the others. Their names are
// not free to choose, so what has the same one is an error.
func (g *generator) nameEmbedded(s *schema.Struct, methods []string) (names []string) {
	if !slices.ContainsFunc(s.Fields, g.embeds) {
		return nil
	}
	fields := map[string]*schema.Field{}
	for _, field := range s.Fields {
		if !g.embeds(field) {
			fields[field.GoName] = field
		}
	}
	for _, field := range s.Fields {
		if !g.embeds(field) {
			continue
		}
		field.GoName = embeddedName(field.Type)
		position := findAnnotation(field.Annotations, annotationNested).Position
		if other := fields[field.GoName]; other != nil {
			g.errorf(position, "annotation %s: fields %s and %s of %s %s would both be %s in Go, as embedded fields are called what their type is", annotationNested, other.Name, field.Name, s.Category, s.Name, field.GoName)
		} else if slices.Contains(methods, field.GoName) {
			g.errorf(position, "annotation %s: field %s of %s %s would be %s in Go, as its type is, but that is a method there", annotationNested, field.Name, s.Category, s.Name, field.GoName)
		}
		fields[field.GoName] = field
		names = append(names, field.GoName)
	}
	return names
}

// isEmbedding says that a field of the record is embedded.
func (r *record) isEmbedding() bool {
	return slices.ContainsFunc(r.members, func(m member) bool { return m.embedded })
}

// hideReuse prints what keeps a struct whose memory is not reused from having the method
// that says so from what it embeds: a package that this one includes can be generated with
// --reuse, and this one without.
func (p *printer) hideReuse(r *record) {
	field := slices.ContainsFunc(r.members, func(m member) bool { return m.GoName == "ReusesThrift" })
	if r.reuse || p.options.Kitex || field || !slices.ContainsFunc(r.members, func(m member) bool {
		return m.embedded && m.Type.Struct.File.Package != p.pkg
	}) {
		return
	}
	p.P()
	p.doc("ReusesThrift is in front of that of an embedded struct: ReadThrift of this one does\nnot reuse memory.")
	p.P("func (s *", r.goName, ") ReusesThrift(never struct{}) {")
	p.P("}")
}
