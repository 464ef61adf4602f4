package view

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// fewPatches is how many fields of a view can be changed without an allocation. Each is 32 bytes,
// and a view is copied six times on its way through a handler (Go passes it in memory, and makes
// copies of what it evaluates).
const fewPatches = 2

// viewPatch is the new value of a field, or of an element.
type viewPatch struct {
	// value is where a string is, or a value as it is written, or the viewPart that can
	// write itself; nil for numbers. A patch is half as long as with a word for each, and
	// patches are most of a view, which getters of nested ones and iterators copy.
	value unsafe.Pointer
	// number is the number, or how long what is at value is.
	number uint64
	// from and to are where it stands in the bytes: what a patch replaces, header
	// included, and behindAll if it replaces nothing.
	from, to uint32
	// of is the number of the field, or of the element.
	of   int32
	form patchForm
}

// behindAll is where fields stand that were not there.
const behindAll = math.MaxUint32

type patchForm uint8

const (
	patchNumber  patchForm = iota // number, of a type of fixed size
	patchText                     // a string, behind its length
	patchEncoded                  // a value as it is written
	patchNested                   // what a viewPart writes
	patchNone                     // nothing: the field is removed
)

// viewPart is a part of a view that can be written: another view, or a list of which some
// elements were changed.
type viewPart interface {
	WriteThrift(w *thrift.Writer, b []byte) []byte
}

// encodedDepth is how deep a part nests at most that Codec.AppendPart has written, in the struct
// that it is in.
const encodedDepth = limits.Depth - 1

// textPatch is a patch of text.
func textPatch(form patchForm, text string) viewPatch {
	return viewPatch{form: form, value: unsafe.Pointer(unsafe.StringData(text)), number: uint64(len(text))}
}

// partPatch is a patch of a part, which nobody will change.
func partPatch(part viewPart) viewPatch {
	return viewPatch{form: patchNested, value: unsafe.Pointer(&part)}
}

// text returns what a textPatch was made of, "" for others.
func (patch *viewPatch) text() string {
	if patch.form != patchText && patch.form != patchEncoded {
		return ""
	}
	return unsafe.String((*byte)(patch.value), int(patch.number))
}

// nested returns what a partPatch was made of, nil for others.
func (patch *viewPatch) nested() viewPart {
	if patch.form != patchNested {
		return nil
	}
	return *(*viewPart)(patch.value)
}

func (v *View) patches() []viewPatch {
	if v.many != nil {
		return unsafe.Slice(v.many, v.count)
	}
	return v.few[:v.count]
}

// patchOf returns the patch of a field that has one. It panics if LoadUntil was not asked
// for the field.
func (v *View) patchOf(s Slot) *viewPatch {
	if s.start&slotUnread != 0 {
		panic(fmt.Sprintf("thrift: field %d of a view is used, for which LoadUntil was not asked", int16(s.start>>slotStates)))
	}
	patches := v.patches()
	number := int32(s.start >> slotStates)
	for i := range patches {
		if patches[i].of == number {
			return &patches[i]
		}
	}
	return new(viewPatch)
}

// before reports whether a patch is written before another one.
func (patch *viewPatch) before(other *viewPatch) bool {
	return patch.from < other.from || patch.from == other.from && patch.of < other.of
}

// add adds a patch, or replaces the one for the same field.
func (v *View) add(patch *viewPatch) {
	if v.many != nil {
		v.setMany(withPatch(v.patches(), patch))
		return
	}
	at, count := 0, int(v.count)
	for at < count && v.few[at].before(patch) {
		at++
	}
	switch {
	case at < count && v.few[at].of == patch.of:
	case count == len(v.few):
		v.setMany(withPatch(v.few[:], patch))
		v.few = [fewPatches]viewPatch{}
		return
	default:
		if at < count {
			copy(v.few[at+1:], v.few[at:count])
		}
		v.count++
	}
	v.few[at] = *patch
}

// setMany makes patches, of which there are some, those of v.
func (v *View) setMany(patches []viewPatch) { v.many, v.count = &patches[0], int32(len(patches)) }

