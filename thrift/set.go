package thrift

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"slices"
)

// SetOf is a set without order and repetitions, which go.set = "map" makes of a field. nil is
// an empty one, and absence in an optional field.
type SetOf[T comparable] map[T]struct{}

// NewSet returns a set of the elements. It is not nil.
func NewSet[T comparable](elements ...T) SetOf[T] {
	s := make(SetOf[T], len(elements))
	for _, element := range elements {
		s[element] = struct{}{}
	}
	return s
}

// Add adds an element, and makes the set if it is nil.
func (s *SetOf[T]) Add(element T) {
	if *s == nil {
		*s = SetOf[T]{}
	}
	(*s)[element] = struct{}{}
}

// Has reports whether the element is in the set.
func (s SetOf[T]) Has(element T) bool {
	_, found := s[element]
	return found
}

// Remove takes the element out of the set.
func (s SetOf[T]) Remove(element T) { delete(s, element) }

// Len returns how many elements there are.
func (s SetOf[T]) Len() int { return len(s) }

// All returns the elements, in no order.
func (s SetOf[T]) All() iter.Seq[T] { return maps.Keys(s) }

// MarshalJSON returns a list, in the order of the texts of its elements; null for nil.
func (s SetOf[T]) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("null"), nil
	}
	texts := make([][]byte, 0, len(s))
	for element := range s {
		text, err := json.Marshal(element)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	slices.SortFunc(texts, bytes.Compare)
	return slices.Concat([]byte("["), bytes.Join(texts, []byte(",")), []byte("]")), nil
}

// UnmarshalJSON replaces the set by a list; null makes it nil.
func (s *SetOf[T]) UnmarshalJSON(text []byte) error {
	var elements []T
	if err := json.Unmarshal(text, &elements); err != nil {
		return err
	}
	if elements == nil {
		*s = nil
		return nil
	}
	*s = NewSet(elements...)
	return nil
}
