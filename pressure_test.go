package fulmar

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// These are white-box tests: how late calls begin can be told here, and from outside
// it is as the machine likes.

// tell tells p of a call that comes and runs, while so many are in progress.
func tell(p *pressure, late bool, now time.Time, inProgress int) {
	limited := p.limited.Load()
	p.comes(late, now, inProgress)
	if limited || p.limited.Load() {
		p.runs(late)
	}
}

// begin tells p of a call each millisecond for so many milliseconds, which had waited
// for what wait says, and returns the time afterwards and whether calls were limited.
func begin(p *pressure, now time.Time, milliseconds int, wait func(i int) time.Duration) (end time.Time, limited bool) {
	for i := range milliseconds {
		tell(p, isLate(now.Add(-wait(i)), now), now, 0)
		limited = limited || p.limited.Load()
		now = now.Add(time.Millisecond)
	}
	return now, limited
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// TestPressure_LimitsOnlyStandingQueues: what happens in servers that are not
// overloaded, and what in those that are.
func TestPressure_LimitsOnlyStandingQueues(t *testing.T) {
	late := limits.LateCall
	for _, test := range []struct {
		name    string
		wait    func(i int) time.Duration
		limited bool
	}{
		{"nobody waits", always(0), false},
		{"all nearly late", always(late - 1), false},
		{"all late", always(late), true},
		{"one in three late", func(i int) time.Duration { return time.Duration(i%3/2) * late }, false},
		{"two in three late", func(i int) time.Duration { return time.Duration((i%3+1)/2) * late }, true},
		{"a pause that makes 40 calls late every second interval", func(i int) time.Duration {
			if i%200 < 40 {
				return time.Second
			}
			return 0
		}, false},
	} {
		if _, limited := begin(&pressure{processors: 2}, time.Now(), 1000, test.wait); limited != test.limited {
			t.Errorf("%s: limited %v, want %v", test.name, limited, test.limited)
		}
	}
}

// TestPressure_FewCallsAreNoQueue: however late they are.
func TestPressure_FewCallsAreNoQueue(t *testing.T) {
	for _, every := range []time.Duration{limits.LateInterval/2 + 1, 2 * limits.LateInterval, time.Minute} {
		p := &pressure{processors: 1}
		now := time.Now()
		for range 100 {
			tell(p, true, now, 0)
			now = now.Add(every)
			if p.limited.Load() {
				t.Fatalf("limited with a call every %v", every)
			}
		}
	}
}

// TestPressure_FindsHowManyMayRun: fewer while calls are late all the same, more while
// they are not and wait all the same, and all when none waits.
func TestPressure_FindsHowManyMayRun(t *testing.T) {
	p := &pressure{processors: 3}
	interval := int(limits.LateInterval / time.Millisecond)
	now, _ := begin(p, time.Now(), interval+1, always(time.Second))
	if !p.limited.Load() || p.limit != 3 {
		t.Fatalf("limited %v to %d, want 3", p.limited.Load(), p.limit)
	}
	for _, want := range []int{6, 12, 24} {
		p.queued = true
		if now, _ = begin(p, now, interval, always(0)); p.limit != want {
			t.Fatalf("limited to %d, want %d", p.limit, want)
		}
	}
	for _, want := range []int{12, 6, 3, 3} {
		p.queued = true
		if now, _ = begin(p, now, interval, always(limits.LateCall)); p.limit != want {
			t.Fatalf("limited to %d, want %d", p.limit, want)
		}
	}
	p.queued = false
	if begin(p, now, 2*interval, always(0)); p.limited.Load() || p.watching.Load() {
		t.Error("limited although nobody waits")
	}
}

// entering makes a call that arrived so long ago enter, and returns what came of it.
func entering(a *admission, ago, timeout time.Duration) (time.Time, error) {
	in := &transport.Inbound{Arrived: time.Now().Add(-ago)}
	return a.enter(context.Background(), in, in.Arrived.Add(timeout))
}

// TestAdmission_AdaptsWhenProcessorsAreShort: most calls begin late, so one runs for each
// processor, others wait for half of their time, and are refused at once when those
// before them will take as long. All places are given on, and in the end none counts.
func TestAdmission_AdaptsWhenProcessorsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(ServerConfig{})
		const processors = 2 // and not as many as the machine has: 32 would run all calls in time
		a.pressure.processors = processors
		for range 2 * limits.LateInterval / time.Millisecond {
			started, err := entering(a, 2*limits.LateCall, time.Second)
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			a.leave(started)
			time.Sleep(time.Millisecond)
		}
		var mu sync.Mutex
		ran, refused, running, most := 0, 0, 0, 0
		var all sync.WaitGroup
		const calls = 400
		for range calls {
			all.Go(func() {
				start := time.Now()
				started, err := entering(a, 2*limits.LateCall, 500*time.Millisecond)
				mu.Lock()
				if err != nil {
					var e *Error
					if refused++; !errors.As(err, &e) || e.Code() != ResourceExhausted || time.Since(start) > 240*time.Millisecond {
						t.Errorf("refused after %v: %v", time.Since(start), err)
					}
					mu.Unlock()
					return
				}
				ran++
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				running--
				mu.Unlock()
				a.leave(started)
			})
		}
		all.Wait()
		// In 240 ms, of which no call is late and the limit doubles now and then.
		if most < processors || ran < 20*processors || refused == 0 || ran+refused != calls {
			t.Errorf("%d ran, at most %d at a time, %d were refused", ran, most, refused)
		}
		if n := a.inProgress.Load(); n != 0 || a.waiting.Len() != 0 {
			t.Errorf("%d calls are in progress and %d wait in the end", n, a.waiting.Len())
		}
	})
}