// withPatch returns a copy of patches with one more, or in place of the one for the same
// thing.
func withPatch(patches []viewPatch, patch *viewPatch) []viewPatch {
	at := sort.Search(len(patches), func(i int) bool { return !patches[i].before(patch) })
	found := at < len(patches) && patches[at].of == patch.of
	copied := append(make([]viewPatch, 0, len(patches)+1), patches...)
	if found {
		copied[at] = *patch
		return copied
	}
	return slices.Insert(copied, at, *patch)
}

// set makes patch the value of a field.
func (v *View) set(slots []Slot, shape *Shape, number int, patch viewPatch) {
	v.prepare(slots, shape)
	patch.of = int32(number)
	switch s := slots[number]; {
	case s.end != 0:
		const header = 3
		patch.from, patch.to = s.start-header, s.end
	case s.start&(slotPatched|slotCleared|slotUnread) != 0:
		before := v.patchOf(s)
		patch.from, patch.to = before.from, before.to
	default:
		patch.from, patch.to = behindAll, behindAll
	}
	state := uint32(slotPatched)
	if patch.form == patchNone {
		state = slotCleared
	}
	slots[number] = Slot{start: uint32(number)<<slotStates | state}
	v.add(&patch)
}

// prepare makes a view one that can be changed. In a union there is only the new field.
// Of fields that are there more than once the others go: without the last one, the one
// before would count.
func (v *View) prepare(slots []Slot, shape *Shape) {
	v.inTime()
	lease := v.lease // of bytes that may be gone now; but who uses v too late is told all the same
	if shape.Union {
		*v = View{lease: lease}
		clear(slots)
		return
	}
	if !v.repeated {
		return
	}
	kept := make([]byte, 0, len(v.buf))
	for p := 0; p < len(v.buf)-1; {
		const header = 3
		key := thrift.KeyAt(v.buf, p)
		end := pass(v.buf, p+header, key.Type(), mostLevels)
		if end < 0 {
			break // somebody has changed the bytes
		}
		if number := shape.find(key, 0); number < 0 || slots[number].start == uint32(p+header) {
			kept = append(kept, v.buf[p:end]...)
		}
		p = end
	}
	lease.Check()
	depth := v.depth
	v.Bind(append(kept, byte(thriftwire.Stop)), slots, shape)
	v.depth, v.lease = depth, lease
}

// SetNumber makes value, of which as many bytes count as the type has, the value of a
// field. As in the methods below, number is that of the field.
func (v *View) SetNumber(slots []Slot, shape *Shape, number int, value uint64) {
	v.set(slots, shape, number, viewPatch{form: patchNumber, number: value})
}

// SetBool is SetNumber for bools.
func (v *View) SetBool(slots []Slot, shape *Shape, number int, value bool) {
	v.SetNumber(slots, shape, number, boolBits(value))
}

// SetDouble is SetNumber for doubles.
func (v *View) SetDouble(slots []Slot, shape *Shape, number int, value float64) {
	v.SetNumber(slots, shape, number, math.Float64bits(value))
}

// SetText makes a string the value of a field.
func (v *View) SetText(slots []Slot, shape *Shape, number int, value string) {
	v.set(slots, shape, number, textPatch(patchText, value))
}

// SetBinary makes a copy of a binary the value of a field.
func (v *View) SetBinary(slots []Slot, shape *Shape, number int, value []byte) {
	v.SetText(slots, shape, number, string(value))
}

// SetUUID makes a uuid the value of a field.
func (v *View) SetUUID(slots []Slot, shape *Shape, number int, value thrift.UUID) {
	v.set(slots, shape, number, textPatch(patchEncoded, string(value[:])))
}

// SetPart makes another view, which nobody will change, the value of a field.
func (v *View) SetPart(slots []Slot, shape *Shape, number int, part viewPart) {
	v.set(slots, shape, number, partPatch(part))
}

// SetEncoded makes what encode writes the value of a field. If it cannot be written,
// whoever writes the view gets the error, as with a struct.
func (v *View) SetEncoded(slots []Slot, shape *Shape, number int, encode func(w *thrift.Writer, b []byte) []byte) {
	b, err := encodeView(encode)
	if err != nil {
		v.SetPart(slots, shape, number, unwritable{err})
		return
	}
	v.set(slots, shape, number, textPatch(patchEncoded, textOf(b)))
}

