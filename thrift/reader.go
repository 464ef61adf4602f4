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

// Reader reads structs from bytes that are all there. Generated code is its only
// intended caller. A Reader belongs to one goroutine.
//
// Where it reads is an argument of its methods, and how far it came a result, so
// that generated code keeps both in registers. The first error sticks: from then
// on every method returns the end of the bytes, and values are zero.
type Reader struct {
	buf []byte
	// depth is how many more levels may nest, maxDepth how many in all.
	depth    int
	maxDepth int
	// budget is how many more bytes decoding may allocate.
	budget  int64
	strings stringPlaces
	// memory is made when something needs it: most messages do not.
	memory *memory
	// reuse: what is read takes the memory of what the struct was before.
	reuse bool
	// singles and singleMaps are how many structs and small maps have been made one by
	// one; see Structs and sharesPiece.
	singles, singleMaps uint8
	// views is how long views may refer to the message, nil if for ever or not at all.
	views *Lease
	err   *Error
}

// memory is what a Reader has taken and not given away yet.
type memory struct {
	// copied is the part of the message from copiedFrom on that has been copied, while
	// no string may refer to it.
	copied     []byte
	copiedFrom int
	// arena is for strings of their own, strings and words for lists of them and of
	// numbers, which hold no pointers.
	arena []byte
	// arenaFrom is where in the message the first string of the arena was.
	arenaFrom int
	strings   []string
	words     []uint64
	// structs is for structs that are pointed to; see Structs.
	structs *structSlabs
	// maps is for small maps; see smallMap.
	maps *structSlabs
	// kitex is for code in the shape of Kitex, and for sets; see forKitex.
	kitex *kitexMemory
}

func (r *Reader) more() *memory {
	if r.memory == nil {
		r.memory = new(memory)
	}
	return r.memory
}

func newReader(b []byte, m limits.Message, policy Strings, lease lease) Reader {
	var r Reader
	r.begin(b, m, policy, lease)
	return r
}

// begin makes r, which is zero, one that reads b. Made elsewhere and copied, it and a Writer took
// 8 % of a call within a process (struct-16 of BenchmarkViewMethods, the least of 40 runs).
func (r *Reader) begin(b []byte, m limits.Message, policy Strings, lease lease) {
	r.buf, r.depth, r.maxDepth, r.budget = b, m.Depth, m.Depth, m.DecodeBytes(len(b))
	r.strings.policy, r.strings.lease = policy, lease
	r.placeStrings()
}

// Failed reports whether an error has happened.
func (r *Reader) Failed() bool { return r.err != nil }

// fail records the first error. It returns where reading goes on, which is the
// end.
func (r *Reader) fail(err *Error) int {
	if r.err == nil {
		r.err = err
		r.depth = math.MinInt / 2 // nothing begins any more, also where p was not moved
	}
	return len(r.buf)
}

// Short fails because a value of type t is not there as a whole at p.
func (r *Reader) Short(p int, t Type) int { return r.short(p, t.FixedSize(), t.String()) }

// short fails because n bytes are needed at p and not there.
func (r *Reader) short(p, n int, what string) int {
	if r.err != nil {
		return len(r.buf) // p may mean nothing
	}
	return r.fail(&Error{Kind: thriftwire.Truncated, Offset: p, Detail: fmt.Sprintf(
		"%s needs %d bytes, %d are left", what, n, len(r.buf)-p)})
}

// BeginStruct starts a struct and returns all bytes: nil if it nests too deeply.
// EndStruct must follow.
func (r *Reader) BeginStruct() []byte {
	if r.depth--; r.depth < 0 {
		return r.tooDeep()
	}
	return r.buf
}

// tooDeep fails; who ends the struct knows where it began.
func (r *Reader) tooDeep() []byte {
	r.fail(thriftwire.DepthError(r.maxDepth, -1))
	return nil
}

// KeyAt returns the header of a field at p, of which there are 4 bytes at least:
// the shortest field has that many.
func KeyAt(b []byte, p int) FieldKey { return FieldKey(binary.BigEndian.Uint32(b[p:]) >> 8) }

// IsStop reports whether k is not the header of a field but the end mark of a
// struct, whatever follows it.
func (k FieldKey) IsStop() bool { return k < 1<<16 }

// EndStruct ends a struct that BeginStruct started: its end mark is at p. key is
// the field that was read last, 0 if none is to blame for an error, and name the
// name of the struct, both for errors.
func (r *Reader) EndStruct(p int, key FieldKey, name string) int {
	r.depth++
	// After an error p is the end, or the start of a struct that nests too deeply.
	if p < len(r.buf) && r.buf[p] == 0 && r.depth > 0 { // 0: thriftwire.Stop
		return p + 1
	}
	return r.failStruct(p, key, name)
}

