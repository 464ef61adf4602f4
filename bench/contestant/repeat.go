package contestant

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/machine"
)

// Repeat is an operation that is ready to be repeated.
type Repeat struct {
	// Times does the operation n times, n being positive, and returns how long
	// that took. What has to be done between operations does not count.
	Times func(n int) (time.Duration, error)
	// Without does it n times without what is measured, where that is the difference
	// between the two; else nil. See difference.
	Without func(n int) (time.Duration, error)
	// Rare stands in place of Times for operations that nobody does back to back.
	Rare *Rare
	// Bytes is how much data an operation works on, where bytes a second say
	// something; else 0.
	Bytes int64
	// Heap asks for the heap behind the last operation and one garbage
	// collection, which is what a sync.Pool survives.
	Heap bool
	// Close ends it. It may be nil.
	Close func() error
}

// A batch of operations is as many as take this long, so that reading the clock
// does not count: two reads take about 80 ns.
const (
	batchTime = time.Millisecond
	batchMax  = 1 << 20
)

// allocationsMin is below what an operation of its own can allocate on average:
// that is the runtime's, or the rest of the warm-up, and ratios of it are chance.
const allocationsMin = 0.001

// repeat measures a case without calls: it warms up, and then counts the
// operations of a window, their time and their allocations.
func repeat(c Contestant, caseName string, o loadOptions, out io.Writer) error {
	if c.Repeat == nil {
		return fmt.Errorf("%s has nothing to repeat", c.Name)
	}
	operation, err := c.Repeat(caseName)
	if err != nil {
		return err
	}
	// What was measured is printed by then.
	defer func() {
		if operation.Close != nil {
			_ = operation.Close()
		}
	}()
	report, err := operation.measure(o)
	if err != nil {
		return err
	}
	if report.ServerPeak, err = machine.PeakMemory(os.Getpid()); err != nil {
		return err
	}
	return printEvent(out, Event{Report: &report})
}

// measure chooses how.
func (r Repeat) measure(o loadOptions) (Report, error) {
	if r.Rare != nil {
		return r.Rare.measure(o)
	}
	batch, err := r.warmUp(o.warmUp)
	if err != nil {
		return Report{}, err
	}
	if r.Without != nil {
		return r.difference(batch, o.duration)
	}
	return r.window(batch, o.duration)
}

// warmUp repeats the operation for a while, and at least twice, and returns how
// many make a batch.
func (r Repeat) warmUp(duration time.Duration) (batch int, err error) {
	batch = 1
	for begun, more := time.Now(), true; more; more = time.Since(begun) < duration {
		for {
			took, err := r.Times(batch)
			if err != nil {
				return 0, err
			}
			if took >= batchTime || batch >= batchMax {
				break
			}
			batch *= 2
		}
	}
	return batch, nil
}

// window repeats the operation until the window is over.
func (r Repeat) window(batch int, duration time.Duration) (Report, error) {
	var operations uint64
	var took time.Duration
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	for more := true; more; more = time.Since(begun) < duration {
		passed, err := r.Times(batch)
		if err != nil {
			return Report{}, err
		}
		took += passed
		operations += uint64(batch)
	}
	elapsed := time.Since(begun)
	runtime.ReadMemStats(&after)
	each := func(total float64) float64 { return total / float64(operations) }
	report := Report{Seconds: elapsed.Seconds(), CallBytes: r.Bytes, Operation: &Operation{
		Count:       operations,
		Nanoseconds: each(float64(took.Nanoseconds())),
		Allocations: each(float64(after.Mallocs - before.Mallocs)),
		Bytes:       each(float64(after.TotalAlloc - before.TotalAlloc)),
	}}
	if o := report.Operation; o.Allocations < allocationsMin {
		o.Allocations, o.Bytes = 0, 0
	}
	if r.Heap {
		runtime.GC()
		runtime.ReadMemStats(&after)
		heap := float64(after.HeapAlloc)
		report.HeapBytes = &heap
	}
	return report, nil
}
