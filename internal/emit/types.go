package emit

import (
	"strconv"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// types prints the file with everything that a definition declares, services
// apart.
func (p *printer) types(source *schema.File) {
	if p.options.Kitex {
		p.kitexTypes(source)
		return
	}
	p.constants(source.Constants)
	p.endDeclaration()
	for _, typedef := range source.Typedefs {
		p.typedef(typedef)
		p.endDeclaration()
	}
	for _, enum := range source.Enums {
		for _, declare := range []func(*schema.Enum){p.enumType, p.enumString, p.enumParser} {
			declare(enum)
			p.endDeclaration()
		}
		p.insert(AfterEnum, enum)
	}
	for _, s := range source.Structs {
		p.structDeclaration(s)
		p.checkTypes(p.declaredRecord(s))
		p.endDeclaration()
		p.structConstructor(s)
		p.endDeclaration()
		p.getters(s)
		if s.Category == schema.CategoryException {
			p.errorMethod(s)
		}
		p.endDeclaration()
		p.insert(AfterStruct, s)
	}
	p.insert(EndOfFile, source)
}

// constants prints scalars and strings as Go constants and everything else as
// variables.
func (p *printer) constants(constants []*schema.Constant) {
	var fixed, variable []*schema.Constant
	for _, constant := range constants {
		if isGoConstant(constant.Type, constant.Value) {
			fixed = append(fixed, constant)
		} else {
			variable = append(variable, constant)
		}
	}
	p.group("const", fixed, func(constant *schema.Constant) string {
		return constant.GoName + " " + p.goType(constant.Type) + " = " + p.value(constant.Value)
	})
	p.group("var", variable, func(constant *schema.Constant) string {
		return constant.GoName + " = " + p.value(constant.Value)
	})
}

// group prints declarations that share a keyword.
func (p *printer) group(keyword string, constants []*schema.Constant, declaration func(*schema.Constant) string) {
	if len(constants) == 0 {
		return
	}
	p.P()
	if len(constants) == 1 {
		p.doc(withDeprecation(constants[0].Doc, constants[0].Annotations))
		p.P(keyword, " ", declaration(constants[0]))
		return
	}
	p.P(keyword, " (")
	for _, constant := range constants {
		p.doc(withDeprecation(constant.Doc, constant.Annotations))
		p.P(declaration(constant))
	}
	p.P(")")
}

func (p *printer) typedef(typedef *schema.Typedef) {
	p.P()
	p.doc(withDeprecation(typedef.Doc, typedef.Annotations))
	p.P("type ", typedef.GoName, " = ", p.goType(typedef.Type))
}

func (p *printer) enumType(enum *schema.Enum) {
	p.P()
	p.doc(withDeprecation(enum.Doc, enum.Annotations))
	p.P("type ", enum.GoName, " int32")
	if len(enum.Values) == 0 {
		return
	}
	p.P()
	p.P("const (")
	for _, value := range enum.Values {
		p.doc(withDeprecation(value.Doc, value.Annotations))
		p.P(value.GoName, " ", enum.GoName, " = ", value.Number)
	}
	p.P(")")
}

// enumString prints String. Of several names for a number it returns the first.
func (p *printer) enumString(enum *schema.Enum) {
	p.P()
	p.doc("String returns the name that the definition gives to e, or its number.")
	p.P("func (e ", enum.GoName, ") String() string {")
	if len(enum.Values) > 0 {
		p.P("switch e {")
		named := map[int32]bool{}
		for _, value := range enum.Values {
			if !named[value.Number] {
				named[value.Number] = true
				p.P("case ", value.GoName, ":")
				p.P("return ", strconv.Quote(value.Name))
			}
		}
		p.P("}")
	}
	p.P("return ", p.imports.std("strconv", "Itoa"), "(int(e))")
	p.P("}")
}

func (p *printer) enumParser(enum *schema.Enum) {
	parser := p.names.parsers[enum]
	p.P()
	p.doc(sentence(parser, " returns the ", enum.GoName, " that the definition calls name."))
	p.P("func ", parser, "(name string) (", enum.GoName, ", error) {")
	if len(enum.Values) > 0 {
		p.P("switch name {")
		for _, value := range enum.Values {
			p.P("case ", strconv.Quote(value.Name), ":")
			p.P("return ", value.GoName, ", nil")
		}
		p.P("}")
	}
	p.P("return 0, ", p.imports.std("fmt", "Errorf"), "(", strconv.Quote("enum "+enum.File.Package.Name+"."+enum.Name+": no value is called %.80q"), ", name)")
	p.P("}")
}

func (p *printer) structDeclaration(s *schema.Struct) {
	p.P()
	p.doc(withDeprecation(s.Doc, s.Annotations))
	p.fields(p.declaredRecord(s), s)
}

// fields prints the struct type of a record, with what plugins add to the
// fields of the struct s that it is of, which may be nil.
func (p *printer) fields(r *record, s *schema.Struct) {
	if len(r.members) == 0 && r.unknown == "" && !p.hasAdditions(StructFields, s) {
		p.P("type ", r.goName, " struct{}")
		return
	}
	p.P("type ", r.goName, " struct {")
	for _, m := range r.members {
		p.doc(withDeprecation(m.Doc, m.Annotations))
		name := m.GoName + " "
		if m.embedded {
			name = ""
		}
		if s != nil && p.options.Kitex {
			p.P(name, p.memberType(m), " ", p.kitexTag(s, m))
			continue
		}
		p.P(name, p.memberType(m), " ", p.tag(m))
	}
	p.declareUnknown(r)
	if r.lends != "" {
		p.P("lease ", p.imports.thrift("Lease"))
	}
	p.insert(StructFields, s)
	p.P("}")
}

func (p *printer) structConstructor(s *schema.Struct) {
	name := p.names.constructors[s]
	p.P()
	if p.hasDefaults(s) {
		p.doc(sentence(name, " returns a new ", s.GoName, " with the defaults of the definition."))
	}
	p.P("func ", name, "() *", s.GoName, " {")
	p.P("return &", s.GoName, literal(p.fieldValues(p.declaredRecord(s), nil)))
	p.P("}")
}

// getters prints GetX for optional fields.
func (p *printer) getters(s *schema.Struct) {
	for _, m := range p.declaredRecord(s).members {
		getter, found := p.names.getters[m.Field]
		if !found {
			continue
		}
		fallback, meaning := p.zeroValue(m.Type), "its zero value"
		switch {
		case m.form == formPointer:
			fallback, meaning = p.structPointer(m.Default), "the default of the definition"
		case m.Default != nil:
			fallback, meaning = p.fieldValue(m, m.Default), "the default of the definition"
		}
		p.P()
		p.doc(sentence(getter, " returns ", m.GoName, ", or ", meaning, " if it is not set."))
		if m.form == formOpt {
			p.P("func (s *", s.GoName, ") ", getter, "() ", p.valueType(m), " { return s.", m.GoName, ".Or(", fallback, ") }")
			p.endDeclaration()
			continue
		}
		result := p.passedType(m.Type)
		if m.custom != nil || m.asMap {
			result = p.valueType(m)
		}
		p.P("func (s *", s.GoName, ") ", getter, "() ", result, " {")
		p.P("if s.", m.GoName, " != nil {")
		p.P("return s.", m.GoName)
		p.P("}")
		p.P("return ", fallback)
		p.P("}")
		p.endDeclaration()
	}
}

// errorMethod prints what makes an exception an error.
func (p *printer) errorMethod(s *schema.Struct) {
	p.P()
	p.doc("Error returns the name and the fields of the exception.")
	p.P("func (s *", s.GoName, ") Error() string { return ", p.imports.methods("Text"), "(s) }")
}