func encodeView(encode func(w *thrift.Writer, b []byte) []byte) ([]byte, *thrift.Error) {
	return thrift.Binary.AppendPart(nil, 1, encode) // 1: of the struct around it
}

// Default returns what encode writes, nil if it cannot be written.
func Default(encode func(w *thrift.Writer, b []byte) []byte) []byte {
	b, err := encodeView(encode)
	if err != nil {
		return nil
	}
	return b
}

// unwritable is a value with an error.
type unwritable struct{ err *thrift.Error }

func (u unwritable) WriteThrift(w *thrift.Writer, b []byte) []byte {
	w.Fail(u.err)
	return b
}

// isUnwritable says that what a field was set to cannot be written. Nothing can be changed
// in it, or whoever writes the view would not get the error.
func (v *View) isUnwritable(s Slot) bool {
	if s.end != 0 || s.start&slotPatched == 0 {
		return false
	}
	_, is := v.patchOf(s).nested().(unwritable)
	return is
}

// Clear removes a field, if it is there.
func (v *View) Clear(slots []Slot, shape *Shape, number int) {
	switch {
	case !v.Has(slots[number]):
	case shape.Union:
		v.prepare(slots, shape)
	default:
		v.set(slots, shape, number, viewPatch{form: patchNone})
	}
}

// --- writing ---

// Write appends what v is now to b, the chunk that w fills, and returns that, or the next
// one.
func (v *View) Write(w *thrift.Writer, b []byte, slots []Slot, shape *Shape) []byte {
	v.lease.Check()
	levels := w.Levels()
	if !w.BeginStruct() {
		return b
	}
	if v.partly {
		v.checkRest(w, shape, levels)
	} else if levels < int(v.depth) || v.depth == 0 {
		w.CheckLevels(v.buf, thrift.StructType, levels)
	}
	if v.buf == nil {
		v.checkRequired(w, slots, shape)
	}
	at := 0
	for _, patch := range v.patches() {
		if patch.from != behindAll {
			b = v.part(w, b, at, int(patch.from))
			at = int(patch.to)
		} else if at < len(v.buf) {
			b = v.part(w, b, at, len(v.buf)-1)
			at = len(v.buf)
		}
		if patch.form != patchNone {
			key := shape.Fields[patch.of].Key
			b = patch.write(w, thrift.PutField(w.Room(b, 4), key), key.Type())
		}
	}
	if at < len(v.buf) { // with the end mark
		w.PastStop()
		return v.part(w, b, at, len(v.buf))
	}
	return w.EndStruct(b)
}

// checkRequired fails if a view that was never loaded has not all that it needs. A union
// with a field that was set is one of these.
func (v *View) checkRequired(w *thrift.Writer, slots []Slot, shape *Shape) {
	if shape.Union && !v.changed() {
		w.FailUnion(shape.Name, 0)
	}
	for i, field := range shape.Fields {
		if field.Required > 0 && !v.Has(slots[i]) {
			w.Fail(&thrift.Error{Kind: thriftwire.MissingField, Offset: -1, Detail: shape.Name + ": required but absent: " + shape.Required[field.Required-1]})
		}
	}
}

// write writes a value of type t.
func (patch *viewPatch) write(w *thrift.Writer, b []byte, t thrift.Type) []byte {
	switch patch.form {
	case patchText:
		return w.String(b, patch.text())
	case patchEncoded:
		if w.Levels() < encodedDepth {
			w.CheckLevels(bytesOf(patch.text()), t, w.Levels())
		}
		return w.Part(b, bytesOf(patch.text()))
	case patchNested:
		return patch.nested().WriteThrift(w, b)
	}
	return patch.appendNumber(w.Room(b, t.FixedSize()), t)
}

func (patch *viewPatch) appendNumber(b []byte, t thrift.Type) []byte {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], patch.number)
	return append(b, number[len(number)-fixedSize(t):]...)
}

// patchBytes is how long a patch is at most, beside its text: a field's header and a number.
const patchBytes = 3 + 8

