package view

import (
	"encoding/json"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// The methods below make of the bytes what others make of the struct. Where they cannot
// they decode it: it may have fields and methods that somebody added, JSON tags with
// options of their own, or keep fields that its definition does not have; keys of maps
// may be NaN; and a message may nest so deep that decoding it takes less time.

// JSON returns the JSON of the struct that v is of.
func (v *View) JSON(slots []Slot, shape *Shape) ([]byte, error) {
	b, err := v.current(slots, shape)
	if err != nil {
		return nil, err
	}
	p := jsonPrinter{walk: walkOf(len(b)), b: make([]byte, 0, 2*len(b))}
	p.fields(shape.plan(), b)
	if !p.failed {
		return p.b, nil
	}
	s, err := v.decoded(slots, shape)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// FromJSON makes v a view of what a struct of the shape is that b is the JSON of: fields
// that b has not are absent, or have their defaults. Null changes nothing.
func (v *View) FromJSON(b []byte, slots []Slot, shape *Shape) error {
	if string(b) == "null" {
		return nil
	}
	s := shape.New()
	if err := json.Unmarshal(b, s); err != nil {
		return err
	}
	encoded, err := thrift.Marshal(s)
	if err != nil {
		return err
	}
	return v.Load(encoded, slots, shape)
}

// String returns the text of the struct that v is of, or why there is none.
func (v *View) String(slots []Slot, shape *Shape) string {
	b, err := v.current(slots, shape)
	if err != nil {
		return err.Error()
	}
	p := textPrinter{walk: walkOf(len(b))}
	if text := p.whole(shape.plan(), b); !p.failed {
		return text
	}
	s, err := v.decoded(slots, shape)
	if err != nil {
		return err.Error()
	}
	if text, ok := s.(interface{ String() string }); ok {
		return text.String()
	}
	return shape.Name
}

func (v *View) decoded(slots []Slot, shape *Shape) (thrift.Struct, error) {
	s := shape.New()
	return s, v.Decode(slots, shape, s)
}

// SameValues reports whether two views are of structs that are equal. It reports ok false
// if only the structs can say so.
func (v *View) SameValues(slots []Slot, other *View, others []Slot, shape *Shape) (same, ok bool) {
	a, err := v.current(slots, shape)
	if err != nil {
		return false, true
	}
	b, err := other.current(others, shape)
	if err != nil {
		return false, true
	}
	c := comparison{walkOf(len(a) + len(b))}
	same = c.structs(shape.plan(), a, b)
	return same, !c.failed
}

// Equal reports whether two views are of structs that are equal, which it decodes.
func Equal[T any, P interface {
	*T
	Equal(other *T) bool
}](a, b interface{ Struct() (P, error) }) bool {
	mine, err := a.Struct()
	if err != nil {
		return false
	}
	theirs, err := b.Struct()
	return err == nil && mine.Equal(theirs)
}
