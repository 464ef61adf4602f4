package view

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// mapHeader is how many bytes there are in front of the entries of a map.
const mapHeader = 6

// Key is the key of an entry as it is written. Generated code makes it with TextKey and
// NumberKey; keys of which equal ones can be written differently, as doubles, have none.
type Key string

// TextKey is the Key of a string or binary.
func TextKey(key string) Key {
	return Key(binary.BigEndian.AppendUint32(make([]byte, 0, stringHeader+len(key)), uint32(len(key)))) + Key(key)
}

// NumberKey is the Key of a number of type t.
func NumberKey(t thrift.Type, key uint64) Key {
	patch := viewPatch{number: key}
	return Key(patch.appendNumber(nil, t))
}

// viewEntries is a map of which some entries were changed. As viewElements it is never
// changed but replaced.
type viewEntries struct {
	changedMap
	whole wholePart
}

var _ viewPart = (*viewEntries)(nil)

// changedMap is what viewEntries is apart from what was noted of it; it can be copied.
type changedMap struct {
	// base is the map before, with its header, which nests depth levels at most; 0 if
	// nobody has looked.
	base  []byte
	depth int
	// cuts are the entries of base that are no more, in order; added are those behind it.
	cuts  []cutEntry
	added []addedEntry
}

// cutEntry is where an entry begins and ends.
type cutEntry struct{ from, to uint32 }

type addedEntry struct {
	key   Key
	value viewPatch
}

// entries returns what the map that is the value of a field is now.
func (v *View) entries(slots []Slot, shape *Shape, number int) changedMap {
	s := slots[number]
	if s.end == 0 && s.start&slotPatched != 0 {
		if before, ok := v.patchOf(s).nested().(*viewEntries); ok {
			return before.changedMap
		}
	}
	entries := changedMap{base: v.Value(s), depth: encodedDepth}
	if s.end != 0 {
		entries.depth = max(0, int(v.depth)-1)
	}
	declared := shape.Fields[number].Value
	key, element := declared.Key.Type, declared.Element.Type
	if b := entries.base; len(b) < mapHeader || thrift.I32At(b, 2) <= 0 || thrift.Type(b[0]) != key || thrift.Type(b[1]) != element {
		entries = changedMap{base: []byte{byte(key), byte(element), mapHeader - 1: 0}, depth: 1}
	}
	return entries
}

// take takes the entries of a key out. It reports whether there was one, and the value that
// counted.
func (e *changedMap) take(key Key) (old viewPatch, found bool) {
	if i := slices.IndexFunc(e.added, func(entry addedEntry) bool { return entry.key == key }); i >= 0 {
		old = e.added[i].value
		e.added = slices.Concat(e.added[:i], e.added[i+1:])
		return old, true // those of base went when this one was added
	}
	keyType, valueType := thrift.Type(e.base[0]), thrift.Type(e.base[1])
	cuts := slices.Clone(e.cuts)
	for i, p := 0, mapHeader; i < int(thrift.I32At(e.base, 2)); i++ {
		value := pass(e.base, p, keyType, mostLevels)
		if value < 0 {
			break // somebody has changed the bytes
		}
		end := pass(e.base, value, valueType, mostLevels)
		if end < 0 {
			break
		}
		if Key(e.base[p:value]) == key {
			at := sort.Search(len(cuts), func(at int) bool { return cuts[at].from >= uint32(p) })
			if at == len(cuts) || cuts[at].from != uint32(p) {
				cuts, found = slices.Insert(cuts, at, cutEntry{uint32(p), uint32(end)}), true
				old = textPatch(patchEncoded, textOf(e.base[value:end]))
			}
		}
		p = end
	}
	e.cuts = cuts
	return old, found
}

// WriteThrift writes the map, with its header.
func (e *changedMap) WriteThrift(w *thrift.Writer, b []byte) []byte {
	if levels := w.Levels(); levels < e.depth || e.depth == 0 {
		w.CheckLevels(e.base, thrift.Map, levels)
	}
	keyType, valueType := thrift.Type(e.base[0]), thrift.Type(e.base[1])
	n := int(thrift.I32At(e.base, 2)) - len(e.cuts) + len(e.added)
	b = w.BeginMap(b, 0, keyType, valueType, n)
	at := mapHeader
	for _, cut := range e.cuts {
		b = w.Part(b, e.base[at:cut.from])
		at = int(cut.to)
	}
	b = w.Part(b, e.base[at:])
	for i := range e.added {
		entry := &e.added[i]
		b = entry.value.write(w, w.Part(b, bytesOf(string(entry.key))), valueType)
	}
	w.EndMap()
	return b
}

func (v *View) setEntry(slots []Slot, shape *Shape, number int, key Key, patch viewPatch) {
	if v.isUnwritable(slots[number]) {
		return
	}
	entries := v.entries(slots, shape, number)
	entries.take(key)
	v.addEntry(slots, shape, number, &entries, key, patch)
}

// addEntry puts an entry behind those of the map that is the value of a field.
func (v *View) addEntry(slots []Slot, shape *Shape, number int, entries *changedMap, key Key, patch viewPatch) {
	entries.added = append(slices.Clip(entries.added), addedEntry{key, patch})
	v.SetPart(slots, shape, number, &viewEntries{changedMap: *entries})
}

// DeleteEntry removes the entries of a key from the map that is the value of a field, and
// reports whether there were any.
func (v *View) DeleteEntry(slots []Slot, shape *Shape, number int, key Key) (found bool) {
	if s := slots[number]; !v.Has(s) || v.isUnwritable(s) {
		return false
	}
	entries := v.entries(slots, shape, number)
	if _, found = entries.take(key); found {
		v.SetPart(slots, shape, number, &viewEntries{changedMap: entries})
	}
	return found
}

// SetNumberEntry makes value the value of a key in a map, as SetNumber makes it that of a
// field. A key that was there moves behind the others.
func (v *View) SetNumberEntry(slots []Slot, shape *Shape, number int, key Key, value uint64) {
	v.setEntry(slots, shape, number, key, viewPatch{form: patchNumber, number: value})
}

// SetBoolEntry is SetNumberEntry for bools.
func (v *View) SetBoolEntry(slots []Slot, shape *Shape, number int, key Key, value bool) {
	v.SetNumberEntry(slots, shape, number, key, boolBits(value))
}

// SetDoubleEntry is SetNumberEntry for doubles.
func (v *View) SetDoubleEntry(slots []Slot, shape *Shape, number int, key Key, value float64) {
	v.SetNumberEntry(slots, shape, number, key, math.Float64bits(value))
}

// SetTextEntry is SetNumberEntry for strings.
func (v *View) SetTextEntry(slots []Slot, shape *Shape, number int, key Key, value string) {
	v.setEntry(slots, shape, number, key, textPatch(patchText, value))
}

// SetUUIDEntry is SetNumberEntry for uuids.
func (v *View) SetUUIDEntry(slots []Slot, shape *Shape, number int, key Key, value thrift.UUID) {
	v.setEntry(slots, shape, number, key, textPatch(patchEncoded, string(value[:])))
}

// SetPartEntry is SetNumberEntry for views, which nobody will change.
func (v *View) SetPartEntry(slots []Slot, shape *Shape, number int, key Key, part viewPart) {
	v.setEntry(slots, shape, number, key, partPatch(part))
}
