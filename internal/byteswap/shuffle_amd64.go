//go:build amd64 && !purego && !race && !msan && !asan

package byteswap

import "golang.org/x/sys/cpu"

// The sanitizers see the memory accesses of Go code only, so their builds do
// without assembly.

const (
	// shuffleBytesMin is from how many bytes on assembly is never slower than Go
	// code, whatever the width (ADR-0035 has the table). The assembly itself needs
	// 32.
	shuffleBytesMin = 64
	// shufflePiece is about how much goes through assembly at a time, because the
	// scheduler cannot interrupt it and the garbage collector waits for all
	// goroutines: 1.4 µs on an AMD Zen 3, where 16 MiB in one go took 1.4 ms. A
	// whole count of numbers of any width.
	shufflePiece = 64 << 10
)

// shuffles tells whether this many bytes go through assembly.
func shuffles(length int) bool { return length >= shuffleBytesMin && cpu.X86.HasAVX2 }

// shuffleAll does what the functions of portable.go do, if shuffles says so.
func shuffleAll(dst, src []byte, order int) {
	for len(src) >= shufflePiece+shuffleBytesMin {
		shuffle(&dst[0], &src[0], shufflePiece, order)
		dst, src = dst[shufflePiece:], src[shufflePiece:]
	}
	shuffle(&dst[0], &src[0], len(src), order)
}

// shuffle needs AVX2 and a length of at least 32, a whole count of numbers.
//
//go:noescape
func shuffle(dst, src *byte, length, order int)
