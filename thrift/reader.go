package thrift

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Reader reads one struct from bytes that are all there. The first error
// sticks: from then on fields end, values are zero and counts are 0.
//
// Generated code is its only intended caller. A Reader belongs to one
// goroutine; nothing it returns refers to the bytes it reads.
type Reader struct {
	buf []byte
	pos int
	// depth is how many more levels may nest, maxDepth how many in all.
	depth    int
	maxDepth int
	// budget is how many more bytes decoding may allocate.
	budget int64
	// last is the field that is being read, for errors.
	last FieldKey
	err  *Error
}

func newReader(b []byte, m limits.Message) Reader {
	return Reader{buf: b, depth: m.Depth, maxDepth: m.Depth, budget: m.DecodeBytes(len(b))}
}

// Failed reports whether an error has happened.
func (r *Reader) Failed() bool { return r.err != nil }

// fail records the first error and makes every later read come up short.
func (r *Reader) fail(err *Error) {
	if r.err == nil {
		if r.last != 0 {
			err.Inside(fmt.Sprintf("field %d", r.last.ID()))
		}
		r.err = err
	}
	r.pos = len(r.buf)
}

// short fails because n more bytes are needed and not there.
func (r *Reader) short(n int, what string) {
	r.fail(&Error{Kind: thriftwire.Truncated, Offset: r.pos, Detail: fmt.Sprintf(
		"%s needs %d bytes, %d are left", what, n, len(r.buf)-r.pos)})
}

// BeginStruct starts a struct. It reports false if that nests too deeply; the
// struct then must not be read.
func (r *Reader) BeginStruct() bool { return r.enter() }

func (r *Reader) enter() bool {
	if r.depth <= 0 {
		r.fail(thriftwire.DepthError(r.maxDepth, r.pos))
	}
	if r.err != nil {
		return false
	}
	r.depth--
	return true
}

// EndStruct ends a struct that BeginStruct started. name is the struct's name
// for errors.
func (r *Reader) EndStruct(name string) {
	r.depth++
	if r.err != nil {
		r.err.Inside(name)
	}
}

// Field reads the header of the next field. It reports false at the end of the
// struct and after an error.
func (r *Reader) Field() (FieldKey, bool) {
	if len(r.buf)-r.pos < 3 {
		return 0, r.lastField()
	}
	t := Type(r.buf[r.pos])
	if t == thriftwire.Stop {
		r.pos++
		return 0, false
	}
	key := Key(t, int16(binary.BigEndian.Uint16(r.buf[r.pos+1:])))
	r.pos += 3
	r.last = key
	return key, true
}

// lastField handles a field header with fewer than 3 bytes left: only the end
// of the struct fits.
func (r *Reader) lastField() bool {
	if r.pos < len(r.buf) && Type(r.buf[r.pos]) == thriftwire.Stop {
		r.pos++
	} else {
		r.short(3, "field header")
	}
	return false
}

// Skip passes over the value of a field that the struct does not know, or that
// has another type than expected.
func (r *Reader) Skip(key FieldKey) { r.skip(key.Type()) }

func (r *Reader) skip(t Type) {
	if r.err != nil {
		return
	}
	if size := t.FixedSize(); size > 0 && size <= len(r.buf)-r.pos {
		r.pos += size
		return
	}
	size, err := thriftwire.Skip(r.buf[r.pos:], t, r.depth, r.maxDepth)
	if err != nil {
		wireError := err.(*Error)
		wireError.Offset += r.pos
		r.fail(wireError)
		return
	}
	r.pos += size
}

// Bool reads a bool. Only the byte 1 is true, as in Kitex; a Go bool never
// holds anything but 0 or 1.
func (r *Reader) Bool() bool { return r.I8() == 1 }

// I8 reads 1 byte.
func (r *Reader) I8() int8 {
	if len(r.buf)-r.pos < 1 {
		r.short(1, "i8")
		return 0
	}
	v := r.buf[r.pos]
	r.pos++
	return int8(v)
}

// I16 reads 2 bytes.
func (r *Reader) I16() int16 {
	if len(r.buf)-r.pos < 2 {
		r.short(2, "i16")
		return 0
	}
	v := binary.BigEndian.Uint16(r.buf[r.pos:])
	r.pos += 2
	return int16(v)
}

// I32 reads 4 bytes. Enums are read so as well, known or not.
func (r *Reader) I32() int32 {
	if len(r.buf)-r.pos < 4 {
		r.short(4, "i32")
		return 0
	}
	v := binary.BigEndian.Uint32(r.buf[r.pos:])
	r.pos += 4
	return int32(v)
}

// I64 reads 8 bytes.
func (r *Reader) I64() int64 {
	if len(r.buf)-r.pos < 8 {
		r.short(8, "i64")
		return 0
	}
	v := binary.BigEndian.Uint64(r.buf[r.pos:])
	r.pos += 8
	return int64(v)
}

// Double reads 8 bytes.
func (r *Reader) Double() float64 {
	if len(r.buf)-r.pos < 8 {
		r.short(8, "double")
		return 0
	}
	v := binary.BigEndian.Uint64(r.buf[r.pos:])
	r.pos += 8
	return math.Float64frombits(v)
}

// UUID reads 16 bytes, which no length precedes.
func (r *Reader) UUID() UUID {
	var v UUID
	if len(r.buf)-r.pos < len(v) {
		r.short(len(v), "uuid")
		return v
	}
	r.pos += copy(v[:], r.buf[r.pos:])
	return v
}

