package linkbuf_test

import (
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

func TestPool_GetHasRoomInClasses(t *testing.T) {
	pool := linkbuf.NewPool()
	for _, test := range []struct{ asked, capacity int }{
		{0, 512}, {1, 512}, {511, 512}, {512, 512}, {513, 1024}, {1024, 1024}, {1025, 2048},
		{1<<20 - 1, 1 << 20}, {1 << 20, 1 << 20},
		{1<<20 + 1, 2 << 20}, {2<<20 + 1, 2<<20 + 1}, {16 << 20, 16 << 20},
	} {
		b := pool.Get(test.asked)
		if len(b) != 0 || cap(b) != test.capacity {
			t.Errorf("Get(%d): length %d, capacity %d, want 0 and %d", test.asked, len(b), cap(b), test.capacity)
		}
		pool.Put(b)
	}
	if got := pool.Outstanding(); got != 0 {
		t.Errorf("Outstanding() = %d after everything was put back", got)
	}
}

func TestPool_RecyclesWithoutAllocating(t *testing.T) {
	if assert.Enabled {
		t.Skip("the checks of this build allocate")
	}
	pool := linkbuf.NewPool()
	pool.Put(pool.Get(4096))
	if got := testing.AllocsPerRun(1000, func() { pool.Put(pool.Get(4096)) }); got > 0.1 {
		t.Errorf("Get and Put allocate %v times", got)
	}
}

func TestPool_KeepsNoForeignCapacity(t *testing.T) {
	pool := linkbuf.NewPool()
	for _, capacity := range []int{0, 1, 256, 700, 4095, 1<<20 - 1} {
		pool.Put(make([]byte, 0, capacity))
	}
	b := pool.Get(1024)
	pool.Put(b[3:4]) // 1,021 bytes are no class
	if got := pool.Outstanding(); got != 1 {
		t.Errorf("Outstanding() = %d, want 1: only a whole slice counts as put back", got)
	}
	pool.Put(b)
	if got := pool.Outstanding(); got != 0 {
		t.Errorf("Outstanding() = %d, want 0", got)
	}
}

// TestPool_KeepsNothingAboveItsLargestClass: one 4 MiB message must not leave
// 4 MiB behind.
func TestPool_KeepsNothingAboveItsLargestClass(t *testing.T) {
	pool := linkbuf.NewPool()
	for range 8 {
		for _, size := range []int{2<<20 + 1, 4 << 20, 8 << 20} {
			b := pool.Get(size)
			if cap(b) != size {
				t.Errorf("Get(%d) has capacity %d, want no more than asked", size, cap(b))
			}
			b = b[:size]
			if b[0] != 0 || b[size-1] != 0 {
				t.Errorf("Get(%d) returned memory that was used before", size)
			}
			b[0], b[size-1] = 1, 1
			pool.Put(b)
		}
	}
}

func TestPool_AcceptsShortenedSlices(t *testing.T) {
	pool := linkbuf.NewPool()
	b := append(pool.Get(600), "something"...)
	pool.Put(b[:2])
	if got := pool.Outstanding(); got != 0 {
		t.Errorf("Outstanding() = %d, want 0", got)
	}
}

// TestPool_NeverGivesOneSliceToTwoOwners lets goroutines mark what they got
// and look whether the mark stays.
func TestPool_NeverGivesOneSliceToTwoOwners(t *testing.T) {
	pool := linkbuf.NewPool()
	var group sync.WaitGroup
	for owner := range byte(4) {
		group.Go(func() {
			for i := range 2500 {
				b := pool.Get(512 << (i % 3))
				b = b[:cap(b)]
				b[0], b[len(b)-1] = owner, owner
				other := pool.Get(512)
				if b[0] != owner || b[len(b)-1] != owner {
					t.Errorf("slice of owner %d was overwritten", owner)
				}
				if unsafe.SliceData(other) == unsafe.SliceData(b) {
					t.Error("one slice was given out twice")
				}
				pool.Put(other)
				pool.Put(b)
			}
		})
	}
	group.Wait()
	if got := pool.Outstanding(); got != 0 {
		t.Errorf("Outstanding() = %d, want 0", got)
	}
}

func TestPool_ChecksFire(t *testing.T) {
	if !assert.Enabled {
		t.Skip("needs the invariants tag or the race detector")
	}
	recovered := func(f func()) (value any) {
		defer func() { value = recover() }()
		f()
		return nil
	}
	t.Run("put twice", func(t *testing.T) {
		pool := linkbuf.NewPool()
		b := pool.Get(512)
		pool.Put(b)
		if recovered(func() { pool.Put(b) }) == nil {
			t.Error("the second Put did not panic")
		}
	})
	t.Run("put of a slice from elsewhere", func(t *testing.T) {
		if recovered(func() { linkbuf.NewPool().Put(make([]byte, 1024)) }) == nil {
			t.Error("Put of a foreign slice did not panic")
		}
	})
	t.Run("poisoned by Put", func(t *testing.T) {
		pool := linkbuf.NewPool()
		b := append(pool.Get(512), "secret"...)
		pool.Put(b)
		if string(b) != "\xdb\xdb\xdb\xdb\xdb\xdb" {
			t.Errorf("content after Put is %q", b)
		}
	})
	t.Run("written to after Put", func(t *testing.T) {
		pool := linkbuf.NewPool()
		value := recovered(func() {
			// In race builds sync.Pool drops every fourth slice, so one try
			// proves nothing.
			for range 200 {
				b := pool.Get(512)[:1]
				pool.Put(b)
				b[0] = 'x'
			}
		})
		if value == nil {
			t.Error("Get did not notice the write")
		}
	})
	t.Run("counted for the process", func(t *testing.T) {
		before := linkbuf.Outstanding()
		pool := linkbuf.NewPool()
		small, large := pool.Get(1), pool.Get(2<<20)
		if got := linkbuf.Outstanding() - before; got != 2 {
			t.Errorf("Outstanding() rose by %d, want 2", got)
		}
		pool.Put(small)
		pool.Put(large)
		if got := linkbuf.Outstanding() - before; got != 0 {
			t.Errorf("Outstanding() is off by %d", got)
		}
	})
}

func ExamplePool() {
	pool := linkbuf.NewPool()
	b := pool.Get(600)
	fmt.Println(len(b), cap(b), pool.Outstanding())
	pool.Put(b)
	fmt.Println(pool.Outstanding())
	// Output:
	// 0 1024 1
	// 0
}

// TestPool_Forget: what others look into is neither reused nor counted.
func TestPool_Forget(t *testing.T) {
	pool := linkbuf.NewPool()
	b := append(pool.Get(1000), "still there"...)
	pool.Forget(b)
	if got := pool.Outstanding(); got != 0 {
		t.Errorf("%d slices are outstanding after Forget", got)
	}
	for range 100 {
		other := pool.Get(1000)
		other = append(other, "something else"...)
		defer pool.Put(other)
	}
	if string(b) != "still there" {
		t.Errorf("a slice that was forgotten was used again: %q", b)
	}
}
