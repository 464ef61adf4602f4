package thrift

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Writer appends one struct to a chain of chunks in a single pass. The first
// error sticks: what is written after it is dropped.
//
// Generated code is its only intended caller. A Writer belongs to one
// goroutine and copies everything it is given.
type Writer struct {
	out *linkbuf.Buffer
	// room is the unused tail of out with what was written there already.
	room []byte
	// bytes is how long the message may be, head how much of it there is before
	// what is written here.
	bytes    int
	head     int
	depth    int
	maxDepth int
	err      *Error
	// start is the length of out when writing began.
	start int
}

// firstChunk is what a message gets to begin with: most are shorter, and the
// pool's smallest class is that large.
const firstChunk = 512

// inlineString is up to where a string shares one reservation with its length;
// longer ones may span chunks.
const inlineString = 1 << 10

func newWriter(out *linkbuf.Buffer, m limits.Message) Writer {
	return Writer{out: out, bytes: m.Bytes, head: m.HeadBytes, depth: m.Depth, maxDepth: m.Depth, start: out.Len()}
}

// finish hands everything to the chain. It returns the error, if there was one;
// the chain then is as it was before.
func (w *Writer) finish() error {
	w.flush()
	if w.err != nil {
		w.out.Truncate(w.start)
		return w.err
	}
	return nil
}

func (w *Writer) flush() {
	if w.err == nil && len(w.room) > 0 {
		w.out.Commit(w.room)
		w.checkSize(0)
	}
	w.room = nil
}

// checkSize fails if the message with n more bytes is too long.
func (w *Writer) checkSize(n int) {
	if size := w.head + w.out.Len() - w.start + n; size > w.bytes {
		w.fail(&Error{Kind: thriftwire.LimitExceeded, Offset: -1, Detail: fmt.Sprintf(
			"message of %d bytes or more (limit %d)", size, w.bytes)})
	}
}

// reserve returns the next n bytes to write to.
func (w *Writer) reserve(n int) []byte {
	used := len(w.room)
	if cap(w.room)-used < n {
		w.grow(n)
		used = len(w.room)
	}
	w.room = w.room[:used+n]
	return w.room[used:]
}

func (w *Writer) grow(n int) {
	w.flush()
	if w.err != nil {
		// Somewhere to drop what follows; it is never handed over.
		w.room = make([]byte, 0, max(n, firstChunk))
		return
	}
	w.room = w.out.Room(max(n, firstChunk))
}

// Failed reports whether an error has happened.
func (w *Writer) Failed() bool { return w.err != nil }

func (w *Writer) fail(err *Error) {
	if w.err == nil {
		w.err = err
	}
}

// FailUnion records that set fields of a union are set instead of one.
func (w *Writer) FailUnion(name string, set int) {
	w.fail(&Error{Kind: thriftwire.BadValue, Offset: -1, Detail: fmt.Sprintf(
		"union %s: exactly one field must be set, %d are", name, set)})
}

// FailNil records that a struct that must be written is nil.
func (w *Writer) FailNil(what string) {
	w.fail(&Error{Kind: thriftwire.BadValue, Offset: -1, Detail: what + ": nil where a struct is required"})
}

// BeginStruct starts a struct. It reports false if that nests too deeply, which
// is also what a value that contains itself ends in.
func (w *Writer) BeginStruct() bool { return w.enter() }

// EndStruct writes the end mark of a struct that BeginStruct started.
func (w *Writer) EndStruct() {
	w.depth++
	w.reserve(1)[0] = byte(thriftwire.Stop)
}

func (w *Writer) enter() bool {
	if w.depth <= 0 {
		w.fail(thriftwire.DepthError(w.maxDepth, -1))
	}
	if w.err != nil {
		return false
	}
	w.depth--
	return true
}

// Field writes the header of a field; the value must follow.
func (w *Writer) Field(t Type, id int16) { putField(w.reserve(3), t, id) }

func putField(b []byte, t Type, id int16) {
	b[0] = byte(t)
	binary.BigEndian.PutUint16(b[1:], uint16(id))
}

// FieldBool writes a field of 4 bytes, the last of which is 1 or 0.
func (w *Writer) FieldBool(id int16, v bool) {
	b := w.reserve(4)
	putField(b, Bool, id)
	b[3] = boolByte(v)
}

// FieldI8 writes a field of 4 bytes.
func (w *Writer) FieldI8(id int16, v int8) {
	b := w.reserve(4)
	putField(b, I8, id)
	b[3] = byte(v)
}

// FieldI16 writes a field of 5 bytes.
func (w *Writer) FieldI16(id int16, v int16) {
	b := w.reserve(5)
	putField(b, I16, id)
	binary.BigEndian.PutUint16(b[3:], uint16(v))
}

// FieldI32 writes a field of 7 bytes. Fields of enums are written so as well.
func (w *Writer) FieldI32(id int16, v int32) {
	b := w.reserve(7)
	putField(b, I32, id)
	binary.BigEndian.PutUint32(b[3:], uint32(v))
}

