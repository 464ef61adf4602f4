package view

import (
	"sync/atomic"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// Shape is what a view has to know of a struct. Generated code has one for each view,
// and never changes or copies it.
type Shape struct {
	// Name is what errors call the struct.
	Name string
	// Fields are in the order of their ids. Where a field stands here is its number.
	Fields []Field
	// Required are the names of the fields that have to be there.
	Required []string
	// Union: the last field counts, and the others are none.
	Union bool
	// KeepsUnknown: a field that the definition does not have counts as well in a union.
	KeepsUnknown bool
	// Plain: nothing is required in it or in what it holds, so that all bytes that are a
	// struct are one of these.
	Plain bool
	// New returns a new struct, nil if only it knows what its text is.
	New func() thrift.Struct
	// OwnJSON: it has a MarshalJSON, which does what package methods does.
	OwnJSON bool
	// known is what plan has found out.
	known atomic.Pointer[plan]
}

// Field is a field of a Shape.
type Field struct {
	Key thrift.FieldKey
	// Required is the place of the name in Shape.Required, counted from 1; 0 if the
	// field may be absent.
	Required int
	// Value says what is in a container or struct, nil for others.
	Value *Type
	// Name is that of the field of the Go struct.
	Name string
	// Optional: a container or binary that is not there is another one than an empty one.
	Optional bool
	// BinaryKeys: keys of maps are base64 in JSON.
	BinaryKeys bool
}

// Type is the type of a value.
type Type struct {
	Type thrift.Type
	// Key is that of the keys of a map, Element that of what is in a container.
	Key, Element *Type
	// Struct returns the shape of a struct: a function, because shapes can contain
	// themselves.
	Struct func() *Shape
	// Plain: it is a container, and all structs in it are Plain.
	Plain bool
}

// ShapeOf returns the shape of a generated view.
func ShapeOf[V any, P interface {
	*V
	ViewShape() *Shape
}]() *Shape {
	return P(nil).ViewShape()
}

// firstID is the lowest id.
func (s *Shape) firstID() int {
	if len(s.Fields) == 0 {
		return 0
	}
	return int(s.Fields[0].Key.ID())
}

// find returns the number of a field, -1 if there is none with the type and id. next is
// where it probably is.
func (s *Shape) find(key thrift.FieldKey, next int) int {
	if next < len(s.Fields) && s.Fields[next].Key == key {
		return next
	}
	id := key.ID()
	low, high := 0, len(s.Fields)
	for low < high {
		if middle := int(uint(low+high) >> 1); s.Fields[middle].Key.ID() < id {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < len(s.Fields) && s.Fields[low].Key == key {
		return low
	}
	return -1
}

// requiredSet is which required fields have been seen, of as many as most structs have.
type requiredSet [4]uint64

func (set *requiredSet) add(number int) {
	if number--; uint(number) < 64*uint(len(set)) {
		set[number/64] |= 1 << (number % 64)
	}
}

// complete reports whether all of n have been seen.
func (set *requiredSet) complete(n int) bool {
	for word := 0; n > 0; word, n = word+1, n-64 {
		if missing := ^set[word]; n >= 64 && missing != 0 || n < 64 && missing<<(64-n) != 0 {
			return false
		}
	}
	return true
}

// scan checks the struct at p, which may nest depth levels, and returns where it ends: -1
// if it is not one that can be decoded. It fills in slots, unless there are none because
// nobody asks for the fields. repeated says that there are fields of the definition that
// do not count.
func (s *Shape) scan(b []byte, p int, slots []Slot, depth int) (end int, repeated bool) {
	if depth--; depth < 0 {
		return -1, false
	}
	var seen requiredSet
	begin, next, last := p, 0, -1
	first := s.firstID()
	for len(b)-p >= 4 {
		const header = 3
		key := thrift.FieldKey(wordAt(b, p) >> 8)
		if key.IsStop() {
			break
		}
		start := p + header
		// Most definitions number their fields without gaps. Where they come next is a worse
		// guess: encoders may write those of fixed size first.
		number := int(key.ID()) - first
		if uint(number) >= uint(len(s.Fields)) || s.Fields[number].Key != key {
			if number = s.find(key, next); number < 0 {
				if p = pass(b, start, key.Type(), depth); p < 0 {
					return -1, false
				}
				if s.KeepsUnknown && last >= 0 && slots != nil {
					slots[last], repeated = Slot{}, true
				}
				continue
			}
		}
		next = number + 1
		field := &s.Fields[number]
		fits := true
		switch key.Type() { // in which sizes are written; see passStructs
		case thrift.String:
			p = stringEnd(b, start)
		case thrift.I64, thrift.Double:
			p = start + 8
		case thrift.I32:
			p = start + 4
		default:
			p, fits = field.Value.pass(b, start, key.Type(), depth)
		}
		if uint(p) > uint(len(b)) {
			return -1, false
		}
		if !fits {
			repeated = true
			continue
		}
		if field.Required > 0 {
			seen.add(field.Required)
		}
		if number >= len(slots) {
			continue
		}
		if s.Union && last >= 0 {
			slots[last], repeated = Slot{}, true
		}
		last = number
		repeated = repeated || slots[number].end != 0
		slots[number] = Slot{start: uint32(start), end: uint32(p)}
	}
	if p >= len(b) || b[p] != 0 || len(s.Required) > 0 && !s.hasAll(b[begin:], &seen) {
		return -1, false
	}
	return p + 1, repeated
}

// hasAll reports whether no required field is missing.
func (s *Shape) hasAll(b []byte, seen *requiredSet) bool {
	if len(s.Required) <= 64*len(seen) {
		return seen.complete(len(s.Required))
	}
	// More than anybody has. They are looked for once more, with memory for all.
	return len(s.missing(b, 0)) == 0
}

// missing returns the names of the required fields that the struct at p, in which nothing
// else is wrong, does not have. It does not look into what is nested: each level would be
// gone through twice as often as the one around it.
func (s *Shape) missing(b []byte, p int) []string {
	found := make([]bool, len(s.Required)+1)
	for len(b)-p >= 4 {
		key := thrift.KeyAt(b, p)
		if key.IsStop() {
			break
		}
		start := p + 3
		if p = pass(b, start, key.Type(), mostLevels); p < 0 {
			break
		}
		if number := s.find(key, 0); number >= 0 && s.Fields[number].Value.isThere(b, start) {
			found[s.Fields[number].Required] = true
		}
	}
	var names []string
	for i, name := range s.Required {
		if !found[i+1] {
			names = append(names, name)
		}
	}
	return names
}

// isThere is fits for a value of any type.
func (v *Type) isThere(b []byte, p int) bool {
	if v == nil || v.Type == thrift.StructType {
		return true
	}
	_, fits := v.fits(b, p)
	return fits
}

// checked returns where the struct at p ends, -1 if it is not one of this shape.
func (s *Shape) checked(b []byte, p, depth int) int {
	if s.Plain {
		return passStruct(b, p, depth)
	}
	end, _ := s.scan(b, p, nil, depth)
	return end
}

// pass returns where the value of type t at p ends, -1 if it cannot be decoded. fits is
// false if it is a container of something else, which counts as not there. The receiver
// is nil for scalars and strings.
func (v *Type) pass(b []byte, p int, t thrift.Type, depth int) (end int, fits bool) {
	if v == nil {
		return pass(b, p, t, depth), true
	}
	if t == thrift.StructType {
		return v.Struct().checked(b, p, depth), true
	}
	if v.Key == nil && (v.Plain || v.Element.isSimple()) {
		t, n := startOfList(b, p, depth)
		if n < 0 {
			return -1, true
		}
		return passAll(b, p+listHeader, n, t, depth-1), n == 0 || t == v.Element.Type
	}
	if end, fits = v.fits(b, p); !fits || end < 0 || !v.holdsChecked() {
		return pass(b, p, t, depth), fits
	}
	if depth--; depth < 0 {
		return -1, true
	}
	n := int(thrift.I32At(b, end-4))
	if n != 0 && thriftwire.CheckCount(t, thrift.Type(b[p]), thrift.Type(b[p+1]), n, p, len(b)-end) != nil {
		return -1, true
	}
	for p = end; n > 0 && p >= 0; n-- {
		if v.Key != nil {
			p, _ = v.Key.passInner(b, p, depth)
		}
		if p >= 0 {
			p, _ = v.Element.passInner(b, p, depth)
		}
	}
	return p, true
}

// passInner is pass for what is in a container.
func (v *Type) passInner(b []byte, p, depth int) (end int, fits bool) {
	if v.isSimple() {
		return pass(b, p, v.Type, depth), true
	}
	return v.pass(b, p, v.Type, depth)
}

// isSimple reports whether it is the type of a scalar or string.
func (v *Type) isSimple() bool { return v.Key == nil && v.Element == nil && v.Struct == nil }

// fits reports whether a container at p has elements of the right types, and where its
// header ends, -1 if it is not there. Empty ones fit always.
func (v *Type) fits(b []byte, p int) (end int, fits bool) {
	size := v.Type.LeastSize()
	if len(b)-p < size {
		return -1, true
	}
	end = p + size
	switch {
	case thrift.I32At(b, end-4) == 0:
		return end, true
	case v.Key != nil:
		return end, thrift.Type(b[p]) == v.Key.Type && thrift.Type(b[p+1]) == v.Element.Type
	}
	return end, thrift.Type(b[p]) == v.Element.Type
}

// holdsChecked reports whether there may be structs in a value that cannot be passed over
// without looking at their fields.
func (v *Type) holdsChecked() bool {
	for ; v != nil && !v.Plain; v = v.Element {
		if v.Struct != nil && !v.Struct().Plain || v.Key != nil && v.Key.holdsChecked() {
			return true
		}
	}
	return false
}

// --- what is wrong with a message ---

// viewCheck reads a struct without keeping anything of it: as generated code does, with
// the same errors.
type viewCheck struct{ shape *Shape }

var _ thrift.Struct = viewCheck{}

func (c viewCheck) WriteThrift(_ *thrift.Writer, b []byte) []byte { return b }

func (c viewCheck) ReadThrift(r *thrift.Reader, p int) int { return c.shape.check(r, p) }

// explain returns the error for bytes that index refuses.
func (s *Shape) explain(b []byte) error {
	if err := thrift.Unmarshal(b, viewCheck{s}); err != nil {
		return err
	}
	return disagreement(0)
}

// check is ReadThrift of viewCheck.
func (s *Shape) check(r *thrift.Reader, p int) int {
	b := r.BeginStruct()
	var field thrift.FieldKey
	begin := p
	for len(b)-p >= 4 {
		if field = thrift.KeyAt(b, p); field.IsStop() {
			break
		}
		if number := s.find(field, 0); number >= 0 {
			p = s.Fields[number].Value.check(r, p+3, field.Type())
		} else {
			p = r.Skip(p, field)
		}
	}
	if !r.Failed() && p < len(b) && len(s.Required) > 0 {
		if missing := s.missing(b, begin); len(missing) > 0 {
			p, field = r.FailMissing(p, missing...), 0
		}
	}
	return r.EndStruct(p, field, s.Name)
}

// check reads a value of type t; see Type.pass.
func (v *Type) check(r *thrift.Reader, p int, t thrift.Type) int {
	switch t {
	case thrift.StructType:
		return v.Struct().check(r, p)
	case thrift.String:
		return r.PassString(p)
	case thrift.Map:
		n, p, ok := r.BeginMap(p, v.Key.Type, v.Element.Type)
		if !ok {
			return p
		}
		for ; n > 0 && !r.Failed(); n-- {
			p = v.Key.check(r, p, v.Key.Type)
			p = v.Element.check(r, p, v.Element.Type)
		}
		return r.EndMap(p)
	case thrift.List, thrift.Set:
		n, p, ok := r.BeginList(p, v.Element.Type)
		if !ok {
			return p
		}
		for ; n > 0 && !r.Failed(); n-- {
			p = v.Element.check(r, p, v.Element.Type)
		}
		return r.EndList(p)
	}
	if size := t.FixedSize(); len(r.Bytes())-p >= size {
		return p + size
	}
	return r.Short(p, t)
}
