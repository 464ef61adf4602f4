package thrift_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// writes is what a struct writes that only writes.
type writes func(w *thrift.Writer, b []byte) []byte

func (f writes) WriteThrift(w *thrift.Writer, b []byte) []byte {
	if !w.BeginStruct() {
		return b
	}
	return w.EndStruct(f(w, b))
}

func (f writes) ReadThrift(*thrift.Reader, int) int { panic("it only writes") }

// shortLists are methods that write n numbers of size bytes: 1, -1, 2, -2 and so on.
var shortLists = map[string]struct {
	element thrift.Type
	size    int
	write   func(w *thrift.Writer, b []byte, key thrift.FieldKey, n int) []byte
}{
	"I16List": {thrift.I16, 2, func(w *thrift.Writer, b []byte, key thrift.FieldKey, n int) []byte {
		return w.I16List(b, key, oneMinusOne[int16](n))
	}},
	"I32List": {thrift.I32, 4, func(w *thrift.Writer, b []byte, key thrift.FieldKey, n int) []byte {
		return w.I32List(b, key, oneMinusOne[int32](n))
	}},
	"I64List": {thrift.I64, 8, func(w *thrift.Writer, b []byte, key thrift.FieldKey, n int) []byte {
		return w.I64List(b, key, oneMinusOne[int64](n))
	}},
	"DoubleList": {thrift.Double, 8, func(w *thrift.Writer, b []byte, key thrift.FieldKey, n int) []byte {
		list := make([]float64, n)
		for i, bits := range oneMinusOne[int64](n) {
			list[i] = math.Float64frombits(uint64(bits))
		}
		return w.DoubleList(b, key, list)
	}},
}

func oneMinusOne[T int16 | int32 | int64](n int) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = T(i/2 + 1)
		if i%2 == 1 {
			list[i] = -list[i]
		}
	}
	return list
}

// shortList is what they write.
func shortList(key thrift.FieldKey, element thrift.Type, size, n int) []byte {
	var b []byte
	if key != 0 {
		b = thrift.PutField(make([]byte, 0, 4), key)
	}
	b = binary.BigEndian.AppendUint32(append(b, byte(element)), uint32(n))
	for _, number := range oneMinusOne[int64](n) {
		b = append(b, binary.BigEndian.AppendUint64(nil, uint64(number))[8-size:]...)
	}
	return b
}

// TestAppend_ShortListsIntoEveryCapacity: short lists of numbers are written without a
// look at how much memory is left, for which their header has looked.
func TestAppend_ShortListsIntoEveryCapacity(t *testing.T) {
	const guard = 80
	for name, list := range shortLists {
		for n := range 12 {
			for _, key := range []thrift.FieldKey{0, thrift.Key(thrift.List, 7)} {
				want := append(shortList(key, list.element, list.size, n), 0)
				for capacity := range len(want) + 20 {
					memory := bytes.Repeat([]byte{0xee}, capacity+guard)
					b, err := thrift.Append(memory[:0:capacity], writes(func(w *thrift.Writer, b []byte) []byte {
						return list.write(w, b, key, n)
					}))
					if err != nil || !bytes.Equal(b, want) {
						t.Fatalf("%s of %d into %d bytes: %x, %v; want %x", name, n, capacity, b, err, want)
					}
					if after := memory[capacity:]; bytes.Count(after, []byte{0xee}) != guard {
						t.Fatalf("%s of %d into %d bytes: wrote behind the capacity: %x", name, n, capacity, after)
					}
				}
			}
		}
	}
}

// TestAppend_ShortListsBehindAnError: then nobody makes room, but for what is written
// without a look.
func TestAppend_ShortListsBehindAnError(t *testing.T) {
	const guard = 80
	for name, list := range shortLists {
		for n := range 12 {
			for capacity := range 100 {
				memory := bytes.Repeat([]byte{0xee}, capacity+guard)
				_, err := thrift.Append(memory[:0:capacity], writes(func(w *thrift.Writer, b []byte) []byte {
					w.FailNil("before")
					return list.write(w, b, thrift.Key(thrift.List, 7), n)
				}))
				if err == nil {
					t.Fatalf("%s of %d into %d bytes: no error", name, n, capacity)
				}
				if after := memory[capacity:]; bytes.Count(after, []byte{0xee}) != guard {
					t.Fatalf("%s of %d into %d bytes: wrote behind the capacity: %x", name, n, capacity, after)
				}
			}
		}
	}
}
