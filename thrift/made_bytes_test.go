package thrift

import (
	"math"
	"reflect"
	"runtime"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// TestMadeBytes_BoundsWhatGoAllocates makes values of pointers, and of none, of all lengths
// around which the allocator could go on to another class.
func TestMadeBytes_BoundsWhatGoAllocates(t *testing.T) {
	// From 16 bytes on: several shorter values without pointers are in one piece, or, with the
	// race detector, not.
	for words := 2; words < 6000; words += 1 + words/150 {
		for _, element := range []reflect.Type{reflect.TypeFor[*byte](), reflect.TypeFor[int64]()} {
			of, least := reflect.ArrayOf(words, element), int64(math.MaxInt64)
			for range 5 { // the least of several attempts: the runtime allocates for itself too
				least = min(least, averageOf(func() { reflect.New(of) }))
			}
			charged := madeBytes(int64(of.Size()))
			if least > charged {
				t.Errorf("%v takes %d bytes, charged are %d", of, least, charged)
			}
			if element.Kind() == reflect.Pointer && charged > least {
				t.Errorf("%v takes %d bytes, charged are as many as %d", of, least, charged)
			}
		}
	}
}

func averageOf(f func()) int64 {
	const times = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		f()
	}
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc-before.TotalAlloc) / times
}

// TestReader_TakesNoMoreThanItsBudget makes structs of many maps in each way that there is,
// until the budget is used up: a byte on the wire is enough for one.
func TestReader_TakesNoMoreThanItsBudget(t *testing.T) {
	type tables [128]map[int32]int32
	message := make([]byte, 256<<10)
	budget := limits.DefaultMessage().DecodeBytes(len(message))
	var made *tables
	for name, make := range map[string]func(r *Reader){
		"one":         func(r *Reader) { made = Allocate[tables](r, 0) },
		"short lists": func(r *Reader) { MakeSlice[tables](r, 0, 3, nil) },
		"long lists":  func(r *Reader) { MakeSlice[tables](r, 0, 33, nil) },
		"keys": func(r *Reader) {
			entries := MakeMap[[1544]byte, bool](r, 0, 8, nil)
			for i := range byte(8) {
				entries[[1544]byte{i}] = true
			}
		},
		"values": func(r *Reader) {
			var structs Structs[tables]
			structs.Expect(r, 5)
			for range 5 {
				structs.New(r, 0)
			}
		},
	} {
		const refused = 64 << 10 // what was too much, and the error
		got := testkit.Allocated(budget+refused, func() {
			r := newReader(message, limits.DefaultMessage(), StringsAuto, owned)
			for !r.Failed() {
				make(&r)
			}
		})
		if got > budget+refused || got < budget/2 {
			t.Errorf("%s: %d bytes allocated with a budget of %d", name, got, budget)
		}
	}
	runtime.KeepAlive(made)
}
