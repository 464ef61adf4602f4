package pluginwire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// EncodeRequest writes the model down. The header fields of request, up to its
// options, are those of the result.
func EncodeRequest(request Request, program *schema.Program) ([]byte, error) {
	request.Protocol = Version
	e := newEncoder(program)
	for _, pkg := range program.Packages {
		request.Packages = append(request.Packages, e.pkg(pkg))
	}
	for _, file := range program.Files {
		request.Files = append(request.Files, e.file(file))
		for _, constant := range file.Constants {
			request.Constants = append(request.Constants, e.constant(constant))
		}
		for _, typedef := range file.Typedefs {
			request.Typedefs = append(request.Typedefs, e.typedef(typedef))
		}
		for _, enum := range file.Enums {
			request.Enums = append(request.Enums, e.enum(enum))
		}
		for _, s := range file.Structs {
			request.Structs = append(request.Structs, e.structure(s))
		}
		for _, service := range file.Services {
			request.Services = append(request.Services, e.service(service))
		}
	}
	text, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("plugin request: %w", err)
	}
	if len(text) > limits.PluginRequestBytes {
		return nil, fmt.Errorf("plugin request: the model is too long (limit %d bytes, got %d)", limits.PluginRequestBytes, len(text))
	}
	return append(text, '\n'), nil
}

// encoder numbers what is declared, in the order of the files.
type encoder struct {
	packages  map[*schema.Package]int
	files     map[*schema.File]int
	constants map[*schema.Constant]int
	typedefs  map[*schema.Typedef]int
	enums     map[*schema.Enum]int
	structs   map[*schema.Struct]int
	services  map[*schema.Service]int
}

func newEncoder(program *schema.Program) *encoder {
	e := &encoder{
		packages:  map[*schema.Package]int{},
		files:     map[*schema.File]int{},
		constants: map[*schema.Constant]int{},
		typedefs:  map[*schema.Typedef]int{},
		enums:     map[*schema.Enum]int{},
		structs:   map[*schema.Struct]int{},
		services:  map[*schema.Service]int{},
	}
	number(e.packages, program.Packages)
	number(e.files, program.Files)
	for _, file := range program.Files {
		number(e.constants, file.Constants)
		number(e.typedefs, file.Typedefs)
		number(e.enums, file.Enums)
		number(e.structs, file.Structs)
		number(e.services, file.Services)
	}
	return e
}

// number gives the members of list the next indexes.
func number[T comparable](indexes map[T]int, list []T) {
	for _, one := range list {
		indexes[one] = len(indexes)
	}
}

func indexesOf[T comparable](indexes map[T]int, list []T) (found []int) {
	for _, one := range list {
		found = append(found, indexes[one])
	}
	return found
}

// reference is the index of something that may be nil.
func reference[T any](indexes map[*T]int, one *T) *int {
	if one == nil {
		return nil
	}
	index := indexes[one]
	return &index
}

func (e *encoder) pkg(pkg *schema.Package) Package {
	imports := Imports{}
	for _, imported := range pkg.GoImports {
		imports[imported.Name] = imported.Path
	}
	return Package{
		Name: pkg.Name, Path: pkg.Path, Root: pkg.Root, ImportPath: pkg.ImportPath, GoImports: imports,
		Files:   indexesOf(e.files, pkg.Files),
		Imports: indexesOf(e.packages, pkg.Imports),
	}
}

func (e *encoder) file(file *schema.File) File {
	return File{
		Path: file.Path, Base: file.Base, Doc: file.Doc, Namespaces: file.Namespaces,
		Includes:  indexesOf(e.files, file.Includes),
		Package:   e.packages[file.Package],
		Constants: indexesOf(e.constants, file.Constants),
		Typedefs:  indexesOf(e.typedefs, file.Typedefs),
		Enums:     indexesOf(e.enums, file.Enums),
		Structs:   indexesOf(e.structs, file.Structs),
		Services:  indexesOf(e.services, file.Services),
	}
}

// position leaves out the numbers of a position that is that of a whole file.
func position(p schema.Position) Position {
	if p.Line == 0 {
		return Position(p.File)
	}
	return Position(p.String())
}

func annotations(list schema.Annotations) (found []Annotation) {
	for _, one := range list {
		found = append(found, Annotation{Key: one.Key, Value: one.Value, Position: position(one.Position)})
	}
	return found
}

func (e *encoder) typ(t *schema.Type) *Type {
	if t == nil {
		return nil
	}
	return &Type{
		Kind: t.Kind.String(), Key: e.typ(t.Key), Element: e.typ(t.Element),
		Enum: reference(e.enums, t.Enum), Struct: reference(e.structs, t.Struct), Typedef: reference(e.typedefs, t.Typedef),
		Annotations: annotations(t.Annotations), Position: position(t.Position),
	}
}

func (e *encoder) typedef(t *schema.Typedef) Typedef {
	return Typedef{
		Name: t.Name, Doc: t.Doc, Type: e.typ(t.Type), Annotations: annotations(t.Annotations),
		File: e.files[t.File], Position: position(t.Position), GoName: t.GoName,
	}
}

