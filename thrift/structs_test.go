package thrift

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// The structs of different types, more of them than a Reader has pieces for.
type (
	wide             [400]int64
	wide1            wide
	wide2            wide
	wide3            wide
	wide4            wide
	wide5            wide
	wide6            wide
	wide7            wide
	wide8            wide
	wide9            wide
	linked           struct{ next *linked }
	nothing          struct{}
	structReader     = func(r *Reader, n int)
	structAllocation struct{ made, budget int64 }
)

// expected makes one struct of n that are expected.
func expected[T any](r *Reader, n int) {
	var structs Structs[T]
	structs.Expect(r, n)
	structs.New(r, 0)
}

// readStructs returns what readers make for a message of so many bytes, and what that may
// take.
func readStructs(message, n int, readers ...structReader) structAllocation {
	r := newReader(make([]byte, message), limits.DefaultMessage(), StringsAuto, owned)
	taken := structAllocation{budget: r.budget}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, read := range readers {
		read(&r, n)
	}
	runtime.ReadMemStats(&after)
	taken.made = int64(after.TotalAlloc - before.TotalAlloc)
	return taken
}

// TestStructs_ThatDoNotComeAreBounded has a short message announce structs of many types,
// and send one of each.
func TestStructs_ThatDoNotComeAreBounded(t *testing.T) {
	readers := []structReader{
		expected[wide1], expected[wide2], expected[wide3], expected[wide4], expected[wide5],
		expected[wide6], expected[wide7], expected[wide8], expected[wide9],
	}
	for _, message := range []int{0, 100, 4 << 10, 1 << 20} {
		taken := readStructs(message, message/2, readers...)
		if most := 2 * min(taken.budget, slabBytes*int64(len(readers))); taken.made > most {
			t.Errorf("%d bytes made for a message of %d (limit %d)", taken.made, message, most)
		}
	}
}

// TestStructs_AreZeroAndApart makes structs in pieces of one and of many, of which some
// were expected, and of several types.
func TestStructs_AreZeroAndApart(t *testing.T) {
	const n = 1000
	r := newReader(make([]byte, 1<<16), limits.DefaultMessage(), StringsAuto, owned)
	budget := r.budget
	var all [n]*linked
	var few, many Structs[linked]
	few.Expect(&r, slabSingles)
	for i := range n {
		switch {
		case i < n/2:
			all[i] = few.New(&r, 0)
		case i == n/2:
			many.Expect(&r, n)
			fallthrough
		default:
			all[i] = many.New(&r, 0)
		}
		if all[i].next != nil {
			t.Fatalf("struct %d is not new", i)
		}
		all[i].next = all[i]
		if newSingle[nothing](&r, 0) == nil {
			t.Fatal("there is no empty struct")
		}
	}
	runtime.GC()
	for i, s := range all {
		if s.next != s {
			t.Fatalf("struct %d is another one", i)
		}
	}
	// Pieces are charged as a whole, and 1,000 were announced where 500 came.
	size := int64(unsafe.Sizeof(linked{}))
	if charged := budget - r.budget; charged < n*size || charged > 2*n*size {
		t.Errorf("%d structs of %d bytes were charged with %d", n, size, charged)
	}
}

// TestStructs_AfterAnError are there, one by one.
func TestStructs_AfterAnError(t *testing.T) {
	readStructs(0, 100, func(r *Reader, n int) {
		var structs Structs[wide]
		structs.Expect(r, n)
		for range n {
			if structs.New(r, 0) == nil {
				t.Error("there is no struct")
			}
		}
		if !r.Failed() {
			t.Error("no error")
		}
	})
}
