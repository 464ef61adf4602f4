package linkbuf

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// TestPool_KeepsLargeSlices: through collections, and up to a limit.
func TestPool_KeepsLargeSlices(t *testing.T) {
	p := NewPool()
	first := p.Get(1 << 20)
	memory := unsafe.SliceData(first)
	p.Put(first)
	for range 3 {
		runtime.GC()
	}
	if again := p.Get(600 << 10); unsafe.SliceData(again) != memory || cap(again) != 1<<20 || len(again) != 0 {
		t.Errorf("another slice, of %d bytes with room for %d", len(again), cap(again))
	} else {
		p.Put(again)
	}
	var taken [][]byte
	for range 2*limits.SpareBytes>>20 + 1 {
		taken = append(taken, p.Get(1<<20))
	}
	for _, b := range taken {
		p.Put(b)
	}
	if p.large.Load().bytes != limits.SpareBytes || len(p.large.Load().free[classFor(1<<20)]) != limits.SpareBytes>>20 {
		t.Errorf("it keeps %d bytes in %d slices", p.large.Load().bytes, len(p.large.Load().free[classFor(1<<20)]))
	}
	if p.Put(p.Get(64 << 10)); p.large.Load().bytes != limits.SpareBytes {
		t.Error("a slice of 64 KiB is kept")
	}
}

// TestPool_GivesAwayWhatNobodyUses: what was used since stays.
func TestPool_GivesAwayWhatNobodyUses(t *testing.T) {
	p := NewPool()
	age := func() {
		p.large.Load().mu.Lock()
		p.large.Load().aged = p.large.Load().aged.Add(-2 * limits.SpareAge)
		p.large.Load().mu.Unlock()
		p.large.Load().age()
	}
	put := func(n int) {
		var taken [][]byte
		for range n {
			taken = append(taken, p.Get(1<<20))
		}
		for _, b := range taken {
			p.Put(b)
		}
	}
	put(4)
	age()
	put(1)
	if p.large.Load().age(); len(p.large.Load().free[classFor(1<<20)]) != 4 {
		t.Errorf("%d slices are left that are not old", len(p.large.Load().free[classFor(1<<20)]))
	}
	if age(); p.large.Load().bytes != 1<<20 {
		t.Errorf("%d bytes are left, of which a slice was used", p.large.Load().bytes)
	}
	if age(); p.large.Load().bytes != 0 || p.large.Load().watched {
		t.Errorf("%d bytes are left, watched: %v", p.large.Load().bytes, p.large.Load().watched)
	}
	if put(1); !p.large.Load().watched {
		t.Error("nobody is going to give it away")
	}
}

// TestPool_IsCollected: although collections call it, until it keeps nothing.
func TestPool_IsCollected(t *testing.T) {
	var collected atomic.Bool
	func() {
		p := NewPool()
		runtime.AddCleanup(p, func(*struct{}) { collected.Store(true) }, nil)
		p.Put(p.Get(1 << 20))
		for range 2 {
			p.large.Load().mu.Lock()
			p.large.Load().aged = time.Time{} // long ago
			p.large.Load().mu.Unlock()
			p.large.Load().age()
		}
	}()
	for range 1000 {
		if runtime.GC(); collected.Load() {
			return
		}
		runtime.Gosched()
	}
	t.Error("it is there after 1,000 collections")
}

// TestPool_LargeSlicesHaveOneOwner takes and puts them from many goroutines while
// collections run.
func TestPool_LargeSlicesHaveOneOwner(t *testing.T) {
	p := NewPool()
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for i := range 200 {
				b := p.Get(128<<10 + g*(64<<10))
				b = append(b, byte(g), byte(i))
				if i == 25*g {
					runtime.GC()
				}
				if b[0] != byte(g) || b[1] != byte(i) {
					t.Error("somebody else has it too")
				}
				p.Put(b)
			}
		})
	}
	wait.Wait()
	if n := p.Outstanding(); n != 0 {
		t.Errorf("%d are outstanding", n)
	}
}
