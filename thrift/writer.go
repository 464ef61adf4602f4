package thrift

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Writer appends one struct to a chain of chunks in a single pass. Generated code
// is its only intended caller. A Writer belongs to one goroutine.
//
// The chunk that is being filled is an argument of its methods, and a result, so
// that generated code keeps it in registers; they never append beyond its capacity.
// The first error sticks: structs and containers that begin after it write nothing,
// and what else is written is dropped.
type Writer struct {
	// out is the chain; nil if everything goes to one slice, which grows.
	out *linkbuf.Buffer
	// bytes is how long the message may be, head how much of it there is before
	// what is written here.
	bytes    int
	head     int
	depth    int
	maxDepth int
	err      *Error
	// start is the length of out, or of the slice, when writing began.
	start int
	// likely is how long the message will probably be.
	likely int
	// fixed is where FastWrite writes, nil elsewhere.
	fixed *fixedBuffer
	// whole is what appendTo writes, until it is known how long that is. tools is what
	// finds it out, counter the same while it does.
	whole   Struct
	tools   *appending
	counter *counter
	// comparing: what is written is an element of a set that is compared with others. lax:
	// one that was read, so that an arm of a union may be missing, which nobody knew.
	comparing, lax bool
	// elements is what sets are compared in, nil until one is.
	elements *elements
}

// firstChunk is what a message gets to begin with if nobody knows how long it will
// be: most are shorter, and the pool's smallest class is that large. firstChunkMost
// is the most that it gets at once, as much as further chunks have.
const (
	firstChunk     = 512
	firstChunkMost = 64 << 10
)

func newWriter(m limits.Message) Writer {
	var w Writer
	w.begin(m)
	return w
}

// begin makes w, which is zero, one that writes within limits.
func (w *Writer) begin(m limits.Message) {
	w.bytes, w.head, w.depth, w.maxDepth, w.likely = m.Bytes, m.HeadBytes, m.Depth, m.Depth, m.LikelyBytes
}

// writeTo appends s to out. On an error out is as it was before.
func (w *Writer) writeTo(out *linkbuf.Buffer, s Struct) error {
	w.out, w.start = out, out.Len()
	w.flush(s.WriteThrift(w, out.Room(min(max(w.likely, firstChunk), firstChunkMost))))
	if w.err != nil {
		out.Truncate(w.start)
		return w.err
	}
	return nil
}

// appendTo returns dst with s behind it.
func (w *Writer) appendTo(dst []byte, s Struct) ([]byte, error) {
	w.start, w.whole = len(dst), s
	b := s.WriteThrift(w, dst)
	w.checkSize(len(b) - w.start)
	if w.err != nil {
		return dst, w.err
	}
	return b, nil
}

// flush hands a chunk to the chain.
func (w *Writer) flush(b []byte) {
	if w.err == nil {
		w.out.Commit(b)
		w.checkSize(w.out.Len() - w.start)
	}
}

// checkSize fails if n bytes are too many.
func (w *Writer) checkSize(n int) {
	if size := w.head + n; size > w.bytes || size < 0 {
		w.fail(&Error{Kind: thriftwire.LimitExceeded, Offset: -1, Detail: fmt.Sprintf(
			"message of %d bytes or more (limit %d)", size, w.bytes)})
	}
}

// Room returns b, or the next chunk, with room for n bytes more.
func (w *Writer) Room(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		return w.grow(b, n)
	}
	return b
}

func (w *Writer) grow(b []byte, n int) []byte {
	if w.err == nil {
		switch {
		case w.out != nil:
			w.flush(b)
		case w.counter != nil:
			w.checkSize(w.counter.total + len(b) + n)
		default:
			w.checkSize(len(b) - w.start + n)
		}
	}
	if w.err != nil {
		return w.scratch(b, n)
	}
	switch {
	case w.out != nil:
		return w.out.Room(max(n, firstChunk))
	case w.fixed != nil:
		return w.fixed.room(b, n)
	case w.counter != nil:
		return w.counter.room(b, n)
	case w.whole != nil && n < firstChunk:
		// More in one piece is most of what there is, or would be looked at twice.
		return w.measured(b, n)
	}
	return append(make([]byte, 0, max(2*cap(b), len(b)+n)), b...)
}

// scratch is where to drop what follows an error. It is never handed over; what was
// there before this struct stays.
func (w *Writer) scratch(b []byte, n int) []byte {
	kept := 0
	if w.out == nil {
		kept = w.start
	}
	if cap(b)-kept < n {
		b = make([]byte, kept+max(n, firstChunk))
	}
	return b[:kept]
}

// Failed reports whether an error has happened.
func (w *Writer) Failed() bool { return w.err != nil }

func (w *Writer) fail(err *Error) {
	if w.err == nil {
		w.err = err
		w.depth = math.MinInt / 2 // nothing begins any more
	}
}

// FailUnion records that set fields of a union are set instead of one.
func (w *Writer) FailUnion(name string, set int) {
	if w.lax && set == 0 {
		return
	}
	w.fail(&Error{Kind: thriftwire.BadValue, Offset: -1, Detail: fmt.Sprintf(
		"union %s: exactly one field must be set, %d are", name, set)})
}

// FailNil records that a struct that must be written is nil.
func (w *Writer) FailNil(what string) {
	w.fail(&Error{Kind: thriftwire.BadValue, Offset: -1, Detail: what + ": nil where a struct is required"})
}

// BeginStruct starts a struct. It reports false if that nests too deeply, which
// is also what a value that contains itself ends in, or after an error.
func (w *Writer) BeginStruct() bool {
	if w.depth--; w.depth < 0 {
		return w.tooDeep()
	}
	return true
}

