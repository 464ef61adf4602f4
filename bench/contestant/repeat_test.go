//go:build linux

package contestant

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// repeatOnce runs the command repeat and returns what it printed.
func repeatOnce(t *testing.T, c Contestant) (Report, error) {
	var out strings.Builder
	err := run(t.Context(), []Contestant{c}, []string{"repeat", "-contestant", c.Name, "-case", "any", "-warm-up", "1ms", "-duration", "5ms"}, nil, &out)
	if err != nil {
		return Report{}, err
	}
	event, err := ParseEvent([]byte(out.String()))
	if err != nil || event.Report == nil {
		return Report{}, errors.Join(errors.New(out.String()), err)
	}
	return *event.Report, nil
}

// allocator says that each operation took 250 ns, and allocates 1 KiB in it.
func allocator(done *uint64, kept *[]byte, closed *bool) Contestant {
	return Contestant{Name: "a", Repeat: func(string) (Repeat, error) {
		return Repeat{
			Heap: true, Bytes: 4096,
			Times: func(n int) (time.Duration, error) {
				for range n {
					*kept = make([]byte, 1<<10)
				}
				*done += uint64(n)
				return time.Duration(n) * 250, nil
			},
			Close: func() error { *closed = true; return nil },
		}, nil
	}}
}

func TestRepeat_ReportsMeansOfTheWindow(t *testing.T) {
	var done uint64
	var kept []byte
	var closed bool
	report, err := repeatOnce(t, allocator(&done, &kept, &closed))
	if err != nil {
		t.Fatal(err)
	}
	o := report.Operation
	if o == nil {
		t.Fatalf("%+v has no operation", report)
	}
	if o.Nanoseconds != 250 {
		t.Errorf("%v ns an operation, want what Times returned: 250", o.Nanoseconds)
	}
	// The test program allocates a little beside it.
	if o.Allocations < 1 || o.Allocations > 1.1 || o.Bytes < 1<<10 || o.Bytes > 1.1*(1<<10) {
		t.Errorf("%v allocations of %v bytes, want 1 of 1024", o.Allocations, o.Bytes)
	}
	if o.Count == 0 || o.Count >= done {
		t.Errorf("%d of %d operations count, want those behind the warm-up", o.Count, done)
	}
	if report.Calls != 0 || report.Seconds < 0.005 || report.HeapBytes == nil || *report.HeapBytes == 0 || report.ServerPeak == 0 {
		t.Errorf("%+v, want 5 ms without calls, a heap and a peak of memory", report)
	}
	if report.CallBytes != 4096 {
		t.Errorf("operations of %d bytes, want 4096", report.CallBytes)
	}
	if !closed {
		t.Error("the operation was not closed")
	}
}

// What does not allocate is said not to, whatever the runtime does meanwhile.
func TestRepeat_LeavesOutWhatTheRuntimeAllocates(t *testing.T) {
	sink := make([]byte, 0)
	report, err := repeatOnce(t, Contestant{Name: "a", Repeat: func(string) (Repeat, error) {
		done := 0
		return Repeat{Times: func(n int) (time.Duration, error) {
			if done += n; done%(1<<15) < n {
				sink = make([]byte, 1<<10)
			}
			return time.Duration(n), nil
		}}, nil
	}})
	if err != nil || report.Operation == nil || report.Operation.Allocations != 0 || report.Operation.Bytes != 0 {
		t.Errorf("%+v, %v; want no allocations", report.Operation, err)
	}
	if len(sink) == 0 {
		t.Error("nothing was allocated meanwhile")
	}
}

func TestRepeat_SaysWhyItCannot(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		contestant Contestant
		want       string
	}{
		"no operation": {Contestant{Name: "a"}, "nothing to repeat"},
		"no such case": {Contestant{Name: "a", Repeat: func(string) (Repeat, error) { return Repeat{}, errors.New("no case") }}, "no case"},
		"failing": {Contestant{Name: "a", Repeat: func(string) (Repeat, error) {
			return Repeat{Times: func(int) (time.Duration, error) { return 0, broken }}, nil
		}}, "broken"},
	} {
		if report, err := repeatOnce(t, c.contestant); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want an error that says %q", name, report, err, c.want)
		}
	}
}
