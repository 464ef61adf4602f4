package byteswap_test

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/byteswap"
)

type number interface{ uint16 | uint32 | uint64 }

// subject is one implementation for one width.
type subject[T number] struct {
	name string
	put  func(dst []byte, src []T)
	get  func(dst []T, src []byte)
}

// The public functions, which take the assembly where there is any, and the Go
// code by itself.

func subjects16() []subject[uint16] {
	return []subject[uint16]{
		{"public", byteswap.Put16[uint16], byteswap.Get16[uint16]},
		{"portable", byteswap.PortablePut16, byteswap.PortableGet16},
	}
}

func subjects32() []subject[uint32] {
	return []subject[uint32]{
		{"public", byteswap.Put32[uint32], byteswap.Get32[uint32]},
		{"portable", byteswap.PortablePut32, byteswap.PortableGet32},
	}
}

func subjects64() []subject[uint64] {
	return []subject[uint64]{
		{"public", byteswap.Put64[uint64], byteswap.Get64[uint64]},
		{"portable", byteswap.PortablePut64, byteswap.PortableGet64},
	}
}

// eachSubject runs a test with all implementations for one width.
func eachSubject[T number](t *testing.T, subjects []subject[T], test func(t *testing.T, s subject[T])) {
	for _, s := range subjects {
		t.Run(fmt.Sprintf("%d/%s", 8*size[T](), s.name), func(t *testing.T) { test(t, s) })
	}
}

func size[T number]() int { return bits.Len64(uint64(^T(0))) / 8 }

// bigEndian is what the package should do, one byte at a time.
func bigEndian[T number](numbers []T) []byte {
	var written []byte
	for _, v := range numbers {
		for shift := 8*size[T]() - 8; shift >= 0; shift -= 8 {
			written = append(written, byte(v>>shift))
		}
	}
	return written
}

// inverse returns numbers of which no byte is like that of the originals.
func inverse[T number](numbers []T) []T {
	inverted := slices.Clone(numbers)
	for i := range inverted {
		inverted[i] ^= ^T(0)
	}
	return inverted
}

func randomNumbers[T number](count int) []T {
	random := rand.New(rand.NewPCG(uint64(count), 35))
	numbers := make([]T, count)
	for i := range numbers {
		numbers[i] = T(random.Uint64())
	}
	return numbers
}

const (
	alignments = 64
	// guard is how many bytes around a destination are looked at: twice what any
	// implementation writes in one turn.
	guard     = 256
	guardByte = 0xa5
)

// TestPut_EveryLengthAndAlignment compares with the simple loop for every length
// up to lengthMax and every alignment of the bytes in a cache line. Lengths go
// up and every other one takes the inverse numbers: no byte that a call leaves
// unwritten is right by chance, and behind the destination nothing was written
// yet.
func TestPut_EveryLengthAndAlignment(t *testing.T) {
	eachSubject(t, subjects16(), putEverywhere)
	eachSubject(t, subjects32(), putEverywhere)
	eachSubject(t, subjects64(), putEverywhere)
}

func putEverywhere[T number](t *testing.T, s subject[T]) {
	original := randomNumbers[T](lengthMax + 8)
	numbers := [2][]T{original, inverse(original)}
	want := [2][]byte{bigEndian(numbers[0]), bigEndian(numbers[1])}
	guarded := bytes.Repeat([]byte{guardByte}, guard)
	memory := make([]byte, guard+alignments+lengthMax*size[T]()+guard)
	for offset := 0; offset < alignments; offset += alignmentStep {
		for i := range memory {
			memory[i] = guardByte
		}
		start := guard + offset
		for length := range lengthMax + 1 {
			variant, first := length&1, length&7
			end := start + length*size[T]()
			s.put(memory[start:end], numbers[variant][first:first+length])
			if !bytes.Equal(memory[start:end], want[variant][first*size[T]():][:end-start]) {
				t.Fatalf("%d numbers at alignment %d: wrong bytes", length, offset)
			}
			if !bytes.Equal(memory[start-guard:start], guarded) || !bytes.Equal(memory[end:end+guard], guarded) {
				t.Fatalf("%d numbers at alignment %d: bytes around the destination changed", length, offset)
			}
		}
	}
}

// TestGet_EveryLengthAndAlignment is the same in the other direction.
func TestGet_EveryLengthAndAlignment(t *testing.T) {
	eachSubject(t, subjects16(), getEverywhere)
	eachSubject(t, subjects32(), getEverywhere)
	eachSubject(t, subjects64(), getEverywhere)
}

