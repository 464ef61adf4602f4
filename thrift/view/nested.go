package view

// viewOf is what pointers to generated views have that are within other views.
type viewOf[V any] interface {
	*V
	viewPart
	BindThrift(b []byte) int
}

// The functions below change a struct within a view where it is: what a field, an element
// or an entry holds becomes a view with more patches, and stays a patch. Nothing around it
// is put together anew.

// Edit calls edit with a view of the struct that is the value of a field, and makes what
// that is afterwards the value.
func Edit[V any, P viewOf[V]](v *View, slots []Slot, shape *Shape, number int, edit func(P)) {
	value := new(V)
	if s := slots[number]; s.end == 0 && s.start&slotPatched != 0 {
		takeOver(P(value), v.patchOf(s))
	} else {
		P(value).BindThrift(v.Value(s))
	}
	edit(value)
	v.SetPart(slots, shape, number, P(value))
}

// takeOver makes value what a patch of a struct is. A view in it is copied, not written:
// nobody may change it, and value shares its bytes and patches.
func takeOver[V any, P viewOf[V]](value P, patch *viewPatch) {
	switch part := patch.nested().(type) {
	case nil:
		value.BindThrift(bytesOf(patch.text()))
	case P:
		*value = *part
	default:
		value.BindThrift(joined(part))
	}
}

// EditAt is Edit for element i of a list. It panics if there is none. Of a list that cannot
// be written nobody knows the elements: edit gets an empty one, which is forgotten.
func EditAt[V any, P viewOf[V]](v *View, slots []Slot, shape *Shape, number, i int, edit func(P)) {
	value := new(V)
	if v.isUnwritable(slots[number]) {
		edit(value)
		return
	}
	list, place := v.element(slots, shape, number, i)
	if patch := list.patches.find(place.at); patch != nil && int(patch.of) == place.at {
		takeOver(P(value), patch)
	} else {
		P(value).BindThrift(list.base[place.from:place.to])
	}
	edit(value)
	v.putAt(slots, shape, number, &list, place, partPatch(P(value)))
}

// EditEntry is Edit for the value of a key in a map. It reports false, and calls nothing,
// if the key is not there.
func EditEntry[V any, P viewOf[V]](v *View, slots []Slot, shape *Shape, number int, key Key, edit func(P)) bool {
	if s := slots[number]; !v.Has(s) || v.isUnwritable(s) {
		return false
	}
	entries := v.entries(slots, shape, number)
	old, found := entries.take(key)
	if !found {
		return false
	}
	value := new(V)
	takeOver(P(value), &old)
	edit(value)
	v.addEntry(slots, shape, number, &entries, key, partPatch(P(value)))
	return true
}
