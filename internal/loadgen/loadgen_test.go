package loadgen_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

// latencies collects what a run reports.
type latencies struct {
	mu     sync.Mutex
	values []time.Duration
}

func (l *latencies) add(_ int, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.values = append(l.values, d)
}

// callers returns n callers that take d each.
func callers(n int, d time.Duration) []loadgen.Call {
	return slices.Repeat([]loadgen.Call{func() error { time.Sleep(d); return nil }}, n)
}

func TestRun_ClosedLoopCountsTheWindowOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen latencies
		var opened, closed time.Time
		result, err := loadgen.Run(t.Context(), loadgen.Config{
			Callers:  callers(3, 30*time.Millisecond),
			WarmUp:   time.Second,
			Duration: 2 * time.Second,
			Latency:  seen.add,
			OnWindow: func(opens bool) {
				if opens {
					opened = time.Now()
				} else {
					closed = time.Now()
				}
			},
		})
		if err != nil || result.Failed != 0 || result.Elapsed != 2*time.Second {
			t.Fatalf("err %v, %d failed (%v), window of %v", err, result.Failed, result.First, result.Elapsed)
		}
		if closed.Sub(opened) != 2*time.Second {
			t.Errorf("the window was open for %v, want 2s", closed.Sub(opened))
		}
		// 2 s hold 66 or 67 calls of 30 ms of each caller.
		if result.Calls < 3*66 || result.Calls > 3*67 {
			t.Errorf("%d calls, want 198 to 201", result.Calls)
		}
		if got, want := result.PerSecond(), float64(result.Calls)/2; got != want {
			t.Errorf("%v calls a second, want %v", got, want)
		}
		if uint64(len(seen.values)) != result.Calls {
			t.Errorf("%d latencies for %d calls", len(seen.values), result.Calls)
		}
		for _, d := range seen.values {
			if d != 30*time.Millisecond {
				t.Fatalf("latency %v, want 30ms", d)
			}
		}
	})
}

// Whoever reads clocks when the window opens may take longer than the window.
func TestRun_ClosedLoopsWindowIsWholeHoweverLateItOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result, err := loadgen.Run(t.Context(), loadgen.Config{
			Callers:  callers(3, 30*time.Millisecond),
			Duration: 2 * time.Second,
			OnWindow: func(opens bool) {
				if opens {
					time.Sleep(5 * time.Second)
				}
			},
		})
		if err != nil || result.Elapsed != 2*time.Second || result.Calls < 3*66 || result.Calls > 3*67 {
			t.Errorf("%v, %d calls in %v, want those of 2s", err, result.Calls, result.Elapsed)
		}
	})
}

func TestRun_CallersBeginInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make([]time.Time, 4)
		var calls []loadgen.Call
		for i := range begun {
			calls = append(calls, func() error {
				if begun[i].IsZero() {
					begun[i] = time.Now()
				}
				time.Sleep(time.Millisecond)
				return nil
			})
		}
		start := time.Now().Add(time.Second)
		_, err := loadgen.Run(t.Context(), loadgen.Config{
			Callers: calls, Start: start, Ramp: 100 * time.Millisecond, WarmUp: 100 * time.Millisecond, Duration: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range begun {
			if want := time.Duration(i) * 25 * time.Millisecond; at.Sub(start) != want {
				t.Errorf("caller %d begins after %v, want %v", i, at.Sub(start), want)
			}
		}
	})
}

// TestRun_TakesTurns: of closed loops that share a machine one makes calls at a time, each
// in turns of its own, and each has the same part of its window.
func TestRun_TakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const of, slice, calls = 3, 50 * time.Millisecond, 2
		var results [of]loadgen.Result
		var begun [of][]time.Time
		var group sync.WaitGroup
		for i := range of {
			group.Go(func() {
				time.Sleep(time.Duration(i) * 17 * time.Millisecond) // processes do not start at the same time
				var mu sync.Mutex
				call := func() error {
					mu.Lock()
					begun[i] = append(begun[i], time.Now())
					mu.Unlock()
					time.Sleep(9 * time.Millisecond)
					return nil
				}
				var seen latencies
				var err error
				results[i], err = loadgen.Run(t.Context(), loadgen.Config{
					Callers: slices.Repeat([]loadgen.Call{call}, calls), WarmUp: 400 * time.Millisecond, Duration: time.Second,
					Turns: loadgen.Turns{Slice: slice, Index: i, Of: of}, Latency: seen.add,
				})
				if slow := slices.Max(seen.values); err != nil || slow != 9*time.Millisecond {
					t.Errorf("%v; a call of 9 ms took %v", err, slow)
				}
			})
		}
		group.Wait()
		for i, result := range results {
			// 7 rounds of 150 ms are the first whole ones with a second in them, and 6 calls of 9 ms
			// begin within 50 ms.
			if want := uint64(7 * 6 * calls); result.Elapsed != 7*of*slice || result.Calls != want || result.Failed != 0 {
				t.Errorf("turns %d: %d calls within %v, want %d within %v", i, result.Calls, result.Elapsed, want, 7*of*slice)
			}
			for _, at := range begun[i] {
				// What ends at the very moment when a turn does may begin once more.
				if turn := int(at.UnixNano() / int64(slice) % of); turn != i && at.UnixNano()%int64(slice) != 0 {
					t.Errorf("turns %d: a call began in those of %d", i, turn)
				}
			}
		}
	})
}

