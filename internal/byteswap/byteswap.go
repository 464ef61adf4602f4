// Package byteswap converts slices of numbers to big-endian bytes and back,
// several times as fast as one number at a time.
//
// On amd64 processors with AVX2 all but short slices go through assembly. Short
// ones, other processors, and builds with the tag purego or with one of Go's
// sanitizers (race, msan, asan) get the same results from Go code.
package byteswap

import "unsafe"

// Number16 is what Put16 and Get16 convert.
type Number16 interface{ ~int16 | ~uint16 }

// Number32 is what Put32 and Get32 convert.
type Number32 interface{ ~int32 | ~uint32 | ~float32 }

// Number64 is what Put64 and Get64 convert.
type Number64 interface{ ~int64 | ~uint64 | ~float64 }

// Put16 writes the numbers of src to dst, two bytes each, the most significant
// first. It writes the first 2*len(src) bytes of dst and no others, and panics
// before it writes any if dst is shorter than that, whatever its capacity. dst
// may have any alignment. dst and the memory of src may be the same; where they
// overlap otherwise, nothing is promised about the result.
//
// All functions of this package may be called concurrently, as long as no call
// writes what another one reads or writes. They allocate nothing and keep
// neither slice.
func Put16[T Number16](dst []byte, src []T) {
	from := memory(src)
	to := dst[:len(from):len(dst)]
	if shuffles(len(from)) {
		shuffleAll(to, from, order16)
	} else {
		portable16(to, from)
	}
}

// Get16 fills dst with the numbers whose bytes Put16 would write: two bytes of
// src each, the most significant first. It reads the first 2*len(dst) bytes of
// src and no others, and panics before it writes any number if src is shorter
// than that, whatever its capacity. src may have any alignment. src and the
// memory of dst may be the same; where they overlap otherwise, nothing is
// promised about the result.
func Get16[T Number16](dst []T, src []byte) {
	to := memory(dst)
	from := src[:len(to):len(src)]
	if shuffles(len(to)) {
		shuffleAll(to, from, order16)
	} else {
		portable16(to, from)
	}
}

// Put32 is Put16 for numbers of four bytes. The bits of a float32 stay as they
// are, whichever NaN it is.
func Put32[T Number32](dst []byte, src []T) {
	from := memory(src)
	to := dst[:len(from):len(dst)]
	if shuffles(len(from)) {
		shuffleAll(to, from, order32)
	} else {
		portable32(to, from)
	}
}

// Get32 is Get16 for numbers of four bytes. The bits of a float32 stay as they
// are, whichever NaN it is.
func Get32[T Number32](dst []T, src []byte) {
	to := memory(dst)
	from := src[:len(to):len(src)]
	if shuffles(len(to)) {
		shuffleAll(to, from, order32)
	} else {
		portable32(to, from)
	}
}

// Put64 is Put16 for numbers of eight bytes. The bits of a float64 stay as they
// are, whichever NaN it is.
func Put64[T Number64](dst []byte, src []T) {
	from := memory(src)
	to := dst[:len(from):len(dst)]
	if shuffles(len(from)) {
		shuffleAll(to, from, order64)
	} else {
		portable64(to, from)
	}
}

// Get64 is Get16 for numbers of eight bytes. The bits of a float64 stay as they
// are, whichever NaN it is.
func Get64[T Number64](dst []T, src []byte) {
	to := memory(dst)
	from := src[:len(to):len(src)]
	if shuffles(len(to)) {
		shuffleAll(to, from, order64)
	} else {
		portable64(to, from)
	}
}

// memory returns the bytes that numbers consist of, in the processor's order.
func memory[T Number16 | Number32 | Number64](numbers []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), len(numbers)*int(unsafe.Sizeof(*new(T))))
}

// Where shuffle finds the order of bytes for numbers of a size in its table.
const (
	order16 = 0
	order32 = 16
	order64 = 32
)
