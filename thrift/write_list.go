package thrift

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/byteswap"
)

// plainList writes the header of a list or set whose elements hold no others: see
// BeginList, without an end.
func (w *Writer) plainList(b []byte, element Type, n int) []byte {
	if w.depth < 1 || n > math.MaxInt32 {
		w.depth--
		w.refuse(n)
		return b
	}
	return binary.BigEndian.AppendUint32(append(w.Room(b, 5), byte(element)), uint32(n))
}

// StringList writes a list or set of strings.
func (w *Writer) StringList(b []byte, list []string) []byte {
	b = w.plainList(b, String, len(list))
	for _, v := range list {
		start := len(b)
		if cap(b)-start < 4+len(v) {
			b = w.stringElsewhere(b, v)
			continue
		}
		b = b[:start+4+len(v)]
		binary.BigEndian.PutUint32(b[start:], uint32(len(v)))
		copy(b[start+4:], v)
	}
	return b
}

// BinaryList writes a list or set of binaries.
func (w *Writer) BinaryList(b []byte, list [][]byte) []byte {
	b = w.plainList(b, String, len(list))
	for _, v := range list {
		b = w.Binary(b, v)
	}
	return b
}

// numbersBytes is how many bytes of numbers get room as one piece where there is
// none: half of the longest chunks of linkbuf.
const numbersBytes = 32 << 10

// numbers returns how many of n numbers of size bytes are written next, at least one,
// and b with them behind it, to be filled in.
func (w *Writer) numbers(b []byte, n, size int) (int, []byte) {
	if room := (cap(b) - len(b)) / size; room < n && w.out != nil {
		n = max(room, min(n, numbersBytes/size))
	}
	b = w.Room(b, n*size)
	return n, b[:len(b)+n*size]
}

// BoolList writes a list or set of bools.
func (w *Writer) BoolList(b []byte, list []bool) []byte {
	b = w.plainList(b, Bool, len(list))
	for n := 0; len(list) > 0; list = list[n:] {
		n, b = w.numbers(b, len(list), 1)
		to := b[len(b)-n:]
		for i, v := range list[:n] {
			to[i] = boolByte(v)
		}
	}
	return b
}

// I8List writes a list or set of i8.
func (w *Writer) I8List(b []byte, list []int8) []byte {
	b = w.plainList(b, I8, len(list))
	for n := 0; len(list) > 0; list = list[n:] {
		n, b = w.numbers(b, len(list), 1)
		to := b[len(b)-n:]
		for i, v := range list[:n] {
			to[i] = byte(v)
		}
	}
	return b
}

// I16List writes a list or set of i16.
func (w *Writer) I16List(b []byte, list []int16) []byte {
	b = w.plainList(b, I16, len(list))
	for n := 0; len(list) > 0; list = list[n:] {
		n, b = w.numbers(b, len(list), 2)
		byteswap.Put16(b[len(b)-2*n:], list[:n])
	}
	return b
}

// I32List writes a list or set of i32.
func (w *Writer) I32List(b []byte, list []int32) []byte {
	b = w.plainList(b, I32, len(list))
	for n := 0; len(list) > 0; list = list[n:] {
		n, b = w.numbers(b, len(list), 4)
		byteswap.Put32(b[len(b)-4*n:], list[:n])
	}
	return b
}

// WriteEnumList writes a list or set of enums.
func WriteEnumList[E ~int32](w *Writer, b []byte, list []E) []byte {
	return w.I32List(b, unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(list))), len(list)))
}

// I64List writes a list or set of i64.
func (w *Writer) I64List(b []byte, list []int64) []byte {
	b = w.plainList(b, I64, len(list))
	for n := 0; len(list) > 0; list = list[n:] {
		n, b = w.numbers(b, len(list), 8)
		byteswap.Put64(b[len(b)-8*n:], list[:n])
	}
	return b
}

// DoubleList writes a list or set of doubles.
func (w *Writer) DoubleList(b []byte, list []float64) []byte {
	b = w.plainList(b, Double, len(list))
	for n := 0; len(list) > 0; list = list[n:] {
		n, b = w.numbers(b, len(list), 8)
		byteswap.Put64(b[len(b)-8*n:], list[:n])
	}
	return b
}

// UUIDList writes a list or set of uuids.
func (w *Writer) UUIDList(b []byte, list []UUID) []byte {
	b = w.plainList(b, UUIDType, len(list))
	for n := 0; len(list) > 0; list = list[n:] {
		n, b = w.numbers(b, len(list), 16)
		to := b[len(b)-16*n:]
		for i := range list[:n] {
			copy(to[16*i:], list[i][:])
		}
	}
	return b
}