func TestRun_OpenLoopKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen latencies
		result, err := loadgen.Run(t.Context(), loadgen.Config{
			Callers:  callers(8, time.Millisecond),
			Start:    time.Now().Add(time.Minute),
			Rate:     1000,
			WarmUp:   100 * time.Millisecond,
			Duration: time.Second,
			Latency:  seen.add,
		})
		if err != nil || result.Due != 1000 || result.Missed != 0 {
			t.Fatalf("err %v, %d due, %d missed, want 1000 and 0", err, result.Due, result.Missed)
		}
		if len(seen.values) != 1000 {
			t.Errorf("%d latencies, want 1000", len(seen.values))
		}
		for _, d := range seen.values {
			if d != time.Millisecond {
				t.Fatalf("latency %v although somebody was always free, want 1ms", d)
			}
		}
	})
}

// One slow call must show in the latencies of all that fell due meanwhile, as
// it would for users who do not wait for each other.
func TestRun_OpenLoopDoesNotOmitWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen latencies
		made := 0
		result, err := loadgen.Run(t.Context(), loadgen.Config{
			Callers: []loadgen.Call{func() error {
				if made++; made == 1 {
					time.Sleep(100 * time.Millisecond)
				}
				return nil
			}},
			Rate:     1000,
			Duration: 200 * time.Millisecond,
			Latency:  seen.add,
		})
		if err != nil || result.Due != 200 || len(seen.values) != 200 {
			t.Fatalf("err %v, %d due, %d latencies, want 200 each", err, result.Due, len(seen.values))
		}
		for i, d := range seen.values {
			want := max(100*time.Millisecond-time.Duration(i)*time.Millisecond, 0)
			if d != want {
				t.Fatalf("call %d has latency %v, want %v", i, d, want)
			}
		}
	})
}

func TestRun_OpenLoopReportsWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen latencies
		result, err := loadgen.Run(t.Context(), loadgen.Config{
			Callers:  callers(1, 10*time.Millisecond), // 100 a second
			Rate:     400,
			Duration: time.Second,
			Grace:    500 * time.Millisecond,
			Latency:  seen.add,
		})
		if err != nil || result.Due != 400 {
			t.Fatalf("err %v, %d due, want 400", err, result.Due)
		}
		// 1.5 s hold 150 calls, give or take the one under way at the end.
		if result.Missed < 249 || result.Missed > 251 {
			t.Errorf("%d missed, want about 250", result.Missed)
		}
		if len(seen.values) != 400 {
			t.Errorf("%d latencies, want one for every call that was due", len(seen.values))
		}
		if longest := slices.Max(seen.values); longest < time.Second {
			t.Errorf("the longest latency is %v, want what the calls waited that were never made", longest)
		}
	})
}

func TestRun_CountsFailuresAndStops(t *testing.T) {
	refused := errors.New("refused")
	for _, rate := range []float64{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			result, err := loadgen.Run(t.Context(), loadgen.Config{
				Callers:  []loadgen.Call{func() error { time.Sleep(time.Millisecond); return refused }},
				Rate:     rate,
				Duration: time.Hour,
			})
			if !errors.Is(err, loadgen.ErrFailing) || !errors.Is(err, refused) || !errors.Is(result.First, refused) {
				t.Errorf("rate %v: err %v, first %v", rate, err, result.First)
			}
			if result.Failed != 100 || result.Calls != 0 {
				t.Errorf("rate %v: %d failed, %d calls, want 100 and 0", rate, result.Failed, result.Calls)
			}
		})
	}
}

