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
var hasSmallMaps = knownMapLayout && looksSmall("key", "value") && looksSmall(longestPart{1}, longestPart{2}) && endsWithHeader()

// longestPart is a key, or a value, that is still in a slot.
type longestPart [mapSlotBytesMax]byte

// looksSmall tells whether the runtime's map of a key and a value is a smallMap.
func looksSmall[K, V comparable](key K, value V) bool {
	return isSmall(map[K]V{key: value}, key, value)
}

func isSmall[K, V comparable](entries map[K]V, key K, value V) bool {
	header := headerOf(&entries)
	if header == nil || header.used != 1 || header.tables != 0 || header.group == nil {
		return false
	}
	group := (*mapGroup[K, V])(header.group)
	return group.control>>8 == emptySlots>>8 && group.control&emptySlot == 0 &&
		group.slots[0].key == key && group.slots[0].value == value
}

// endsWithHeader tells whether the runtime leaves alone what is behind a header and behind
// a group while a map grows beyond it, and when it has. Only what looks as it should gets
// here.
func endsWithHeader() bool {
	guarded := &struct {
		header       mapHeader
		behindHeader [8]uint64
		group        mapGroup[int, int]
		behindGroup  [8]uint64
	}{}
	guarded.header.group = unsafe.Pointer(&guarded.group)
	guarded.group.control = emptySlots
	header := &guarded.header
	entries := *(*map[int]int)(unsafe.Pointer(&header))
	for n := 1; n <= 4*mapGroupSlots; n++ {
		entries[n] = n
		sum := 0
		for key, value := range entries {
			sum += key + value
		}
		if len(entries) != n || entries[n] != n || sum != n*(n+1) {
			return false
		}
	}
	if header.tables == 0 {
		return false
	}
	for n := range 2 * mapGroupSlots {
		delete(entries, n+1)
	}
	if len(entries) != 2*mapGroupSlots || entries[1] != 0 || entries[4*mapGroupSlots] != 4*mapGroupSlots {
		return false
	}
	clear(entries)
	entries[1] = 1
	return guarded.behindHeader == [8]uint64{} && guarded.behindGroup == [8]uint64{} && len(entries) == 1 && entries[1] == 1
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

// takesEight tells whether a map that had some entries, and is cleared, has memory for
// mapGroupSlots: one that has a group has, and one that had entries.
func takesEight[K comparable, V any](entries map[K]V, had int) bool {
	return had > 0 || hasSmallMaps && headerOf(&entries).group != nil
}

// mapInPiece returns an empty map that is part of a piece; nil if the message has maps of
// too many types.
func mapInPiece[K comparable, V any](r *Reader, p int) map[K]V {
	memory := r.more()
	if memory.maps == nil {
		memory.maps = new(structSlabs)
	}
	slab := memory.maps.of((*smallMap[K, V])(nil))
	if slab == nil {
		return nil
	}
	slab.most = mapsOfPiece
	m := newInSlab[smallMap[K, V]](r, p, slab)
	m.header.seed = uintptr(rand.Uint64())
	m.header.group = unsafe.Pointer(&m.group)
	m.group.control = emptySlots
	return *(*map[K]V)(unsafe.Pointer(&m))
}
