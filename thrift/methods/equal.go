package methods

import (
	"slices"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// Two values are equal if nothing that a peer could tell apart is different, with
// three exceptions: zero and negative zero are equal, NaN equals NaN, and the entries
// of a map have no order. Lists of pairs and sets do have one, as in Go: to compare
// them without would take the square of their length.

// EqualDouble reports whether a and b are the same number, or both NaN.
func EqualDouble(a, b float64) bool { return a == b || a != a && b != b }

// EqualOptDouble is EqualDouble for optional fields.
func EqualOptDouble(a, b thrift.Opt[float64]) bool {
	return a.IsSet() == b.IsSet() && EqualDouble(a.Or(0), b.Or(0))
}

// EqualOptDoubleType is EqualOptDouble for doubles that have a Go type of their own.
func EqualOptDoubleType[T ~float64](a, b thrift.Opt[T]) bool {
	return a.IsSet() == b.IsSet() && EqualDouble(float64(a.Or(0)), float64(b.Or(0)))
}

// EqualDoubles is EqualDouble for all elements of lists.
func EqualDoubles(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !EqualDouble(a[i], b[i]) {
			return false
		}
	}
	return true
}

// EqualBinaries reports whether lists of binaries are equal; nil is empty.
func EqualBinaries(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if string(a[i]) != string(b[i]) {
			return false
		}
	}
	return true
}

// EqualStructs reports whether lists of structs are equal.
func EqualStructs[T any, P interface {
	*T
	Equal(other *T) bool
}](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !P(&a[i]).Equal(&b[i]) {
			return false
		}
	}
	return true
}

// EqualList reports whether lists have the same elements. It is slices.Equal, not
// inlined: generated code has many callers.
//
//go:noinline
func EqualList[T comparable](a, b []T) bool { return slices.Equal(a, b) }

// EqualStructMap reports whether maps have the same keys with equal structs, where nil
// equals nil. NaN as a key, or in one, equals none.
func EqualStructMap[K comparable, T any, P interface {
	*T
	Equal(other *T) bool
}](a, b map[K]P) bool {
	if len(a) != len(b) {
		return false
	}
	for key, mine := range a {
		theirs, found := b[key]
		if !found || !mine.Equal(theirs) {
			return false
		}
	}
	return true
}