// Who is refused is not served, which is no reason to stop.
func TestRun_CountsRefusedCallsApart(t *testing.T) {
	for _, rate := range []float64{0, 100} {
		synctest.Test(t, func(t *testing.T) {
			var served, refused latencies
			n := 0
			call := func() error {
				time.Sleep(time.Millisecond)
				if n++; n%4 == 0 {
					return nil
				}
				time.Sleep(time.Millisecond)
				return fmt.Errorf("too busy: %w", loadgen.ErrRefused)
			}
			result, err := loadgen.Run(t.Context(), loadgen.Config{
				Callers: []loadgen.Call{call}, Rate: rate, Duration: 7 * time.Second, Latency: served.add, Refused: refused.add,
			})
			if err != nil || result.Failed != 0 || result.Missed != 0 {
				t.Fatalf("rate %v: %+v, %v", rate, result, err)
			}
			if result.Calls < 170 || result.Refused < 3*result.Calls-3 || result.Refused > 3*result.Calls+3 {
				t.Errorf("rate %v: %d calls and %d refused, want three times as many", rate, result.Calls, result.Refused)
			}
			if len(served.values) == 0 || len(refused.values) == 0 || served.values[0] >= refused.values[0] {
				t.Errorf("rate %v: %d latencies and %d of refused calls, want those to be longer", rate, len(served.values), len(refused.values))
			}
		})
	}
}

func TestRun_FailuresAreNotLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen latencies
		made := 0
		result, err := loadgen.Run(t.Context(), loadgen.Config{
			Callers: []loadgen.Call{func() error {
				time.Sleep(time.Millisecond)
				if made++; made%50 == 0 {
					return errors.New("the reply is not the request's")
				}
				return nil
			}},
			Duration: 500 * time.Millisecond,
			Latency:  seen.add,
		})
		if err != nil || result.Failed != 10 || result.Calls+result.Failed != 500 || len(seen.values) != int(result.Calls) {
			t.Errorf("err %v, %d failed, %d calls, %d latencies", err, result.Failed, result.Calls, len(seen.values))
		}
	})
}

func TestRun_EndsWithItsContext(t *testing.T) {
	for _, rate := range []float64{0, 0.001, 1000} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			begun := time.Now()
			_, err := loadgen.Run(ctx, loadgen.Config{Callers: callers(4, time.Millisecond), Rate: rate, WarmUp: time.Second, Duration: time.Hour})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("rate %v: err %v, want the context's", rate, err)
			}
			if took := time.Since(begun); took > 3*time.Second+20*time.Millisecond {
				t.Errorf("rate %v: ended after %v, want 3s", rate, took)
			}
		})
	}
}

func TestRun_RefusesWrongConfigurations(t *testing.T) {
	good := callers(1, 0)
	for name, config := range map[string]loadgen.Config{
		"no callers":        {Duration: time.Second},
		"no duration":       {Callers: good},
		"negative warm-up":  {Callers: good, Duration: time.Second, WarmUp: -1},
		"long ramp":         {Callers: good, Duration: time.Second, WarmUp: 1, Ramp: 2},
		"negative ramp":     {Callers: good, Duration: time.Second, WarmUp: 1, Ramp: -1},
		"negative grace":    {Callers: good, Duration: time.Second, Grace: -1},
		"negative rate":     {Callers: good, Duration: time.Second, Rate: -1},
		"rate not a number": {Callers: good, Duration: time.Second, Rate: math.NaN()},
		"endless rate":      {Callers: good, Duration: time.Second, Rate: math.Inf(1)},
		"turns at a rate":   {Callers: good, Duration: time.Second, Rate: 1, Turns: loadgen.Turns{Slice: time.Second, Of: 1}},
		"turns of nobody":   {Callers: good, Duration: time.Second, Turns: loadgen.Turns{Slice: time.Second}},
		"a turn too many":   {Callers: good, Duration: time.Second, Turns: loadgen.Turns{Slice: time.Second, Index: 2, Of: 2}},
		"a negative turn":   {Callers: good, Duration: time.Second, Turns: loadgen.Turns{Slice: time.Second, Index: -1, Of: 2}},
		"no time for turns": {Callers: good, Duration: time.Second, Turns: loadgen.Turns{Of: 2}},
	} {
		if _, err := loadgen.Run(t.Context(), config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
