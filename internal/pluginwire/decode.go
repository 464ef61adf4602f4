package pluginwire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// DecodeRequest reads what EncodeRequest writes: the header, and the model with
// its references put together again.
func DecodeRequest(text []byte) (Request, *schema.Program, error) {
	var request Request
	var version struct{ Protocol *int }
	// This also finds what follows the end, and what is no JSON.
	if err := json.Unmarshal(text, &version); err != nil {
		return request, nil, fmt.Errorf("plugin request: %w", err)
	}
	if err := checkVersion(version.Protocol); err != nil {
		return request, nil, fmt.Errorf("plugin request: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		return request, nil, fmt.Errorf("plugin request: %w", err)
	}
	d := newDecoder(request)
	program := d.program(request)
	if d.err != nil {
		return request, nil, fmt.Errorf("plugin request: %w", d.err)
	}
	return request, program, nil
}

// checkVersion wants the version that this package speaks.
func checkVersion(version *int) error {
	switch {
	case version == nil:
		return errors.New("protocol: there is none")
	case *version != Version:
		return fmt.Errorf("protocol %d, expected %d", *version, Version)
	default:
		return nil
	}
}

// decoder has everything that is declared, made before any of it is filled, so
// that references may lead anywhere. err is the first thing that went wrong.
type decoder struct {
	packages  []*schema.Package
	files     []*schema.File
	constants []*schema.Constant
	typedefs  []*schema.Typedef
	enums     []*schema.Enum
	structs   []*schema.Struct
	services  []*schema.Service
	err       error
}

func newDecoder(request Request) *decoder {
	d := &decoder{
		packages:  blanks[schema.Package](len(request.Packages)),
		files:     blanks[schema.File](len(request.Files)),
		constants: blanks[schema.Constant](len(request.Constants)),
		typedefs:  blanks[schema.Typedef](len(request.Typedefs)),
		enums:     blanks[schema.Enum](len(request.Enums)),
		structs:   blanks[schema.Struct](len(request.Structs)),
		services:  blanks[schema.Service](len(request.Services)),
	}
	// Values refer to members by their index.
	for i, enum := range d.enums {
		enum.Values = blanks[schema.EnumValue](len(request.Enums[i].Values))
	}
	for i, s := range d.structs {
		s.Fields = blanks[schema.Field](len(request.Structs[i].Fields))
	}
	for i, service := range d.services {
		service.Methods = blanks[schema.Method](len(request.Services[i].Methods))
	}
	return d
}

func blanks[T any](count int) []*T {
	list := make([]*T, count)
	for i := range list {
		list[i] = new(T)
	}
	return list
}

func (d *decoder) fail(format string, arguments ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, arguments...)
	}
}

// at returns the member with an index, or a new one and an error.
func at[T any](d *decoder, list []*T, index int, what string) *T {
	if index < 0 || index >= len(list) {
		d.fail("%s %d: there are %d", what, index, len(list))
		return new(T)
	}
	return list[index]
}

func all[T any](d *decoder, list []*T, indexes []int, what string) (found []*T) {
	for _, index := range indexes {
		found = append(found, at(d, list, index, what))
	}
	return found
}

func optional[T any](d *decoder, list []*T, index *int, what string) *T {
	if index == nil {
		return nil
	}
	return at(d, list, *index, what)
}

