package emit

import (
	"slices"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// form says how a field holds its value and what stands for its absence.
type form uint8

const (
	formValue   form = iota // T, never absent
	formOpt                 // thrift.Opt[T]
	formNil                 // a slice or map: nil is absence
	formPointer             // *T: nil is absence
)

// absence says what happens to a field that holds nothing when it is written.
type absence uint8

const (
	absenceOmitted absence = iota
	absenceRefused
)

// record is what the codec knows about a struct, which may be a declared one or
// the arguments or the result of a method.
type record struct {
	goName string
	// wireName is what errors call it.
	wireName string
	union    bool
	// unknown is the Go name of the field for what the definition does not have, "" if
	// that is dropped.
	unknown string
	// reuse: reading can take the memory of what the record was before.
	reuse bool
	// lends is the method, as texts name it, of which these are the arguments, if views in
	// them refer to bytes that are lent; "" otherwise.
	lends   string
	members []member
	// presets are the indexes of members that hold something in a new struct,
	// largePresets of those what is written once only.
	presets, largePresets []int
	// indexes finds members; it is made when it is needed.
	indexes map[*schema.Field]int
}

// add appends a member.
func (g *generator) add(r *record, m member) {
	isStruct := m.Type.Kind == schema.KindStruct && !m.viewed
	switch preset := !m.optional && m.Default != nil; {
	case preset && (isStruct || isContainer(m.Type)):
		r.largePresets = append(r.largePresets, len(r.members))
		r.presets = append(r.presets, len(r.members))
	case preset, m.form == formValue && isStruct && g.hasDefaults(m.Type.Struct):
		r.presets = append(r.presets, len(r.members))
	}
	r.members = append(r.members, m)
}

// index returns where the member for a field is.
func (r *record) index(field *schema.Field) int {
	if r.indexes == nil {
		r.indexes = make(map[*schema.Field]int, len(r.members))
		for i, m := range r.members {
			r.indexes[m.Field] = i
		}
	}
	return r.indexes[field]
}

// member is a field of a record.
type member struct {
	*schema.Field
	form    form
	absence absence
	// custom is the type that the definition asks for, nil for the usual one.
	custom *fieldType
	// optional says that absence means something: defaults do not fill it.
	optional bool
	// required says that reading fails without it.
	required bool
	// viewed says that it holds a view of its struct.
	viewed bool
	// embedded says that its struct has what it has, and its name is that of its type.
	embedded bool
	// asMap says that it holds a thrift.SetOf, and not a list.
	asMap bool
	// unique says that the elements of its sets are compared.
	unique bool
	// filled says that after reading it holds a struct, even if none came.
	filled bool
}

// declaredRecord is the record of a declared struct, union or exception, which
// has its Go name. Very many values can be of one struct, so it is made once.
func (g *generator) declaredRecord(s *schema.Struct) *record {
	if known := g.records[s]; known != nil {
		return known
	}
	r := &record{
		goName:   s.GoName,
		wireName: s.File.Package.Name + "." + s.Name,
		union:    s.Category == schema.CategoryUnion,
		unknown:  g.names.unknown[s],
		reuse:    g.options.Reuse,
	}
	for _, field := range s.Fields {
		if g.options.Kitex {
			m := kitexMember(s, field)
			m.embedded = g.embeds(field)
			m.unique = g.isUnique(field)
			r.members = append(r.members, m)
			continue
		}
		m := member{
			Field:    field,
			optional: isOptional(s, field),
			required: field.Requiredness == schema.RequirednessRequired,
			custom:   fieldTypeOf(field),
			embedded: g.embeds(field),
			unique:   g.isUnique(field),
			asMap:    isMapSet(field),
		}
		switch {
		case m.optional:
			m.form = optionalForm(field.Type)
		case g.pointers[field]:
			m.form = formPointer
			if m.required {
				m.absence = absenceRefused
			}
		}
		g.add(r, m)
	}
	g.records[s] = r
	return r
}

// argumentRecord is the record of a method's arguments. Structs are pointers
// there because handlers and callers pass pointers; views are values.
func (g *generator) argumentRecord(method *schema.Method) *record {
	r := &record{
		goName:   argsName(method.Service.GoName, method.GoName),
		wireName: fullName(method) + " arguments",
	}
	for _, argument := range method.Arguments {
		m := member{Field: argument, required: argument.Requiredness == schema.RequirednessRequired, unique: g.isUnique(argument)}
		if g.isViewedArgument(method, argument) {
			m.viewed = true
			if stringPolicy(method.Annotations, method.Service.Annotations) == "StringsScoped" {
				r.lends = fullName(method)
			}
		} else if argument.Type.Kind == schema.KindStruct {
			m.form, m.absence, m.filled = formPointer, absenceRefused, true
		}
		g.add(r, m)
	}
	return r
}

// resultRecord is the record of a method's result: at most one of the returned
// value and the declared exceptions.
func (g *generator) resultRecord(method *schema.Method) *record {
	r := &record{
		goName:   resultName(method.Service.GoName, method.GoName),
		wireName: fullName(method) + " result",
	}
	if method.Result.Kind != schema.KindVoid {
		success := &schema.Field{Name: "success", GoName: "Success", Type: method.Result}
		r.members = append(r.members, member{Field: success, form: optionalForm(method.Result), optional: true, viewed: g.returnsView(method), unique: g.options.UniqueSets})
	}
	for _, exception := range method.Throws {
		r.members = append(r.members, member{Field: exception, form: formPointer, optional: true})
	}
	return r
}

func isOptional(s *schema.Struct, field *schema.Field) bool {
	return s.Category == schema.CategoryUnion || field.Requiredness == schema.RequirednessOptional
}

func optionalForm(t *schema.Type) form {
	switch {
	case t.Kind == schema.KindStruct:
		return formPointer
	case isContainer(t) || t.Kind == schema.KindBinary:
		return formNil
	default:
		return formOpt
	}
}

// hasGetter says that a field gets a method that returns its value or what the
// definition says is meant when there is none.
func hasGetter(s *schema.Struct, field *schema.Field) bool {
	return isOptional(s, field) && (optionalForm(field.Type) == formOpt || field.Default != nil)
}

func isContainer(t *schema.Type) bool {
	return t.Kind == schema.KindList || t.Kind == schema.KindSet || t.Kind == schema.KindMap
}

// isPairs says that a map is a slice of pairs in Go, because its key cannot be
// compared or, if it is a struct of more than scalars, not cheaply.
func (g *generator) isPairs(t *schema.Type) bool {
	if g.options.Kitex || t.Key.Kind != schema.KindStruct {
		return isContainer(t.Key)
	}
	pairs, known := g.pairKeys[t.Key.Struct]
	if !known {
		pairs = slices.ContainsFunc(t.Key.Struct.Fields, func(field *schema.Field) bool {
			return field.Type.Kind == schema.KindStruct || field.Type.Kind == schema.KindBinary || isContainer(field.Type)
		})
		g.pairKeys[t.Key.Struct] = pairs
	}
	return pairs
}

// hasDefaults says that the zero value of a struct is not what the definition
// says a new one holds.
func (g *generator) hasDefaults(s *schema.Struct) bool {
	if known, found := g.defaults[s]; found {
		return known
	}
	for _, field := range s.Fields {
		if isOptional(s, field) && !g.options.Kitex {
			continue
		}
		if field.Default != nil || g.isValueStruct(field) && g.hasDefaults(field.Type.Struct) {
			g.defaults[s] = true
			return true
		}
	}
	g.defaults[s] = false
	return false
}

// isValueStruct says that a field that is not optional holds its struct by
// value.
func (g *generator) isValueStruct(field *schema.Field) bool {
	return field.Type.Kind == schema.KindStruct && !g.pointers[field] && !g.options.Kitex
}
