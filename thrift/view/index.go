package view

// Indexed is a List of which it is known where each element stands, so that At takes no
// longer for the last one than for the first. It has four bytes for each.
type Indexed[E any] struct {
	list   List[E]
	starts []uint32
}

// Index passes over the list once, and notes where elements are.
func (l List[E]) Index() Indexed[E] {
	l = l.whole()
	starts := make([]uint32, 0, min(l.n, len(l.wire)))
	for p := 0; len(starts) < cap(starts); {
		starts = append(starts, uint32(p))
		if p = pass(l.wire, p, l.t, mostLevels); p < 0 {
			break // somebody has changed the bytes
		}
	}
	return Indexed[E]{list: l, starts: starts}
}

// Len returns how many elements there are.
func (x Indexed[E]) Len() int { return len(x.starts) }

// At returns element i. It panics if there is none.
func (x Indexed[E]) At(i int) E {
	if uint(i) >= uint(len(x.starts)) {
		panic(noElement(i, len(x.starts)))
	}
	element, _ := x.list.read(x.list.wire[x.starts[i]:])
	return element
}
