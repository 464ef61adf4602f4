package idl

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// What is said of values that are there twice.
const (
	setHolds = "set: holds this element already"
	mapHolds = "map: holds this key already"
)

// compareStructs reports keys and elements that are equal although they are not written
// alike: a field that is not given has its default.
func (r *resolver) compareStructs() {
	presets := presets{}
	for _, value := range r.structKeyed {
		seen := valueSet{presets: presets}
		for _, entry := range value.Entries {
			if !seen.add(entry.Key) {
				r.found.errorf(entry.Key.Position, mapHolds)
			}
		}
		value.List = slices.DeleteFunc(value.List, func(item *schema.Value) bool {
			again := !seen.add(item)
			if again {
				r.found.warningf(item.Position, setHolds)
			}
			return again
		})
	}
}

// holdsStruct says that there are structs in values of a type.
func holdsStruct(t *schema.Type) bool {
	return t != nil && (t.Kind == schema.KindStruct || holdsStruct(t.Key) || holdsStruct(t.Element))
}

// valueSet holds values of one type, as what appendKey makes of them.
type valueSet struct {
	keys    map[string]bool
	presets presets
}

// add returns false if an equal value was added before.
func (s *valueSet) add(value *schema.Value) bool {
	key := string(s.presets.appendKey(nil, value))
	if s.keys[key] {
		return false
	}
	if s.keys == nil {
		s.keys = map[string]bool{}
	}
	s.keys[key] = true
	return true
}

// presets are the keys of what fields hold that are not given, empty for those of which a
// value that is given differs from none.
type presets map[*schema.Field]string

// of returns the key of one.
func (p presets) of(field *schema.Field) string {
	key, known := p[field]
	if known {
		return key
	}
	p[field] = "" // of defaults that lead back here, which are an error
	switch {
	case field.Requiredness == schema.RequirednessOptional: // where a given one is set
	case field.Default != nil:
		key = string(p.appendKey(nil, field.Default))
	default:
		key = zeroKey(field.Type.Kind)
	}
	p[field] = key
	return key
}

// zeroKey is the key of the zero value of a type. Of structs there is none: one that is
// absent may be nil.
func zeroKey(kind schema.Kind) string {
	zero := &schema.Value{}
	switch kind {
	case schema.KindBool:
		zero.Kind = schema.ValueBool
	case schema.KindI8, schema.KindI16, schema.KindI32, schema.KindI64, schema.KindEnum:
		zero.Kind = schema.ValueInt
	case schema.KindDouble:
		zero.Kind = schema.ValueDouble
	case schema.KindString, schema.KindBinary:
		zero.Kind = schema.ValueString
	case schema.KindList, schema.KindSet, schema.KindMap:
		zero.Kind = schema.ValueList
	default:
		return ""
	}
	return string(presets(nil).appendKey(nil, zero))
}

// appendKey appends bytes that are equal for equal values of one type. Fields that have
// what they would have without being given are left out: what a struct costs is then
// what is written of it.
func (p presets) appendKey(b []byte, value *schema.Value) []byte {
	switch value.Kind {
	case schema.ValueBool:
		b = strconv.AppendBool(b, value.Bool)
	case schema.ValueInt, schema.ValueEnum:
		b = strconv.AppendInt(b, value.Int, 10)
	case schema.ValueDouble:
		b = strconv.AppendUint(b, math.Float64bits(value.Double+0), 16) // -0 equals 0
	case schema.ValueString:
		b = strconv.AppendInt(b, int64(len(value.String)), 10)
		b = append(append(b, ':'), value.String...)
	}
	b = append(b, '(')
	for _, item := range value.List {
		b = p.appendKey(b, item)
	}
	for _, entry := range value.Entries {
		b = p.appendKey(p.appendKey(b, entry.Key), entry.Value)
	}
	members := value.Fields
	if len(members) > 1 {
		members = slices.SortedFunc(slices.Values(members), func(x, y schema.ValueField) int { return cmp.Compare(x.Field.ID, y.Field.ID) })
	}
	for _, member := range members {
		before := len(b)
		b = append(strconv.AppendInt(b, int64(member.Field.ID), 10), '=')
		start := len(b)
		b = p.appendKey(b, member.Value)
		if value.Type.Struct.Category != schema.CategoryUnion && string(b[start:]) == p.of(member.Field) {
			b = b[:before]
		}
	}
	return append(b, ')')
}
