package wire

import "unsafe"

// Go's maps keep entries in groups of 8 slots with a control byte each, at most
// 7/8 full, and store keys and values of more than 128 bytes elsewhere. These
// are implementation details: TestMapBytes_BoundsWhatGoAllocates notices when
// they change.
const (
	mapHeaderBytes  = 64
	mapGroupSlots   = 8
	mapSlotBytesMax = 128
)

// MapBytes is what a map made for n entries allocates at most. It is what
// MakeMap should charge: exact but for rounding where maps are dearest for what
// arrived, at up to 8 entries; above that between one and two and a half times
// the truth, depending on where n lies between two powers of two. Above 896
// entries a map consists of tables that may split as they fill: the worst n,
// multiples of 896, then allocate up to a half more, most of it garbage.
func MapBytes[K comparable, V any](n int) int64 {
	if n == 0 {
		return mapHeaderBytes
	}
	type slot struct {
		_ K
		_ V
	}
	var indirect int64
	size := int64(unsafe.Sizeof(slot{}))
	if value := int64(unsafe.Sizeof(*new(V))); value > mapSlotBytesMax {
		indirect = value + value/8 // rounded up to an allocation size class
		size -= value - 8
	}
	if key := int64(unsafe.Sizeof(*new(K))); key > mapSlotBytesMax {
		indirect += key + key/8
		size -= key - 8
	}
	// 16/7: the slots for n entries at 7/8 load, doubled just above a power of
	// two.
	slots := max(mapGroupSlots, (16*int64(n)+6)/7)
	groups := slots * (size + 1)
	return mapHeaderBytes + groups + groups/8 + int64(n)*indirect // an eighth for size classes
}
