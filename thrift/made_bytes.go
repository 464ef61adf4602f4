package thrift

// madeBytes returns what Go allocates at most for n bytes that are made at once: its
// allocator has memory in classes of length, and whole pages from 32 KiB on. Structs of
// 1024 bytes would otherwise take an eighth more than they were charged for, and lists of
// just above 32 KiB a fifth. These are details of the runtime, as those of maps are;
// TestMadeBytes_BoundsWhatGoAllocates notices when they change.
func madeBytes(n int64) int64 {
	const (
		// Longer values have 8 bytes in front of them, if there are pointers in them:
		// from 512 bytes on, and from 128 where words have 32 bits.
		word              = 32 << (^uint(0) >> 63)
		plainMost, header = word * word / 8, 8
		classMost, page   = 32 << 10, 8 << 10
		unit              = 128
		// classes are those between 1.5 KiB and classMost, in units.
		classes = "\x0e\x10\x12\x15\x18\x19\x1b\x20\x26\x2a\x30\x33\x35\x36\x40\x4a\x4c\x50\x55\x60\x6a\x70\x80\x90\x95\xa0\xaa\xc0\xd5\xe0"
	)
	step := int64(unit)
	if n > plainMost && n <= classMost-header {
		n += header
	}
	switch {
	case n <= 32:
		step = 8
	case n <= 256:
		step = 16
	case n <= 512:
		step = 32
	case n <= 768:
		step = 64
	case n > classMost:
		step = page
	default:
		if n > 1536 {
			for i := range len(classes) {
				if class := int64(classes[i]) * unit; n <= class {
					return class
				}
			}
			return classMost
		}
	}
	return (n + step - 1) / step * step
}