func (d *decoder) program(request Request) *schema.Program {
	for i, one := range request.Packages {
		*d.packages[i] = schema.Package{
			Name: one.Name, Path: one.Path, Root: one.Root, ImportPath: one.ImportPath, GoImports: one.GoImports.List(),
			Files:   all(d, d.files, one.Files, "file"),
			Imports: all(d, d.packages, one.Imports, "package"),
		}
	}
	for i, one := range request.Files {
		*d.files[i] = schema.File{
			Path: one.Path, Base: one.Base, Doc: one.Doc, Namespaces: one.Namespaces,
			Includes:  all(d, d.files, one.Includes, "file"),
			Package:   at(d, d.packages, one.Package, "package"),
			Constants: all(d, d.constants, one.Constants, "constant"),
			Typedefs:  all(d, d.typedefs, one.Typedefs, "typedef"),
			Enums:     all(d, d.enums, one.Enums, "enum"),
			Structs:   all(d, d.structs, one.Structs, "struct"),
			Services:  all(d, d.services, one.Services, "service"),
		}
	}
	for i, one := range request.Typedefs {
		*d.typedefs[i] = schema.Typedef{
			Name: one.Name, Doc: one.Doc, Type: d.typ(one.Type), Annotations: decodeAnnotations(one.Annotations),
			File: at(d, d.files, one.File, "file"), Position: one.Position.decode(), GoName: one.GoName,
		}
	}
	for i, one := range request.Enums {
		d.enum(d.enums[i], one)
	}
	for i, one := range request.Structs {
		d.structure(d.structs[i], one)
	}
	for i, one := range request.Services {
		d.service(d.services[i], one)
	}
	for i, one := range request.Constants {
		t := d.typ(one.Type)
		*d.constants[i] = schema.Constant{
			Name: one.Name, Doc: one.Doc, Type: t, Annotations: decodeAnnotations(one.Annotations),
			File: at(d, d.files, one.File, "file"), Position: one.Position.decode(), GoName: one.GoName,
		}
	}
	d.listed(request)
	// Values need the types of everything.
	for i, one := range request.Constants {
		d.constants[i].Value = d.value(one.Value, d.constants[i].Type)
	}
	for i, one := range request.Structs {
		for j, field := range one.Fields {
			d.structs[i].Fields[j].Default = d.value(field.Default, d.structs[i].Fields[j].Type)
		}
	}
	for i, one := range request.Services {
		for j, method := range one.Methods {
			for k, argument := range method.Arguments {
				to := d.services[i].Methods[j].Arguments[k]
				to.Default = d.value(argument.Default, to.Type)
			}
		}
	}
	return &schema.Program{Files: d.files, Packages: d.packages}
}

// listed fails if a declaration is not in the list of its file, once, and in no other: a
// plugin would see it in one way and not in another.
func (d *decoder) listed(request Request) {
	lists := func(of func(File) []int) (all [][]int) {
		for _, file := range request.Files {
			all = append(all, of(file))
		}
		return all
	}
	once(d, d.constants, "constant", func(c *schema.Constant) *schema.File { return c.File }, lists(func(f File) []int { return f.Constants }))
	once(d, d.typedefs, "typedef", func(t *schema.Typedef) *schema.File { return t.File }, lists(func(f File) []int { return f.Typedefs }))
	once(d, d.enums, "enum", func(e *schema.Enum) *schema.File { return e.File }, lists(func(f File) []int { return f.Enums }))
	once(d, d.structs, "struct", func(s *schema.Struct) *schema.File { return s.File }, lists(func(f File) []int { return f.Structs }))
	once(d, d.services, "service", func(s *schema.Service) *schema.File { return s.File }, lists(func(f File) []int { return f.Services }))
}

// once is listed for declarations of one kind; lists has the indexes that each file has.
func once[T any](d *decoder, declared []*T, what string, fileOf func(*T) *schema.File, lists [][]int) {
	times := make([]int, len(declared))
	for file, indexes := range lists {
		for _, index := range indexes {
			if index < 0 || index >= len(declared) {
				continue // has failed
			}
			if times[index]++; fileOf(declared[index]) != d.files[file] {
				d.fail("%s %d: file %d lists it, which is not its own", what, index, file)
			}
		}
	}
	for index, n := range times {
		if n != 1 {
			d.fail("%s %d: its file lists it %d times", what, index, n)
		}
	}
}

func (d *decoder) enum(enum *schema.Enum, from Enum) {
	for i, one := range from.Values {
		*enum.Values[i] = schema.EnumValue{
			Name: one.Name, Doc: one.Doc, Number: one.Number, Enum: enum, Annotations: decodeAnnotations(one.Annotations),
			Position: one.Position.decode(), GoName: one.GoName,
		}
	}
	*enum = schema.Enum{
		Name: from.Name, Doc: from.Doc, Values: enum.Values, Annotations: decodeAnnotations(from.Annotations),
		File: at(d, d.files, from.File, "file"), Position: from.Position.decode(), GoName: from.GoName, GoParser: from.GoParser,
	}
}

