package thrift

import (
	"math/rand/v2"
	"unsafe"
)

// smallMap is the memory of a Go map of up to mapGroupSlots entries, its header and its
// only group. Go allocates the two one by one for each map, which was two fifths of the
// time of decoding 28,000 maps of two entries (ADR-0075): smallMaps are parts of pieces,
// as structs are. What the runtime does with them is what it does with the maps that the
// compiler puts on the stack, whose header refers to a group beside it, too.
//
// A map that grows beyond its group goes on in tables that the runtime allocates.
type smallMap[K comparable, V any] struct {
	header mapHeader
	group  mapGroup[K, V]
}

// mapHeader is Map in the runtime's package internal/runtime/maps.
type mapHeader struct {
	used uint64
	seed uintptr
	// groups is the only group where tables is 0.
	groups unsafe.Pointer
	tables int
	_      [4]uint8
	_      uint64
}

// mapGroup has a control byte for each slot: the lowest seven bits of the key's hash, or
// emptySlot.
type mapGroup[K comparable, V any] struct {
	control uint64
	slots   [mapGroupSlots]struct {
		key   K
		value V
	}
}

const (
	emptySlot  = 0x80
	emptySlots = emptySlot * 0x0101010101010101
)

// hasSmallMaps tells whether smallMap is what the runtime has. Toolchains may be patched:
// a map of the runtime's is looked at, before it is given one of ours.
var hasSmallMaps = knownMapLayout && looksSmall(map[string]string{"key": "value"})

// looksSmall tells whether a map of "key" and "value" is a smallMap.
func looksSmall(entries map[string]string) bool {
	header := *(**mapHeader)(unsafe.Pointer(&entries))
	if header == nil || header.used != 1 || header.tables != 0 || header.groups == nil {
		return false
	}
	group := (*mapGroup[string, string])(header.groups)
	return group.control>>8 == emptySlots>>8 && group.control&emptySlot == 0 &&
		group.slots[0].key == "key" && group.slots[0].value == "value"
}

// fitsSmallMap tells whether MakeMap makes a map of n entries as a smallMap. Go keeps
// keys and values of more than mapSlotBytesMax elsewhere.
func fitsSmallMap[K comparable, V any](n int) bool {
	return hasSmallMaps && uint(n-1) < mapGroupSlots &&
		unsafe.Sizeof(*new(K)) <= mapSlotBytesMax && unsafe.Sizeof(*new(V)) <= mapSlotBytesMax
}

// use returns the map that m, which is zero, is the memory of.
func (m *smallMap[K, V]) use() map[K]V {
	m.header.seed = uintptr(rand.Uint64())
	m.header.groups = unsafe.Pointer(&m.group)
	m.group.control = emptySlots
	return *(*map[K]V)(unsafe.Pointer(&m))
}
