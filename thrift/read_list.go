package thrift

import (
	"encoding/binary"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/byteswap"
)

// Pieces of memory are for the elements of several short lists: a message of many
// structs with short lists takes a few allocations for all of them. A list that is
// kept keeps its piece.
//
// slabBytes is the longest piece, slabShare the part of the unread message that a new
// piece is for at most: what does not arrive is not allocated for. Lists of slabLists
// and more have memory of their own.
const (
	slabBytes = 64 << 10
	slabShare = 4
	slabLists = slabBytes / 16
)

// slabFor returns how many elements of size bytes a new piece has room for, n of
// which are needed for what is at p.
func (r *Reader) slabFor(p, n, size int) int {
	return max(n, min(slabBytes, (len(r.buf)-p)/slabShare)/size)
}

// plainList reads the header of a list or set whose elements hold no others: see
// BeginList, without an end.
func (r *Reader) plainList(p int, element Type) (n, next int, ok bool) {
	if len(r.buf)-p < 5 || r.depth < 1 {
		_, p, _ = r.BeginList(p, element)
		return 0, p, false
	}
	n = int(int32(binary.BigEndian.Uint32(r.buf[p+1:])))
	if n == 0 {
		return 0, p + 5, true
	}
	if Type(r.buf[p]) != element || int64(uint32(n))*int64(element.LeastSize()) > int64(len(r.buf)-p-5) {
		_, p, _ = r.BeginList(p, element)
		return 0, p, false
	}
	return n, p + 5, true
}

// stringsFor returns n empty strings.
func (r *Reader) stringsFor(p, n int) []string {
	const size = int(unsafe.Sizeof(""))
	switch {
	case n == 0:
		return []string{}
	case !r.charge(p, int64(n)*int64(size)):
		return nil
	case n*size >= slabLists:
		return make([]string, n)
	}
	memory := r.more()
	if n > len(memory.strings) {
		memory.strings = make([]string, r.slabFor(p, n, size))
	}
	list := memory.strings[:n:n]
	memory.strings = memory.strings[n:]
	return list
}

// numbersFor returns memory for n numbers of size bytes, aligned for all of them, at
// least one; nil after an error.
func (r *Reader) numbersFor(p, n, size int) unsafe.Pointer {
	const word = 8
	if !r.charge(p, int64(n)*int64(size)) {
		return nil
	}
	words := (n*size + word - 1) / word
	if n*size >= slabLists {
		return unsafe.Pointer(unsafe.SliceData(make([]uint64, words)))
	}
	memory := r.more()
	if words > len(memory.words) {
		memory.words = make([]uint64, r.slabFor(p, words, word))
	}
	list := unsafe.Pointer(unsafe.SliceData(memory.words))
	memory.words = memory.words[words:]
	return list
}

// number is what the elements of lists without pointers are.
type number interface {
	~bool | ~int8 | ~uint8 | ~int16 | ~int32 | ~int64 | ~float64 | ~[16]byte
}

// beginNumbers returns memory for the elements of a list or set, nil if there are
// none to be read, and their bytes.
func beginNumbers[T number](r *Reader, p int, element Type, old []T) (list []T, wire []byte, next int) {
	n, p, ok := r.plainList(p, element)
	if !ok {
		return nil, nil, p
	}
	size := int(unsafe.Sizeof(*new(T)))
	next = p + n*size
	if list := listFor(r, n, old); list != nil {
		return list, r.buf[p:next], next
	}
	if n == 0 {
		return []T{}, nil, p
	}
	memory := r.numbersFor(p, n, size)
	if memory == nil {
		return nil, nil, len(r.buf)
	}
	return unsafe.Slice((*T)(memory), n), r.buf[p:next], next
}

// fewWordsMost is how many words fewWords reads at most: for more it does not matter what a
// list takes beside its elements.
const fewWordsMost = 8

// fewWords reads a short list or set of numbers of 8 bytes for which there is memory, and
// returns nil for any other, whatever is special about it. Of
// the time to decode a message of 20 KB with 124 lists of four it saves 4 %.
func (r *Reader) fewWords(p int, element Type) (list []uint64, next int) {
	b, memory := r.buf, r.memory
	if len(b)-p < 5 || memory == nil || r.reuse {
		return nil, 0
	}
	n := uint(binary.BigEndian.Uint32(b[p+1:]))
	from := p + 5
	if n-1 >= fewWordsMost || Type(b[p]) != element || n*8 > uint(len(b)-from) || n > uint(len(memory.words)) ||
		r.depth < 1 || r.budget < int64(n*8) {
		return nil, 0
	}
	r.budget -= int64(n * 8)
	list = memory.words[:n:n]
	memory.words = memory.words[n:]
	wire := b[from : from+int(n*8)]
	for i := range list {
		list[i] = binary.BigEndian.Uint64(wire[8*i:])
	}
	return list, from + int(n*8)
}

