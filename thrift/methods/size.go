package methods

import (
	"math"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// SizeStrings returns how many bytes the elements of a list of strings take on the
// wire.
func SizeStrings(list []string) int {
	n := 4 * len(list)
	for i := range list {
		n += len(list[i])
	}
	return n
}

// SizeOptString returns how many bytes an optional field takes on the wire that is a
// string.
//
//go:noinline
func SizeOptString(o thrift.Opt[string]) int {
	if v, set := o.Get(); set {
		return 7 + len(v)
	}
	return 0
}

// SizeBinaries is SizeStrings for binaries.
func SizeBinaries(list [][]byte) int {
	n := 4 * len(list)
	for i := range list {
		n += len(list[i])
	}
	return n
}

// SizeStructs is SizeStrings for structs.
func SizeStructs[T any, P interface {
	*T
	SizeThrift() int
}](list []T) int {
	n := 0
	for i := range list {
		n += P(&list[i]).SizeThrift()
	}
	return n
}

// Nesting counts how deep SizeThrift is within structs of types that can contain
// themselves. The zero value is at the top.
type Nesting struct{ depth int }

// Enter goes one level down and reports whether that is allowed. Once it was not,
// it never is again: a value that contains itself twice would otherwise be gone
// through 2 to the power of the depth times.
func (n *Nesting) Enter() bool {
	if n.depth++; n.depth <= limits.ValueDepth {
		return true
	}
	n.depth = math.MaxInt / 2
	return false
}

// Leave must follow if Enter has reported true.
func (n *Nesting) Leave() { n.depth-- }
