package view

import (
	"encoding/binary"
	"math"
	"sync/atomic"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// wholePart is what a list or map of which parts were changed is written as. Whoever asks
// first notes it, in whichever copy of the view: the part itself is never changed.
type wholePart struct{ written atomic.Pointer[[]byte] }

// of returns what part is written as, nil if it cannot be written.
func (w *wholePart) of(part viewPart) []byte {
	if b := w.written.Load(); b != nil {
		return *b
	}
	b := encodedPart(part)
	w.written.Store(&b)
	return b
}

// The functions below read elements of a list that was changed where they are: a loop that
// reads one and sets one would else put all of the list together each time.

// changedList returns the list that is the value of a field if elements of it were changed, and
// can be read where they are: numbers and strings can. It is nil otherwise, also if the list
// could be too long to be written, and so is empty.
func (v *View) changedList(s Slot, t thrift.Type) *viewElements {
	if s.end != 0 || s.start&slotPatched == 0 {
		return nil
	}
	v.inTime()
	list, ok := v.patchOf(s).nested().(*viewElements)
	if !ok || thrift.Type(list.base[0]) != t || int64(len(list.base))+list.added > math.MaxInt32 {
		return nil
	}
	return list
}

// length returns how many elements there are.
func (l *viewElements) length() int {
	return max(0, int(thrift.I32At(l.base, 1))) + l.more - l.gone
}

// at returns bytes that begin with element i, which are appended to memory if it was
// changed; nil if there is none.
func (l *viewElements) at(i int, memory []byte) []byte {
	if uint(i) >= uint(l.length()) {
		return nil
	}
	element, t := l.patches.original(i), thrift.Type(l.base[0])
	if patch := l.patches.find(element); patch != nil && int(patch.of) == element {
		return patch.appendElement(memory, t)
	}
	from := listHeader + element*t.FixedSize()
	if t.FixedSize() == 0 {
		from = l.walked(element, t)
	}
	if from < 0 || from > len(l.base) {
		return nil // somebody has changed the bytes
	}
	return l.base[from:]
}

// appendElement appends a number, string or uuid as an element.
func (patch *viewPatch) appendElement(b []byte, t thrift.Type) []byte {
	switch patch.form {
	case patchText:
		return append(binary.BigEndian.AppendUint32(b, uint32(patch.number)), patch.text()...)
	case patchEncoded:
		return append(b, patch.text()...)
	}
	return patch.appendNumber(b, t)
}

// Elements is the list or set that is the value of a field: bytes, or what was changed in it.
type Elements struct {
	b       []byte
	changed *viewElements
}

// Elements returns the list or set of numbers, strings or binaries of type t that is the value
// of a field. A generic function that is given the view instead keeps it: each view of
// readall-6m was moved to the heap, for 1.5 times the time.
func (v *View) Elements(s Slot, t thrift.Type) Elements {
	if s.end != 0 && v.lease == nil {
		return Elements{b: v.buf[s.start:s.end:s.end]} // as Value, a call less deep
	}
	if changed := v.changedList(s, t); changed != nil {
		return Elements{changed: changed}
	}
	return Elements{b: v.Value(s)}
}

// NumbersIn returns the list or set; see NumbersOf.
func NumbersIn[T number](elements Elements, t thrift.Type) Numbers[T] {
	if elements.changed != nil {
		return Numbers[T]{changed: elements.changed}
	}
	return NumbersOf[T](elements.b, t)
}

// TextsIn returns the list or set of strings or binaries; see ListOf.
func TextsIn[E string | []byte](elements Elements, read func(b []byte) (E, int)) List[E] {
	if changed := elements.changed; changed != nil {
		return List[E]{n: changed.length(), t: thrift.String, read: read, changed: changed}
	}
	return ListOf(elements.b, thrift.String, read)
}

// whole returns the list as it is written.
func (l Numbers[T]) whole() Numbers[T] {
	if l.changed == nil {
		return l
	}
	return NumbersOf[T](l.changed.whole.of(l.changed), thrift.Type(l.changed.base[0]))
}

// element returns a list of element i alone, for which At has not looked into a list that was
// changed. It panics if there is none.
func (l Numbers[T]) element(i int) Numbers[T] {
	if l.changed != nil {
		size := thrift.Type(l.changed.base[0]).FixedSize()
		if b := l.changed.at(i, nil); len(b) >= size {
			return Numbers[T]{wire: b[:size]}
		}
	}
	panic(noElement(i, l.Len()))
}

// body returns the elements as they are written, and how many there are.
func (l *viewElements) body() (wire []byte, n int) {
	return listBody(l.whole.of(l), thrift.Type(l.base[0]))
}

// whole returns the list as it is written.
func (l List[E]) whole() List[E] {
	if l.changed == nil {
		return l
	}
	return ListOf(l.changed.whole.of(l.changed), l.t, l.read)
}
