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

// fieldList is the place that fields are in: a struct, the arguments or the
// exceptions of a method.
type fieldList struct {
	unit *unit
	what string // for messages: "struct Order"
	// result says that the fields share their numbers with a method's result,
	// which has id 0.
	result bool
	// partial says that there are more fields, which could not be read.
	partial bool
	byName  map[string]*schema.Field
	byID    map[int16]*schema.Field
	// idMax is the largest id so far, proposed ones included.
	idMax int16
}

func (r *resolver) resolveFields(list *fieldList, nodes []ast.Field) []*schema.Field {
	if len(nodes) == 0 {
		return nil
	}
	list.byName = make(map[string]*schema.Field, len(nodes))
	list.byID = make(map[int16]*schema.Field, len(nodes))
	for i := range nodes {
		if id := nodes[i].ID; nodes[i].HasID && id <= math.MaxInt16 {
			list.idMax = max(list.idMax, int16(max(id, 0)))
		}
	}
	fields := make([]*schema.Field, 0, len(nodes))
	for i := range nodes {
		if r.exhausted() {
			break
		}
		fields = append(fields, r.resolveField(list, &nodes[i]))
	}
	return fields
}

func (r *resolver) resolveField(list *fieldList, node *ast.Field) *schema.Field {
	u := list.unit
	field := &schema.Field{
		Name: node.Name.Text, Doc: node.Doc, Requiredness: node.Requiredness,
		Annotations: r.annotations(u, node.Annotations), Position: u.at(node.Name.Place),
	}
	field.Type, _ = r.typeOf(u, node.Type, 0)
	if first := list.byName[field.Name]; first != nil {
		r.found.errorf(field.Position, "%s: field name %s is taken at %s", list.what, field.Name, first.Position)
	} else {
		list.byName[field.Name] = field
	}
	if r.checkID(list, node) {
		field.ID = int16(node.ID)
		if first := list.byID[field.ID]; first != nil {
			r.found.errorf(u.at(node.IDPlace), "%s: field id %d is taken by %s at %s", list.what, field.ID, first.Name, first.Position)
		} else {
			list.byID[field.ID] = field
		}
	}
	if node.Default != nil {
		r.defaults = append(r.defaults, pendingDefault{unit: u, field: field, node: node.Default})
	}
	return field
}

// checkID says whether the id of a field can be used.
func (r *resolver) checkID(list *fieldList, node *ast.Field) bool {
	name := node.Name.Text
	if !node.HasID {
		position := list.unit.at(node.Name.Place)
		if list.idMax == math.MaxInt16 {
			r.found.errorf(position, "%s: field %s has no id, and none is left (limit %d)", list.what, name, math.MaxInt16)
			return false
		}
		if list.partial {
			r.found.errorf(position, "%s: field %s has no id", list.what, name)
			return false
		}
		list.idMax++
		r.found.errorf(position, "%s: field %s has no id, expected for example \"%d:\" in front of it", list.what, name, list.idMax)
		return false
	}
	position := list.unit.at(node.IDPlace)
	switch {
	case node.ID > math.MaxInt16 || node.ID < math.MinInt16:
		r.found.errorf(position, "%s: id of field %s does not fit i16 (got %d), expected 1 to %d", list.what, name, node.ID, math.MaxInt16)
	case node.ID == 0 && list.result:
		r.found.errorf(position, "%s: id of field %s is 0, which is the id of the result", list.what, name)
	case node.ID <= 0 && !r.options.AllowNegativeIDs:
		r.found.errorf(position, "%s: id of field %s is not positive (got %d), expected 1 to %d; definitions that need it can be loaded with negative ids allowed", list.what, name, node.ID, math.MaxInt16)
	default:
		return true
	}
	return false
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
