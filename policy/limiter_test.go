package policy_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/policy"
)

// begin counts how many calls may begin at once.
func begin(r *policy.Limiter, now time.Time, most int) int {
	for n := range most {
		if refusal, _ := r.Allow(now); refusal != policy.NotRefused {
			return n
		}
	}
	return most
}

func TestLimiter_SaysWhatItLimits(t *testing.T) {
	first, second := policy.Limit{PerSecond: 5, Burst: 2}, policy.Limit{Running: 3}
	l := policy.NewLimiter(first, time.Time{})
	if l.Limit() != first {
		t.Errorf("%+v, want %+v", l.Limit(), first)
	}
	if l.Configure(second, time.Time{}); l.Limit() != second {
		t.Errorf("%+v, want %+v", l.Limit(), second)
	}
}

func TestLimiter_RateAllowsWhatItSays(t *testing.T) {
	tests := []struct {
		name  string
		limit policy.Limit
		after []time.Duration
		want  []int
	}{
		{"any number", policy.Limit{}, []time.Duration{0}, []int{1000}},
		{"off", policy.Limit{PerSecond: -1, Burst: 1}, []time.Duration{0}, []int{1000}},
		{"a tenth at once", policy.Limit{PerSecond: 100}, []time.Duration{0, 0, 10 * time.Millisecond, 100 * time.Millisecond, time.Hour}, []int{10, 0, 1, 10, 10}},
		{"one at least", policy.Limit{PerSecond: 3}, []time.Duration{0, 333 * time.Millisecond, time.Millisecond, time.Hour}, []int{1, 0, 1, 1}},
		{"a burst that is given", policy.Limit{PerSecond: 10, Burst: 5}, []time.Duration{0, 99 * time.Millisecond, time.Millisecond, 250 * time.Millisecond}, []int{5, 0, 1, 2}},
		{"slow, and a large burst", policy.Limit{PerSecond: 1, Burst: 100}, []time.Duration{0, time.Second, time.Minute}, []int{100, 1, 60}},
		{"fast", policy.Limit{PerSecond: 10_000_000, Burst: 1}, []time.Duration{0, 99, 1, 100}, []int{1, 0, 1, 1}},
		{"clock is a little back", policy.Limit{PerSecond: 10}, []time.Duration{0, -500 * time.Millisecond, 599 * time.Millisecond, time.Millisecond}, []int{1, 0, 0, 1}},
		{"clock is set back", policy.Limit{PerSecond: 10}, []time.Duration{0, -time.Hour, 99 * time.Millisecond, time.Millisecond, 100 * time.Millisecond}, []int{1, 0, 0, 1, 1}},
		{"clock goes far", policy.Limit{PerSecond: 10, Burst: 3}, []time.Duration{0, 24 * 365 * time.Hour, 0}, []int{3, 3, 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, now := policy.NewLimiter(test.limit, epoch()), epoch()
			for i, after := range test.after {
				now = now.Add(after)
				if got := begin(r, now, 1000); got != test.want[i] {
					t.Fatalf("step %d, after %v: %d calls began, want %d", i, after, got, test.want[i])
				}
			}
		})
	}
}

func TestLimiter_RateSaysHowLongToWait(t *testing.T) {
	r := policy.NewLimiter(policy.Limit{PerSecond: 8, Burst: 2}, epoch())
	if begin(r, epoch(), 10) != 2 {
		t.Fatal("no burst of two")
	}
	_, wait := r.Allow(epoch().Add(25 * time.Millisecond))
	if wait != 100*time.Millisecond {
		t.Errorf("the wait is %v, want 100 ms", wait)
	}
	if refusal, _ := r.Allow(epoch().Add(125*time.Millisecond - 1)); refusal != policy.RefusedByRate {
		t.Error("a call began before")
	}
	if refusal, wait := r.Allow(epoch().Add(125 * time.Millisecond)); refusal != policy.NotRefused || wait != 0 {
		t.Errorf("then it is %v, %v", refusal, wait)
	}
}

func TestLimiter_RateChangesWhileItRuns(t *testing.T) {
	r := policy.NewLimiter(policy.Limit{PerSecond: 1, Burst: 60}, epoch())
	begin(r, epoch(), 1000)
	// All that was used counts, but no more than the new burst: not a minute of waiting.
	r.Configure(policy.Limit{PerSecond: 1000, Burst: 10}, epoch())
	if got := begin(r, epoch(), 1000); got != 0 {
		t.Errorf("%d calls began after the change, want 0", got)
	}
	if got := begin(r, epoch().Add(5*time.Millisecond), 1000); got != 5 {
		t.Errorf("%d calls began 5 ms later, want 5", got)
	}
	if got := r.Show(epoch().Add(8 * time.Millisecond)).Left; got != 3 {
		t.Errorf("%d are left, want 3", got)
	}
	r.Configure(policy.Limit{}, epoch())
	if got := r.Show(epoch()).Left; got != -1 || begin(r, epoch(), 1000) != 1000 {
		t.Errorf("it is off and %d are left", got)
	}
}

