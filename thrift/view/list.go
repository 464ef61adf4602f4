package view

import (
	"fmt"
	"iter"
	"slices"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/byteswap"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// number is what the elements of lists without pointers are.
type number interface {
	~bool | ~int8 | ~int16 | ~int32 | ~int64 | ~float64 | ~[16]byte
}

// Numbers is a list or set of numbers, bools, enums or uuids in a message. Like all
// parts of views it refers to the bytes, and is valid as long as it is used.
type Numbers[T number] struct {
	// wire are the elements, unless some of them were changed.
	wire    []byte
	changed *viewElements
}

// NumbersOf returns the list or set in b of elements of type t, which T is in Go. It
// is empty if b has other elements, or is nil.
func NumbersOf[T number](b []byte, t thrift.Type) Numbers[T] {
	wire, n := listBody(b, t)
	if size := n * t.FixedSize(); size <= len(wire) {
		return Numbers[T]{wire: wire[:size:size]}
	}
	return Numbers[T]{}
}

// listHeader is how many bytes there are in front of the elements of a list.
const listHeader = 5

// listBody returns the elements of a list and how many there are.
func listBody(b []byte, t thrift.Type) (wire []byte, n int) {
	if len(b) < listHeader || thrift.Type(b[0]) != t {
		return nil, 0
	}
	// No element is shorter than a byte: there are fewer if somebody has changed the bytes.
	return b[listHeader:], min(max(0, int(thrift.I32At(b, 1))), len(b)-listHeader)
}

// Len returns how many elements there are.
func (l Numbers[T]) Len() int {
	if l.changed != nil {
		return l.changed.length()
	}
	return len(l.wire) / int(unsafe.Sizeof(*new(T)))
}

func noElement(i, n int) string {
	return fmt.Sprintf("thrift: index %d of a list of %d elements", i, n)
}

// At returns element i. It panics if there is none.
func (l Numbers[T]) At(i int) T {
	var v T
	size := int(unsafe.Sizeof(v))
	if uint(i) >= uint(len(l.wire)/size) {
		return l.element(i).At(0) // i*size may be that of another
	}
	switch wire := l.wire[i*size : (i+1)*size]; size {
	case 1:
		// A Go bool never holds anything but 0 or 1.
		if _, isBool := any(v).(bool); isBool {
			*(*bool)(unsafe.Pointer(&v)) = wire[0] == 1
		} else {
			*(*byte)(unsafe.Pointer(&v)) = wire[0]
		}
	case 2:
		*(*int16)(unsafe.Pointer(&v)) = thrift.I16At(wire, 0)
	case 4:
		*(*int32)(unsafe.Pointer(&v)) = thrift.I32At(wire, 0)
	case 8:
		*(*int64)(unsafe.Pointer(&v)) = thrift.I64At(wire, 0)
	default:
		*(*thrift.UUID)(unsafe.Pointer(&v)) = thrift.UUID(wire)
	}
	return v
}

// All returns the elements with their indexes.
func (l Numbers[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		wire := l.wire
		if l.changed != nil {
			wire = l.whole().wire
		}
		l := Numbers[T]{wire: wire}
		for i := range l.Len() {
			if !yield(i, l.At(i)) {
				return
			}
		}
	}
}

// AppendTo returns list with the elements behind it. It converts many at once.
func (l Numbers[T]) AppendTo(list []T) []T {
	l = l.whole()
	n := l.Len()
	if n == 0 {
		return list
	}
	list = slices.Grow(list, n)
	added := list[len(list) : len(list)+n]
	to := unsafe.Pointer(unsafe.SliceData(added))
	switch int(unsafe.Sizeof(added[0])) {
	case 2:
		byteswap.Get16(unsafe.Slice((*int16)(to), n), l.wire)
	case 4:
		byteswap.Get32(unsafe.Slice((*int32)(to), n), l.wire)
	case 8:
		byteswap.Get64(unsafe.Slice((*int64)(to), n), l.wire)
	default:
		for i := range added {
			added[i] = l.At(i)
		}
	}
	return list[:len(list)+n]
}

// List is a list or set of values of different sizes in a message.
type List[E any] struct {
	wire []byte
	n    int
	t    thrift.Type
	// read returns the value that bytes begin with, and how long it is.
	read func(b []byte) (E, int)
	// changed is the list instead of wire if elements of it were changed.
	changed *viewElements
}

// ListOf returns the list or set in b of elements of type t; see NumbersOf. read
// returns the element that bytes begin with, and how long it is.
func ListOf[E any](b []byte, t thrift.Type, read func(b []byte) (E, int)) List[E] {
	wire, n := listBody(b, t)
	return List[E]{wire: wire, n: n, t: t, read: read}
}

// Len returns how many elements there are.
func (l List[E]) Len() int { return l.n }

// At returns element i, for which it passes over those before. It panics if there is none.
func (l List[E]) At(i int) E {
	if l.changed != nil {
		if b := l.changed.at(i, nil); b != nil {
			element, _ := l.read(b)
			return element
		}
	} else if uint(i) < uint(l.n) {
		if p := passAll(l.wire, 0, i, l.t, mostLevels); p >= 0 {
			element, _ := l.read(l.wire[p:])
			return element
		}
	}
	panic(noElement(i, l.n))
}

// All returns the elements with their indexes.
func (l List[E]) All() iter.Seq2[int, E] {
	return func(yield func(int, E) bool) {
		b, n := l.wire, l.n
		if l.changed != nil {
			b, n = l.changed.body()
		}
		for i := range n {
			element, size := l.read(b)
			if !yield(i, element) {
				return
			}
			b = b[min(size, len(b)):]
		}
	}
}

// AppendTo returns list with the elements behind it.
func (l List[E]) AppendTo(list []E) []E {
	list = slices.Grow(list, l.n)
	for _, element := range l.All() {
		list = append(list, element)
	}
	return list
}

// Map is a map in a message. Its entries have the order of the message, and keys may
// be there twice: a Go map holds the last one.
type Map[K, V any] struct {
	wire  []byte
	n     int
	key   func(b []byte) (K, int)
	value func(b []byte) (V, int)
}

// MapOf returns the map in b with keys and values of the types; see ListOf.
func MapOf[K, V any](b []byte, keyType, valueType thrift.Type, key func(b []byte) (K, int), value func(b []byte) (V, int)) Map[K, V] {
	const header = 6
	m := Map[K, V]{key: key, value: value}
	if len(b) >= header && thrift.Type(b[0]) == keyType && thrift.Type(b[1]) == valueType {
		m.wire, m.n = b[header:], min(max(0, int(thrift.I32At(b, 2))), len(b)-header)
	}
	return m
}

// Len returns how many entries there are.
func (m Map[K, V]) Len() int { return m.n }

// All returns the entries.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		b := m.wire
		for range m.n {
			key, size := m.key(b)
			b = b[min(size, len(b)):]
			value, size := m.value(b)
			if !yield(key, value) {
				return
			}
			b = b[min(size, len(b)):]
		}
	}
}

