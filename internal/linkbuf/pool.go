package linkbuf

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Chunks come in powers of two. 512 B is the smallest that is worth pooling
// (make costs less than a pool below it), 2 MiB the largest that is worth
// keeping: it holds a message of 1 MiB with its header, and a message of 16 MiB
// must not leave 16 MiB behind.
const (
	classBytesMin = 512
	classBytesMax = 2 << 20

	classCount = 13 // 512 B << 12 = 2 MiB
)

// Pool recycles byte slices. Of those that nobody uses it keeps 8 MiB (SpareBytes) in pieces
// of 128 KiB and more until nobody has wanted them for a while, and others until the second
// garbage collection. The zero value is ready to use. It is safe for
// concurrent use and must not be copied.
type Pool struct {
	// classes[i] holds slices of capacity classBytesMin<<i as pointers to their
	// first byte: a pointer in an interface costs no allocation, a slice would
	// cost one on every Put.
	classes [classCount]sync.Pool
	// large are those of the large classes that are kept; others are in classes. Apart from
	// the Pool, because collections hold it until it keeps nothing, and nil before the
	// first one.
	large atomic.Pointer[large]

	outstanding atomic.Int64
	checks      poolChecks
}

// NewPool returns an empty Pool.
func NewPool() *Pool { return new(Pool) }

// Get returns an empty slice with room for at least n bytes. What the room
// holds is undefined. The slice belongs to the caller until Put.
func (p *Pool) Get(n int) []byte {
	p.outstanding.Add(1)
	b := p.take(n)
	p.checks.got(b)
	return b
}

func (p *Pool) take(n int) []byte {
	if n > classBytesMax {
		return make([]byte, 0, n)
	}
	class := classFor(n)
	if class >= largeClass {
		if first := p.large.Load().get(class); first != nil {
			b := unsafe.Slice(first, classBytesMin<<class)[:0]
			p.checks.reused(b)
			return b
		}
	}
	if first, ok := p.classes[class].Get().(*byte); ok {
		b := unsafe.Slice(first, classBytesMin<<class)[:0]
		p.checks.reused(b)
		return b
	}
	return make([]byte, 0, classBytesMin<<class)
}

// Put takes back a slice that Get returned, whole or shortened at its end; the
// caller must not touch its memory again. A slice longer than the largest
// class goes to the garbage collector. One whose capacity no Get returns (its
// front was cut off, or it came from elsewhere) is ignored.
func (p *Pool) Put(b []byte) {
	size := cap(b)
	if size <= classBytesMax && (size < classBytesMin || size&(size-1) != 0) {
		return
	}
	p.checks.put(b[:size])
	p.outstanding.Add(-1)
	p.keep(b)
}

// Recycles reports whether memory of that capacity that is put back is used again.
func Recycles(size int) bool { return size <= classBytesMax }

// Lend is Get for somebody who may lose the slice, which then goes to the garbage collector:
// it is not counted, and goes back by Return.
func (p *Pool) Lend(n int) []byte { return p.take(n) }

// Return takes back a whole slice that Lend returned; the caller must not touch its memory
// again.
func (p *Pool) Return(b []byte) {
	spoil(b[:cap(b)])
	p.keep(b)
}

// keep puts a slice where take finds it, unless it is longer than the largest class.
func (p *Pool) keep(b []byte) {
	size := cap(b)
	if size > classBytesMax {
		return
	}
	class, first := classFor(size), unsafe.SliceData(b)
	if class < largeClass || !p.keepLarge(class, first) {
		p.classes[class].Put(first)
	}
}

func (p *Pool) keepLarge(class int, first *byte) bool {
	l := p.large.Load()
	if l == nil {
		l = new(large)
		if !p.large.CompareAndSwap(nil, l) {
			l = p.large.Load()
		}
	}
	return l.put(class, first)
}

// DropSpare leaves the large slices that nobody uses to the garbage collector, for an owner
// that will need none for a while. The Pool can be used as before.
func (p *Pool) DropSpare() { p.large.Load().drop() }

// Forget leaves a slice that Get returned to the garbage collector, because others
// may look into it for as long as they like. The caller must not use it again.
func (p *Pool) Forget(b []byte) {
	p.checks.forgotten(b)
	p.outstanding.Add(-1)
}

// Outstanding returns how many slices were taken and not put back.
func (p *Pool) Outstanding() int64 { return p.outstanding.Load() }

// classFor returns the smallest class with room for n bytes, n being at most
// classBytesMax.
func classFor(n int) int {
	if n <= classBytesMin {
		return 0
	}
	return bits.Len(uint(n-1)) - bits.Len(uint(classBytesMin-1))
}