func (d *decoder) structure(s *schema.Struct, from Struct) {
	for i, one := range from.Fields {
		d.field(s.Fields[i], one)
		s.Fields[i].GoPresence = named(d, one.GoPresence, "presence", schema.PresenceAlways, schema.PresencePointer)
	}
	*s = schema.Struct{
		Name: from.Name, Doc: from.Doc, Fields: s.Fields, Annotations: decodeAnnotations(from.Annotations),
		Category: named(d, from.Category, "category", schema.CategoryStruct, schema.CategoryException),
		File:     at(d, d.files, from.File, "file"), Position: from.Position.decode(), GoName: from.GoName, GoConstructor: from.GoConstructor,
	}
}

func (d *decoder) field(field *schema.Field, from Field) {
	*field = schema.Field{
		ID: from.ID, Name: from.Name, Doc: from.Doc, Type: d.typ(from.Type), Annotations: decodeAnnotations(from.Annotations),
		Requiredness: named(d, from.Requiredness, "requiredness", schema.RequirednessDefault, schema.RequirednessOptional),
		Position:     from.Position.decode(), GoName: from.GoName, GoType: from.GoType,
	}
}

func (d *decoder) fields(from []Field) []*schema.Field {
	fields := blanks[schema.Field](len(from))
	for i, one := range from {
		d.field(fields[i], one)
	}
	return fields
}

func (d *decoder) service(service *schema.Service, from Service) {
	for i, one := range from.Methods {
		*service.Methods[i] = schema.Method{
			Name: one.Name, Doc: one.Doc, Oneway: one.Oneway, Result: d.typ(one.Result),
			Arguments: d.fields(one.Arguments), Throws: d.fields(one.Throws),
			Annotations: decodeAnnotations(one.Annotations), Service: service, Position: one.Position.decode(), GoName: one.GoName,
		}
	}
	*service = schema.Service{
		Name: from.Name, Doc: from.Doc, Extends: optional(d, d.services, from.Extends, "service"), Methods: service.Methods,
		Annotations: decodeAnnotations(from.Annotations), File: at(d, d.files, from.File, "file"), Position: from.Position.decode(),
		GoName: from.GoName, GoServer: from.GoServer, GoClient: from.GoClient, GoNewClient: from.GoNewClient,
	}
	for _, one := range from.GoMethods {
		owner := at(d, d.services, one.Service, "service")
		method := schema.GoMethod{Method: at(d, owner.Methods, one.Method, "method"), Name: one.Name, Result: one.Result, ResultView: one.ResultView}
		for _, parameter := range one.Parameters {
			method.Parameters = append(method.Parameters, schema.GoParameter(parameter))
		}
		service.GoMethods = append(service.GoMethods, method)
	}
}

func (d *decoder) typ(from *Type) *schema.Type {
	if from == nil {
		d.fail("a type is missing")
		return &schema.Type{}
	}
	t := &schema.Type{
		Kind: named(d, from.Kind, "kind", schema.KindVoid, schema.KindMap),
		Enum: optional(d, d.enums, from.Enum, "enum"), Struct: optional(d, d.structs, from.Struct, "struct"),
		Typedef: optional(d, d.typedefs, from.Typedef, "typedef"), Annotations: decodeAnnotations(from.Annotations), Position: from.Position.decode(),
	}
	if from.Key != nil {
		t.Key = d.typ(from.Key)
	}
	if from.Element != nil {
		t.Element = d.typ(from.Element)
	}
	container := t.Kind == schema.KindList || t.Kind == schema.KindSet || t.Kind == schema.KindMap
	if container != (t.Element != nil) || (t.Kind == schema.KindMap) != (t.Key != nil) ||
		(t.Kind == schema.KindEnum) != (t.Enum != nil) || (t.Kind == schema.KindStruct) != (t.Struct != nil) {
		d.fail("a %s without what it is made of, or with more", t.Kind)
	}
	return t
}

// named returns the one of a range of values whose String is name.
func named[T interface {
	~uint8
	fmt.Stringer
}](d *decoder, name, what string, first, last T) T {
	for value := first; value <= last; value++ {
		if value.String() == name {
			return value
		}
	}
	d.fail("%s %.80q is not known", what, name)
	return first
}

