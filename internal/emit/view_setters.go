package emit

import (
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

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
		p.writeViewed(f)
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
	if f.methods.setEntry != "" {
		p.viewEntrySetters(f, receiver)
	}
	p.viewEditors(f, receiver)
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

// writeViewed prints what writes value, a container that f is set to.
func (p *printer) writeViewed(f viewField) {
	if f.isBytes() {
		p.P("b = w.ByteList(b, 0, value)")
		return
	}
	p.writeValue(errorName(f.record, f.member), f.Type, "value", "0", 1)
}

// viewElementSetter prints the methods that change, append and remove an element of a
// list.
func (p *printer) viewElementSetter(f viewField, receiver string) {
	valueType, method, value := p.viewElementArgument(f.Type.Element)
	p.P()
	p.doc(sentence(f.methods.setAt, " changes element i of ", f.methods.get, ". It panics if there is none."))
	p.viewPartSetter(f, receiver+f.methods.setAt+"(i int, value "+valueType+") {",
		"v.view."+method+"At("+f.arguments()+", i, "+value+")")
	p.P()
	p.doc(sentence(f.methods.appendOne, " puts an element behind those of ", f.methods.get, "."))
	p.viewPartSetter(f, receiver+f.methods.appendOne+"(value "+valueType+") {",
		"v.view.Append"+strings.TrimPrefix(method, "Set")+"("+f.arguments()+", "+value+")")
	p.P()
	p.doc(sentence(f.methods.removeAt, " removes element i of ", f.methods.get, ". It panics if there is none."))
	p.viewPartSetter(f, receiver+f.methods.removeAt+"(i int) {", "v.view.RemoveAt("+f.arguments()+", i)")
}

// viewEntrySetters prints the methods that change and remove an entry of a map.
func (p *printer) viewEntrySetters(f viewField, receiver string) {
	valueType, method, value := p.viewElementArgument(f.Type.Element)
	keyType := p.viewKeyType(f.Type.Key)
	key := p.viewKey(f.Type.Key)
	p.P()
	p.doc(sentence(f.methods.setEntry, " makes value that of a key in ", f.methods.get, "."))
	p.viewPartSetter(f, receiver+f.methods.setEntry+"(key "+keyType+", value "+valueType+") {",
		"v.view."+method+"Entry("+f.arguments()+", "+key+", "+value+")")
	p.P()
	p.doc(sentence(f.methods.deleteEntry, " removes a key from ", f.methods.get, ", if it is there."))
	p.viewEntryChanger(f, receiver+f.methods.deleteEntry+"(key "+keyType+") {", "",
		"v.view.DeleteEntry("+f.arguments()+", "+key+")")
}

// viewEntryChanger prints a method that changes an entry of a map if it is there, which call
// reports, and so does the method if there is something in front of call. What is absent is
// set to the default before, but if that has no such entry it stays absent.
func (p *printer) viewEntryChanger(f viewField, head, returns, call string) {
	if f.Default == nil {
		p.P(head, " ", returns, call, " }")
		return
	}
	p.P(head)
	p.P("before, absent := *v, !v.view.Has(", f.slot(), ")")
	p.P("if absent {")
	p.P("v.", f.methods.set, "(", p.value(f.Default), ")")
	p.P("}")
	p.P("found := ", call)
	p.P("if absent && !found {")
	p.P("*v = before")
	p.P("}")
	if returns != "" {
		p.P(returns, "found")
	}
	p.P("}")
}

// viewElementArgument is what methods take that change a part of a container, and what
// they pass to which method of view.View.
func (p *printer) viewElementArgument(element *schema.Type) (valueType, method, value string) {
	valueType = p.goType(element)
	if element.Kind == schema.KindStruct {
		valueType = p.viewOf(element.Struct)
	}
	if element.Kind == schema.KindBinary {
		return valueType, "SetText", "string(value)"
	}
	method, value = viewSetter(element, "value")
	return valueType, method, value
}

// viewPartSetter prints a method that changes a part of a container. What is absent is
// set to the default before.
func (p *printer) viewPartSetter(f viewField, head, call string) {
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
