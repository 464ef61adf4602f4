package thrift

import "unsafe"

// How Go's maps keep entries: in groups of 8 slots with a control byte each, at
// most 7/8 full, keys and values of more than 128 bytes elsewhere. These are
// details of the runtime; TestMapBytes_BoundsWhatGoAllocates notices when they
// change.
const (
	mapHeaderBytes  = 64
	mapGroupSlots   = 8
	mapSlotBytesMax = 128
)

// mapBytes returns what a map made for n entries allocates at most, up to 896
// entries; larger ones consist of tables that may split as they fill, which
// takes up to a half more. It is close where maps are dearest for what arrived,
// at up to 8 entries, and up to two and a half times the truth above.
func mapBytes[K comparable, V any](n int) int64 {
	if n == 0 {
		return mapHeaderBytes
	}
	type slot struct {
		_ K
		_ V
	}
	size := int64(unsafe.Sizeof(slot{}))
	var elsewhere int64
	for _, part := range [...]int64{int64(unsafe.Sizeof(*new(K))), int64(unsafe.Sizeof(*new(V)))} {
		if part > mapSlotBytesMax {
			const pointer = 8
			size -= part - pointer
			elsewhere += madeBytes(part)
		}
	}
	size = (size + 7) &^ 7
	// 16/7: n slots at 7/8 load, doubled just above a power of two.
	slots := max(mapGroupSlots, (16*int64(n)+6)/7)
	groups := slots * (size + 1)
	// A quarter more: 33 KiB are rounded up to pages, 40 KiB.
	return mapHeaderBytes + groups + groups/4 + int64(n)*elsewhere
}
