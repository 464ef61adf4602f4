package contestant

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

// allocationTurns is how often allocations are counted with and without what is measured,
// and allocationBatches how many batches that are each: the counter stops the world, which
// must not happen in the windows that are timed.
const (
	allocationTurns   = 3
	allocationBatches = 16
)

// difference measures what Times takes more than Without: both take turns in windows of a
// batch, and the median of the differences counts. So a machine that becomes slower, and a
// window in which something else ran, have no part in it.
func (r Repeat) difference(batch int, duration time.Duration) (Report, error) {
	var differences, without []float64
	begun := time.Now()
	for turn := 0; turn == 0 || time.Since(begun) < duration; turn++ {
		bare, all, err := r.turn(batch, turn%2 == 0)
		if err != nil {
			return Report{}, err
		}
		without = append(without, bare.nanoseconds(batch))
		differences = append(differences, (all - bare).nanoseconds(batch))
	}
	report := Report{Seconds: time.Since(begun).Seconds(), CallBytes: r.Bytes}
	operation := &Operation{
		Count: uint64(len(differences) * batch), Nanoseconds: median(differences), Without: median(without),
	}
	if operation.Nanoseconds <= 0 {
		return Report{}, fmt.Errorf("it takes %.1f ns more than %.1f ns without what is measured: no difference to report", operation.Nanoseconds, operation.Without)
	}
	report.Operation = operation
	var allocations, bytes []float64
	for range allocationTurns {
		bareObjects, bareBytes, err := allocated(r.Without, batch*allocationBatches)
		if err != nil {
			return Report{}, err
		}
		objects, all, err := allocated(r.Times, batch*allocationBatches)
		if err != nil {
			return Report{}, err
		}
		allocations, bytes = append(allocations, objects-bareObjects), append(bytes, all-bareBytes)
	}
	// What the runtime allocates meanwhile may make a difference of a few objects in a
	// million, in either direction.
	if each := median(allocations); each >= allocationsMin {
		operation.Allocations, operation.Bytes = each, max(median(bytes), 0)
	}
	return report, nil
}

// span is how long a batch took.
type span time.Duration

func (s span) nanoseconds(batch int) float64 { return float64(s) / float64(batch) }

// turn does a batch without and one with what is measured. Who begins changes, because a
// batch finds the caches as the one before has left them.
func (r Repeat) turn(batch int, bareFirst bool) (bare, all span, err error) {
	first, second := r.Times, r.Without
	if bareFirst {
		first, second = second, first
	}
	a, err := first(batch)
	if err != nil {
		return 0, 0, err
	}
	b, err := second(batch)
	if bareFirst {
		return span(a), span(b), err
	}
	return span(b), span(a), err
}

// allocated returns how many objects and bytes an operation allocates.
func allocated(times func(n int) (time.Duration, error), n int) (objects, bytes float64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := times(n); err != nil {
		return 0, 0, err
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n), nil
}

// median of values that are there; it sorts them.
func median(values []float64) float64 {
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
