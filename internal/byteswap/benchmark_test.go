package byteswap_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/byteswap"
)

// The simple loops, as a codec has them that writes and reads one number at a
// time.

func loopPut16(dst []byte, src []uint16) {
	for i, v := range src {
		binary.BigEndian.PutUint16(dst[2*i:], v)
	}
}

func loopPut32(dst []byte, src []uint32) {
	for i, v := range src {
		binary.BigEndian.PutUint32(dst[4*i:], v)
	}
}

func loopPut64(dst []byte, src []uint64) {
	for i, v := range src {
		binary.BigEndian.PutUint64(dst[8*i:], v)
	}
}

func loopGet16(dst []uint16, src []byte) {
	for i := range dst {
		dst[i] = binary.BigEndian.Uint16(src[2*i:])
	}
}

func loopGet32(dst []uint32, src []byte) {
	for i := range dst {
		dst[i] = binary.BigEndian.Uint32(src[4*i:])
	}
}

func loopGet64(dst []uint64, src []byte) {
	for i := range dst {
		dst[i] = binary.BigEndian.Uint64(src[8*i:])
	}
}

// BenchmarkPut compares the loop, the Go code, the public functions, which take
// the assembly where they can, and copying without a conversion. The bytes lie 5
// bytes behind an aligned address, as they may in a message.
func BenchmarkPut(b *testing.B) {
	benchmarkPut(b, 5, append(subjects64(), subject[uint64]{name: "loop", put: loopPut64}))
	benchmarkPut(b, 5, append(subjects32(), subject[uint32]{name: "loop", put: loopPut32}))
	benchmarkPut(b, 5, append(subjects16(), subject[uint16]{name: "loop", put: loopPut16}))
}

// BenchmarkPutWhole is BenchmarkPut with bytes 8 behind an aligned address, as
// those of a struct's first list are: whole numbers lead to an aligned address.
func BenchmarkPutWhole(b *testing.B) {
	benchmarkPut(b, 8, append(subjects64(), subject[uint64]{name: "loop", put: loopPut64}))
	benchmarkPut(b, 8, append(subjects32(), subject[uint32]{name: "loop", put: loopPut32}))
}

// BenchmarkGet is the same in the other direction.
func BenchmarkGet(b *testing.B) {
	benchmarkGet(b, append(subjects64(), subject[uint64]{name: "loop", get: loopGet64}))
	benchmarkGet(b, append(subjects32(), subject[uint32]{name: "loop", get: loopGet32}))
	benchmarkGet(b, append(subjects16(), subject[uint16]{name: "loop", get: loopGet16}))
}

func benchmarkLengths() []int {
	return []int{4, 6, 8, 12, 16, 24, 32, 64, 256, 1024, 16384, 131072}
}

// touch writes to memory that is only read: all its pages are the same page of zeros
// otherwise, which is in the first cache, and 131,072 numbers took 17 instead of 31 us.
func touch(memory []byte) {
	for i := range memory {
		memory[i] = byte(i)
	}
}

func benchmarkPut[T number](b *testing.B, behind int, subjects []subject[T]) {
	copied := func(dst []byte, src []T) { copy(dst, byteswap.Memory(src)) }
	for _, s := range append(subjects, subject[T]{name: "copy", put: copied}) {
		for _, length := range benchmarkLengths() {
			b.Run(fmt.Sprintf("%d-%s/n=%d", 8*size[T](), s.name, length), func(b *testing.B) {
				numbers, content := make([]T, length), make([]byte, behind+length*size[T]())[behind:]
				touch(byteswap.Memory(numbers))
				b.SetBytes(int64(len(content)))
				for b.Loop() {
					s.put(content, numbers)
				}
			})
		}
	}
}

func benchmarkGet[T number](b *testing.B, subjects []subject[T]) {
	copied := func(dst []T, src []byte) { copy(byteswap.Memory(dst), src) }
	for _, s := range append(subjects, subject[T]{name: "copy", get: copied}) {
		for _, length := range benchmarkLengths() {
			b.Run(fmt.Sprintf("%d-%s/n=%d", 8*size[T](), s.name, length), func(b *testing.B) {
				numbers, content := make([]T, length), make([]byte, 5+length*size[T]())[5:]
				touch(content)
				b.SetBytes(int64(len(content)))
				for b.Loop() {
					s.get(numbers, content)
				}
			})
		}
	}
}
