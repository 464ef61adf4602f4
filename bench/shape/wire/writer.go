package wire

import (
	"encoding/binary"
	"slices"
)

// Writer writes Thrift Binary into one growing slice. Chains of chunks do not
// matter here: every shape writes the same bytes.
type Writer struct {
	buf []byte
}

// Reset empties the Writer and keeps its memory.
func (w *Writer) Reset() { w.buf = w.buf[:0] }

// Bytes returns what was written, valid until the next write.
func (w *Writer) Bytes() []byte { return w.buf }

// reserve appends n bytes that the caller fills.
func (w *Writer) reserve(n int) []byte {
	start := len(w.buf)
	if cap(w.buf)-start < n {
		w.buf = slices.Grow(w.buf, n)
	}
	w.buf = w.buf[:start+n]
	return w.buf[start : start+n]
}

// EndStruct writes the byte behind the last field.
func (w *Writer) EndStruct() { w.buf = append(w.buf, byte(Stop)) }

// BeginList writes a list header.
func (w *Writer) BeginList(element Type, n int) {
	b := w.reserve(5)
	b[0] = byte(element)
	binary.BigEndian.PutUint32(b[1:], uint32(n))
}

// FieldBool writes a whole bool field.
func (w *Writer) FieldBool(id int16, v bool) {
	b := w.reserve(4)
	b[0] = byte(Bool)
	binary.BigEndian.PutUint16(b[1:], uint16(id))
	b[3] = 0
	if v {
		b[3] = 1
	}
}

// FieldI32 writes a whole i32 field.
func (w *Writer) FieldI32(id int16, v int32) {
	b := w.reserve(7)
	b[0] = byte(I32)
	binary.BigEndian.PutUint16(b[1:], uint16(id))
	binary.BigEndian.PutUint32(b[3:], uint32(v))
}

// FieldI64 writes a whole i64 field.
func (w *Writer) FieldI64(id int16, v int64) {
	b := w.reserve(11)
	b[0] = byte(I64)
	binary.BigEndian.PutUint16(b[1:], uint16(id))
	binary.BigEndian.PutUint64(b[3:], uint64(v))
}

// FieldString writes a whole string field.
func (w *Writer) FieldString(id int16, v string) {
	b := w.reserve(7 + len(v))
	b[0] = byte(String)
	binary.BigEndian.PutUint16(b[1:], uint16(id))
	binary.BigEndian.PutUint32(b[3:], uint32(len(v)))
	copy(b[7:], v)
}
