package emit

import "github.com/fulmar-rpc/fulmar/gen/schema"

// viewSetters prints the methods that change a field, and that say whether it is there.
func (p *printer) viewSetters(f viewField) {
	receiver := "func (v *" + f.view.goName + ") "
	valueType := p.valueType(f.member)
	if f.Type.Kind == schema.KindStruct {
		valueType = p.viewOf(f.Type.Struct)
	}
	p.P()
	text := []string{f.methods.set, " changes ", f.methods.get, "."}
	if f.form == formNil && f.methods.clear != "" {
		text = append(text, " Nil removes it.")
	}
	p.doc(sentence(text...))
	head := receiver + f.methods.set + "(value " + valueType + ") {"
	absent := f.form == formNil && f.methods.clear != ""
	if absent || isContainer(f.Type) {
		p.P(head)
	}
	if absent {
		// As with the struct, in which nil is absence.
		p.P("if value == nil {")
		p.P("v.", f.methods.clear, "()")
		p.P("return")
		p.P("}")
	}
	if isContainer(f.Type) {
		p.P("v.view.SetEncoded(", f.arguments(), ", func(w *", p.imports.thrift("Writer"), ", b []byte) []byte {")
		p.writeValue(errorName(f.record, f.member), f.Type, "value", "0", 1)
		p.P("return b")
		p.P("})")
		p.P("}")
	} else {
		method, value := viewSetter(f.Type, p.fromField(f.member, "value"))
		call := "v.view." + method + "(" + f.arguments() + ", " + value + ")"
		if absent {
			p.P(call)
			p.P("}")
		} else {
			p.P(head, " ", call, " }")
		}
	}
	if f.methods.setAt != "" {
		p.viewElementSetter(f, receiver)
	}
	if f.methods.has == "" {
		return
	}
	p.P()
	p.doc(sentence(f.methods.has, " reports whether ", f.methods.get, " is there."))
	p.P(receiver, f.methods.has, "() bool { return v.view.Has(", f.slot(), ") }")
	p.P()
	p.doc(sentence(f.methods.clear, " removes ", f.methods.get, "."))
	p.P(receiver, f.methods.clear, "() { v.view.Clear(", f.arguments(), ") }")
}

// viewElementSetter prints the method that changes an element of a list.
func (p *printer) viewElementSetter(f viewField, receiver string) {
	element := f.Type.Element
	valueType := p.goType(element)
	if element.Kind == schema.KindStruct {
		valueType = p.viewOf(element.Struct)
	}
	method, value := viewSetter(element, "value")
	if element.Kind == schema.KindBinary {
		method, value = "SetText", "string(value)"
	}
	p.P()
	p.doc(sentence(f.methods.setAt, " changes element i of ", f.methods.get, ". It panics if there is none."))
	head := receiver + f.methods.setAt + "(i int, value " + valueType + ") {"
	call := "v.view." + method + "At(" + f.arguments() + ", i, " + value + ")"
	if f.Default == nil {
		p.P(head, " ", call, " }")
		return
	}
	p.P(head)
	p.P("if !v.view.Has(", f.slot(), ") {")
	p.P("v.", f.methods.set, "(", p.value(f.Default), ")")
	p.P("}")
	p.P(call)
	p.P("}")
}

// viewSetter returns the method of thrift.View that sets a value of a type, and what it
// takes.
func viewSetter(t *schema.Type, value string) (method, argument string) {
	switch t.Kind {
	case schema.KindBool:
		return "SetBool", value
	case schema.KindDouble:
		return "SetDouble", value
	case schema.KindString:
		return "SetText", value
	case schema.KindBinary:
		return "SetBinary", value
	case schema.KindUUID:
		return "SetUUID", value
	case schema.KindStruct:
		return "SetPart", "&" + value
	default:
		return "SetNumber", "uint64(" + value + ")"
	}
}
