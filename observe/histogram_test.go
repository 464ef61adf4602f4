package observe_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/observe"
)

// longest is the longest time that has a bucket of its own.
const longest = 1<<42 - 1

// checkAgainst compares what a histogram of times says with the times themselves.
func checkAgainst(t *testing.T, s observe.Snapshot, times []int64) {
	t.Helper()
	exact := make([]int64, len(times))
	var sum int64
	for i, n := range times {
		exact[i] = min(max(n, 0), longest)
		sum += exact[i]
	}
	slices.Sort(exact)
	if s.Count() != uint64(len(exact)) || s.Sum() != time.Duration(sum) {
		t.Fatalf("count %d, sum %v; want %d, %v", s.Count(), s.Sum(), len(exact), time.Duration(sum))
	}
	if len(exact) == 0 {
		if s.Quantile(0.5) != 0 || s.Max() != 0 || s.Mean() != 0 {
			t.Errorf("of nothing: median %v, max %v, mean %v", s.Quantile(0.5), s.Max(), s.Mean())
		}
		return
	}
	if s.Max() != time.Duration(exact[len(exact)-1]) {
		t.Errorf("max %v, want %v", s.Max(), time.Duration(exact[len(exact)-1]))
	}
	for _, q := range []float64{math.NaN(), -1, 0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.99999, 1, 2} {
		rank := 1
		if q > 0 {
			rank = min(max(int(math.Ceil(q*float64(len(exact)))), 1), len(exact))
		}
		want, got := exact[rank-1], int64(s.Quantile(q))
		if want < 16 && q < 1 && got != want || math.Abs(float64(got-want)) > float64(want)/32 {
			t.Errorf("quantile %v of %d is %d, want %d at most 1/32 off", q, len(exact), got, want)
		}
	}
	var counted uint64
	last := time.Duration(0)
	for below, n := range s.Buckets() {
		if below <= last || n == 0 {
			t.Errorf("bucket below %v with %d comes behind %v", below, n, last)
		}
		at, _ := slices.BinarySearch(exact, int64(below))
		if counted += n; uint64(at) != counted {
			t.Errorf("%d below %v, want %d", counted, below, at)
		}
		last = below
	}
	for range s.Buckets() {
		break // the iterator must bear it
	}
}

func TestHistogram_IsAsExactAsItSays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	distributions := map[string]func() int64{
		"small":       func() int64 { return random.Int64N(40) },
		"even":        func() int64 { return random.Int64N(1e9) },
		"exponential": func() int64 { return int64(random.ExpFloat64() * 2e5) },
		"all sizes":   func() int64 { return random.Int64() >> random.IntN(63) },
		"one value":   func() int64 { return 123456789 },
		"negative":    func() int64 { return -random.Int64N(9) },
	}
	for name, next := range distributions {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{0, 1, 2, 10, 5000} {
				// Their sum must fit.
				var h observe.Histogram
				var times []int64
				for range n {
					times = append(times, next())
					h.Record(time.Duration(times[len(times)-1]))
				}
				checkAgainst(t, h.Snapshot(), times)
			}
		})
	}
}

// TestHistogram_EdgesOfBuckets: every power of two, and what is beside it.
func TestHistogram_EdgesOfBuckets(t *testing.T) {
	for bit := range 63 {
		for _, n := range []int64{1<<bit - 1, 1 << bit, 1<<bit + 1, 1<<bit + 1<<bit>>1} {
			var h observe.Histogram
			h.Record(time.Duration(n))
			checkAgainst(t, h.Snapshot(), []int64{n})
		}
	}
}

func TestSnapshot_Merge(t *testing.T) {
	var a, b observe.Histogram
	var all []int64
	for i := range int64(1000) {
		all = append(all, i*i, i*1000)
		a.Record(time.Duration(i * i))
		b.Record(time.Duration(i * 1000))
	}
	before := a.Snapshot()
	merged := before
	merged.Merge(b.Snapshot())
	merged.Merge(observe.Snapshot{})
	checkAgainst(t, merged, all)
	if before.Count() != 1000 || before.Quantile(1) != 999*999 {
		t.Error("merging changed what was merged into before it was copied")
	}
	var empty observe.Snapshot
	empty.Merge(merged)
	checkAgainst(t, empty, all)
}

func TestHistogram_CountsForEverybody(t *testing.T) {
	var h observe.Histogram
	var wait sync.WaitGroup
	const goroutines, each = 8, 5000
	for g := range goroutines {
		wait.Go(func() {
			for i := range each {
				h.Record(time.Duration(g*each + i))
			}
		})
	}
	wait.Wait()
	s := h.Snapshot()
	const n = goroutines * each
	if s.Count() != n || s.Sum() != n*(n-1)/2 || s.Max() != n-1 {
		t.Errorf("count %d, sum %d, max %d", s.Count(), s.Sum(), s.Max())
	}
	if allocations := testing.AllocsPerRun(100, func() { h.Record(time.Second) }); allocations > 0 {
		t.Errorf("Record allocates %v times", allocations)
	}
}

// FuzzHistogram compares histograms of any times with the times.
func FuzzHistogram(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0, 16, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:min(len(data), 8<<10)]
		var whole, first, second observe.Histogram
		var times []int64
		for i := 0; i+8 <= len(data); i += 8 {
			n := int64(binary.BigEndian.Uint64(data[i:]))
			times = append(times, n)
			whole.Record(time.Duration(n))
			if n%2 == 0 {
				first.Record(time.Duration(n))
			} else {
				second.Record(time.Duration(n))
			}
		}
		checkAgainst(t, whole.Snapshot(), times)
		merged := first.Snapshot()
		merged.Merge(second.Snapshot())
		checkAgainst(t, merged, times)
	})
}

func BenchmarkHistogram_Record(b *testing.B) {
	var h observe.Histogram
	b.Run("one", func(b *testing.B) {
		n := time.Duration(0)
		for b.Loop() {
			n = (n*1103515245 + 12345) & (1<<20 - 1)
			h.Record(n)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			n := time.Duration(0)
			for p.Next() {
				n = (n*1103515245 + 12345) & (1<<20 - 1)
				h.Record(n)
			}
		})
	})
}

// TestHistogram_SnapshotWhileOthersCount: nothing that a snapshot has counted is longer
// than its Max, so no quantile is cut short. Each of many histograms is looked at until
// its only time is there.
func TestHistogram_SnapshotWhileOthersCount(t *testing.T) {
	const only = 70 * time.Minute // its bucket is one of the last that are looked at
	histograms := make([]observe.Histogram, 4096)
	turns := make(chan *observe.Histogram)
	go func() {
		for h := range turns {
			h.Record(only)
		}
	}()
	defer close(turns)
	for i := range histograms {
		h := &histograms[i]
		turns <- h
		for {
			s := h.Snapshot()
			if s.Count() == 0 {
				runtime.Gosched() // with one processor it would be a turn of 10 ms each
				continue
			}
			if s.Max() != only {
				t.Fatalf("Max %v, although %v was counted", s.Max(), only)
			}
			break
		}
	}
}
