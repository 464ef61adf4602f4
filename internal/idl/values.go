package idl

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// resolveValues checks and converts all constants and defaults.
func (r *resolver) resolveValues() {
	for s := range r.symbols {
		if s.constant != nil {
			r.resolveConstant(s, 0)
		}
	}
	for _, pending := range r.defaults {
		if r.exhausted() {
			return
		}
		pending.field.Default, _ = r.value(pending.unit, pending.node, pending.field.Type, 0)
	}
	r.compareStructs()
}

// resolveConstant finds out the value of a constant, once. depth counts the
// values around the use that asks.
func (r *resolver) resolveConstant(s *symbol, depth int) {
	if s.state != stateNew {
		return
	}
	s.state = stateResolving
	r.resolving = append(r.resolving, s)
	s.constant.Value, s.extent = r.value(s.unit, s.node.(*ast.Constant).Value, s.constant.Type, depth)
	r.resolving = r.resolving[:len(r.resolving)-1]
	s.state = stateDone
}

// value resolves an expression for a type. It returns nil if that failed and
// was reported. depth counts the values around it.
func (r *resolver) value(u *unit, node *ast.Value, want *schema.Type, depth int) (*schema.Value, extent) {
	position := u.at(node.Place)
	r.spend(1, position)
	if isInvalid(want) || r.exhausted() {
		return nil, extent{}
	}
	if depth > limits.IDLTypeDepth {
		r.found.errorf(position, "value: nested too deeply once constants are written out (limit %d)", limits.IDLTypeDepth)
		return nil, extent{}
	}
	single := extent{height: 1, size: 1}
	if text := len(node.Text) / limits.IDLTextBytes; node.Kind == ast.ValueText && text > 0 {
		r.spend(text, position)
		single.size += text
	}
	switch node.Kind {
	case ast.ValueInt:
		return r.convert(&schema.Value{Kind: schema.ValueInt, Int: node.Int}, want, position), single
	case ast.ValueDouble:
		return r.convert(&schema.Value{Kind: schema.ValueDouble, Double: node.Double}, want, position), single
	case ast.ValueText:
		return r.convert(&schema.Value{Kind: schema.ValueString, String: node.Text}, want, position), single
	case ast.ValueName:
		return r.namedValue(u, node, want, depth)
	default:
		return r.bracedValue(u, node, want, depth)
	}
}

// bracedValue resolves a list or map. Other compilers do not tell them apart
// when they are empty.
func (r *resolver) bracedValue(u *unit, node *ast.Value, want *schema.Type, depth int) (*schema.Value, extent) {
	position, kind := u.at(node.Place), schema.ValueMap
	if node.Kind == ast.ValueList {
		kind = schema.ValueList
	}
	empty := len(node.Items) == 0
	switch isList := kind == schema.ValueList; {
	case want.Kind == schema.KindStruct && !isList:
		return r.structValue(u, node, want, depth)
	case want.Kind == schema.KindMap && (!isList || empty):
		if isList {
			r.found.warningf(position, "value: an empty map, expected {} for it")
		}
		return r.mapValue(u, node, want, depth)
	case (want.Kind == schema.KindList || want.Kind == schema.KindSet) && (isList || empty):
		if !isList {
			r.found.warningf(position, "value: an empty %s, expected [] for it", want.Kind)
		}
		return r.listValue(u, node, want, depth)
	}
	return r.mismatch(position, want, &schema.Value{Kind: kind}), extent{}
}

// namedValue resolves true, false, a constant or a value of an enum.
func (r *resolver) namedValue(u *unit, node *ast.Value, want *schema.Type, depth int) (*schema.Value, extent) {
	position, single := u.at(node.Place), extent{height: 1, size: 1}
	if node.Text == "true" || node.Text == "false" {
		return r.convert(&schema.Value{Kind: schema.ValueBool, Bool: node.Text == "true"}, want, position), single
	}
	name := ast.Name{Text: node.Text, Place: node.Place}
	enum, value := r.enumValue(u, name)
	if enum != nil && r.enums[enum].partial {
		return nil, extent{}
	}
	if value != nil {
		return r.convert(&schema.Value{Kind: schema.ValueEnum, Enum: value, Int: int64(value.Number)}, want, position), single
	}
	s := r.find(u, name)
	if s != nil && s.constant != nil {
		return r.constantValue(s, want, position, depth)
	}
	if value := r.wantedValue(want, node.Text); value != nil && s == nil && !r.lost(u, node.Text) {
		full := value.Enum.Name + "." + value.Name
		r.found.warningf(position, "value %s: read as %s, as Apache Thrift does; other compilers need the name of the enum", clip(node.Text), full)
		return r.convert(&schema.Value{Kind: schema.ValueEnum, Enum: value, Int: int64(value.Number)}, want, position), single
	}
	switch {
	case enum != nil:
		r.found.errorf(position, "value %s: enum %s has no such value%s", node.Text, enum.Name, enumHint(enum, node.Text))
	case s != nil:
		r.found.errorf(position, "value %s: expected a value, found %s %s", node.Text, s.what, s.name)
	case r.lost(u, node.Text) || r.lostOwner(u, name):
	default:
		hint := r.hint(u, node.Text)
		if hint == "" && want.Enum != nil && !r.enums[want.Enum].partial {
			hint = enumHint(want.Enum, node.Text)
		}
		r.found.errorf(position, "value %s: not declared%s", node.Text, hint)
	}
	return nil, extent{}
}