func getEverywhere[T number](t *testing.T, s subject[T]) {
	original := randomNumbers[T](lengthMax)
	want := [2][]T{original, inverse(original)}
	guard := guard / size[T]()
	guarded := slices.Repeat([]T{^T(0) / 3}, guard)
	memory := [2][]byte{make([]byte, alignments+lengthMax*size[T]()), make([]byte, alignments+lengthMax*size[T]())}
	numbers := make([]T, guard+8+lengthMax+guard)
	for offset := 0; offset < alignments; offset += alignmentStep {
		for variant := range memory {
			copy(memory[variant][offset:], bigEndian(want[variant]))
		}
		for i := range numbers {
			numbers[i] = guarded[0]
		}
		// Where the numbers begin has to stay, for the guard; it follows the offset.
		start := guard + offset&7
		for length := range lengthMax + 1 {
			variant, end := length&1, start+length
			s.get(numbers[start:end], memory[variant][offset:offset+length*size[T]()])
			if !equal(numbers[start:end], want[variant][:length]) {
				t.Fatalf("%d numbers at alignment %d: wrong numbers", length, offset)
			}
			if !equal(numbers[start-guard:start], guarded) || !equal(numbers[end:end+guard], guarded) {
				t.Fatalf("%d numbers at alignment %d: numbers around the destination changed", length, offset)
			}
		}
	}
}

// equal compares as bytes, which is 20 times as fast as slices.Equal.
func equal[T number](a, b []T) bool { return bytes.Equal(byteswap.Memory(a), byteswap.Memory(b)) }

// TestConversion_InPlace converts numbers where they are, to bytes and back.
func TestConversion_InPlace(t *testing.T) {
	eachSubject(t, subjects16(), inPlace)
	eachSubject(t, subjects32(), inPlace)
	eachSubject(t, subjects64(), inPlace)
}

func inPlace[T number](t *testing.T, s subject[T]) {
	original := randomNumbers[T](lengthMax)
	want := bigEndian(original)
	memory := make([]T, lengthMax+8)
	for length := range lengthMax + 1 {
		numbers := memory[length&7:][:length]
		content := byteswap.Memory(numbers)
		copy(numbers, original)
		if s.put(content, numbers); !bytes.Equal(content, want[:len(content)]) {
			t.Fatalf("%d numbers: wrong bytes", length)
		}
		if s.get(numbers, content); !equal(numbers, original[:length]) {
			t.Fatalf("%d numbers: wrong numbers", length)
		}
	}
}

// TestConversion_LongSlices have lengths around those at which the assembly is
// called once more.
func TestConversion_LongSlices(t *testing.T) {
	eachSubject(t, subjects16(), long)
	eachSubject(t, subjects32(), long)
	eachSubject(t, subjects64(), long)
}

func long[T number](t *testing.T, s subject[T]) {
	const piece = 64 << 10
	all := randomNumbers[T](longMax/size[T]() + 33)
	written := bigEndian(all)
	for around := piece; around <= longMax; around += piece {
		for _, difference := range []int{-3, -2, -1, 0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33} {
			original := all[:around/size[T]()+difference]
			want := written[:len(original)*size[T]()]
			content := make([]byte, len(want)+5)[5:]
			if s.put(content, original); !bytes.Equal(content, want) {
				t.Fatalf("%d numbers: wrong bytes", len(original))
			}
			numbers := make([]T, len(original))
			if s.get(numbers, content); !equal(numbers, original) {
				t.Fatalf("%d numbers: wrong numbers", len(original))
			}
			inside := byteswap.Memory(numbers)
			if s.put(inside, numbers); !bytes.Equal(inside, want) {
				t.Fatalf("%d numbers in place: wrong bytes", len(original))
			}
		}
	}
}