// TestAdmission_NobodyIsLeftWaiting: calls that came together and have not said yet
// whether they run do not wait for each other, and those that wait get to run when the
// limit is gone.
func TestAdmission_NobodyIsLeftWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(ServerConfig{})
		a.pressure.processors = 1
		a.pressure.limit = 1
		a.pressure.newInterval(time.Now())
		a.pressure.limited.Store(true)
		a.inProgress.Add(1) // a call that has entered and goes no further for now
		var all sync.WaitGroup
		begun := make(chan time.Time, 3)
		for range 3 {
			all.Go(func() {
				started, err := entering(a, 0, time.Hour)
				if err != nil {
					t.Error(err)
				}
				begun <- started
			})
		}
		synctest.Wait()
		if len(begun) != 0 {
			t.Errorf("%d calls run beside the one", len(begun))
		}
		a.inProgress.Add(-1)
		a.passOn()
		synctest.Wait()
		if len(begun) != 1 {
			t.Errorf("%d calls run, want 1", len(begun))
		}
		// No call is late, so more may run.
		time.Sleep(limits.LateInterval)
		a.pressure.queued = false
		a.press(time.Now().Add(-limits.LateCall), time.Now())
		synctest.Wait()
		if len(begun) != 3 {
			t.Errorf("%d calls run without a limit, want 3", len(begun))
		}
		for range 3 {
			a.leave(<-begun)
		}
		all.Wait()
	})
}

// TestAdmission_AdaptsOnlyIfNobodySaysHowMany: neither with MaxRunningCalls, nor when it
// is off.
func TestAdmission_AdaptsOnlyIfNobodySaysHowMany(t *testing.T) {
	for _, config := range []ServerConfig{{MaxRunningCalls: 1000}, {MaxRunningCalls: -1}, {MaxWaitPercent: -1}} {
		synctest.Test(t, func(t *testing.T) {
			a := newAdmission(config)
			for range 500 {
				started, err := entering(a, 200*time.Millisecond-1, 200*time.Millisecond)
				if err != nil {
					t.Fatal(err)
				}
				a.leave(started)
				time.Sleep(time.Millisecond)
			}
			if a.pressure.limited.Load() {
				t.Error("calls are limited")
			}
		})
	}
}

// OverloadTime is what WaitsInOverload gives a call: so little that it is refused before
// the server tries whether more calls may run, as none comes.
const OverloadTime = 400 * time.Millisecond

// WaitsInOverload returns how long a call that has OverloadTime waits while a server is
// overloaded and another call does not end, until it is refused; 0 if it runs.
func WaitsInOverload(t *testing.T, config ServerConfig) (waited time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(config)
		a.pressure.processors = 1
		for range 2 * limits.LateInterval / time.Millisecond {
			started, err := entering(a, limits.LateCall, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			a.leave(started)
			time.Sleep(time.Millisecond)
		}
		first, err := entering(a, 0, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		second, err := entering(a, 0, OverloadTime)
		if waited = time.Since(start); err == nil {
			a.leave(second)
		}
		a.leave(first)
	})
	return waited
}

// TestAdmission_CallsWithoutDeadlineTellOfPressure: callers whose protocol has no deadlines
// close their connections when they give up, and what waits for them then does not run.
func TestAdmission_CallsWithoutDeadlineTellOfPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(ServerConfig{})
		a.pressure.processors = 2
		for range 2 * limits.LateInterval / time.Millisecond {
			in := &transport.Inbound{Arrived: time.Now().Add(-2 * limits.LateCall)}
			started, err := a.enter(t.Context(), in, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			a.leave(started)
			time.Sleep(time.Millisecond)
		}
		if !a.pressure.limited.Load() {
			t.Fatal("nothing is limited although all calls begin late")
		}
		gone, leave := context.WithCancel(t.Context())
		var mu sync.Mutex
		var errs []error
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				in := &transport.Inbound{Arrived: time.Now().Add(-2 * limits.LateCall)}
				if _, err := a.enter(gone, in, time.Time{}); err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
				}
			})
		}
		synctest.Wait()
		waited := a.waiting.Len()
		leave()
		all.Wait()
		if waited == 0 || len(errs) != waited || a.waiting.Len() != 0 {
			t.Fatalf("%d calls waited, %d did not run, %d wait", waited, len(errs), a.waiting.Len())
		}
		if CodeOf(errs[0]) != Canceled {
			t.Error(errs[0])
		}
	})
}

