package thrift

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// A set is a list in Go, so that it keeps its order and costs what a list costs. Where a
// definition asks for it, generated code has its elements compared when it is written and
// when it was read: by their canonical forms, which are the same bytes for all that are
// Equal, of every type. They are found by a hash that a peer cannot know, in time that
// follows their bytes.

// writeElement writes the element of a set at an index.
type writeElement = func(w *Writer, b []byte, i int) []byte

// CheckSet fails if two of the n elements of a set are equal, which are of type element and
// as write writes them. field is what errors call the set. Nothing is written.
func (w *Writer) CheckSet(field string, n int, element Type, write writeElement) {
	if n < 2 || w.comparing || w.counter != nil || w.err != nil {
		return // while it is measured, what is written next says it
	}
	if w.elements == nil {
		w.elements = new(elements)
	}
	set := w.elements
	set.begin(n, element, write, min(w.bytes, math.MaxInt32))
	for i := range n {
		other, err := set.add(i)
		switch {
		case err != nil:
			w.fail(err)
		case other >= 0:
			w.fail(&Error{Kind: thriftwire.BadValue, Offset: -1, Detail: field + ": " + repeated(i, other)})
		case set.written > w.bytes:
			w.checkSize(set.written) // the message has all of them, and more
		}
		if w.err != nil {
			return
		}
	}
}

// CheckSet fails if two of the n elements of a set that was read are equal. p is the end of
// the set, and returned, or the end of all if it fails. See the method of Writer.
func (r *Reader) CheckSet(p, n int, element Type, write writeElement) int {
	if n < 2 || r.err != nil {
		return p
	}
	memory := r.forKitex()
	if memory.elements == nil {
		if !r.charge(p, madeBytes(elementsBytes)) {
			return len(r.buf)
		}
		memory.elements = new(elements)
	}
	set := memory.elements
	if slots := setSlots(n); slots > cap(set.slots) && !r.charge(p, madeBytes(int64(slots*slotBytes))) {
		return len(r.buf)
	}
	set.begin(n, element, write, int(min(r.budget, math.MaxInt32)))
	set.writer.lax = true
	for i := range n {
		written, memory := set.written, set.memory()
		other, err := set.add(i)
		if err != nil {
			return r.fail(err)
		}
		if other >= 0 {
			return r.fail(&Error{Kind: thriftwire.Malformed, Offset: p, Detail: "set: " + repeated(i, other)})
		}
		// What grows was shorter before, which is charged for with it. What is written is work
		// that a peer can ask for: an element of a byte may be long when it has its defaults.
		if !r.charge(p, int64(set.written-written)+2*(set.memory()-memory)) {
			return len(r.buf)
		}
	}
	return p
}

func repeated(i, other int) string {
	return fmt.Sprintf("element %d equals element %d, counted from 0", i, other)
}

// elements are those of a set that have been seen, and memory for the next set.
type elements struct {
	write   writeElement
	element Type
	writer  Writer
	form    canonizer
	seed    maphash.Seed
	// slots is a hash table with twice as many places as there are elements, or more.
	slots []setSlot
	// last is the element that was written last, other one that it may be equal to.
	last, other []byte
	// written is how many bytes have been written.
	written int
}

// setSlot is the place of an element: part of its hash, and its index and one more.
type setSlot struct{ hash, index uint32 }

// slotBytes is how many bytes a setSlot takes, partBytes those of a part, and elementsBytes
// at most those of what is made beside them: elements, kitexMemory, and the function that
// writes one.
const (
	slotBytes     = 8
	partBytes     = 12
	elementsBytes = 512
)

func setSlots(n int) int {
	slots := 4
	for slots < 2*n {
		slots *= 2
	}
	return slots
}

// begin makes the set that of n elements of up to most bytes, of which none has been seen.
// All sets of a message take the same memory: none is compared while another one is.
func (e *elements) begin(n int, element Type, write writeElement, most int) {
	e.write, e.element, e.written = write, element, 0
	// What was read nests as deep as that, and more where defaults were filled in.
	e.writer = newWriter(limits.Message{Bytes: most, Depth: limits.ValueDepth})
	e.writer.comparing = true
	e.seed = maphash.MakeSeed()
	if slots := setSlots(n); slots > cap(e.slots) {
		e.slots = make([]setSlot, slots)
	} else {
		e.slots = e.slots[:slots]
		clear(e.slots)
	}
}

// add adds the element at index i. It returns the index of one that is equal, -1 if there
// is none.
func (e *elements) add(i int) (other int, err *Error) {
	if e.last, err = e.canonical(e.last, i); err != nil {
		return -1, err
	}
	hash := maphash.Bytes(e.seed, e.last)
	mask := len(e.slots) - 1
	for at := int(uint32(hash)) & mask; ; at = (at + 1) & mask {
		slot := &e.slots[at]
		switch {
		case slot.index == 0:
			*slot = setSlot{uint32(hash >> 32), uint32(i + 1)}
			return -1, nil
		case slot.hash == uint32(hash>>32):
			other = int(slot.index) - 1
			if e.other, err = e.canonical(e.other, other); err != nil {
				return -1, err
			}
			if bytes.Equal(e.last, e.other) {
				return other, nil
			}
		}
	}
}

// canonical returns the canonical form of an element, in b if that has room.
func (e *elements) canonical(b []byte, i int) ([]byte, *Error) {
	b = e.write(&e.writer, b[:0], i)
	e.writer.checkSize(len(b))
	if e.writer.err != nil {
		return b, e.writer.err
	}
	e.written += len(b)
	e.form.b = b
	e.form.value(0, e.element)
	return b, nil
}

// memory is how many bytes there are beside the slots.
func (e *elements) memory() int64 {
	return int64(cap(e.last) + cap(e.other) + partBytes*cap(e.form.parts) + cap(e.form.sorted))
}