// FieldI64 writes a field of 11 bytes.
func (w *Writer) FieldI64(id int16, v int64) {
	b := w.reserve(11)
	putField(b, I64, id)
	binary.BigEndian.PutUint64(b[3:], uint64(v))
}

// FieldDouble writes a field of 11 bytes.
func (w *Writer) FieldDouble(id int16, v float64) {
	b := w.reserve(11)
	putField(b, Double, id)
	binary.BigEndian.PutUint64(b[3:], math.Float64bits(v))
}

// FieldString writes a field of 7 bytes more than v has.
func (w *Writer) FieldString(id int16, v string) {
	w.Field(String, id)
	w.String(v)
}

// FieldBinary writes a field of 7 bytes more than v has. It is a string on the
// wire, and empty if v is nil.
func (w *Writer) FieldBinary(id int16, v []byte) {
	w.Field(String, id)
	w.Binary(v)
}

// FieldUUID writes a field of 19 bytes.
func (w *Writer) FieldUUID(id int16, v UUID) {
	b := w.reserve(3 + len(v))
	putField(b, UUIDType, id)
	copy(b[3:], v[:])
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// Bool writes 1 or 0. It and the methods below write values without headers:
// elements, keys, and what follows Field. Numbers have their first byte first.
func (w *Writer) Bool(v bool) { w.reserve(1)[0] = boolByte(v) }

// I8 writes 1 byte.
func (w *Writer) I8(v int8) { w.reserve(1)[0] = byte(v) }

// I16 writes 2 bytes.
func (w *Writer) I16(v int16) { binary.BigEndian.PutUint16(w.reserve(2), uint16(v)) }

// I32 writes 4 bytes. Enums are written so as well.
func (w *Writer) I32(v int32) { binary.BigEndian.PutUint32(w.reserve(4), uint32(v)) }

// I64 writes 8 bytes.
func (w *Writer) I64(v int64) { binary.BigEndian.PutUint64(w.reserve(8), uint64(v)) }

// Double writes the 8 bytes of the IEEE 754 form.
func (w *Writer) Double(v float64) { binary.BigEndian.PutUint64(w.reserve(8), math.Float64bits(v)) }

// UUID writes 16 bytes, which no length precedes.
func (w *Writer) UUID(v UUID) { copy(w.reserve(len(v)), v[:]) }

// String writes a length of 4 bytes and v, which need not be UTF-8.
func (w *Writer) String(v string) {
	if len(v) <= inlineString {
		b := w.reserve(4 + len(v))
		binary.BigEndian.PutUint32(b, uint32(len(v)))
		copy(b[4:], v)
	} else if w.beginLong(len(v)) {
		w.out.AppendString(v)
	}
}

// Binary writes a length of 4 bytes and v. Nil is the same as empty.
func (w *Writer) Binary(v []byte) {
	if len(v) <= inlineString {
		b := w.reserve(4 + len(v))
		binary.BigEndian.PutUint32(b, uint32(len(v)))
		copy(b[4:], v)
	} else if w.beginLong(len(v)) {
		w.out.Append(v)
	}
}

// beginLong writes the length of a string that goes to the chain directly, and
// reports whether it may.
func (w *Writer) beginLong(n int) bool {
	w.checkSize(len(w.room) + 4 + n)
	if w.err != nil {
		return false
	}
	binary.BigEndian.PutUint32(w.reserve(4), uint32(n))
	w.flush()
	return w.err == nil
}

// BeginList writes the header of a list or set of n elements of type element.
// EndList must follow if and only if it reports true.
func (w *Writer) BeginList(element Type, n int) bool {
	if !w.count(n) || !w.enter() {
		return false
	}
	b := w.reserve(5)
	b[0] = byte(element)
	binary.BigEndian.PutUint32(b[1:], uint32(n))
	return true
}

// EndList must follow the elements that BeginList announced. It writes nothing.
func (w *Writer) EndList() { w.depth++ }

// BeginMap writes the header of a map of n entries. EndMap must follow if and
// only if it reports true.
func (w *Writer) BeginMap(key, value Type, n int) bool {
	if !w.count(n) || !w.enter() {
		return false
	}
	b := w.reserve(6)
	b[0], b[1] = byte(key), byte(value)
	binary.BigEndian.PutUint32(b[2:], uint32(n))
	return true
}

// EndMap must follow the entries that BeginMap announced. It writes nothing.
func (w *Writer) EndMap() { w.depth++ }

// count refuses a number of elements that the header cannot say.
func (w *Writer) count(n int) bool {
	if n <= math.MaxInt32 {
		return true
	}
	w.fail(&Error{Kind: thriftwire.LimitExceeded, Offset: -1, Detail: fmt.Sprintf(
		"container of %d elements (limit %d)", n, math.MaxInt32)})
	return false
}