// TestAdmission_WaitingCallsRunInTheEnd: the calls that may run wait for something that
// those in the queue would bring, no call comes, and none has a deadline.
func TestAdmission_WaitingCallsRunInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(ServerConfig{})
		a.pressure.newInterval(time.Now())
		a.pressure.limited.Store(true)
		a.pressure.limit = 1
		const calls = 20
		var entered sync.WaitGroup
		for range calls {
			entered.Go(func() {
				if _, err := a.enter(t.Context(), &transport.Inbound{Arrived: time.Now()}, time.Time{}); err != nil {
					t.Error(err)
				}
			})
		}
		entered.Wait()
		if took := time.Since(time.Unix(946684800, 0)); took > time.Minute {
			t.Errorf("the last of %d calls that end never began after %v", calls, took)
		}
		if a.waiting.Len() != 0 || a.inProgress.Load() != calls {
			t.Errorf("%d calls wait, %d are in progress", a.waiting.Len(), a.inProgress.Load())
		}
	})
}

// TestPressure_BeginsWithHalfOfTheCalls: a server whose handlers wait keeps most of what
// it does when its processors are taken, and one whose handlers compute gets to one for
// each processor within a second.
func TestPressure_BeginsWithHalfOfTheCalls(t *testing.T) {
	p := pressure{processors: 2}
	now := time.Unix(0, 0)
	limit := 0
	for _, want := range []int{500, 250, 125, 62, 31, 15, 7, 3, 2, 2} {
		for range 3 * limits.LateInterval / time.Millisecond {
			if now = now.Add(time.Millisecond); p.limited.Load() && p.limit != limit {
				break
			}
			tell(&p, true, now, 1000)
		}
		if limit = p.limit; limit != want {
			t.Fatalf("limited to %d, want %d", limit, want)
		}
	}
}

// TestPressure_RefusalsAreNoCalls: many calls that come in time and are refused do not
// hide that those that run begin late.
func TestPressure_RefusalsAreNoCalls(t *testing.T) {
	p := pressure{processors: 1, limit: 64}
	now := time.Unix(0, 0)
	p.limited.Store(true)
	p.newInterval(now)
	for i := range 6 * limits.LateInterval / time.Millisecond {
		now = now.Add(time.Millisecond)
		p.queued = true
		for range 5 {
			p.comes(false, now, 100)
		}
		p.runs(i%2 == 0)
	}
	if p.limit > 2 {
		t.Errorf("limited to %d although half of the calls begin late", p.limit)
	}
}

// TestPressure_CallsThatDoNotBegin: of those that have a place and no processor few or none
// begin in an interval, and still the limit must not rise; if all that run wait for
// something, it must.
func TestPressure_CallsThatDoNotBegin(t *testing.T) {
	for _, test := range []struct {
		limit, starting, want int
	}{
		{limit: 4, starting: 3, want: 2}, {limit: 2, starting: 1, want: 1}, {limit: 2, starting: 2, want: 1}, {limit: 1, starting: 1, want: 1},
		{limit: 64, starting: 30, want: 32}, {limit: 64, starting: 3, want: 128}, {limit: 4, starting: 0, want: 8},
	} {
		p := pressure{processors: 1, limit: test.limit, starting: test.starting}
		p.limited.Store(true)
		now := time.Unix(0, 0)
		p.newInterval(now)
		p.queued = true
		p.rests(now.Add(2 * limits.LateInterval))
		if p.limit != test.want {
			t.Errorf("%d of %d have not begun: limited to %d, want %d", test.starting, test.limit, p.limit, test.want)
		}
	}
}

// TestAdmission_CountsCallsThatDoNotBegin: each is told of once, whether it runs in the end
// or its caller is gone.
func TestAdmission_CountsCallsThatDoNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(ServerConfig{})
		a.pressure.processors = 1
		a.pressure.limited.Store(true)
		a.pressure.limit = 1
		a.pressure.newInterval(time.Now())
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if i%3 == 0 {
					time.AfterFunc(time.Duration(i)*time.Millisecond, cancel)
				}
				in := &transport.Inbound{Arrived: time.Now()}
				if started, err := a.enter(ctx, in, in.Arrived.Add(time.Duration(i+1)*10*time.Millisecond)); err == nil {
					time.Sleep(time.Millisecond)
					a.leave(started)
				}
			})
		}
		all.Wait()
		if a.pressure.starting != 0 || a.waiting.Len() != 0 || a.inProgress.Load() != 0 {
			t.Errorf("%d are starting, %d wait, %d are in progress", a.pressure.starting, a.waiting.Len(), a.inProgress.Load())
		}
	})
}