// BeginLeaf is BeginStruct for a struct in which nothing nests. EndLeaf must follow.
func (w *Writer) BeginLeaf() bool {
	if w.depth < 1 {
		return w.tooDeep()
	}
	return true
}

func (w *Writer) tooDeep() bool {
	w.fail(thriftwire.DepthError(w.maxDepth, -1))
	return false
}

// EndStruct writes the end mark of a struct that BeginStruct started.
func (w *Writer) EndStruct(b []byte) []byte {
	w.depth++
	if len(b) == cap(b) {
		b = w.grow(b, 1)
	}
	return append(b, byte(thriftwire.Stop))
}

// EndLeaf writes the end mark of a struct that BeginLeaf started.
func (w *Writer) EndLeaf(b []byte) []byte {
	if len(b) == cap(b) {
		b = w.grow(b, 1)
	}
	return append(b, byte(thriftwire.Stop))
}

// --- fields of a fixed size, for which Room has made room ---

// header is the header of a field in the first 3 of 4 bytes.
func header(t Type, id int16) uint32 { return uint32(t)<<24 | uint32(uint16(id))<<8 }

// PutBool writes a field of 4 bytes, the last of which is 1 or 0.
func PutBool(b []byte, id int16, v bool) {
	binary.BigEndian.PutUint32(b, header(Bool, id)|uint32(boolByte(v)))
}

// PutI8 writes a field of 4 bytes.
func PutI8(b []byte, id int16, v int8) {
	binary.BigEndian.PutUint32(b, header(I8, id)|uint32(uint8(v)))
}

// PutI16 writes a field of 5 bytes.
func PutI16(b []byte, id int16, v int16) {
	binary.BigEndian.PutUint32(b, header(I16, id))
	binary.BigEndian.PutUint16(b[3:], uint16(v))
}

// PutI32 writes a field of 7 bytes. Fields of enums are written so as well.
func PutI32(b []byte, id int16, v int32) {
	binary.BigEndian.PutUint32(b, header(I32, id))
	binary.BigEndian.PutUint32(b[3:], uint32(v))
}

// PutI64 writes a field of 11 bytes.
func PutI64(b []byte, id int16, v int64) {
	binary.BigEndian.PutUint32(b, header(I64, id))
	binary.BigEndian.PutUint64(b[3:], uint64(v))
}

// PutDouble writes a field of 11 bytes.
func PutDouble(b []byte, id int16, v float64) {
	binary.BigEndian.PutUint32(b, header(Double, id))
	binary.BigEndian.PutUint64(b[3:], math.Float64bits(v))
}

// PutUUID writes a field of 19 bytes.
func PutUUID(b []byte, id int16, v UUID) {
	binary.BigEndian.PutUint32(b, header(UUIDType, id))
	copy(b[3:], v[:])
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// --- fields of other sizes, and values ---

// PutField writes the header of a field. Room has made room for 4 bytes: with the
// first byte of the value, which must follow, the header is one store.
func PutField(b []byte, key FieldKey) []byte {
	binary.BigEndian.PutUint32(b[len(b):len(b)+4], uint32(key)<<8)
	return b[:len(b)+3]
}

// Bool writes 1 or 0. It and the methods below write values without headers:
// elements, keys, and what follows Field. Numbers have their first byte first.
func (w *Writer) Bool(b []byte, v bool) []byte { return append(w.Room(b, 1), boolByte(v)) }

// I8 writes 1 byte.
func (w *Writer) I8(b []byte, v int8) []byte { return append(w.Room(b, 1), byte(v)) }

// I16 writes 2 bytes.
func (w *Writer) I16(b []byte, v int16) []byte {
	return binary.BigEndian.AppendUint16(w.Room(b, 2), uint16(v))
}

// I32 writes 4 bytes. Enums are written so as well.
func (w *Writer) I32(b []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(w.Room(b, 4), uint32(v))
}

// I64 writes 8 bytes.
func (w *Writer) I64(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(w.Room(b, 8), uint64(v))
}

// Double writes the 8 bytes of the IEEE 754 form.
func (w *Writer) Double(b []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(w.Room(b, 8), math.Float64bits(v))
}

// UUID writes 16 bytes, which no length precedes.
func (w *Writer) UUID(b []byte, v UUID) []byte { return append(w.Room(b, len(v)), v[:]...) }

// BeginList writes the header of a list or set of n elements of type element, and
// EndList must follow these. key is the header of the field that has the list as its
// value, 0 if it is in another container.
func (w *Writer) BeginList(b []byte, key FieldKey, element Type, n int) []byte {
	b = w.listHeader(b, key, element, n, 0)
	w.depth--
	return b
}

// refuse fails because of the nesting, or of a number of elements that the header
// cannot say.
func (w *Writer) refuse(n int) {
	if w.depth < 1 {
		w.tooDeep()
	}
	w.fail(&Error{Kind: thriftwire.LimitExceeded, Offset: -1, Detail: fmt.Sprintf(
		"container of %d elements (limit %d)", n, math.MaxInt32)})
}

// EndList must follow the elements that BeginList announced. It writes nothing.
func (w *Writer) EndList() { w.depth++ }

// BeginMap writes the header of a map of n entries, and EndMap must follow these; see
// BeginList.
func (w *Writer) BeginMap(b []byte, field FieldKey, key, value Type, n int) []byte {
	if w.depth < 1 || n > math.MaxInt32 {
		w.refuse(n)
		return b
	}
	w.depth--
	if field != 0 {
		b = PutField(w.Room(b, 4), field)
	}
	return binary.BigEndian.AppendUint32(append(w.Room(b, 6), byte(key), byte(value)), uint32(n))
}

// EndMap must follow the entries that BeginMap announced. It writes nothing.
func (w *Writer) EndMap() { w.depth++ }