// PastStop is EndStruct where the end mark is known to be at p.
func (r *Reader) PastStop(p int) int {
	r.depth++
	return p + 1
}

func (r *Reader) failStruct(p int, key FieldKey, name string) int {
	if r.err == nil {
		key = 0
		r.short(p, 3, "field header")
	}
	if r.err.Offset < 0 {
		r.err.Offset = p
	}
	if !key.IsStop() {
		r.err.Inside(fmt.Sprintf("field %d", key.ID()))
	}
	r.err.Inside(name)
	return len(r.buf)
}

// FailMissing records that required fields are absent, if the end mark of the
// struct is at p.
func (r *Reader) FailMissing(p int, fields ...string) int {
	if p >= len(r.buf) || r.buf[p] != byte(thriftwire.Stop) {
		return p // which is what EndStruct says
	}
	return r.fail(&Error{Kind: thriftwire.MissingField, Offset: p, Detail: fmt.Sprintf("required but absent: %s", strings.Join(fields, ", "))})
}

// Skip passes over the field whose header is at p: the struct does not know it,
// or with another type.
func (r *Reader) Skip(p int, key FieldKey) int { return r.skip(p+3, key.Type()) }

func (r *Reader) skip(p int, t Type) int {
	if size := t.FixedSize(); size > 0 && size <= len(r.buf)-p {
		return p + size
	}
	if r.err != nil {
		return len(r.buf)
	}
	size, err := thriftwire.Skip(r.buf[p:], t, r.depth, r.maxDepth)
	if err != nil {
		wireError := err.(*Error)
		wireError.Offset += p
		return r.fail(wireError)
	}
	return p + size
}

// --- values ---

// I16At returns the i16 at p, of which all bytes are there, as I32At, I64At and
// DoubleAt do for what they say.
func I16At(b []byte, p int) int16 { return int16(binary.BigEndian.Uint16(b[p:])) }

// I32At returns the i32 at p; see I16At.
func I32At(b []byte, p int) int32 { return int32(binary.BigEndian.Uint32(b[p:])) }

// I64At returns the i64 at p; see I16At.
func I64At(b []byte, p int) int64 { return int64(binary.BigEndian.Uint64(b[p:])) }

// DoubleAt returns the double at p; see I16At.
func DoubleAt(b []byte, p int) float64 { return math.Float64frombits(binary.BigEndian.Uint64(b[p:])) }

// Bool reads a bool. Only the byte 1 is true, as in Kitex; a Go bool never
// holds anything but 0 or 1.
func (r *Reader) Bool(p int) (bool, int) {
	v, p := r.I8(p)
	return v == 1, p
}

// I8 reads 1 byte.
func (r *Reader) I8(p int) (int8, int) {
	if len(r.buf)-p < 1 {
		return 0, r.Short(p, I8)
	}
	return int8(r.buf[p]), p + 1
}

// I16 reads 2 bytes.
func (r *Reader) I16(p int) (int16, int) {
	if len(r.buf)-p < 2 {
		return 0, r.Short(p, I16)
	}
	return I16At(r.buf, p), p + 2
}

// I32 reads 4 bytes.
func (r *Reader) I32(p int) (int32, int) {
	if len(r.buf)-p < 4 {
		return 0, r.Short(p, I32)
	}
	return I32At(r.buf, p), p + 4
}

// ReadEnum reads an enum, known or not.
func ReadEnum[E ~int32 | ~int64](r *Reader, p int) (E, int) {
	v, p := r.I32(p)
	return E(v), p
}

// I64 reads 8 bytes.
func (r *Reader) I64(p int) (int64, int) {
	if len(r.buf)-p < 8 {
		return 0, r.Short(p, I64)
	}
	return I64At(r.buf, p), p + 8
}

// Double reads 8 bytes.
func (r *Reader) Double(p int) (float64, int) {
	if len(r.buf)-p < 8 {
		return 0, r.Short(p, Double)
	}
	return DoubleAt(r.buf, p), p + 8
}

// UUID reads 16 bytes, which no length precedes.
func (r *Reader) UUID(p int) (UUID, int) {
	var v UUID
	if len(r.buf)-p < len(v) {
		return v, r.Short(p, UUIDType)
	}
	return v, p + copy(v[:], r.buf[p:])
}

// --- containers ---

