package thrift

import (
	"math/rand/v2"
	"unsafe"
)

// smallMap is the memory of a Go map of up to mapGroupSlots entries, its header and its
// only group. Go allocates the two one by one for each map, which with the collector's part
// was two fifths of the time of decoding 28,000 maps of two entries (ADR-0075). What the
// runtime does with them is what it does with the maps that the compiler puts on the stack,
// whose header refers to a group that it has not allocated either.
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
	// group is the only one where tables is 0.
	group  unsafe.Pointer
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

// mapsOfPiece is for how many maps a piece is. Who keeps one of them keeps what the others
// have, so they are few: with 8 decoding takes as long as without pieces, with 32 a sixth
// less, and with 200, 64 KiB, hardly less than with 32 (ADR-0075).
const mapsOfPiece = 32

// hasSmallMaps tells whether smallMap is what the runtime has. Toolchains may be patched:
// maps of the runtime's are looked at, before it is given one of ours.
var hasSmallMaps = knownMapLayout && looksSmall(map[string]string{"key": "value"}) && endsWithHeader()

// looksSmall tells whether a map of "key" and "value" is a smallMap.
func looksSmall(entries map[string]string) bool {
	header := headerOf(&entries)
	if header == nil || header.used != 1 || header.tables != 0 || header.group == nil {
		return false
	}
	group := (*mapGroup[string, string])(header.group)
	return group.control>>8 == emptySlots>>8 && group.control&emptySlot == 0 &&
		group.slots[0].key == "key" && group.slots[0].value == "value"
}

// endsWithHeader tells whether the runtime leaves alone what is behind a header, with all
// that it does to a map. Only a map that looks as it should gets here.
func endsWithHeader() bool {
	guarded := &struct {
		header mapHeader
		behind [8]uint64
		small  smallMap[int, int]
	}{}
	guarded.header.group = unsafe.Pointer(&guarded.small.group)
	guarded.small.group.control = emptySlots
	header := &guarded.header
	entries := *(*map[int]int)(unsafe.Pointer(&header))
	for i := range 2 * mapGroupSlots {
		entries[i] = i
		delete(entries, i/2)
	}
	clear(entries)
	return guarded.behind == [8]uint64{} && len(entries) == 0
}

func headerOf[K comparable, V any](entries *map[K]V) *mapHeader {
	return *(**mapHeader)(unsafe.Pointer(entries))
}

// sharesPiece tells whether MakeMap makes a map of n entries as a smallMap. The first few of
// a message are the runtime's: they would pay for a piece, and what is kept of them keeps
// nothing else. Go keeps keys and values of more than mapSlotBytesMax elsewhere.
func sharesPiece[K comparable, V any](r *Reader, n int) bool {
	if !hasSmallMaps || uint(n-1) >= mapGroupSlots ||
		unsafe.Sizeof(*new(K)) > mapSlotBytesMax || unsafe.Sizeof(*new(V)) > mapSlotBytesMax {
		return false
	}
	if r.singleMaps < slabSingles {
		r.singleMaps++
		return false
	}
	return true
}

// mapInPiece returns an empty map that is part of a piece.
func mapInPiece[K comparable, V any](r *Reader, p int) map[K]V {
	memory := r.more()
	if memory.maps == nil {
		memory.maps = new(structSlabs)
	}
	slab := memory.maps.of((*smallMap[K, V])(nil))
	if slab == nil {
		r.charge(p, mapBytes[K, V](mapGroupSlots))
		return make(map[K]V)
	}
	slab.most = mapsOfPiece
	m := newInSlab[smallMap[K, V]](r, p, slab)
	m.header.seed = uintptr(rand.Uint64())
	m.header.group = unsafe.Pointer(&m.group)
	m.group.control = emptySlots
	return *(*map[K]V)(unsafe.Pointer(&m))
}
