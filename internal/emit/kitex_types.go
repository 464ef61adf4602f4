package emit

import (
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// kitexTypes prints the file with everything that a definition declares, services
// apart, as Kitex has it.
func (p *printer) kitexTypes(source *schema.File) {
	p.kitexConstants(source.Constants)
	p.endDeclaration()
	for _, typedef := range source.Typedefs {
		p.typedef(typedef)
		p.kitexAlias(typedef)
		p.endDeclaration()
	}
	for _, enum := range source.Enums {
		p.kitexEnum(enum)
		p.endDeclaration()
		p.insert(AfterEnum, enum)
	}
	for _, s := range source.Structs {
		p.structDeclaration(s)
		p.endDeclaration()
		r := p.declaredRecord(s)
		for _, declare := range []func(*schema.Struct, *record){p.kitexConstructor, p.kitexGetters, p.kitexSetters, p.kitexPresence} {
			declare(s, r)
			p.endDeclaration()
		}
		if s.Category == schema.CategoryException {
			p.errorMethod(s)
		}
		p.endDeclaration()
		p.insert(AfterStruct, s)
	}
	p.insert(EndOfFile, source)
}

// kitexConstants prints constants. Numbers and strings have no type, so that they
// can be used as any.
func (p *printer) kitexConstants(constants []*schema.Constant) {
	var fixed, variable []*schema.Constant
	for _, constant := range constants {
		if isGoConstant(constant.Type, constant.Value) {
			fixed = append(fixed, constant)
		} else {
			variable = append(variable, constant)
		}
	}
	p.group("const", fixed, func(constant *schema.Constant) string {
		return constant.GoName + " = " + p.untyped(constant.Value)
	})
	p.group("var", variable, func(constant *schema.Constant) string {
		return constant.GoName + " = " + p.value(constant.Value)
	})
}

// untyped returns the expression for a Go constant. One that is another constant has
// the type of the definition if it is an integer.
func (p *printer) untyped(v *schema.Value) string {
	text := p.value(v)
	switch v.Kind {
	case schema.ValueInt:
		if v.Constant != nil {
			return p.goType(v.Type) + "(" + text + ")"
		}
	case schema.ValueDouble:
		if v.Constant == nil && !strings.ContainsAny(text, ".e") {
			return text + ".0"
		}
	}
	return text
}

// kitexAlias prints the constructor of a typedef of a struct.
func (p *printer) kitexAlias(typedef *schema.Typedef) {
	name := p.names.kitex.aliases[typedef]
	if name == "" {
		return
	}
	target := typedef.Type
	constructor := p.constructor(target.Struct)
	if target.Typedef != nil {
		constructor = p.imports.generated(target.Typedef.File.Package, p.names.kitex.aliases[target.Typedef])
	}
	p.P()
	p.P("func ", name, "() *", typedef.GoName, " {")
	p.P("return ", constructor, "()")
	p.P("}")
}

func (p *printer) kitexEnum(enum *schema.Enum) {
	p.P()
	p.doc(withDeprecation(enum.Doc, enum.Annotations))
	p.P("type ", enum.GoName, " int64")
	if len(enum.Values) > 0 {
		p.P()
		p.P("const (")
		for _, value := range enum.Values {
			p.doc(withDeprecation(value.Doc, value.Annotations))
			p.P(value.GoName, " ", enum.GoName, " = ", value.Number)
		}
		p.P(")")
	}
	p.P()
	p.doc("String returns the name that the definition gives to e, or <UNSET>.")
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
	p.P(`return "<UNSET>"`)
	p.P("}")
	p.kitexEnumFunctions(enum)
}

// kitexEnumFunctions prints what makes an enum of a name, a pointer or a column of a
// database, and back.
func (p *printer) kitexEnumFunctions(enum *schema.Enum) {
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
	p.P("return 0, ", p.imports.std("fmt", "Errorf"), "(", strconv.Quote("not a valid "+enum.GoName+" string: %.80q"), ", name)")
	p.P("}")
	p.P()
	p.P("func ", p.names.kitex.enums[enum], "(v ", enum.GoName, ") *", enum.GoName, " { return &v }")
	p.P()
	p.doc("Scan takes what a database has.")
	p.P("func (e *", enum.GoName, ") Scan(value any) error {")
	p.P("var result ", p.imports.within("database/sql", "NullInt64"))
	p.P("err := result.Scan(value)")
	p.P("*e = ", enum.GoName, "(result.Int64)")
	p.P("return err")
	p.P("}")
	p.P()
	p.doc("Value returns the number for a database.")
	p.P("func (e *", enum.GoName, ") Value() (", p.imports.within("database/sql/driver", "Value"), ", error) {")
	p.P("if e == nil {")
	p.P("return nil, nil")
	p.P("}")
	p.P("return int64(*e), nil")
	p.P("}")
}

// within returns a name of a package of the standard library that is in a folder of
// another one.
func (i *imports) within(path, name string) string {
	pkg := path[strings.LastIndexByte(path, '/')+1:]
	i.standard[path] = pkg
	return pkg + "." + name
}

// kitexConstructor prints NewX and InitDefault.
func (p *printer) kitexConstructor(s *schema.Struct, r *record) {
	name := p.names.constructors[s]
	p.P()
	p.doc(sentence(name, " returns a new ", s.GoName, " with the defaults of the definition."))
	p.P("func ", name, "() *", s.GoName, " {")
	if p.hasDefaults(s) {
		p.P("s := &", s.GoName, "{}")
		p.P("s.InitDefault()")
		p.P("return s")
	} else {
		p.P("return &", s.GoName, "{}")
	}
	p.P("}")
	p.P()
	p.doc("InitDefault sets the fields that have defaults to them.")
	p.P("func (s *", s.GoName, ") InitDefault() {")
	for _, m := range r.members {
		if m.Default != nil {
			p.P("s.", m.GoName, " = ", p.memberValue(m, m.Default))
		}
	}
	p.P("}")
}

// kitexGetters prints GetX, and the variables with what it returns for absent fields.
func (p *printer) kitexGetters(s *schema.Struct, r *record) {
	for _, m := range r.members {
		names := p.names.kitex.fields[m.Field]
		field, result := "s."+m.GoName, p.memberType(m)
		if m.form == formPointer && m.Type.Kind != schema.KindStruct {
			field, result = "*"+field, p.goType(m.Type)
		}
		p.P()
		if names.isSet != "" {
			preset := ""
			if m.Default != nil {
				preset = " = " + p.memberValue(m, m.Default)
			}
			p.doc(sentence(names.preset, " is what ", names.getter, " returns for a ", s.GoName, " without ", m.GoName, "."))
			p.P("var ", names.preset, " ", result, preset)
			p.P()
		}
		p.P("func (s *", s.GoName, ") ", names.getter, "() ", result, " {")
		if names.isSet != "" {
			p.P("if !s.", names.isSet, "() {")
			p.P("return ", names.preset)
			p.P("}")
		}
		p.P("return ", field)
		p.P("}")
	}
}

func (p *printer) kitexSetters(s *schema.Struct, r *record) {
	for _, m := range r.members {
		p.P()
		p.P("func (s *", s.GoName, ") ", p.names.kitex.fields[m.Field].setter, "(val ", p.memberType(m), ") {")
		p.P("s.", m.GoName, " = val")
		p.P("}")
	}
}

// kitexPresence prints IsSetX, and what counts the fields of a union that are set.
func (p *printer) kitexPresence(s *schema.Struct, r *record) {
	for _, m := range r.members {
		if names := p.names.kitex.fields[m.Field]; names.isSet != "" {
			p.P()
			p.P("func (s *", s.GoName, ") ", names.isSet, "() bool {")
			p.P("return ", p.holds(m))
			p.P("}")
		}
	}
	if s.Category != schema.CategoryUnion {
		return
	}
	p.P()
	p.doc(sentence(p.names.kitex.counts[s], " returns how many fields are set; one has to be."))
	p.P("func (s *", s.GoName, ") ", p.names.kitex.counts[s], "() int {")
	p.P("count := 0")
	for _, m := range r.members {
		p.P("if s.", p.names.kitex.fields[m.Field].isSet, "() {")
		p.P("count++")
		p.P("}")
	}
	if r.unknown != "" {
		p.P("if !s.", r.unknown, ".IsZero() {")
		p.P("count++")
		p.P("}")
	}
	p.P("return count")
	p.P("}")
}

// holds is the condition for a member of a declared struct to hold something.
func (p *printer) holds(m member) string {
	field, preset := "s."+m.GoName, p.names.kitex.fields[m.Field].preset
	switch {
	case !m.isPreset():
		return field + " != nil"
	case m.Type.Kind == schema.KindBinary:
		return "string(" + field + ") != string(" + preset + ")"
	default:
		return field + " != " + preset
	}
}

// kitexHandler prints the interface of a service under the name that it has in Kitex.
func (p *printer) kitexHandler(service *schema.Service) {
	name := p.names.kitex.handlers[service]
	p.P()
	p.doc(sentence(name, " is what Kitex calls ", serverName(service.GoName), "."))
	p.P("type ", name, " = ", serverName(service.GoName))
}

// kitexTag returns the struct tag of a member as a Go string literal: that of thriftgo,
// that of frugal, what the definition adds, and that of JSON.
func (p *printer) kitexTag(s *schema.Struct, m member) string {
	name, id := identifierText(m.Name), strconv.Itoa(int(m.ID))
	requiredness := m.Requiredness
	if isOptional(s, m.Field) {
		requiredness = schema.RequirednessOptional
	}
	thriftTag := name + "," + id
	if requiredness != schema.RequirednessDefault {
		thriftTag += "," + requiredness.String()
	}
	parts := []tagPart{{"thrift", thriftTag}, {"frugal", id + "," + requiredness.String() + "," + p.frugalType(m.Type)}}
	json := name
	if requiredness == schema.RequirednessOptional {
		json += ",omitempty"
	}
	if annotation := findAnnotation(m.Annotations, annotationTag); annotation != nil {
		given, _ := parseTag(annotation.Value)
		for _, part := range given {
			if part.key == "json" {
				json = ""
			}
			parts = append(parts, part)
		}
	}
	if json != "" {
		parts = append(parts, tagPart{"json", json})
	}
	parts = append(parts, p.addedTags(m.Field)...)
	return tagLiteral(parts)
}

// frugalType is what the tags of frugal call a type.
func (p *printer) frugalType(t *schema.Type) string {
	switch t.Kind {
	case schema.KindEnum:
		return t.Enum.GoName
	case schema.KindStruct:
		if pkg := t.Struct.File.Package; pkg != p.pkg {
			return pkg.Name + "." + t.Struct.GoName
		}
		return t.Struct.GoName
	case schema.KindList, schema.KindSet:
		return t.Kind.String() + "<" + p.frugalType(t.Element) + ">"
	case schema.KindMap:
		key := "string"
		if t.Key.Kind != schema.KindBinary {
			key = p.frugalType(t.Key)
		}
		return "map<" + key + ":" + p.frugalType(t.Element) + ">"
	default:
		return t.Kind.String()
	}
}
