// Package wire is a Thrift Binary reader and writer, just large enough to
// compare struct shapes. It follows the thrift package's contract (errors
// stick, fields are found by a switch on type and id, containers are checked
// before they are allocated) without waiting for it or moving with it.
package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"unsafe"
)

// Type is a wire type.
type Type uint8

// The wire types that the benchmark's structs use, and Stop.
const (
	Stop       Type = 0
	Bool       Type = 2
	I8         Type = 3
	Double     Type = 4
	I16        Type = 6
	I32        Type = 8
	I64        Type = 10
	String     Type = 11
	StructType Type = 12
	Map        Type = 13
	Set        Type = 14
	List       Type = 15
	UUID       Type = 16
)

const depthMax = 64

// The errors of Reader.Err.
var (
	ErrTruncated = errors.New("wire: message ends early")
	ErrMalformed = errors.New("wire: unknown type or impossible length")
	ErrDepth     = errors.New("wire: nested too deeply")
	ErrBudget    = errors.New("wire: decoding needs more memory than allowed")
)

// Config says how a Reader allocates.
type Config struct {
	// OwnStrings copies every string. Otherwise strings point into the message,
	// which then must not change any more.
	OwnStrings bool
	// FirstBytes bounds the first allocation of a container, which then
	// doubles; 0 allocates the declared number of elements at once.
	FirstBytes int
	// FirstPerWireByte raises that bound to so many bytes for each byte of the
	// message that is still unread, bytes that the peer did have to send.
	FirstPerWireByte int
	// Budget is how many bytes may be allocated; 0 means any number.
	Budget int64
}

// Reader reads Thrift Binary from one slice. After an error everything it
// returns is zero.
type Reader struct {
	buf    []byte
	pos    int
	depth  int
	config Config
	err    error
}

// NewReader returns a Reader of message.
func NewReader(message []byte, config Config) *Reader {
	r := new(Reader)
	r.Init(message, config)
	return r
}

// Init makes r read message from its start.
func (r *Reader) Init(message []byte, config Config) {
	if config.FirstBytes == 0 {
		config.FirstBytes = math.MaxInt
	}
	if config.Budget == 0 {
		config.Budget = math.MaxInt64
	}
	*r = Reader{buf: message, config: config}
}

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Failed says whether there was an error.
func (r *Reader) Failed() bool { return r.err != nil }

func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.pos = len(r.buf)
}

// BeginStruct counts one level of nesting.
func (r *Reader) BeginStruct() bool {
	r.depth++
	if r.depth > depthMax {
		r.fail(ErrDepth)
		return false
	}
	return true
}

// EndStruct leaves one level of nesting.
func (r *Reader) EndStruct() { r.depth-- }

// Field reads a field header: type<<16 | id. ok is false after the last field
// and after an error.
func (r *Reader) Field() (key uint32, ok bool) {
	b := r.buf[r.pos:]
	if len(b) >= 3 && b[0] != byte(Stop) {
		r.pos += 3
		return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]), true
	}
	if len(b) == 0 || b[0] != byte(Stop) {
		r.fail(ErrTruncated)
		return 0, false
	}
	r.pos++
	return 0, false
}

// take returns the next n bytes; nil after an error.
func (r *Reader) take(n int) []byte {
	if uint(n) > uint(len(r.buf)-r.pos) {
		r.fail(ErrTruncated)
		return nil
	}
	b := r.buf[r.pos : r.pos+n]
	r.pos += n
	return b
}

// Bool reads a bool; every byte but 1 is false.
func (r *Reader) Bool() bool {
	if b := r.take(1); b != nil {
		return b[0] == 1
	}
	return false
}

// I32 reads an i32.
func (r *Reader) I32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// I64 reads an i64.
func (r *Reader) I64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// String reads a string and copies it if the Config says so.
func (r *Reader) String() string {
	n := int(uint32(r.I32()))
	b := r.take(n)
	if len(b) == 0 {
		return ""
	}
	if r.config.OwnStrings {
		return string(b)
	}
	return unsafe.String(&b[0], len(b))
}

// BeginList reads a list header. ok is false after an error, for a count that
// the remaining bytes cannot hold, and for elements of another type.
func (r *Reader) BeginList(element Type) (n int, ok bool) {
	b := r.take(5)
	if b == nil {
		return 0, false
	}
	n = int(binary.BigEndian.Uint32(b[1:]))
	if n > len(r.buf)-r.pos || Type(b[0]) != element {
		r.fail(ErrMalformed)
		return 0, false
	}
	return n, true
}

// charge takes n bytes from the budget.
func (r *Reader) charge(n int64) bool {
	if n > r.config.Budget {
		r.fail(ErrBudget)
		return false
	}
	r.config.Budget -= n
	return true
}

// MakeSlice returns an empty slice for n elements, which are charged now.
func MakeSlice[T any](r *Reader, n int) []T {
	size := int(unsafe.Sizeof(*new(T)))
	if !r.charge(int64(n) * int64(size)) {
		return []T{}
	}
	first := max(r.config.FirstBytes, r.config.FirstPerWireByte*(len(r.buf)-r.pos), size)
	return make([]T, 0, min(n, first/size))
}

// Next returns list with one more zero element, which list's own spare
// capacity already holds unless it is full. total bounds the new capacity.
func Next[T any](list []T, total int) []T {
	if len(list) == cap(list) {
		return double(list, total)
	}
	return list[:len(list)+1]
}

func double[T any](list []T, total int) []T {
	grown := make([]T, len(list)+1, max(len(list)+1, min(2*len(list), total)))
	copy(grown, list)
	return grown
}

// Skip reads a value without keeping it. key is what Field returned.
func (r *Reader) Skip(key uint32) { r.skip(Type(key >> 16)) }

func (r *Reader) skip(t Type) {
	switch t {
	case Bool, I8:
		r.take(1)
	case I16:
		r.take(2)
	case I32:
		r.take(4)
	case I64, Double:
		r.take(8)
	case UUID:
		r.take(16)
	case String:
		r.take(int(uint32(r.I32())))
	case StructType, Map, Set, List:
		if r.BeginStruct() {
			r.skipNested(t)
		}
		r.EndStruct()
	default:
		r.fail(ErrMalformed)
	}
}

func (r *Reader) skipNested(t Type) {
	if t == StructType {
		for key, ok := r.Field(); ok; key, ok = r.Field() {
			r.Skip(key)
		}
		return
	}
	types := r.take(1)
	if t == Map && types != nil {
		types = append(types[:1:1], r.take(1)...)
	}
	n := int(uint32(r.I32()))
	if n > len(r.buf)-r.pos {
		r.fail(ErrTruncated)
	}
	for i := 0; i < n && !r.Failed(); i++ {
		for _, element := range types {
			r.skip(Type(element))
		}
	}
}
