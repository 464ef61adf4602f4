package emit

import "github.com/fulmar-rpc/fulmar/gen/schema"

// viewText prints what values can do besides.
func (p *printer) viewText(s *schema.Struct, view *viewNames) {
	arguments := "v.slots[:], &" + view.shape
	p.P()
	p.doc(sentence("MarshalJSON returns the JSON of the struct."))
	p.P("func (v ", view.goName, ") MarshalJSON() ([]byte, error) { return v.view.JSON(", arguments, ") }")
	p.P()
	p.doc(sentence("UnmarshalJSON makes v a view of what the struct is that b is the JSON of. What v was does not matter."))
	p.P("func (v *", view.goName, ") UnmarshalJSON(b []byte) error { return v.view.FromJSON(b, ", arguments, ") }")
	if p.options.NoMethods {
		return
	}
	p.P()
	p.doc(sentence("Detach gives v memory of its own, so that it keeps no longer message in memory and is not lent. What cannot be written stays as it is."))
	p.P("func (v *", view.goName, ") Detach() { v.view.Detach(", arguments, ") }")
	p.P()
	p.doc(sentence("String returns a text for logs: that of the struct."))
	p.P("func (v ", view.goName, ") String() string { return v.view.String(", arguments, ") }")
	p.P()
	p.doc(sentence("Equal reports whether two views are of the same bytes, or of structs that are equal."))
	p.P("func (v *", view.goName, ") Equal(other *", view.goName, ") bool {")
	p.P("if v == nil || other == nil {")
	p.P("return v == other")
	p.P("}")
	p.P("if v.view.SameBytes(&other.view) {")
	p.P("return true")
	p.P("}")
	p.P("same, ok := v.view.SameValues(v.slots[:], &other.view, other.slots[:], &", view.shape, ")")
	p.P("return ok && same || !ok && ", p.imports.view("Equal"), "[", s.GoName, "](v, other)")
	p.P("}")
}