// wantedValue returns the value of an enum that is asked for whose name is the
// last part of what a definition says. To Apache Thrift the rest does not
// matter where an enum is wanted.
func (r *resolver) wantedValue(want *schema.Type, text string) *schema.EnumValue {
	index := r.enums[want.Enum]
	if index == nil || index.partial {
		return nil
	}
	_, member := splitLast(text)
	return index.byName[member]
}

// enumValue returns what Enum.VALUE or base.Enum.VALUE names. The enum may exist
// without the value.
func (r *resolver) enumValue(u *unit, name ast.Name) (*schema.Enum, *schema.EnumValue) {
	owner, member := splitLast(name.Text)
	s := r.find(u, ast.Name{Text: owner, Place: name.Place})
	if s == nil {
		return nil, nil
	}
	enum := s.enum
	if s.typedef != nil && s.typedef.Type != nil {
		enum = s.typedef.Type.Enum
	}
	if enum == nil {
		return nil, nil
	}
	return enum, r.enums[enum].byName[member]
}

// lostOwner is lost for what a value may be the member of.
func (r *resolver) lostOwner(u *unit, name ast.Name) bool {
	owner, _ := splitLast(name.Text)
	if owner == "" {
		return false
	}
	s := r.find(u, ast.Name{Text: owner, Place: name.Place})
	if s == nil {
		return r.lost(u, owner)
	}
	return s.node.Declared().Partial || s.typedef != nil && isInvalid(s.typedef.Type)
}

// constantValue copies the value of a constant, converted if it has to be.
func (r *resolver) constantValue(s *symbol, want *schema.Type, position schema.Position, depth int) (*schema.Value, extent) {
	r.resolveConstant(s, depth+1)
	if s.state == stateResolving {
		r.found.errorf(position, "const %s: needs its own value (%s)", s.name, r.path(s))
		return nil, extent{}
	}
	value := s.constant.Value
	if value == nil {
		return nil, extent{}
	}
	if depth+s.extent.height > limits.IDLTypeDepth {
		r.found.errorf(position, "value %s: nested too deeply once constants are written out (limit %d)", s.name, limits.IDLTypeDepth)
		return nil, extent{}
	}
	r.spend(s.extent.size, position)
	same := r.sameType(want, s.constant.Type)
	if r.exhausted() {
		return nil, extent{} // which was reported; comparing may not have come to its end
	}
	if !same {
		if value.Kind >= schema.ValueList {
			r.found.errorf(position, "value %s: expected %s, found %s", s.name, typeName(want), typeName(s.constant.Type))
			return nil, extent{}
		}
		return r.convert(value, want, position), s.extent
	}
	named := *value
	named.Type, named.Position, named.Constant = want, position, s.constant
	return &named, extent{height: s.extent.height + 1, size: s.extent.size}
}

// sameType says that two types are the same on the wire and in Go. Comparing
// costs as much as the types are large, and is paid for.
func (r *resolver) sameType(a, b *schema.Type) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	r.spend(1, a.Position)
	return a.Kind == b.Kind && a.Enum == b.Enum && a.Struct == b.Struct && !r.exhausted() &&
		r.sameType(a.Key, b.Key) && r.sameType(a.Element, b.Element)
}

