package contestant

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/machine"
	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

// Rare is an operation that a program does now and then, beside the calls that it makes:
// each is timed by itself, and the latencies are those of calls that had to do with one.
type Rare struct {
	// Next prepares an operation, which does not count, and returns what does it.
	Next func() (func() error, error)
	// Pause is how long after an operation the next one is prepared.
	Pause time.Duration
	// Call is made meanwhile, Rate times a second, whatever becomes of the one before.
	Call loadgen.Call
	Rate float64
}

// rareMin is how many operations are measured at least, however short the window is.
const rareMin = 2

// underway tells which calls had to do with an operation.
type underway struct {
	running atomic.Bool
	// ended is when the last one ended, in nanoseconds since begun.
	begun time.Time
	ended atomic.Int64
}

// touched reports whether an operation ran at some time while a call waited or was made
// that has just ended.
func (u *underway) touched(latency time.Duration) bool {
	return u.running.Load() || time.Since(u.begun)-latency < time.Duration(u.ended.Load())
}

// do runs an operation and returns how long it took.
func (u *underway) do(operation func() error) (time.Duration, error) {
	begun := time.Now()
	u.running.Store(true)
	err := operation()
	took := time.Since(begun)
	u.ended.Store(int64(time.Since(u.begun)))
	u.running.Store(false)
	return took, err
}

// measure does operations until the window is over. The first one, within the warm-up,
// does not count.
func (r Rare) measure(o loadOptions) (Report, error) {
	latencies := newRecorder()
	state := &underway{begun: time.Now()}
	config := loadgen.Config{
		Callers: []loadgen.Call{r.Call}, Rate: r.Rate, Start: time.Now().Add(startDelay),
		WarmUp: o.warmUp, Duration: max(o.duration, rareMin*r.Pause+r.Pause/2),
		Latency: func(caller int, latency time.Duration) {
			if state.touched(latency) {
				latencies.add(caller, latency)
			}
		},
	}
	stop, err := machine.KeepAwake(config.Start, time.Duration(float64(time.Second)/r.Rate))
	if err != nil {
		return Report{}, err
	}
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	called := make(chan error, 1)
	go func() {
		result, err := loadgen.Run(ctx, config)
		called <- errors.Join(err, result.First)
	}()
	operation, err := r.repeat(state, config.Start.Add(o.warmUp+config.Duration))
	if err != nil {
		cancel()
		return Report{}, errors.Join(err, <-called)
	}
	report := Report{Seconds: config.Duration.Seconds(), Operation: operation}
	if err := <-called; err != nil {
		return Report{}, fmt.Errorf("calls meanwhile: %w", err)
	}
	report.Latency, err = latencies.summary()
	return report, err
}

// repeat does operations, with pauses, until then.
func (r Rare) repeat(state *underway, until time.Time) (*Operation, error) {
	total := &Operation{}
	for number := 0; ; number++ {
		operation, err := r.Next()
		if err != nil {
			return nil, err
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		took, err := state.do(operation)
		if err != nil {
			return nil, err
		}
		runtime.ReadMemStats(&after)
		if number > 0 {
			total.Count++
			total.Nanoseconds += float64(took.Nanoseconds())
			total.Allocations += float64(after.Mallocs - before.Mallocs)
			total.Bytes += float64(after.TotalAlloc - before.TotalAlloc)
		}
		if time.Now().Add(r.Pause).After(until) && total.Count > 0 {
			break
		}
		time.Sleep(r.Pause)
	}
	count := float64(total.Count)
	total.Nanoseconds /= count
	total.Allocations /= count
	total.Bytes /= count
	return total, nil
}
