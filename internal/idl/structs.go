package idl

import (
	"math"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
)

func (r *resolver) resolveEnum(s *symbol, node *ast.Enum) {
	index := &enumIndex{
		byName:   make(map[string]*schema.EnumValue, len(node.Values)),
		byNumber: make(map[int32]*schema.EnumValue, len(node.Values)),
		partial:  node.Partial,
	}
	r.enums[s.enum] = index
	number := int64(-1)
	for i := range node.Values {
		node := &node.Values[i]
		position, at := s.unit.at(node.Name.Place), node.Name.Place
		number++
		if node.HasNumber {
			number, at = node.Number, node.NumberPlace
		}
		if index.partial && !node.HasNumber {
			number = 0 // follows from what could not be read, perhaps
		}
		if number < math.MinInt32 || number > math.MaxInt32 {
			r.found.errorf(s.unit.at(at), "enum value %s.%s: does not fit i32 (got %d), expected %d to %d", s.name, node.Name.Text, number, math.MinInt32, math.MaxInt32)
			number = 0
			continue
		}
		value := &schema.EnumValue{
			Name: node.Name.Text, Doc: node.Doc, Number: int32(number), Enum: s.enum,
			Annotations: r.annotations(s.unit, node.Annotations), Position: position,
		}
		if first := index.byName[value.Name]; first != nil {
			r.found.errorf(position, "enum value %s.%s: name is taken at %s", s.name, value.Name, first.Position)
			continue
		}
		index.byName[value.Name] = value
		if first := index.byNumber[value.Number]; first != nil && !index.partial {
			r.found.warningf(s.unit.at(at), "enum value %s.%s: number %d is also that of %s", s.name, value.Name, value.Number, first.Name)
		} else {
			index.byNumber[value.Number] = value
		}
		s.enum.Values = append(s.enum.Values, value)
	}
}

func (r *resolver) resolveStruct(s *symbol, node *ast.Struct) {
	list := fieldList{unit: s.unit, what: s.what + " " + s.name, partial: node.Partial}
	r.partial[s.structure] = node.Partial
	s.structure.Fields = r.resolveFields(&list, node.Fields)
	r.fields[s.structure] = list.byName
	for i, field := range s.structure.Fields {
		if field.Requiredness == schema.RequirednessRequired && node.Fields[i].Default == nil {
			r.needed[s.structure] = append(r.needed[s.structure], field)
		}
	}
	if s.structure.Category == schema.CategoryUnion {
		r.checkUnion(s, node)
	}
}

// checkUnion applies what is special about unions: one field is set, so none
// can be required and at most one can be preset.
func (r *resolver) checkUnion(s *symbol, node *ast.Struct) {
	if len(node.Fields) == 0 && !node.Partial {
		r.found.warningf(s.position, "union %s: has no fields, so there can be no value of it", s.name)
	}
	var preset *ast.Field
	for i := range s.structure.Fields {
		field := &node.Fields[i]
		s.structure.Fields[i].Requiredness = schema.RequirednessOptional
		if field.Requiredness == schema.RequirednessRequired {
			r.found.errorf(s.unit.at(field.RequirednessPlace), "union %s: field %s is required, but only one field of a union is set", s.name, field.Name.Text)
		}
		if field.Default == nil {
			continue
		}
		if preset != nil {
			r.found.errorf(s.unit.at(field.Default.Place), "union %s: field %s has a default, but field %s has one already", s.name, field.Name.Text, preset.Name.Text)
		}
		preset = field
	}
}