// TestConversion_EveryType: signed numbers, floating point numbers with all
// their bits, and types with a name.
func TestConversion_EveryType(t *testing.T) {
	type colour int32
	buf := make([]byte, 24)
	check := func(name string, want ...byte) {
		t.Helper()
		if !bytes.Equal(buf[:len(want)], want) {
			t.Errorf("%s: wrote % x, want % x", name, buf[:len(want)], want)
		}
	}

	byteswap.Put16(buf, []int16{-2, 0x0102})
	check("int16", 0xff, 0xfe, 1, 2)
	got16 := make([]int16, 2)
	if byteswap.Get16(got16, buf); got16[0] != -2 || got16[1] != 0x0102 {
		t.Errorf("int16: read %v", got16)
	}

	byteswap.Put32(buf, []colour{-2, 0x01020304})
	check("colour", 0xff, 0xff, 0xff, 0xfe, 1, 2, 3, 4)
	got32 := make([]colour, 2)
	if byteswap.Get32(got32, buf); got32[0] != -2 || got32[1] != 0x01020304 {
		t.Errorf("colour: read %v", got32)
	}
	const signalling32 = 0x7f800001
	byteswap.Put32(buf, []float32{math.Float32frombits(signalling32)})
	check("float32", 0x7f, 0x80, 0, 1)

	// As bytes, because some processors change such a NaN when it is passed on.
	const signalling64 = 0x7ff0000000000001
	byteswap.Put64(buf, []float64{1, math.Float64frombits(signalling64)})
	check("float64", 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x7f, 0xf0, 0, 0, 0, 0, 0, 1)
	got64 := make([]float64, 2)
	byteswap.Get64(got64, buf)
	if got64[0] != 1 || math.Float64bits(got64[1]) != signalling64 {
		t.Errorf("float64: read %v, %x", got64[0], math.Float64bits(got64[1]))
	}
	byteswap.Put64(buf, []int64{-2, 0x0102030405060708})
	check("int64", 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 1, 2, 3, 4, 5, 6, 7, 8)
}

// TestConversion_PanicsIfBytesAreTooFew: also where the slice's capacity would
// do, because what lies behind a slice belongs to somebody else.
func TestConversion_PanicsIfBytesAreTooFew(t *testing.T) {
	for _, count := range []int{1, 100} {
		tooFew(t, "Put16", 2*count-1, func(buf []byte) { byteswap.Put16(buf, make([]uint16, count)) })
		tooFew(t, "Put32", 4*count-1, func(buf []byte) { byteswap.Put32(buf, make([]uint32, count)) })
		tooFew(t, "Put64", 8*count-1, func(buf []byte) { byteswap.Put64(buf, make([]uint64, count)) })
		numbers16, numbers32, numbers64 := make([]uint16, count), make([]uint32, count), make([]uint64, count)
		tooFew(t, "Get16", 2*count-1, func(buf []byte) { byteswap.Get16(numbers16, buf) })
		tooFew(t, "Get32", 4*count-1, func(buf []byte) { byteswap.Get32(numbers32, buf) })
		tooFew(t, "Get64", 8*count-1, func(buf []byte) { byteswap.Get64(numbers64, buf) })
		if slices.Max(numbers16) != 0 || slices.Max(numbers32) != 0 || slices.Max(numbers64) != 0 {
			t.Error("numbers were written although there were too few bytes")
		}
	}
}

func tooFew(t *testing.T, name string, length int, convert func(buf []byte)) {
	t.Helper()
	memory := bytes.Repeat([]byte{guardByte}, length+100)
	defer func() {
		t.Helper()
		if recover() == nil {
			t.Errorf("%s takes %d bytes", name, length)
		}
		if bytes.Count(memory, []byte{guardByte}) != len(memory) {
			t.Errorf("%s wrote before it panicked", name)
		}
	}()
	convert(memory[:length])
}

// TestConversion_IgnoresMoreBytes: the numbers say how many bytes count.
func TestConversion_IgnoresMoreBytes(t *testing.T) {
	for _, count := range []int{0, 1, 100} {
		original := randomNumbers[uint64](count)
		buf := bytes.Repeat([]byte{guardByte}, 8*count+50)
		byteswap.Put64(buf, original)
		if !bytes.Equal(buf[:8*count], bigEndian(original)) || bytes.Count(buf[8*count:], []byte{guardByte}) != 50 {
			t.Errorf("Put64 of %d numbers wrote something else", count)
		}
		numbers := make([]uint64, count)
		if byteswap.Get64(numbers, buf); !slices.Equal(numbers, original) {
			t.Errorf("Get64 of %d numbers read something else", count)
		}
	}
}

func TestConversion_AllocatesNothing(t *testing.T) {
	numbers, buf := make([]int64, 1000), make([]byte, 8000)
	if got := testing.AllocsPerRun(10, func() {
		byteswap.Put64(buf, numbers)
		byteswap.Get64(numbers, buf)
		byteswap.Put64(buf, numbers[:2])
		byteswap.Get64(numbers[:2], buf)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