// BeginList reads the header of a list or set with elements of type element.
// It reports false after an error, and if the elements are of another type: they
// are then passed over and the destination should stay as it is. An empty list
// fits every type, because peers write empty ones with any.
//
// EndList must follow if and only if it reports true.
func (r *Reader) BeginList(p int, element Type) (n, next int, ok bool) {
	if len(r.buf)-p < 5 {
		return 0, r.short(p, 5, "list header"), false
	}
	t := Type(r.buf[p])
	n = int(int32(binary.BigEndian.Uint32(r.buf[p+1:])))
	if n == 0 {
		return 0, p + 5, r.enter(p)
	}
	if t != element {
		return 0, r.skip(p, List), false
	}
	if int64(uint32(n))*int64(t.LeastSize()) > int64(len(r.buf)-p-5) {
		return 0, r.fail(thriftwire.CheckCount(List, t, t, n, p, len(r.buf)-p-5).(*Error)), false
	}
	return n, p + 5, r.enter(p)
}

// enter starts a container whose header is at p.
func (r *Reader) enter(p int) bool {
	if r.depth--; r.depth < 0 {
		r.fail(thriftwire.DepthError(r.maxDepth, p))
		r.depth++
		return false
	}
	return true
}

// EndList ends a list or set that BeginList started, the elements of which end at
// p.
func (r *Reader) EndList(p int) int { return r.leave(p) }

func (r *Reader) leave(p int) int {
	r.depth++
	if r.err != nil {
		return len(r.buf)
	}
	return p
}

// BeginMap reads the header of a map; see BeginList.
func (r *Reader) BeginMap(p int, key, value Type) (n, next int, ok bool) {
	if len(r.buf)-p < 6 {
		return 0, r.short(p, 6, "map header"), false
	}
	keyType, valueType := Type(r.buf[p]), Type(r.buf[p+1])
	n = int(int32(binary.BigEndian.Uint32(r.buf[p+2:])))
	if n == 0 {
		return 0, p + 6, r.enter(p)
	}
	if keyType != key || valueType != value {
		return 0, r.skip(p, Map), false
	}
	if err := thriftwire.CheckCount(Map, keyType, valueType, n, p, len(r.buf)-p-6); err != nil {
		return 0, r.fail(err.(*Error)), false
	}
	return n, p + 6, r.enter(p)
}

// EndMap ends a map that BeginMap started, the entries of which end at p.
func (r *Reader) EndMap(p int) int { return r.leave(p) }

// --- memory ---

// charge takes n bytes for what is at p from the budget.
func (r *Reader) charge(p int, n int64) bool {
	if r.budget -= n; r.budget >= 0 {
		return true
	}
	r.fail(&Error{Kind: thriftwire.LimitExceeded, Offset: p, Detail: fmt.Sprintf(
		"decoding needs %d bytes more memory than a message of %d bytes may take", -r.budget, len(r.buf))})
	return false
}

// MakeSlice returns an empty slice with room for n elements that BeginList announced, the
// first of them at p. It is not nil. After an error there is no room.
//
// All of it is made at once: there is a byte for each element, and the memory was charged.
// A slice that grows as elements are decoded takes five times as much before it is done.
//
// If memory is reused and that of old is enough, it is taken. Extend then adds elements
// that are what they were, which must be read by a struct that can reuse memory, or
// written over.
func MakeSlice[T any](r *Reader, p, n int, old []T) []T {
	if r.reuse && old != nil && n <= cap(old) {
		return old[:0]
	}
	if !r.charge(p, madeBytes(int64(n)*int64(unsafe.Sizeof(*new(T))))) {
		return []T{}
	}
	return make([]T, 0, n)
}

// Extend returns the slice that MakeSlice made with one more element, which is
// zero unless memory is reused.
func Extend[T any](list []T) []T { return list[:len(list)+1] }

// MakeMap returns an empty map for n entries that BeginMap announced; see
// MakeSlice. The memory of old is enough if it had as many entries, or had any and n is at
// most eight. One that is not enough is empty afterwards: it may share its piece of memory
// with a map that is reused, which would keep what is in it with every further message.
func MakeMap[K comparable, V any](r *Reader, p, n int, old map[K]V) map[K]V {
	if r.reuse && old != nil {
		had := len(old)
		clear(old)
		if n <= had || n <= mapGroupSlots && takesEight(old, had) {
			return old
		}
	}
	if sharesPiece[K, V](r, n) {
		if entries := mapInPiece[K, V](r, p); entries != nil {
			return entries
		}
	}
	if !r.charge(p, mapBytes[K, V](n)) {
		return map[K]V{}
	}
	return make(map[K]V, n)
}

// ChargeDefaults takes n bytes from the budget, for what a new struct refers to that is
// at p. It returns p, or the end if that is more than there is left.
func (r *Reader) ChargeDefaults(p, n int) int {
	if r.charge(p, int64(n)) {
		return p
	}
	return len(r.buf)
}

// Allocate returns a new T, for what is at p, that was charged to the budget. It is never nil, so
// that generated code can go on after an error.
func Allocate[T any](r *Reader, p int) *T {
	r.charge(p, madeBytes(int64(unsafe.Sizeof(*new(T)))))
	return new(T)
}
