package view

import "encoding/json"

// JSON returns the JSON of the struct that a view is of.
func JSON[P any](v interface{ Struct() (P, error) }) ([]byte, error) {
	s, err := v.Struct()
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// String returns the text of the struct that a view is of, or why there is none.
func String[P interface{ String() string }](v interface{ Struct() (P, error) }) string {
	s, err := v.Struct()
	if err != nil {
		return err.Error()
	}
	return s.String()
}

// Equal reports whether two views are of structs that are equal.
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
