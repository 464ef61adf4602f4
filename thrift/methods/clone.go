package methods

import (
	"fmt"
	"maps"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// ValueDepth is how deep structs of a type that can contain itself may nest in Equal,
// Clone and Detach.
const ValueDepth = limits.ValueDepth

// FailDepth panics because a value of the named type nests deeper than ValueDepth.
func FailDepth(name string) {
	panic(fmt.Sprintf("thrift: %s cannot be copied: it contains itself, or nests more than %d levels deep", name, ValueDepth))
}

// What follows gives values memory of their own for Detach, which also copies: Clone is
// an assignment and Detach. Nil stays nil, and what is made has no spare capacity.
//
// It takes pointers and is not inlined because of the size of its callers, which are
// many: the address of a field and a call are 15 bytes of code, an assignment with its
// write barrier 60, and an inlined copy of a slice 200.

// DetachString gives a string memory of its own.
//
//go:noinline
func DetachString(v *string) { *v = strings.Clone(*v) }

// DetachOptString gives an optional string memory of its own.
//
//go:noinline
func DetachOptString(o *thrift.Opt[string]) {
	if v, set := o.Get(); set {
		o.Set(strings.Clone(v))
	}
}

// DetachOptStringType is DetachOptString for strings that have a Go type of their own.
//
//go:noinline
func DetachOptStringType[T ~string](o *thrift.Opt[T]) {
	if v, set := o.Get(); set {
		o.Set(T(strings.Clone(string(v))))
	}
}

// DetachBinary gives a binary memory of its own.
//
//go:noinline
func DetachBinary(v *[]byte) { DetachList(v) }

// DetachList gives a list memory of its own. What its elements refer to stays where it
// is.
//
//go:noinline
func DetachList[T any](list *[]T) {
	if *list == nil {
		return
	}
	c := make([]T, len(*list))
	copy(c, *list)
	*list = c
}

// DetachStrings gives a list and its strings memory of their own.
func DetachStrings(list *[]string) {
	DetachList(list)
	for i := range *list {
		DetachString(&(*list)[i])
	}
}

// DetachBinaries gives a list and its binaries memory of their own.
func DetachBinaries(list *[][]byte) {
	DetachList(list)
	for i := range *list {
		DetachBinary(&(*list)[i])
	}
}

// DetachPointer has *v point to a struct of its own; nil stays nil.
func DetachPointer[T any, P interface {
	*T
	Clone() *T
}](v *P) {
	*v = (*v).Clone()
}

// DetachStructs gives a list and its structs memory of their own.
func DetachStructs[T any, P interface {
	*T
	Detach()
}](list *[]T) {
	DetachList(list)
	for i := range *list {
		P(&(*list)[i]).Detach()
	}
}

// DetachMap gives a map memory of its own, and its keys and values as the functions do
// it. What there is no function for stays where it is.
func DetachMap[K comparable, V any](m *map[K]V, detachKey func(*K), detachValue func(*V)) {
	if *m == nil {
		return
	}
	if detachKey == nil && detachValue == nil {
		*m = maps.Clone(*m) // without hashing
		return
	}
	c := make(map[K]V, len(*m))
	var key K
	var value V
	for key, value = range *m {
		if detachKey != nil {
			detachKey(&key)
		}
		if detachValue != nil {
			detachValue(&value)
		}
		c[key] = value
	}
	*m = c
}