// StringList reads a list or set of strings. It returns old if the elements are of
// another type, or after an error; if memory is reused, old is that, and nil returned.
func (r *Reader) StringList(p int, old []string) ([]string, int) {
	n, p, ok := r.plainList(p, String)
	if !ok {
		return unread(r, old), p
	}
	list := listFor(r, n, old)
	if list == nil {
		list = r.stringsFor(p, n)
	}
	if p = r.readStrings(p, list); r.err != nil {
		return unread(r, old), len(r.buf)
	}
	return list, p
}

// readStrings reads the strings of a list. Short ones that go to the arena are read here,
// as String would: without a call for each, decoding structs with three takes 3 % less.
func (r *Reader) readStrings(p int, list []string) int {
	b := r.buf
	for i := range list {
		if memory := r.memory; r.strings.ownFrom > wideCopy && len(b)-p >= 4+wideCopy {
			used := len(memory.arena)
			n := uint(binary.BigEndian.Uint32(b[p:]))
			if n-1 < wideCopy && cap(memory.arena)-used >= wideCopy {
				to := unsafe.Add(unsafe.Pointer(unsafe.SliceData(memory.arena)), used)
				*(*[wideCopy]byte)(to) = *(*[wideCopy]byte)(b[p+4 : p+4+wideCopy : p+4+wideCopy])
				memory.arena = memory.arena[:used+int(n)]
				list[i] = unsafe.String((*byte)(to), n)
				p += 4 + int(n)
				continue
			}
		}
		list[i], p = r.String(p)
	}
	return p
}

// BinaryList reads a list or set of binaries; see StringList.
func (r *Reader) BinaryList(p int, old [][]byte) ([][]byte, int) {
	n, p, ok := r.plainList(p, String)
	if !ok {
		return unread(r, old), p
	}
	list := MakeSlice(r, p, n, old)
	for i := 0; i < n && r.err == nil; i++ {
		var v []byte
		v, p = r.Binary(p)
		list = append(list, v)
	}
	if r.err != nil {
		return unread(r, old), len(r.buf)
	}
	return list, p
}

// BoolList reads a list or set of bools; see StringList.
func (r *Reader) BoolList(p int, old []bool) ([]bool, int) {
	list, wire, p := beginNumbers(r, p, Bool, old)
	if list == nil {
		return unread(r, old), p
	}
	for i := range list {
		list[i] = wire[i] == 1
	}
	return list, p
}

// I8List reads a list or set of i8; see StringList.
func (r *Reader) I8List(p int, old []int8) ([]int8, int) {
	list, wire, p := beginNumbers(r, p, I8, old)
	if list == nil {
		return unread(r, old), p
	}
	for i := range list {
		list[i] = int8(wire[i])
	}
	return list, p
}

// ByteList reads a list or set of i8 as bytes, which are the same on the wire; see
// StringList.
func (r *Reader) ByteList(p int, old []byte) ([]byte, int) {
	list, wire, p := beginNumbers(r, p, I8, old)
	if list == nil {
		return unread(r, old), p
	}
	copy(list, wire)
	return list, p
}

// I16List reads a list or set of i16; see StringList.
func (r *Reader) I16List(p int, old []int16) ([]int16, int) {
	list, wire, p := beginNumbers(r, p, I16, old)
	if list == nil {
		return unread(r, old), p
	}
	byteswap.Get16(list, wire)
	return list, p
}

// I32List reads a list or set of i32; see StringList.
func (r *Reader) I32List(p int, old []int32) ([]int32, int) { return ReadEnumList(r, p, old) }

// ReadEnumList reads a list or set of enums, known or not; see StringList.
func ReadEnumList[E ~int32 | ~int64](r *Reader, p int, old []E) ([]E, int) {
	if unsafe.Sizeof(*new(E)) > 4 {
		return readWideEnums(r, p, old)
	}
	list, wire, p := beginNumbers(r, p, I32, old)
	if list == nil {
		return unread(r, old), p
	}
	byteswap.Get32(unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(list))), len(list)), wire)
	return list, p
}

// I64List reads a list or set of i64; see StringList.
func (r *Reader) I64List(p int, old []int64) ([]int64, int) {
	if list, next := r.fewWords(p, I64); list != nil {
		return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(list))), len(list)), next
	}
	list, wire, p := beginNumbers(r, p, I64, old)
	if list == nil {
		return unread(r, old), p
	}
	byteswap.Get64(list, wire)
	return list, p
}

// DoubleList reads a list or set of doubles; see StringList.
func (r *Reader) DoubleList(p int, old []float64) ([]float64, int) {
	if list, next := r.fewWords(p, Double); list != nil {
		return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(list))), len(list)), next
	}
	list, wire, p := beginNumbers(r, p, Double, old)
	if list == nil {
		return unread(r, old), p
	}
	byteswap.Get64(list, wire)
	return list, p
}

// UUIDList reads a list or set of uuids; see StringList.
func (r *Reader) UUIDList(p int, old []UUID) ([]UUID, int) {
	list, wire, p := beginNumbers(r, p, UUIDType, old)
	if list == nil {
		return unread(r, old), p
	}
	for i := range list {
		copy(list[i][:], wire[16*i:])
	}
	return list, p
}