func (r *resolver) listValue(u *unit, node *ast.Value, want *schema.Type, depth int) (*schema.Value, extent) {
	value := &schema.Value{Kind: schema.ValueList, Type: want, Position: u.at(node.Place)}
	size := extent{height: 1, size: 1}
	var seen valueSet
	if want.Kind == schema.KindSet && holdsStruct(want.Element) {
		r.structKeyed = append(r.structKeyed, value)
	}
	for i := range node.Items {
		item, inner := r.value(u, &node.Items[i], want.Element, depth+1)
		if item == nil {
			continue
		}
		if want.Kind == schema.KindSet && !holdsStruct(want.Element) && !seen.add(item) {
			r.found.warningf(item.Position, setHolds)
			continue
		}
		value.List, size = append(value.List, item), size.around(inner)
	}
	return value, size
}

func (r *resolver) mapValue(u *unit, node *ast.Value, want *schema.Type, depth int) (*schema.Value, extent) {
	value := &schema.Value{Kind: schema.ValueMap, Type: want, Position: u.at(node.Place)}
	size := extent{height: 1, size: 1}
	var seen valueSet
	later := holdsStruct(want.Key)
	if later {
		r.structKeyed = append(r.structKeyed, value)
	}
	for pair := range slices.Chunk(node.Items, 2) {
		key, keySize := r.value(u, &pair[0], want.Key, depth+1)
		element, elementSize := r.value(u, &pair[1], want.Element, depth+1)
		if key == nil || element == nil {
			continue
		}
		if !later && !seen.add(key) {
			r.found.errorf(key.Position, mapHolds)
		}
		value.Entries = append(value.Entries, schema.ValueEntry{Key: key, Value: element})
		size = size.around(keySize).around(elementSize)
	}
	return value, size
}

func (r *resolver) structValue(u *unit, node *ast.Value, want *schema.Type, depth int) (*schema.Value, extent) {
	value := &schema.Value{Kind: schema.ValueStruct, Type: want, Position: u.at(node.Place)}
	size := extent{height: 1, size: 1}
	structure := want.Struct
	seen := make(map[*schema.Field]bool)
	for pair := range slices.Chunk(node.Items, 2) {
		name, position := &pair[0], u.at(pair[0].Place)
		field := r.fields[structure][name.Text]
		switch {
		case name.Kind != ast.ValueText:
			r.found.errorf(position, "value of %s: expected the name of a field as a string", typeName(want))
			continue
		case field == nil && r.partial[structure]:
			continue
		case field == nil:
			r.found.errorf(position, "value of %s: there is no field %q", typeName(want), clip(name.Text))
			continue
		case seen[field]:
			r.found.errorf(position, "value of %s: field %s is given twice", typeName(want), field.Name)
			continue
		}
		seen[field] = true
		if member, inner := r.value(u, &pair[1], field.Type, depth+1); member != nil {
			value.Fields = append(value.Fields, schema.ValueField{Field: field, Value: member})
			size = size.around(inner)
		}
	}
	if structure.Category == schema.CategoryUnion {
		if len(seen) != 1 && !r.partial[structure] {
			r.found.errorf(value.Position, "value of %s: expected exactly one field, found %d", typeName(want), len(seen))
		}
		return value, size
	}
	for _, field := range r.needed[structure] {
		if !seen[field] {
			r.found.errorf(value.Position, "value of %s: required field %s is missing", typeName(want), field.Name)
		}
	}
	return value, size
}

// convert returns a scalar value as one of another type, nil if that is
// impossible.
func (r *resolver) convert(value *schema.Value, want *schema.Type, position schema.Position) *schema.Value {
	converted := &schema.Value{Type: want, Position: position}
	isInt := value.Kind == schema.ValueInt
	switch want.Kind {
	case schema.KindBool:
		if value.Kind != schema.ValueBool && !(isInt && (value.Int == 0 || value.Int == 1)) {
			return r.mismatch(position, want, value)
		}
		converted.Kind, converted.Bool = schema.ValueBool, value.Bool || value.Int == 1
	case schema.KindI8, schema.KindI16, schema.KindI32, schema.KindI64:
		if !isInt && value.Kind != schema.ValueEnum {
			return r.mismatch(position, want, value)
		}
		converted.Kind, converted.Int = schema.ValueInt, value.Int
		if !fits(value.Int, want.Kind) {
			return r.outOfRange(position, want, value.Int)
		}
	case schema.KindDouble:
		if !isInt && value.Kind != schema.ValueDouble {
			return r.mismatch(position, want, value)
		}
		converted.Kind, converted.Double = schema.ValueDouble, value.Double
		if isInt {
			converted.Double = float64(value.Int)
		}
	case schema.KindString, schema.KindBinary, schema.KindUUID:
		if value.Kind != schema.ValueString {
			return r.mismatch(position, want, value)
		}
		return r.convertString(value.String, converted)
	case schema.KindEnum:
		return r.convertEnum(value, converted)
	default:
		return r.mismatch(position, want, value)
	}
	return converted
}