// In every stretch of every history no more calls begin than a burst and what its time is
// worth; and none is refused for which there is room in all stretches.
func TestLimiter_RateKeepsItsPromiseInEveryStretch(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		limit := policy.Limit{PerSecond: 1 + random.IntN(1000), Burst: 1 + random.IntN(20)}
		r, now := policy.NewLimiter(limit, epoch()), epoch()
		var began []time.Time
		// A call more or less by a ten thousandth is a matter of rounding.
		room := func(at time.Time, rounding float64) bool {
			for i, from := range began {
				if float64(len(began)-i+1) > float64(limit.Burst)+at.Sub(from).Seconds()*float64(limit.PerSecond)+rounding {
					return false
				}
			}
			return true
		}
		for range 300 {
			now = now.Add(time.Duration(random.ExpFloat64() / float64(limit.PerSecond) * float64(time.Second) * 0.7))
			refusal, _ := r.Allow(now)
			allowed := refusal == policy.NotRefused
			if allowed && !room(now, 1e-4) || !allowed && room(now, -1e-4) {
				t.Fatalf("seed %d, %+v: call %d was allowed: %v", seed, limit, len(began), allowed)
			}
			if allowed {
				began = append(began, now)
			}
		}
	}
}

func TestLimiter_RateIsSharedByGoroutines(t *testing.T) {
	r := policy.NewLimiter(policy.Limit{PerSecond: 1000, Burst: 500}, epoch())
	var began atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i := range 1000 {
				if refusal, _ := r.Allow(epoch().Add(time.Duration(i) * time.Millisecond)); refusal == policy.NotRefused {
					began.Add(1)
				}
			}
		})
	}
	wait.Wait()
	// 500 at once and 999 in the time; what of it comes late is lost.
	if got := began.Load(); got > 1499 || got < 1400 {
		t.Errorf("%d calls began, want 1499", got)
	}
}

func TestLimiter_CountsWhatRuns(t *testing.T) {
	l := policy.NewLimiter(policy.Limit{}, epoch())
	allow := func() bool {
		refusal, _ := l.Allow(epoch())
		return refusal == policy.NotRefused
	}
	runs := func() int { return l.Show(epoch()).Running }
	for range 5 {
		if !allow() {
			t.Fatal("a call was refused without a limit")
		}
	}
	l.Configure(policy.Limit{Running: 4}, epoch())
	if allow() {
		t.Error("a sixth call runs with a limit of four")
	}
	l.Done()
	if allow() || runs() != 4 {
		t.Errorf("a fifth call runs with a limit of four; %d run", runs())
	}
	l.Done()
	if !allow() {
		t.Error("the fourth call was refused")
	}
	l.Configure(policy.Limit{Running: -1}, epoch())
	if !allow() || runs() != 5 {
		t.Errorf("a call was refused without a limit; %d run", runs())
	}
}

func TestLimiter_RunsNoMoreForGoroutines(t *testing.T) {
	l := policy.NewLimiter(policy.Limit{Running: 3}, epoch())
	var running, most atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 5000 {
				if refusal, _ := l.Allow(epoch()); refusal != policy.NotRefused {
					continue
				}
				now := running.Add(1)
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
				running.Add(-1)
				l.Done()
			}
		})
	}
	wait.Wait()
	if state := l.Show(epoch()); most.Load() > 3 || state.Running != 0 {
		t.Errorf("%d ran at once, want 3 at most; %+v", most.Load(), state)
	}
}

func TestLimiter_HasBothLimits(t *testing.T) {
	l := policy.NewLimiter(policy.Limit{PerSecond: 10, Burst: 3, Running: 2}, epoch())
	allow := func(want policy.Refusal, wantWait time.Duration) {
		t.Helper()
		if got, wait := l.Allow(epoch()); got != want || wait != wantWait {
			t.Errorf("it is %v, %v, want %v, %v", got, wait, want, wantWait)
		}
	}
	allow(policy.NotRefused, 0)
	allow(policy.NotRefused, 0)
	allow(policy.RefusedByRunning, 0)
	l.Done()
	allow(policy.NotRefused, 0)
	l.Done()
	allow(policy.RefusedByRate, 100*time.Millisecond)
	if got, want := l.Show(epoch()), (policy.LimiterState{Running: 1, Left: 0, Refused: 2}); got != want {
		t.Errorf("it shows %+v, want %+v", got, want)
	}
	l.Configure(policy.Limit{Running: 1}, epoch())
	allow(policy.RefusedByRunning, 0)
	l.Done()
	allow(policy.NotRefused, 0)
	if got, want := l.Show(epoch()), (policy.LimiterState{Running: 1, Left: -1, Refused: 3}); got != want {
		t.Errorf("it shows %+v, want %+v", got, want)
	}
}

func TestRefusal_HasWords(t *testing.T) {
	seen := map[string]bool{}
	for refusal := policy.NotRefused; refusal <= policy.RefusedByTargetBreaker; refusal++ {
		if text := refusal.String(); seen[text] {
			t.Errorf("refusal %d is called %q", refusal, text)
		} else {
			seen[text] = true
		}
	}
}
