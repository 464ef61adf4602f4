package thrift

import (
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// What only code in the shape of Kitex uses: fields that are pointers to scalars, and
// lists of pointers to structs.

// FastWrite writes s to the beginning of buf and returns how many bytes it took. It
// panics if s cannot be written, which is if a union within it has not exactly one
// field set, or if a struct is within more than 1000 (ValueDepth) others, and if buf is too
// short.
func (Codec) FastWrite(buf []byte, s Struct) int {
	m := limits.DefaultMessage()
	m.Bytes, m.Depth = math.MaxInt, limits.ValueDepth
	to := fastWritings.Get().(*fastWriting)
	to.writer, to.fixed = newWriter(m), fixedBuffer{buf: buf, beside: to.beside[:]}
	to.writer.fixed = &to.fixed
	to.fixed.settle(s.WriteThrift(&to.writer, buf[:0:len(buf)]))
	settled, err := to.fixed.settled, to.writer.err
	*to = fastWriting{} // it would keep buf
	fastWritings.Put(to)
	if err != nil {
		panic(err)
	}
	if settled > len(buf) {
		panic(fmt.Sprintf("thrift: %T takes %d bytes, the buffer has %d", s, settled, len(buf)))
	}
	return settled
}

// fastWriting is what FastWrite needs for a message.
type fastWriting struct {
	writer Writer
	fixed  fixedBuffer
	beside [counterBytes]byte
}

var fastWritings = sync.Pool{New: func() any { return new(fastWriting) }}

// fixedBuffer is memory that is as long as what is written to it. Room for all that could
// come next may be more than is left of it, so that is taken beside it, and what came is
// copied.
type fixedBuffer struct {
	buf []byte
	// settled is how much of buf has been written, or should have been.
	settled int
	// beside is such room, inUse says that what is written now is in it.
	beside []byte
	inUse  bool
}

// settle takes the chunk b, which is what room has returned and all behind it.
func (f *fixedBuffer) settle(b []byte) {
	if f.inUse {
		copy(f.left(), b)
	}
	f.settled += len(b)
}

func (f *fixedBuffer) left() []byte { return f.buf[min(f.settled, len(f.buf)):] }

// room settles b and returns the next chunk, with room for n bytes.
func (f *fixedBuffer) room(b []byte, n int) []byte {
	f.settle(b)
	left := f.left()
	if f.inUse = n > len(left); !f.inUse {
		return left[:0:len(left)]
	}
	if n > len(f.beside) {
		f.beside = make([]byte, n)
	}
	return f.beside[:0]
}

// FastRead reads a struct at the beginning of buf into s, under the default limits,
// and returns how many bytes that took. It keeps no reference to buf.
func (c Codec) FastRead(buf []byte, s Struct) (int, error) {
	m := limits.DefaultMessage()
	buf = buf[:min(len(buf), math.MaxInt32)]
	// What follows must not count: memory that strings and lists share is made for all
	// that is there, so structs one behind the other would each take it for the others.
	if end, err := thriftwire.Skip(buf, StructType, m.Depth, m.Depth); err == nil {
		buf = buf[:end]
	}
	r := readers.Get().(*Reader)
	*r = newReader(buf, m, c.Strings, copied)
	p, err := s.ReadThrift(r, 0), r.err
	*r = Reader{}
	readers.Put(r)
	if err != nil {
		return 0, err
	}
	return p, nil
}

// kitexMemory is what of a Reader's memory is for that.
type kitexMemory struct {
	// elements is what sets are compared in, in both shapes: few messages need it, and all
	// would pay for a pointer more in memory.
	elements *elements
	// oneNumber and oneString are for what is pointed to.
	oneNumber singleSlab[uint64]
	oneString singleSlab[string]
	// pointers is for lists of pointers; see Structs.List.
	pointers []unsafe.Pointer
}

// forKitex returns that part, which is made when something needs it.
func (r *Reader) forKitex() *kitexMemory {
	memory := r.more()
	if memory.kitex == nil {
		memory.kitex = new(kitexMemory)
	}
	return memory.kitex
}

// NewBool returns a pointer to a copy of v, for what is at p. NewI8 to NewString do so
// for what they say. The pointers of a message share pieces of memory, as short lists
// do: optional scalars of many structs take a few allocations.
func (r *Reader) NewBool(p int, v bool) *bool { return newNumber(r, p, v) }

// NewI8 is for i8; see NewBool.
func (r *Reader) NewI8(p int, v int8) *int8 { return newNumber(r, p, v) }

// NewI16 is for i16; see NewBool.
func (r *Reader) NewI16(p int, v int16) *int16 { return newNumber(r, p, v) }

// NewI32 is for i32; see NewBool.
func (r *Reader) NewI32(p int, v int32) *int32 { return newNumber(r, p, v) }

// NewI64 is for i64 and enums; see NewBool.
func (r *Reader) NewI64(p int, v int64) *int64 { return newNumber(r, p, v) }

// NewDouble is for double; see NewBool.
func (r *Reader) NewDouble(p int, v float64) *float64 { return newNumber(r, p, v) }

// NewUUID is for uuid; see NewBool.
func (r *Reader) NewUUID(p int, v UUID) *UUID {
	place := Allocate[UUID](r, p)
	*place = v
	return place
}

// NewString is for string; see NewBool.
func (r *Reader) NewString(p int, v string) *string {
	place := &r.forKitex().oneString
	if place.used == len(place.memory) {
		place.memory, place.used = make([]string, place.grow(int(unsafe.Sizeof(v)))), 0
	}
	r.charge(p, int64(unsafe.Sizeof(v)))
	next := &place.memory[place.used]
	place.used++
	*next = v
	return next
}

func newNumber[T ~bool | ~int8 | ~int16 | ~int32 | ~int64 | ~float64](r *Reader, p int, v T) *T {
	const word = 8
	place := &r.forKitex().oneNumber
	if place.used == len(place.memory) {
		place.memory, place.used = make([]uint64, place.grow(word)), 0
	}
	r.charge(p, word)
	next := (*T)(unsafe.Pointer(&place.memory[place.used]))
	place.used++
	*next = v
	return next
}

// singleSlab is a piece of memory for values that are pointed to one by one.
type singleSlab[T any] struct {
	memory []T
	used   int
}

// grow returns how many values of size bytes the next piece is for: twice as many as
// before, so that what is not used is less than what is.
func (s *singleSlab[T]) grow(size int) int {
	const first = 4 // a message of a few would pay for more than it needs
	return max(first, min(2*len(s.memory), slabBytes/size))
}

// List returns an empty list of pointers for n structs that BeginList announced, the
// first of them at p; see MakeSlice. The structs will be made by New. Short lists share
// pieces, as the structs do.
func (s *Structs[T]) List(r *Reader, p, n int) []*T {
	s.Expect(r, n)
	const size = int(unsafe.Sizeof(uintptr(0)))
	switch {
	case n == 0:
		return []*T{}
	case n*size >= slabLists:
		return MakeSlice[*T](r, p, n, nil)
	case !r.charge(p, int64(n)*int64(size)):
		return []*T{}
	}
	memory := r.forKitex()
	if n > len(memory.pointers) {
		memory.pointers = make([]unsafe.Pointer, r.slabFor(p, n, size))
	}
	list := unsafe.Slice((**T)(unsafe.Pointer(unsafe.SliceData(memory.pointers))), n)
	memory.pointers = memory.pointers[n:]
	return list[:0:n]
}

// readWideEnums is ReadEnumList for enums of 8 bytes, which take 4 on the wire.
func readWideEnums[E ~int32 | ~int64](r *Reader, p int, old []E) ([]E, int) {
	n, p, ok := r.plainList(p, I32)
	if !ok {
		return old, p
	}
	if n == 0 {
		return []E{}, p
	}
	memory := r.numbersFor(p, n, int(unsafe.Sizeof(*new(E))))
	if memory == nil {
		return old, len(r.buf)
	}
	list := unsafe.Slice((*E)(memory), n)
	for i := range list {
		list[i] = E(I32At(r.buf, p))
		p += 4
	}
	return list, p
}

// writeWideEnums is WriteEnumList for enums of 8 bytes. What does not fit is cut, as
// Kitex does.
func writeWideEnums[E ~int32 | ~int64](w *Writer, b []byte, key FieldKey, list []E) []byte {
	b = w.listHeader(b, key, I32, len(list), 0)
	for _, v := range list {
		b = w.I32(b, int32(v))
	}
	return b
}