// Lookup returns the value of a key, for which it goes through all of the map: of keys
// that are there twice the last one counts.
func Lookup[K comparable, V any](m Map[K, V], key K) (value V, found bool) {
	for k, v := range m.All() {
		if k == key {
			value, found = v, true
		}
	}
	return value, found
}

// The functions below return the value that b begins with, and how long it is. If b is
// shorter, because somebody has changed the bytes, that is zero.

// Number reads a value of fixed size.
func Number[T number](b []byte) (T, int) {
	size := int(unsafe.Sizeof(*new(T)))
	if len(b) < size {
		return *new(T), len(b)
	}
	return Numbers[T]{wire: b[:size]}.At(0), size
}

// Text reads a string.
func Text(b []byte) (string, int) {
	v, size := Binary(b)
	return textOf(v), size
}

// Binary reads a binary, which must not be changed.
func Binary(b []byte) ([]byte, int) {
	end := stringEnd(b, 0)
	if end < 0 {
		return nil, len(b)
	}
	return b[stringHeader:end:end], end
}

// Bytes returns the elements of a list or set of i8 as bytes, which must not be changed,
// nil if b has other elements, or is nil. An empty list is not nil, whatever its elements
// would be.
func Bytes(b []byte) []byte {
	if len(b) >= listHeader && thrift.I32At(b, 1) == 0 {
		return b[listHeader:listHeader:listHeader]
	}
	wire, n := listBody(b, thrift.I8)
	if n > len(wire) {
		return nil
	}
	return wire[:n:n]
}

// Size returns how long a container of type t is.
func Size(b []byte, t thrift.Type) int {
	if end := pass(b, 0, t, mostLevels); end >= 0 {
		return end
	}
	return len(b)
}