func (d *decoder) value(from *Value, t *schema.Type) *schema.Value {
	if from == nil || d.err != nil {
		return nil
	}
	value := &schema.Value{Type: t, Constant: optional(d, d.constants, from.Constant, "constant"), Position: from.Position.decode()}
	index := slices.Index(valueKinds[:], from.Kind)
	if index < 0 {
		d.fail("value kind %.80q is not known", from.Kind)
		return value
	}
	value.Kind = schema.ValueKind(index)
	if !valueFits(value.Kind, t) {
		d.fail("a value of kind %s for a %s", from.Kind, t.Kind)
		return value
	}
	var err error
	switch value.Kind {
	case schema.ValueBool:
		value.Bool, err = strconv.ParseBool(from.Text)
	case schema.ValueInt:
		value.Int, err = strconv.ParseInt(from.Text, 10, 64)
	case schema.ValueDouble:
		value.Double, err = strconv.ParseFloat(from.Text, 64)
	case schema.ValueString:
		if value.String = from.Text; from.Base64 != "" {
			var decoded []byte
			decoded, err = base64.StdEncoding.DecodeString(from.Base64)
			value.String = string(decoded)
		}
	case schema.ValueEnum:
		value.Int, err = strconv.ParseInt(from.Text, 10, 64)
		value.Enum = optional(d, t.Enum.Values, from.EnumValue, "enum value")
	default:
		d.composite(value, from)
	}
	if err != nil {
		d.fail("value %.80q: %w", from.Text, err)
	}
	return value
}

// composite fills a value that is made of others.
func (d *decoder) composite(value *schema.Value, from *Value) {
	part := func(from *Value, t *schema.Type) *schema.Value {
		if from == nil {
			d.fail("a part of a value is missing")
		}
		return d.value(from, t)
	}
	switch t := value.Type; value.Kind {
	case schema.ValueList:
		for _, element := range from.List {
			value.List = append(value.List, part(element, t.Element))
		}
	case schema.ValueMap:
		for _, entry := range from.Entries {
			value.Entries = append(value.Entries, schema.ValueEntry{Key: part(entry.Key, t.Key), Value: part(entry.Value, t.Element)})
		}
	case schema.ValueStruct:
		for _, member := range from.Fields {
			field := at(d, t.Struct.Fields, member.Field, "field")
			if field.Type == nil {
				return
			}
			value.Fields = append(value.Fields, schema.ValueField{Field: field, Value: part(member.Value, field.Type)})
		}
	}
}

func valueFits(kind schema.ValueKind, t *schema.Type) bool {
	switch kind {
	case schema.ValueBool:
		return t.Kind == schema.KindBool
	case schema.ValueInt:
		return schema.KindI8 <= t.Kind && t.Kind <= schema.KindI64
	case schema.ValueDouble:
		return t.Kind == schema.KindDouble
	case schema.ValueString:
		return t.Kind == schema.KindString || t.Kind == schema.KindBinary || t.Kind == schema.KindUUID
	case schema.ValueEnum:
		return t.Kind == schema.KindEnum
	case schema.ValueList:
		return t.Kind == schema.KindList || t.Kind == schema.KindSet
	case schema.ValueMap:
		return t.Kind == schema.KindMap
	default:
		return t.Kind == schema.KindStruct
	}
}

func decodeAnnotations(from []Annotation) (annotations schema.Annotations) {
	for _, one := range from {
		annotations = append(annotations, schema.Annotation{Key: one.Key, Value: one.Value, Position: one.Position.decode()})
	}
	return annotations
}

// decode reads "file:line:column"; what is not that is a file.
func (p Position) decode() schema.Position {
	text := string(p)
	if end := strings.LastIndexByte(text, ':'); end >= 0 {
		column, err := strconv.Atoi(text[end+1:])
		if middle := strings.LastIndexByte(text[:end], ':'); err == nil && middle >= 0 {
			if line, err := strconv.Atoi(text[middle+1 : end]); err == nil && line > 0 {
				return schema.Position{File: text[:middle], Line: line, Column: column}
			}
		}
	}
	return schema.Position{File: text}
}