func (r *resolver) convertString(text string, converted *schema.Value) *schema.Value {
	converted.Kind, converted.String = schema.ValueString, text
	switch converted.Type.Kind {
	case schema.KindString:
		if !utf8.ValidString(text) {
			r.found.errorf(converted.Position, "string: is not UTF-8, expected binary as its type")
			return nil
		}
	case schema.KindUUID:
		converted.String = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}"))
		if !isUUID(converted.String) {
			r.found.errorf(converted.Position, "uuid: expected the form 01234567-89ab-cdef-0123-456789abcdef, found %q", clip(text))
			return nil
		}
	}
	return converted
}

func isUUID(text string) bool {
	const pattern = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	if len(text) != len(pattern) {
		return false
	}
	for i := range len(pattern) {
		if pattern[i] == '-' && text[i] != '-' {
			return false
		}
		if pattern[i] == 'x' && !strings.Contains("0123456789abcdef", text[i:i+1]) {
			return false
		}
	}
	return true
}

// convertEnum accepts a name or a number of the enum. Enums are open, so a
// number without a name is only suspicious.
func (r *resolver) convertEnum(value, converted *schema.Value) *schema.Value {
	want := converted.Type
	converted.Kind, converted.Int, converted.Enum = schema.ValueEnum, value.Int, value.Enum
	switch {
	case value.Kind == schema.ValueEnum && (value.Enum == nil || value.Enum.Enum == want.Enum):
	case value.Kind == schema.ValueInt && fits(value.Int, schema.KindI32):
		index := r.enums[want.Enum]
		if index.partial {
			return nil
		}
		if converted.Enum = index.byNumber[int32(value.Int)]; converted.Enum == nil {
			r.found.warningf(converted.Position, "value %d: has no name in enum %s", value.Int, want.Enum.Name)
		}
	case value.Kind == schema.ValueInt:
		return r.outOfRange(converted.Position, want, value.Int)
	default:
		return r.mismatch(converted.Position, want, value)
	}
	return converted
}

func fits(number int64, kind schema.Kind) bool {
	switch kind {
	case schema.KindI8:
		return number == int64(int8(number))
	case schema.KindI16:
		return number == int64(int16(number))
	case schema.KindI32:
		return number == int64(int32(number))
	default:
		return true
	}
}

func (r *resolver) outOfRange(position schema.Position, want *schema.Type, number int64) *schema.Value {
	kind := want.Kind
	if kind == schema.KindEnum {
		kind = schema.KindI32
	}
	bits := 8
	switch kind {
	case schema.KindI16:
		bits = 16
	case schema.KindI32:
		bits = 32
	}
	half := int64(1) << (bits - 1)
	r.found.errorf(position, "value %d: does not fit %s, expected %d to %d", number, typeName(want), -half, half-1)
	return nil
}

func (r *resolver) mismatch(position schema.Position, want *schema.Type, got *schema.Value) *schema.Value {
	found := "a string"
	switch got.Kind {
	case schema.ValueBool:
		found = strconv.FormatBool(got.Bool)
	case schema.ValueInt:
		found = "the number " + strconv.FormatInt(got.Int, 10)
	case schema.ValueDouble:
		found = "a floating point number"
	case schema.ValueEnum:
		found = "a value of another enum"
	case schema.ValueList:
		found = "a list"
	case schema.ValueMap:
		found = "a map"
	case schema.ValueStruct:
		found = "a struct"
	}
	r.found.errorf(position, "value: expected %s, found %s", typeName(want), found)
	return nil
}

// typeName names a type in messages.
func typeName(t *schema.Type) string { return typeNameIn(t, 0) }

// typeNameIn leaves out what is nested deeper than a message can show.
func typeNameIn(t *schema.Type, depth int) string {
	switch {
	case depth > 2:
		return "..."
	case t.Typedef != nil:
		return t.Typedef.Name
	case t.Enum != nil:
		return "enum " + t.Enum.Name
	case t.Struct != nil:
		return t.Struct.Category.String() + " " + t.Struct.Name
	case t.Key != nil:
		return "map<" + typeNameIn(t.Key, depth+1) + ", " + typeNameIn(t.Element, depth+1) + ">"
	case t.Element != nil:
		return t.Kind.String() + "<" + typeNameIn(t.Element, depth+1) + ">"
	default:
		return t.Kind.String()
	}
}
