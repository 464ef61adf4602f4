package view

import (
	"fmt"
	"math"
	"slices"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// viewElements is a list of which some elements were changed, added or removed. It is never changed but
// replaced, so that copies of a view can share it.
type viewElements struct {
	changedList
	whole wholePart
}

var _ viewPart = (*viewElements)(nil)

// changedList is what viewElements is apart from what was noted of it; it can be copied.
type changedList struct {
	// base is the list before, with its header, which nests depth levels at most; 0 if
	// nobody has looked. marks say where in it every hundredth element (markedElements) is.
	base  []byte
	depth int
	marks []uint32
	// more is how many elements there are behind those of base; each has a patch.
	more int
	// gone is how many of all these were removed: they have patches of the form patchNone.
	gone int
	// added is at least as much as patches make the list longer.
	added   int64
	patches elementPatches
}

// setAt makes patch element i of the list that is the value of a field. It panics if
// there is none.
func (v *View) setAt(slots []Slot, shape *Shape, number, i int, patch viewPatch) {
	if v.isUnwritable(slots[number]) {
		return
	}
	list, place := v.element(slots, shape, number, i)
	v.putAt(slots, shape, number, &list, place, patch)
}

// elementPlace is where an element is: at counts those that were removed.
type elementPlace struct{ at, from, to int }

// element returns the list that is the value of a field, and where element i of it is. It
// panics if there is none.
func (v *View) element(slots []Slot, shape *Shape, number, i int) (changedList, elementPlace) {
	list := v.elements(slots, number)
	at := list.patches.original(i)
	from, to, ok := list.place(at)
	if !ok {
		panic(fmt.Sprintf("thrift: index %d of the list %d of %s, which has not as many elements", i, shape.Fields[number].Key.ID(), shape.Name))
	}
	return list, elementPlace{at, from, to}
}

// putAt makes patch the element at a place of list, which is the value of a field.
func (v *View) putAt(slots []Slot, shape *Shape, number int, list *changedList, place elementPlace, patch viewPatch) {
	if patch.of, patch.from, patch.to = int32(place.at), uint32(place.from), uint32(place.to); patch.form == patchNone {
		list.gone++
	}
	list.add(&patch)
	v.SetPart(slots, shape, number, &viewElements{changedList: *list})
}

// add adds a patch.
func (l *changedList) add(patch *viewPatch) {
	l.patches.add(patch)
	if l.added += patch.longer(); int64(len(l.base))+l.added <= math.MaxInt32 {
		return
	}
	l.added = 0 // without the patches that others have taken the place of
	for run := range l.patches.runs() {
		for i := range run {
			l.added += run[i].longer()
		}
	}
}

// longer returns how many bytes at most a patch of an element adds to a list of numbers or
// strings.
func (patch *viewPatch) longer() int64 {
	switch replaced := int64(patch.to - patch.from); patch.form {
	case patchText, patchEncoded:
		return max(0, stringHeader+int64(patch.number)-replaced)
	case patchNumber:
		if replaced == 0 {
			return patchBytes
		}
	}
	return 0
}

// elements returns what the list that is the value of a field is now.
func (v *View) elements(slots []Slot, number int) changedList {
	s := slots[number]
	if s.end != 0 {
		return changedList{base: v.Value(s), depth: max(0, int(v.depth)-1)}
	}
	if s.start&slotPatched != 0 {
		if before, ok := v.patchOf(s).nested().(*viewElements); ok {
			return before.changedList
		}
	}
	return changedList{base: v.Value(s), depth: encodedDepth}
}

// append makes patch the element behind the others of the list that is the value of a
// field, which need not be there.
func (v *View) append(slots []Slot, shape *Shape, number int, patch viewPatch) {
	if v.isUnwritable(slots[number]) {
		return
	}
	list := v.elements(slots, number)
	t := shape.Fields[number].Value.Element.Type
	if len(list.base) < listHeader || thrift.Type(list.base[0]) != t || list.more == 0 && thrift.I32At(list.base, 1) <= 0 {
		list = changedList{base: []byte{byte(t), listHeader - 1: 0}, depth: 1}
	}
	end := uint32(len(list.base))
	patch.of, patch.from, patch.to = thrift.I32At(list.base, 1)+int32(list.more), end, end
	list.more++
	list.add(&patch)
	v.SetPart(slots, shape, number, &viewElements{changedList: list})
}

// place returns where element i is.
func (l *changedList) place(i int) (from, to int, ok bool) {
	if len(l.base) < listHeader || i < 0 {
		return 0, 0, false
	}
	if n := max(0, int(thrift.I32At(l.base, 1))); i >= n {
		return len(l.base), len(l.base), i-n < l.more
	}
	t := thrift.Type(l.base[0])
	if size := t.FixedSize(); size > 0 {
		from = listHeader + i*size
		return from, from + size, from+size <= len(l.base)
	}
	if from = l.walk(i, t); from < 0 {
		return 0, 0, false
	}
	to = pass(l.base, from, t, mostLevels)
	return from, to, to > 0
}

// markedElements is how many elements there are from one mark to the next.
const markedElements = 100

// walk returns where element i of base begins, which has elements of different sizes. It goes
// there from the nearest patch in front of it, or from a mark, which it sets if both are far:
// who changes elements from the last to the first goes through the list once.
func (l *changedList) walk(i int, t thrift.Type) int {
	_, first := l.nearest(i)
	mark := i / markedElements
	marked := len(l.marks) * markedElements
	// New marks take a walk from the last one, and a copy of all.
	if far := i - max(first, min(marked, i)); far > 2*markedElements && far > len(l.marks) && i-marked <= 4*far {
		l.mark(mark, t)
	}
	return l.walked(i, t)
}

// walked is walk without new marks.
func (l *changedList) walked(i int, t thrift.Type) int {
	from, first := l.nearest(i)
	if mark := min(i/markedElements, len(l.marks)); mark*markedElements > first {
		from, first = int(l.marks[mark-1]), mark*markedElements
	}
	return passAll(l.base, from, i-first, t, mostLevels)
}

// nearest returns where the nearest element is that has a patch and is not behind element
// i, or the first element if there is none.
func (l *changedList) nearest(i int) (from, first int) {
	if patch := l.patches.find(i); patch != nil {
		return int(patch.from), int(patch.of)
	}
	return listHeader, 0
}

// mark sets the first n marks, of which fewer are there.
func (l *changedList) mark(n int, t thrift.Type) {
	l.marks = slices.Grow(slices.Clip(l.marks), n-len(l.marks)) // copies of the list share what there was
	at := listHeader
	if len(l.marks) > 0 {
		at = int(l.marks[len(l.marks)-1])
	}
	for len(l.marks) < n {
		if at = passAll(l.base, at, markedElements, t, mostLevels); at < 0 {
			return // somebody has changed the bytes
		}
		l.marks = append(l.marks, uint32(at))
	}
}

// WriteThrift writes the list, with its header.
func (l *changedList) WriteThrift(w *thrift.Writer, b []byte) []byte {
	if levels := w.Levels(); levels < l.depth || l.depth == 0 {
		w.CheckLevels(l.base, thrift.List, levels)
	}
	t := thrift.Type(l.base[0])
	b = w.BeginList(b, 0, t, int(thrift.I32At(l.base, 1))+l.more-l.gone)
	at := listHeader
	for run := range l.patches.runs() {
		for i := range run {
			patch := &run[i]
			b = w.Part(b, l.base[at:patch.from])
			if patch.form != patchNone {
				b = patch.write(w, b, t)
			}
			at = int(patch.to)
		}
	}
	b = w.Part(b, l.base[at:])
	w.EndList()
	return b
}

// SetNumberAt makes value element i of a list of numbers, as SetNumber makes it a value.
// It panics if there is no such element, as the methods below do.
func (v *View) SetNumberAt(slots []Slot, shape *Shape, number, i int, value uint64) {
	v.setAt(slots, shape, number, i, viewPatch{form: patchNumber, number: value})
}

// SetBoolAt is SetNumberAt for bools.
func (v *View) SetBoolAt(slots []Slot, shape *Shape, number, i int, value bool) {
	v.SetNumberAt(slots, shape, number, i, boolBits(value))
}

// SetDoubleAt is SetNumberAt for doubles.
func (v *View) SetDoubleAt(slots []Slot, shape *Shape, number, i int, value float64) {
	v.SetNumberAt(slots, shape, number, i, math.Float64bits(value))
}

// SetTextAt is SetNumberAt for strings.
func (v *View) SetTextAt(slots []Slot, shape *Shape, number, i int, value string) {
	v.setAt(slots, shape, number, i, textPatch(patchText, value))
}

// SetUUIDAt is SetNumberAt for uuids.
func (v *View) SetUUIDAt(slots []Slot, shape *Shape, number, i int, value thrift.UUID) {
	v.setAt(slots, shape, number, i, textPatch(patchEncoded, string(value[:])))
}

// SetPartAt is SetNumberAt for views, which nobody will change.
func (v *View) SetPartAt(slots []Slot, shape *Shape, number, i int, part viewPart) {
	v.setAt(slots, shape, number, i, partPatch(part))
}

// AppendNumber puts value behind the elements of a list of numbers, as SetNumber makes it a
// value. A list that is not there begins with it.
func (v *View) AppendNumber(slots []Slot, shape *Shape, number int, value uint64) {
	v.append(slots, shape, number, viewPatch{form: patchNumber, number: value})
}

// AppendBool is AppendNumber for bools.
func (v *View) AppendBool(slots []Slot, shape *Shape, number int, value bool) {
	v.AppendNumber(slots, shape, number, boolBits(value))
}

// AppendDouble is AppendNumber for doubles.
func (v *View) AppendDouble(slots []Slot, shape *Shape, number int, value float64) {
	v.AppendNumber(slots, shape, number, math.Float64bits(value))
}

// AppendText is AppendNumber for strings.
func (v *View) AppendText(slots []Slot, shape *Shape, number int, value string) {
	v.append(slots, shape, number, textPatch(patchText, value))
}

// AppendUUID is AppendNumber for uuids.
func (v *View) AppendUUID(slots []Slot, shape *Shape, number int, value thrift.UUID) {
	v.append(slots, shape, number, textPatch(patchEncoded, string(value[:])))
}

// AppendPart is AppendNumber for views, which nobody will change.
func (v *View) AppendPart(slots []Slot, shape *Shape, number int, part viewPart) {
	v.append(slots, shape, number, partPatch(part))
}

// RemoveAt removes element i of a list; those behind it move up. It panics if there is no
// such element.
func (v *View) RemoveAt(slots []Slot, shape *Shape, number, i int) {
	v.setAt(slots, shape, number, i, viewPatch{form: patchNone})
}
