package gen

import (
	"cmp"
	"math"
	"regexp"
	"slices"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// modelChecker holds what plugins leave of a model to what package schema says
// and the printer relies on. Front ends need no such check.
type modelChecker struct {
	*report
	files    map[*schema.File]bool
	packages map[*schema.Package]bool
	// declared are the types, constants and services of all files.
	declared map[any]bool
	// nodes is how many types and values may still come.
	nodes int
}

// checkModel reports what is wrong with a program that a plugin has changed.
func checkModel(program *schema.Program, to *report) {
	c := &modelChecker{
		report: to, files: map[*schema.File]bool{}, packages: map[*schema.Package]bool{}, declared: map[any]bool{},
		nodes: limits.IDLNodes,
	}
	if !c.collect(program) {
		return // going on would meet nil
	}
	for _, file := range program.Files {
		for _, typedef := range file.Typedefs {
			c.name(typedef.Position, "typedef", typedef.Name)
			c.typ(typedef.Position, typedef.Type, 0)
		}
		for _, enum := range file.Enums {
			c.enum(enum)
		}
		for _, s := range file.Structs {
			c.structure(s)
		}
		for _, constant := range file.Constants {
			c.name(constant.Position, "constant", constant.Name)
			if c.typ(constant.Position, constant.Type, 0) {
				c.value(constant.Position, constant.Value, constant.Type, 0)
			}
		}
		for _, service := range file.Services {
			c.service(service)
		}
	}
}

// collect finds what is declared, and everything in the lists that is nil.
func (c *modelChecker) collect(program *schema.Program) bool {
	before := c.errors
	if slices.Contains(program.Files, nil) || slices.Contains(program.Packages, nil) {
		c.Errorf(schema.Position{}, "the model has a file or a package that is nil")
		return false
	}
	for _, pkg := range program.Packages {
		c.packages[pkg] = true
	}
	for _, file := range program.Files {
		c.files[file] = true
		if slices.Contains(file.Typedefs, nil) || slices.Contains(file.Enums, nil) || slices.Contains(file.Structs, nil) ||
			slices.Contains(file.Constants, nil) || slices.Contains(file.Services, nil) {
			c.Errorf(filePosition(file), "a declaration is nil")
			continue
		}
		if !c.packages[file.Package] || !slices.Contains(file.Package.Files, file) {
			c.Errorf(filePosition(file), "the file is in no package of the model")
		}
		for _, one := range file.Typedefs {
			c.declare(one, one.Name, one.File == file, one.Position)
		}
		for _, one := range file.Enums {
			c.declare(one, one.Name, one.File == file, one.Position)
		}
		for _, one := range file.Structs {
			c.declare(one, one.Name, one.File == file, one.Position)
			if slices.Contains(one.Fields, nil) {
				c.Errorf(one.Position, "%s %.80s: a field is nil", one.Category, one.Name)
			}
		}
		for _, one := range file.Constants {
			c.declare(one, one.Name, one.File == file, one.Position)
		}
		for _, one := range file.Services {
			c.declare(one, one.Name, one.File == file, one.Position)
		}
	}
	for _, pkg := range program.Packages {
		for _, file := range pkg.Files {
			if !c.files[file] || file.Package != pkg {
				c.Errorf(schema.Position{}, "package %.80s has a file that is not of the model, or of another package", pkg.Path)
			}
		}
	}
	return c.errors == before
}

func (c *modelChecker) declare(one any, name string, inFile bool, position schema.Position) {
	if c.declared[one] || !inFile {
		c.Errorf(position, "%.80s is declared in two places, or its File is another one", name)
	}
	c.declared[one] = true
}

var modelName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (c *modelChecker) name(position schema.Position, what, name string) {
	if len(name) > limits.IDLNameBytes || !modelName.MatchString(name) {
		c.Errorf(position, "%s %.80q: the name is not one, expected letters, digits and underscores, at most %d bytes", what, name, limits.IDLNameBytes)
	}
}

func (c *modelChecker) enum(enum *schema.Enum) {
	c.name(enum.Position, "enum", enum.Name)
	seen := map[string]bool{}
	for _, value := range enum.Values {
		if value == nil || value.Enum != enum || seen[value.Name] {
			c.Errorf(enum.Position, "enum %.80s: a value is nil, of another enum, or there twice", enum.Name)
			return
		}
		seen[value.Name] = true
		c.name(value.Position, "enum value", value.Name)
	}
}

func (c *modelChecker) structure(s *schema.Struct) {
	c.name(s.Position, "struct", s.Name)
	if s.Category > schema.CategoryException {
		c.Errorf(s.Position, "struct %.80s: category %d is not known", s.Name, s.Category)
		s.Category = schema.CategoryStruct // messages would need its name
	}
	c.fields(s.Position, s.Fields, s.Name)
	for _, field := range s.Fields {
		if s.Category == schema.CategoryUnion && field.Requiredness == schema.RequirednessRequired {
			c.Errorf(field.Position, "union %.80s: field %.80s is required, which fields of unions cannot be", s.Name, field.Name)
		}
	}
}

// fields checks members, arguments or exceptions, none of which is nil.
func (c *modelChecker) fields(position schema.Position, fields []*schema.Field, of string) {
	names, ids, all := map[string]bool{}, map[int16]bool{}, map[*schema.Field]bool{}
	for _, field := range fields {
		if field == nil || all[field] || names[field.Name] || ids[field.ID] || field.Requiredness > schema.RequirednessOptional {
			c.Errorf(position, "%.80s: a field is nil, or has the name or the id of another, or an unknown requiredness", of)
			return
		}
		all[field], names[field.Name], ids[field.ID] = true, true, true
		c.name(field.Position, "field", field.Name)
		if c.typ(field.Position, field.Type, 0) && field.Default != nil {
			c.value(field.Position, field.Default, field.Type, 0)
		}
	}
}

// spend counts a type or a value, and says that there may be no more.
func (c *modelChecker) spend(position schema.Position, depth int) bool {
	c.nodes--
	switch {
	case c.nodes == -1:
		c.Errorf(position, "the model has too many types and values (limit %d)", limits.IDLNodes)
		return false
	case c.nodes < 0:
		return false
	case depth > limits.IDLTypeDepth:
		c.Errorf(position, "a type or value is nested too deep (limit %d)", limits.IDLTypeDepth)
		return false
	}
	return true
}

// typ checks the type of something that holds a value.
func (c *modelChecker) typ(position schema.Position, t *schema.Type, depth int) bool {
	if t == nil {
		c.Errorf(position, "a type is nil")
		return false
	}
	if !c.spend(position, depth) {
		return false
	}
	container := t.Kind == schema.KindList || t.Kind == schema.KindSet || t.Kind == schema.KindMap
	whole := schema.KindBool <= t.Kind && t.Kind <= schema.KindMap &&
		container == (t.Element != nil) && (t.Kind == schema.KindMap) == (t.Key != nil) &&
		(t.Kind == schema.KindEnum) == (t.Enum != nil) && (t.Kind == schema.KindStruct) == (t.Struct != nil)
	known := (t.Enum == nil || c.declared[t.Enum]) && (t.Struct == nil || c.declared[t.Struct]) && (t.Typedef == nil || c.declared[t.Typedef])
	if !whole || !known {
		c.Errorf(position, "a type of kind %s is not whole, or refers to something that the model has not", t.Kind)
		return false
	}
	return (t.Key == nil || c.typ(position, t.Key, depth+1)) && (t.Element == nil || c.typ(position, t.Element, depth+1))
}

// value checks that a value fits its type, and that what it is made of is of the
// model.
func (c *modelChecker) value(position schema.Position, value *schema.Value, t *schema.Type, depth int) {
	if value == nil || value.Type == nil {
		c.Errorf(position, "a value, or its type, is nil")
		return
	}
	position = cmp.Or(value.Position, position)
	if !c.spend(position, depth) {
		return
	}
	if !valueFits(value, t) || value.Constant != nil && !c.declared[value.Constant] {
		c.Errorf(position, "a value does not fit its type %s, or refers to a constant that the model has not", t.Kind)
		return
	}
	for _, element := range value.List {
		c.value(position, element, t.Element, depth+1)
	}
	for _, entry := range value.Entries {
		c.value(position, entry.Key, t.Key, depth+1)
		c.value(position, entry.Value, t.Element, depth+1)
	}
	for _, member := range value.Fields {
		if member.Field == nil || !slices.Contains(t.Struct.Fields, member.Field) || member.Field.Type == nil {
			c.Errorf(position, "a value of %.80s has a field that the struct has not", t.Struct.Name)
			return
		}
		c.value(position, member.Value, member.Field.Type, depth+1)
	}
}

// valueFits says that a value is of the kind that its type wants, in range, and
// has no parts of another kind.
func valueFits(value *schema.Value, t *schema.Type) bool {
	if value.Type.Kind != t.Kind || value.Type.Enum != t.Enum || value.Type.Struct != t.Struct {
		return false
	}
	inRange := func(bits uint) bool { return value.Int>>(bits-1) == 0 || value.Int>>(bits-1) == -1 }
	fits := false
	switch t.Kind {
	case schema.KindBool:
		fits = value.Kind == schema.ValueBool
	case schema.KindI8:
		fits = value.Kind == schema.ValueInt && inRange(8)
	case schema.KindI16:
		fits = value.Kind == schema.ValueInt && inRange(16)
	case schema.KindI32:
		fits = value.Kind == schema.ValueInt && inRange(32)
	case schema.KindI64:
		fits = value.Kind == schema.ValueInt
	case schema.KindDouble:
		fits = value.Kind == schema.ValueDouble && !math.IsNaN(value.Double)
	case schema.KindString, schema.KindBinary, schema.KindUUID:
		fits = value.Kind == schema.ValueString
	case schema.KindEnum:
		fits = value.Kind == schema.ValueEnum && inRange(32) && (value.Enum == nil || slices.Contains(t.Enum.Values, value.Enum))
	case schema.KindList, schema.KindSet:
		fits = value.Kind == schema.ValueList
	case schema.KindMap:
		fits = value.Kind == schema.ValueMap
	case schema.KindStruct:
		fits = value.Kind == schema.ValueStruct
	}
	return fits &&
		(value.Kind == schema.ValueList || value.List == nil) &&
		(value.Kind == schema.ValueMap || value.Entries == nil) &&
		(value.Kind == schema.ValueStruct || value.Fields == nil)
}

func (c *modelChecker) service(service *schema.Service) {
	c.name(service.Position, "service", service.Name)
	names := map[string]bool{}
	ancestors := map[*schema.Service]bool{}
	for one := service; one != nil; one = one.Extends {
		if ancestors[one] || !c.declared[one] {
			c.Errorf(service.Position, "service %.80s extends itself, or a service that the model has not", service.Name)
			return
		}
		ancestors[one] = true
		for _, method := range one.Methods {
			if method == nil || method.Service != one || names[method.Name] {
				c.Errorf(service.Position, "service %.80s: a method is nil, of another service, or there twice", service.Name)
				return
			}
			names[method.Name] = true
		}
	}
	for _, method := range service.Methods {
		c.method(method)
	}
}

func (c *modelChecker) method(method *schema.Method) {
	c.name(method.Position, "method", method.Name)
	switch {
	case method.Result == nil:
		c.Errorf(method.Position, "method %.80s: the result is nil, expected the kind void", method.Name)
		return
	case method.Result.Kind != schema.KindVoid:
		c.typ(method.Position, method.Result, 0)
	}
	if method.Oneway && (method.Result.Kind != schema.KindVoid || len(method.Throws) > 0) {
		c.Errorf(method.Position, "method %.80s: is oneway and has a result", method.Name)
	}
	before := c.errors
	c.fields(method.Position, method.Arguments, method.Name)
	c.fields(method.Position, method.Throws, method.Name)
	if c.errors != before {
		return
	}
	for _, argument := range method.Arguments {
		if argument.Requiredness == schema.RequirednessOptional {
			c.Errorf(argument.Position, "argument %.80s: is optional, which arguments cannot be", argument.Name)
		}
	}
	for _, thrown := range method.Throws {
		if thrown.Type.Kind != schema.KindStruct || thrown.Type.Struct.Category != schema.CategoryException ||
			thrown.ID == 0 || thrown.Requiredness == schema.RequirednessRequired {
			c.Errorf(thrown.Position, "thrown %.80s: expected an exception with an id, not required", thrown.Name)
		}
	}
}
