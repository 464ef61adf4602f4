package methods

import (
	"math"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// SizeMost is what SizeThrift counts to: no message is as long, and a value whose parts
// share theirs can be longer than anybody can wait for. Beyond it the number is not exact.
const SizeMost = 1 << 30

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
		if n += P(&list[i]).SizeThrift(); n > SizeMost {
			break
		}
	}
	return n
}

// Nesting counts how deep SizeThrift is within structs of types that can contain
// themselves, and how many it has seen. The zero value is at the top.
type Nesting struct{ depth, seen int }

// Enter goes one level down and reports whether that is allowed. Once it was not,
// it never is again: a value that contains itself twice would otherwise be gone
// through 2 to the power of the depth times. One whose parts share theirs is not deep,
// and as many; each takes a byte at least, so no message of the default limit has more.
func (n *Nesting) Enter() bool {
	n.depth++
	n.seen++
	if n.depth <= limits.ValueDepth && n.seen <= limits.MessageBytes {
		return true
	}
	n.depth = math.MaxInt / 2
	return false
}

// Leave must follow if Enter has reported true.
func (n *Nesting) Leave() { n.depth-- }