func (e *encoder) enum(enum *schema.Enum) Enum {
	encoded := Enum{
		Name: enum.Name, Doc: enum.Doc, Annotations: annotations(enum.Annotations),
		File: e.files[enum.File], Position: position(enum.Position), GoName: enum.GoName, GoParser: enum.GoParser,
	}
	for _, value := range enum.Values {
		encoded.Values = append(encoded.Values, EnumValue{
			Name: value.Name, Doc: value.Doc, Number: value.Number, Annotations: annotations(value.Annotations),
			Position: position(value.Position), GoName: value.GoName,
		})
	}
	return encoded
}

func (e *encoder) structure(s *schema.Struct) Struct {
	encoded := Struct{
		Name: s.Name, Doc: s.Doc, Category: s.Category.String(), Annotations: annotations(s.Annotations),
		File: e.files[s.File], Position: position(s.Position), GoName: s.GoName, GoConstructor: s.GoConstructor,
		Fields: e.fields(s.Fields),
	}
	for i, field := range s.Fields {
		encoded.Fields[i].GoPresence = field.GoPresence.String()
	}
	return encoded
}

func (e *encoder) fields(fields []*schema.Field) (encoded []Field) {
	for _, field := range fields {
		encoded = append(encoded, Field{
			ID: field.ID, Name: field.Name, Doc: field.Doc, Requiredness: field.Requiredness.String(),
			Type: e.typ(field.Type), Default: e.value(field.Default), Annotations: annotations(field.Annotations),
			Position: position(field.Position), GoName: field.GoName, GoType: field.GoType,
		})
	}
	return encoded
}

func (e *encoder) constant(constant *schema.Constant) Constant {
	return Constant{
		Name: constant.Name, Doc: constant.Doc, Type: e.typ(constant.Type), Value: e.value(constant.Value),
		Annotations: annotations(constant.Annotations), File: e.files[constant.File], Position: position(constant.Position),
		GoName: constant.GoName,
	}
}

func (e *encoder) service(service *schema.Service) Service {
	encoded := Service{
		Name: service.Name, Doc: service.Doc, Extends: reference(e.services, service.Extends),
		Annotations: annotations(service.Annotations), File: e.files[service.File], Position: position(service.Position),
		GoName: service.GoName, GoServer: service.GoServer, GoClient: service.GoClient, GoNewClient: service.GoNewClient,
	}
	for _, method := range service.Methods {
		encoded.Methods = append(encoded.Methods, Method{
			Name: method.Name, Doc: method.Doc, Oneway: method.Oneway, Result: e.typ(method.Result),
			Arguments: e.fields(method.Arguments), Throws: e.fields(method.Throws),
			Annotations: annotations(method.Annotations), Position: position(method.Position), GoName: method.GoName,
		})
	}
	for _, method := range service.GoMethods {
		described := GoMethod{Service: e.services[method.Method.Service], Name: method.Name, Result: method.Result, ResultView: method.ResultView}
		for i, one := range method.Method.Service.Methods {
			if one == method.Method {
				described.Method = i
			}
		}
		for _, parameter := range method.Parameters {
			described.Parameters = append(described.Parameters, GoParameter(parameter))
		}
		encoded.GoMethods = append(encoded.GoMethods, described)
	}
	return encoded
}

func (e *encoder) value(value *schema.Value) *Value {
	if value == nil {
		return nil
	}
	encoded := &Value{Kind: kindName(value.Kind), Constant: reference(e.constants, value.Constant), Position: position(value.Position)}
	switch value.Kind {
	case schema.ValueBool:
		encoded.Text = strconv.FormatBool(value.Bool)
	case schema.ValueInt:
		encoded.Text = strconv.FormatInt(value.Int, 10)
	case schema.ValueDouble:
		encoded.Text = strconv.FormatFloat(value.Double, 'g', -1, 64)
	case schema.ValueString:
		if utf8.ValidString(value.String) {
			encoded.Text = value.String
		} else {
			encoded.Base64 = base64.StdEncoding.EncodeToString([]byte(value.String))
		}
	case schema.ValueEnum:
		encoded.Text = strconv.FormatInt(value.Int, 10)
		if value.Enum != nil {
			for i, one := range value.Enum.Enum.Values {
				if one == value.Enum {
					encoded.EnumValue = &i
				}
			}
		}
	case schema.ValueList:
		for _, element := range value.List {
			encoded.List = append(encoded.List, e.value(element))
		}
	case schema.ValueMap:
		for _, entry := range value.Entries {
			encoded.Entries = append(encoded.Entries, ValueEntry{e.value(entry.Key), e.value(entry.Value)})
		}
	case schema.ValueStruct:
		for _, member := range value.Fields {
			for i, field := range value.Type.Struct.Fields {
				if field == member.Field {
					encoded.Fields = append(encoded.Fields, ValueField{i, e.value(member.Value)})
				}
			}
		}
	}
	return encoded
}

var valueKinds = [...]string{"bool", "int", "double", "string", "enum", "list", "map", "struct"}

func kindName(kind schema.ValueKind) string {
	if int(kind) < len(valueKinds) {
		return valueKinds[kind]
	}
	return fmt.Sprintf("value kind %d", kind)
}
