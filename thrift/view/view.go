package view

import (
	"bytes"
	"math"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// View is what all generated views have: the bytes of a struct, and what was changed of
// it. The table of its fields is beside it, in the generated type, because its length
// differs; Load and Read fill it. Generated code is its only intended caller.
//
// Views are values: a copy can be changed without the original. Any number of goroutines
// may read and write out a view that nobody changes; only one may change it, as with a
// struct. Nobody may change the bytes. The zero View is a struct without fields.
//
// Decision 50 has the reasons (docs/adr/0050-views.md).
type View struct {
	// buf is the struct with its end mark, nil if it was never loaded.
	buf []byte
	// lease is how long buf may be used, nil if for ever.
	lease *thrift.Lease
	// few are the first patches, of which there are count, in the order of where they
	// stand; many is the first one of all when there are more. These are never changed but
	// copied, so that copies of the view can share them.
	few   [fewPatches]viewPatch
	many  *viewPatch
	count int32
	// depth is how many levels the bytes nest at most, 0 if nobody has looked.
	depth int16
	// repeated: a field is there more than once, or in a form that does not count.
	repeated bool
	// partly: LoadUntil has not looked at all of buf.
	partly bool
}

// Slot says where the value of a field is. The zero Slot says that there is none.
type Slot struct {
	// start and end are offsets within the bytes. An end of 0 is none: start is then what
	// has become of the field, with its number behind slotStates.
	start, end uint32
}

// What has become of a field whose slot has no end.
const (
	slotPatched = 1 // a patch has its value
	slotCleared = 2 // a patch removes it
	slotUnread  = 4 // LoadUntil was not asked for it
	slotStates  = 3 // how many bits these take
)

// reset makes v the zero View. Patches are most of it, and are zero but for the first ones if
// there are some: to clear all takes as long as to check five fields, and longer while memory is
// collected.
func (v *View) reset() {
	if v.count > 0 {
		clear(v.few[:min(int(v.count), fewPatches)]) // zero already if many has them
		v.many, v.count = nil, 0
	}
	v.buf, v.lease, v.depth, v.repeated, v.partly = nil, nil, 0, false, false
}

// Forget makes v the zero View, and its slots those of a view without fields.
func (v *View) Forget(slots []Slot) {
	v.reset()
	clear(slots)
}

// Load makes v a view of b, which is one struct of the shape and nothing else, within
// the default limits. All of b is checked: what a struct that is decoded refuses, apart
// from what that would need too much memory for, is the same error here. b belongs to
// the view from now on.
func (v *View) Load(b []byte, slots []Slot, shape *Shape) error {
	v.reset()
	clear(slots)
	if len(b) <= math.MaxInt32 {
		end, repeated := shape.scan(b, 0, slots, limits.Depth)
		if end == len(b) {
			v.buf, v.depth, v.repeated = b, limits.Depth, repeated
			return nil
		}
	}
	clear(slots)
	return shape.explain(b)
}

// Read makes v a view of the struct at p of what r reads, and returns where that ends.
// The bytes are kept as strings are, but never in memory that is only lent.
func (v *View) Read(r *thrift.Reader, p int, slots []Slot, shape *Shape) int {
	v.reset()
	v.depth = depthOf(r.Levels())
	clear(slots)
	if r.Failed() || p > len(r.Bytes()) {
		return shape.check(r, p)
	}
	end, repeated := shape.scan(r.Bytes()[p:], 0, slots, r.Levels())
	if end < 0 {
		clear(slots)
		if shape.check(r, p); !r.Failed() {
			r.Fail(disagreement(p))
		}
		return len(r.Bytes())
	}
	if v.buf = r.Keep(p, end); r.Failed() {
		v.reset()
		clear(slots)
		return len(r.Bytes())
	}
	v.repeated, v.lease = repeated, r.Lease()
	return p + end
}

// depthOf returns levels as a view's depth. It is looked at again if there are more than any
// message has.
func depthOf(levels int) int16 {
	if levels < 0 || levels > math.MaxInt16 {
		return 0
	}
	return int16(levels)
}

// disagreement is the error if a message is refused for no reason, which is a defect.
func disagreement(p int) *thrift.Error {
	return &thrift.Error{Kind: thriftwire.Malformed, Offset: p, Detail: "a view cannot be made of it, although it can be read"}
}

// Bind makes v a view of the struct that b begins with, which was checked before, and
// returns how long that is. If it is none, because somebody has changed the bytes, v has
// no fields.
func (v *View) Bind(b []byte, slots []Slot, shape *Shape) int {
	v.reset()
	clear(slots)
	end, repeated := shape.scan(b, 0, slots, mostLevels)
	if end < 0 {
		clear(slots)
		return len(b)
	}
	v.buf, v.repeated = b[:end:end], repeated
	return end
}

// Decode reads what v is now into s.
func (v *View) Decode(slots []Slot, shape *Shape, s thrift.Struct) error {
	b := v.buf
	if b == nil || v.changed() || v.lease != nil {
		encoded, err := v.encoded(slots, shape)
		if err != nil {
			return err
		}
		b = encoded
	}
	return thrift.UnmarshalOwned(b, s, thrift.UnmarshalConfig{})
}

// Detach gives v memory of its own, in which there is what v is now and nothing else. What
// cannot be written stays as it is. What LoadUntil has not looked at stays so too, and is
// copied with the rest.
func (v *View) Detach(slots []Slot, shape *Shape) {
	if v.partly && !v.changed() {
		v.buf = bytes.Clone(v.buf)
		return
	}
	b, err := v.encoded(slots, shape)
	if err != nil {
		return
	}
	found, partly := make([]Slot, len(slots)), v.partly
	var end int
	var repeated bool
	if partly {
		end = v.findAgain(b, found, slots, shape)
	} else {
		end, repeated = shape.scan(b, 0, found, mostLevels)
	}
	if end != len(b) {
		return // somebody has changed the bytes
	}
	copy(slots, found)
	v.reset()
	v.buf, v.depth, v.repeated, v.partly = b, limits.Depth, repeated, partly
}

// patchesRoom is how long patches often are.
const patchesRoom = 256

func (v *View) encoded(slots []Slot, shape *Shape) ([]byte, error) {
	b, err := thrift.Binary.AppendPart(make([]byte, 0, len(v.buf)+patchesRoom), 0, func(w *thrift.Writer, b []byte) []byte {
		return v.Write(w, b, slots, shape)
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// SameBytes reports whether two views are of the same bytes and unchanged. If they are
// not, they may be equal all the same.
func (v *View) SameBytes(other *View) bool {
	same := !v.changed() && !other.changed() && bytes.Equal(v.buf, other.buf)
	v.lease.Check()
	other.lease.Check()
	return same
}

func (v *View) changed() bool { return v.count > 0 }

// Has reports whether there is a field.
func (v *View) Has(s Slot) bool {
	v.inTime()
	return s.end != 0 || s.start&(slotPatched|slotUnread) != 0 && v.patchOf(s).form != patchNone
}

// The methods below return the value of a field, or what is given for when there is none.

// Bool returns a bool.
func (v *View) Bool(s Slot, absent bool) bool {
	if s.end != 0 && v.lease == nil {
		return v.buf[s.start] == 1
	}
	return v.number(s, boolBits(absent)) == 1
}

// I8 returns an i8.
func (v *View) I8(s Slot, absent int8) int8 {
	if s.end != 0 && v.lease == nil {
		return int8(v.buf[s.start])
	}
	return int8(v.number(s, uint64(absent)))
}

// I16 returns an i16.
func (v *View) I16(s Slot, absent int16) int16 {
	if s.end != 0 && v.lease == nil {
		return thrift.I16At(v.buf, int(s.start))
	}
	return int16(v.number(s, uint64(absent)))
}

// I32 returns an i32, or the number of an enum.
func (v *View) I32(s Slot, absent int32) int32 {
	if s.end != 0 && v.lease == nil {
		return thrift.I32At(v.buf, int(s.start))
	}
	return int32(v.number(s, uint64(absent)))
}

// I64 returns an i64.
func (v *View) I64(s Slot, absent int64) int64 {
	if s.end != 0 && v.lease == nil {
		return thrift.I64At(v.buf, int(s.start))
	}
	return int64(v.number(s, uint64(absent)))
}

// Double returns a double.
func (v *View) Double(s Slot, absent float64) float64 {
	if s.end != 0 && v.lease == nil {
		return thrift.DoubleAt(v.buf, int(s.start))
	}
	return math.Float64frombits(v.number(s, math.Float64bits(absent)))
}

// number returns the patch of a number, one in bytes that are lent, or absent.
func (v *View) number(s Slot, absent uint64) uint64 {
	if s.end != 0 {
		return v.lentNumber(s)
	}
	v.inTime()
	if s.start&(slotPatched|slotUnread) == 0 {
		return absent
	}
	return v.patchOf(s).number
}

// Text returns a string. It refers to the bytes, unless these are lent.
func (v *View) Text(s Slot, absent string) string {
	if s.end != 0 && v.lease == nil {
		return textOf(v.buf[s.start+stringHeader : s.end])
	}
	return v.otherText(s, absent)
}

// otherText is Text for what is not in bytes of the view's own.
func (v *View) otherText(s Slot, absent string) string {
	if s.end != 0 {
		return textOf(v.lent(s.start+stringHeader, s.end))
	}
	v.inTime()
	if s.start&(slotPatched|slotUnread) == 0 {
		return absent
	}
	return v.patchOf(s).text()
}

// Binary returns a binary, which must not be changed. Its capacity is its length.
func (v *View) Binary(s Slot) []byte {
	if s.end != 0 {
		if v.lease == nil {
			return v.buf[s.start+stringHeader : s.end : s.end]
		}
		return v.lent(s.start+stringHeader, s.end)
	}
	v.inTime()
	if s.start&(slotPatched|slotUnread) == 0 {
		return nil
	}
	text := v.patchOf(s).text()
	if text == "" {
		return []byte{}
	}
	return bytesOf(text)
}

// UUID returns a uuid.
func (v *View) UUID(s Slot, absent thrift.UUID) thrift.UUID {
	if value := v.Value(s); len(value) >= len(absent) {
		return thrift.UUID(value[:len(absent)])
	}
	return absent
}

// Value returns the bytes of a struct, container or uuid, nil if there is none. A value
// of which only a part was changed is put together for whoever asks first.
func (v *View) Value(s Slot) []byte {
	if s.end != 0 {
		if v.lease == nil {
			return v.buf[s.start:s.end:s.end]
		}
		return v.lent(s.start, s.end)
	}
	v.inTime()
	if s.start&(slotPatched|slotUnread) == 0 {
		return nil
	}
	patch := v.patchOf(s)
	if patch.form != patchNested {
		return bytesOf(patch.text())
	}
	return joined(patch.nested())
}

// Part returns the view that was set as the value of a field, nil if none was. Nobody may
// change it.
func (v *View) Part(s Slot) any {
	v.inTime()
	if s.end != 0 || s.start&(slotPatched|slotUnread) == 0 {
		return nil
	}
	return v.patchOf(s).nested()
}

// joined returns what nested writes, nil if it cannot be written: whoever writes the view
// gets the error. What a list or map is whose parts were changed is noted.
func joined(nested viewPart) []byte {
	switch part := nested.(type) {
	case *viewElements:
		return part.whole.of(part)
	case *viewEntries:
		return part.whole.of(part)
	}
	return encodedPart(nested)
}

func encodedPart(nested viewPart) []byte {
	b, err := thrift.Binary.AppendPart(nil, 1, nested.WriteThrift)
	if err != nil {
		return nil
	}
	return b
}

// mostLevels bounds the stack where bytes are gone through that were checked before: they
// nest less, unless somebody has changed them.
const mostLevels = 1 << 20

// textOf returns bytes that nobody will change as a string.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf returns a string as bytes, which nobody may change.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func boolBits(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}