// String reads a string into memory of its own. The bytes are not checked to be
// UTF-8: Thrift peers send binary data as strings.
func (r *Reader) String() string { return string(r.bytes("string")) }

// Binary reads a binary into memory of its own; never nil unless Failed.
func (r *Reader) Binary() []byte {
	b := r.bytes("binary")
	if r.err != nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

// bytes returns the next string or binary within the input, after charging its
// copy to the budget.
func (r *Reader) bytes(what string) []byte {
	if len(r.buf)-r.pos < 4 {
		r.short(4, what+" length")
		return nil
	}
	length := int(int32(binary.BigEndian.Uint32(r.buf[r.pos:])))
	if length < 0 {
		r.fail(&Error{Kind: thriftwire.Malformed, Offset: r.pos, Detail: fmt.Sprintf("%s of %d bytes", what, length)})
		return nil
	}
	if length > len(r.buf)-r.pos-4 {
		r.pos += 4
		r.short(length, what)
		return nil
	}
	if !r.charge(int64(length)) {
		return nil
	}
	start := r.pos + 4
	r.pos = start + length
	return r.buf[start:r.pos]
}

// BeginList reads the header of a list or set with elements of type element.
// It reports false after an error, and if the elements are of another type: they
// are then passed over and the destination should stay as it is. An empty list
// fits every type, because peers write empty ones with any.
//
// EndList must follow if and only if it reports true.
func (r *Reader) BeginList(element Type) (n int, ok bool) {
	if len(r.buf)-r.pos < 5 {
		r.short(5, "list header")
		return 0, false
	}
	t := Type(r.buf[r.pos])
	n = int(int32(binary.BigEndian.Uint32(r.buf[r.pos+1:])))
	if n == 0 {
		r.pos += 5
		return 0, r.enter()
	}
	if t != element {
		r.skip(List)
		return 0, false
	}
	if err := thriftwire.CheckCount(List, t, t, n, r.pos, len(r.buf)-r.pos-5); err != nil {
		r.fail(err.(*Error))
		return 0, false
	}
	r.pos += 5
	return n, r.enter()
}

// EndList ends a list or set that BeginList started.
func (r *Reader) EndList() { r.depth++ }

// BeginMap reads the header of a map; see BeginList.
func (r *Reader) BeginMap(key, value Type) (n int, ok bool) {
	if len(r.buf)-r.pos < 6 {
		r.short(6, "map header")
		return 0, false
	}
	keyType, valueType := Type(r.buf[r.pos]), Type(r.buf[r.pos+1])
	n = int(int32(binary.BigEndian.Uint32(r.buf[r.pos+2:])))
	if n == 0 {
		r.pos += 6
		return 0, r.enter()
	}
	if keyType != key || valueType != value {
		r.skip(Map)
		return 0, false
	}
	if err := thriftwire.CheckCount(Map, keyType, valueType, n, r.pos, len(r.buf)-r.pos-6); err != nil {
		r.fail(err.(*Error))
		return 0, false
	}
	r.pos += 6
	return n, r.enter()
}

// EndMap ends a map that BeginMap started.
func (r *Reader) EndMap() { r.depth++ }

// FailMissing records that required fields are absent. Generated code calls it
// after the whole struct was read, before EndStruct.
func (r *Reader) FailMissing(fields ...string) {
	if r.err != nil {
		return
	}
	// The field read last is not the one at fault.
	r.last = 0
	r.fail(&Error{Kind: thriftwire.MissingField, Offset: r.pos, Detail: fmt.Sprintf("required but absent: %s", strings.Join(fields, ", "))})
}

// charge takes n bytes from the budget.
func (r *Reader) charge(n int64) bool {
	if r.budget -= n; r.budget >= 0 {
		return true
	}
	r.fail(&Error{Kind: thriftwire.LimitExceeded, Offset: r.pos, Detail: fmt.Sprintf(
		"decoding needs %d bytes more memory than a message of %d bytes may take", -r.budget, len(r.buf))})
	return false
}

// room returns for how many of n elements of size bytes memory may be taken at
// once. More has to be earned by decoding.
func (r *Reader) room(n int, size uintptr) int {
	if size == 0 {
		return n
	}
	first := max(limits.ContainerFirstBytes, limits.ContainerFirstBytesPerWireByte*(len(r.buf)-r.pos))
	return min(n, first/int(size)+1)
}

// MakeSlice returns an empty slice for n elements that BeginList announced. It
// is not nil. Its capacity may be less than n; the memory for all n is charged.
func MakeSlice[T any](r *Reader, n int) []T {
	size := unsafe.Sizeof(*new(T))
	if !r.charge(int64(n) * int64(size)) {
		return []T{}
	}
	return make([]T, 0, r.room(n, size))
}

// MakeMap returns an empty map for n entries that BeginMap announced; see
// MakeSlice.
func MakeMap[K comparable, V any](r *Reader, n int) map[K]V {
	bytes := mapBytes[K, V](n)
	if !r.charge(bytes) {
		return map[K]V{}
	}
	return make(map[K]V, r.room(n, uintptr(bytes/int64(max(n, 1)))))
}

// Allocate returns a new T that was charged to the budget. It is never nil, so
// that generated code can go on after an error.
func Allocate[T any](r *Reader) *T {
	r.charge(int64(unsafe.Sizeof(*new(T))))
	return new(T)
}
