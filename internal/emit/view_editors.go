package emit

import "github.com/fulmar-rpc/fulmar/gen/schema"

// viewEditors prints the methods that change a struct within a view where it is.
func (p *printer) viewEditors(f viewField, receiver string) {
	switch {
	case f.methods.edit != "":
		p.P()
		p.doc(sentence(f.methods.edit, " changes what is in ", f.methods.get, ": edit is called with it, and must neither keep it nor change v."))
		p.viewFieldEditor(f, receiver)
	case f.methods.editAt != "":
		p.P()
		p.doc(sentence(f.methods.editAt, " changes what is in element i of ", f.methods.get, ": edit is called with it, and must neither keep it nor change v. It panics if there is none."))
		p.viewPartSetter(f, receiver+f.methods.editAt+"(i int, "+p.viewEdit(f.Type.Element)+") {",
			p.imports.view("EditAt")+"(&v.view, "+f.arguments()+", i, edit)")
	case f.methods.editEntry != "":
		p.P()
		p.doc(sentence(f.methods.editEntry, " changes what is in the value of a key in ", f.methods.get, ": edit is called with it, and must neither keep it nor change v. It reports whether the key is there."))
		p.viewEntryChanger(f, receiver+f.methods.editEntry+"(key "+p.viewKeyType(f.Type.Key)+", "+p.viewEdit(f.Type.Element)+") bool {",
			"return ", p.imports.view("EditEntry")+"(&v.view, "+f.arguments()+", "+p.viewKey(f.Type.Key)+", edit)")
	}
}

// viewFieldEditor prints the method for a field. What is absent is set to the default
// before, as viewPartSetter does with containers.
func (p *printer) viewFieldEditor(f viewField, receiver string) {
	head := receiver + f.methods.edit + "(" + p.viewEdit(f.Type) + ") {"
	call := p.imports.view("Edit") + "(&v.view, " + f.arguments() + ", edit)"
	if f.Default == nil {
		p.P(head, " ", call, " }")
		return
	}
	p.P(head)
	p.P("if !v.view.Has(", f.slot(), ") {")
	p.P("v.", f.methods.set, "(v.", f.methods.get, "())")
	p.P("}")
	p.P(call)
	p.P("}")
}

// viewEdit is the parameter that changes a view of t.
func (p *printer) viewEdit(t *schema.Type) string {
	return "edit func(value *" + p.viewOf(t.Struct) + ")"
}

// viewKey is the expression for the key of an entry as it is written.
func (p *printer) viewKey(key *schema.Type) string {
	if key.Kind == schema.KindString || key.Kind == schema.KindBinary {
		return p.imports.view("TextKey") + "(key)"
	}
	return p.imports.view("NumberKey") + "(" + p.wireType(key) + ", uint64(key))"
}
