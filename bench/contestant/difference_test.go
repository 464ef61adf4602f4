//go:build linux

package contestant

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// differing takes 100 ns without and 350 ns with what is measured, but for a window now and
// then in which something else runs, and allocates 512 bytes more.
func differing(sink *[]byte) Contestant {
	windows := 0
	times := func(each time.Duration, bytes int) func(n int) (time.Duration, error) {
		return func(n int) (time.Duration, error) {
			for range n {
				if bytes > 0 {
					*sink = make([]byte, bytes)
				}
			}
			took := time.Duration(n) * each
			if windows++; windows%5 == 0 {
				took += time.Second
			}
			return took, nil
		}
	}
	return Contestant{Name: "a", Repeat: func(string) (Repeat, error) {
		return Repeat{Times: times(350, 512), Without: times(100, 0)}, nil
	}}
}

func TestRepeat_ReportsTheMedianOfDifferences(t *testing.T) {
	var sink []byte
	report, err := repeatOnce(t, differing(&sink))
	if err != nil {
		t.Fatal(err)
	}
	o := report.Operation
	if o == nil || o.Nanoseconds != 250 || o.Without != 100 {
		t.Errorf("%+v, want 250 ns more than 100", o)
	}
	if o.Allocations < 1 || o.Allocations > 1.1 || o.Bytes < 512 || o.Bytes > 600 {
		t.Errorf("%v allocations of %v bytes more, want 1 of 512", o.Allocations, o.Bytes)
	}
}

func TestRepeat_RefusesNoDifference(t *testing.T) {
	same := func(n int) (time.Duration, error) { return time.Duration(n), nil }
	report, err := repeatOnce(t, Contestant{Name: "a", Repeat: func(string) (Repeat, error) {
		return Repeat{Times: same, Without: same}, nil
	}})
	if err == nil || !strings.Contains(err.Error(), "no difference") {
		t.Errorf("%+v, %v; want that there is no difference", report, err)
	}
}

// rarely is an operation that takes no time worth mentioning and allocates 1 MiB.
func rarely(done *int, calls *atomic.Int64, sink *[]byte, broken error) Contestant {
	return Contestant{Name: "a", Repeat: func(string) (Repeat, error) {
		return Repeat{Rare: &Rare{
			Next: func() (func() error, error) {
				return func() error {
					*sink = make([]byte, 1<<20)
					*done++
					return nil
				}, nil
			},
			Pause: time.Millisecond, Rate: 1000,
			Call: func() error {
				calls.Add(1)
				return broken
			},
		}}, nil
	}}
}

func TestRepeat_TimesRareOperationsBesideCalls(t *testing.T) {
	var done int
	var calls atomic.Int64
	var sink []byte
	report, err := repeatOnce(t, rarely(&done, &calls, &sink, nil))
	if err != nil {
		t.Fatal(err)
	}
	o := report.Operation
	if o == nil || o.Count == 0 || o.Count != uint64(done-1) || o.Nanoseconds <= 0 || o.Bytes < 1<<20 {
		t.Errorf("%+v of %d operations, want all but the first, of 1 MiB at least", o, done)
	}
	if report.Latency.Count > uint64(calls.Load()) || calls.Load() == 0 {
		t.Errorf("%d latencies of %d calls, want those that had to do with operations", report.Latency.Count, calls.Load())
	}
}

func TestRepeat_RareOperationsNeedCallsThatWork(t *testing.T) {
	var done int
	var calls atomic.Int64
	var sink []byte
	broken := errors.New("broken")
	if report, err := repeatOnce(t, rarely(&done, &calls, &sink, broken)); !errors.Is(err, broken) {
		t.Errorf("%+v, %v; want what the calls say", report, err)
	}
}

// Calls that ended before an operation began do not count, nor those that fell due behind it.
func TestUnderway_KnowsWhatItTouched(t *testing.T) {
	u := &underway{begun: time.Now().Add(-time.Minute)}
	if u.touched(time.Millisecond) {
		t.Error("there was no operation yet")
	}
	u.running.Store(true)
	if !u.touched(time.Nanosecond) {
		t.Error("an operation is running")
	}
	u.running.Store(false)
	u.ended.Store(int64(time.Since(u.begun) - time.Second))
	if u.touched(time.Millisecond) || !u.touched(time.Hour) {
		t.Error("an operation has ended a second ago")
	}
}
