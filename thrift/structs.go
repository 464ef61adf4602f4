package thrift

import "unsafe"

// slabSingles is how many structs of a message get memory of their own before pieces are
// shared: a message of a few would pay for more than it needs.
const slabSingles = 4

// Structs makes structs of type T for a container of pointers to them, such as a map, in
// pieces of memory that those of a message share: one of many structs takes a few
// allocations, however they are nested. What is kept keeps its piece, of at most
// slabBytes, in memory, with all that the others in it refer to. The zero value is ready for
// use.
type Structs[T any] struct {
	// own is what is left of a piece of the container's own. The first one of a message
	// has that: many messages have no other.
	own []T
	// slab is the piece for others, if that was looked for.
	slab *structSlab
}

// structSlabs are the pieces for structs, of the types that were there first. Few
// messages have structs of more types in them.
type structSlabs [8]structSlab

// structSlab is a piece for structs of one type.
type structSlab struct {
	// kind is a nil pointer to the type.
	kind any
	// memory is a slice of made structs, of which used have been handed out.
	memory     unsafe.Pointer
	used, made int
	// next is for how many the next piece is, and most for how many one may be, 0 for as many
	// as slabBytes allow.
	next, most int
}

// of returns the piece for a type; nil if there are too many types.
func (s *structSlabs) of(kind any) *structSlab {
	for i := range s {
		switch s[i].kind {
		case kind:
			return &s[i]
		case nil:
			s[i].kind, s[i].next = kind, 1
			return &s[i]
		}
	}
	return nil
}

func slabOf[T any](r *Reader) *structSlab {
	memory := r.more()
	if memory.structs == nil {
		memory.structs = new(structSlabs)
	}
	return memory.structs.of((*T)(nil))
}

// Expect says that n structs are likely to be made. Pieces are charged to the budget as a
// whole when they are made: a count can ask for one without the structs that it promises.
func (s *Structs[T]) Expect(r *Reader, n int) {
	if n <= slabSingles {
		return
	}
	first := r.singles == 0
	r.singles = slabSingles
	if first && n <= pieceMost[T](r) {
		r.budget -= madeBytes(int64(n) * int64(unsafe.Sizeof(*new(T)))) // of which it is an eighth at most, or little more
		s.own = make([]T, n)
		return
	}
	if s.slab = slabOf[T](r); s.slab != nil {
		s.slab.next = max(s.slab.next, n-(s.slab.made-s.slab.used))
	}
}

// New returns a new struct for what is at p. It is never nil, so that generated code can
// go on after an error.
func (s *Structs[T]) New(r *Reader, p int) *T {
	if len(s.own) > 0 {
		made := &s.own[0]
		s.own = s.own[1:]
		return made
	}
	if s.slab != nil {
		return newInSlab[T](r, p, s.slab)
	}
	return newSingle[T](r, p)
}

// newSingle is New for a struct of a short container, or of none, and for one that was not
// expected.
func newSingle[T any](r *Reader, p int) *T {
	if r.singles < slabSingles {
		r.singles++
		return Allocate[T](r, p)
	}
	slab := slabOf[T](r)
	if slab == nil {
		return Allocate[T](r, p)
	}
	return newInSlab[T](r, p, slab)
}

func newInSlab[T any](r *Reader, p int, slab *structSlab) *T {
	if slab.used == slab.made && !newPiece[T](r, p, slab) {
		return new(T)
	}
	slab.used++
	return (*T)(unsafe.Add(slab.memory, uintptr(slab.used-1)*unsafe.Sizeof(*new(T))))
}

// newPiece replaces a piece that is used up by one for twice as many, so that what is
// not used is less than what is, or as many as are expected. It reports false if the
// budget is not enough for one struct.
func newPiece[T any](r *Reader, p int, slab *structSlab) bool {
	made := max(1, min(slab.next, pieceMost[T](r)))
	if slab.most > 0 {
		made = min(made, slab.most)
	}
	if !r.charge(p, madeBytes(int64(made)*int64(unsafe.Sizeof(*new(T))))) {
		return false
	}
	slab.memory = unsafe.Pointer(unsafe.SliceData(make([]T, made)))
	slab.made, slab.used, slab.next = made, 0, 2*made
	return true
}

// slabBudget is which part of the budget a piece for structs takes at most: others need
// the rest for what does arrive.
const slabBudget = 8

// pieceMost returns for how many structs a piece may be.
func pieceMost[T any](r *Reader) int {
	size := max(1, int64(unsafe.Sizeof(*new(T))))
	return int(min(slabBytes, max(0, r.budget)/slabBudget) / size)
}