// AppendTo appends what v is now to dst without a writer, and so without memory for one.
// It reports false where it takes one: other views are among the patches, or nobody knows
// whether all of it is within the default limits.
func (v *View) AppendTo(dst []byte, shape *Shape) (appended []byte, ok bool) {
	patched, ok := v.patchedSize()
	if !ok {
		return dst, false
	}
	b := slices.Grow(dst, len(v.buf)+patched)
	at := 0
	patches := v.patches()
	for i := range patches {
		patch := &patches[i]
		next, after := v.place(patch)
		b = append(b, v.buf[at:next]...)
		at = after
		if patch.form != patchNone {
			b = patch.appendTo(b, shape.Fields[patch.of].Key)
		}
	}
	b = append(b, v.buf[at:]...)
	v.lease.Check()
	return b, true
}

// AppendPieces is AppendTo that does not copy parts of 8 KiB (LinkedPartBytes) and more:
// pieces refer to them, and to what memory has in between. It reports false also of what is
// lent and will be used again: pieces can be kept for longer.
func (v *View) AppendPieces(pieces [][]byte, memory []byte, shape *Shape) (appended [][]byte, copied []byte, ok bool) {
	patched, ok := v.patchedSize()
	if !ok || v.lease.Recycles() {
		return pieces, memory, false
	}
	patches := v.patches()
	most := min(len(v.buf), (len(patches)+1)*limits.LinkedPartBytes)
	b := slices.Grow(memory, patched+most)
	at, begins := 0, len(b)
	add := func(part []byte) {
		if len(part) < limits.LinkedPartBytes {
			b = append(b, part...)
			return
		}
		if len(b) > begins {
			pieces = append(pieces, b[begins:len(b):len(b)])
		}
		pieces, begins = append(pieces, part[:len(part):len(part)]), len(b)
	}
	for i := range patches {
		patch := &patches[i]
		next, after := v.place(patch)
		add(v.buf[at:next])
		at = after
		if patch.form != patchNone {
			b = patch.appendTo(b, shape.Fields[patch.of].Key)
		}
	}
	if add(v.buf[at:]); len(b) > begins {
		pieces = append(pieces, b[begins:len(b):len(b)])
	}
	v.lease.Check()
	return pieces, b, true
}

// AppendPiece is AppendPieces for what takes a writer: one piece, which is a copy.
func AppendPiece(pieces [][]byte, memory []byte, s thrift.Struct) (appended [][]byte, copied []byte, err error) {
	b, err := thrift.Append(memory, s)
	if err != nil {
		return pieces, memory, err
	}
	return append(pieces, b[len(memory):len(b):len(b)]), b, nil
}

// patchedSize returns how many bytes patches add at most. It reports false where they take
// a writer.
func (v *View) patchedSize() (size int, ok bool) {
	patches := v.patches()
	size = len(patches) * patchBytes
	for i := range patches {
		switch patches[i].form {
		case patchText, patchEncoded:
			size += int(patches[i].number)
		case patchNested:
			return 0, false
		}
		if size > limits.MessageBytes {
			return 0, false // one text can be in many fields
		}
	}
	return size, v.buf != nil && v.depth != 0 && v.depth <= limits.Depth && len(v.buf)+size <= limits.MessageBytes
}

// place returns where a patch begins and ends in what was loaded.
func (v *View) place(patch *viewPatch) (from, to int) {
	if patch.from == behindAll {
		end := len(v.buf) - 1 // where the end mark is
		return end, end
	}
	return int(patch.from), int(patch.to)
}

// appendTo appends a field to b, which has room for it.
func (patch *viewPatch) appendTo(b []byte, key thrift.FieldKey) []byte {
	const header = 3
	n := len(b)
	b = b[:n+patchBytes]
	binary.BigEndian.PutUint32(b[n:], uint32(key)<<8)
	switch patch.form {
	case patchText:
		binary.BigEndian.PutUint32(b[n+header:], uint32(patch.number))
		return append(b[:n+header+stringHeader], patch.text()...)
	case patchEncoded:
		return append(b[:n+header], patch.text()...)
	}
	size := fixedSize(key.Type())
	binary.BigEndian.PutUint64(b[n+header:], patch.number<<(64-8*size))
	return b[:n+header+size]
}
