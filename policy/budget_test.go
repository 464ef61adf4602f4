package policy_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/policy"
)

// epoch is when the virtual time of these tests begins. What it is does not matter.
func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// takeAll returns how many attempts a budget allows at once.
func takeAll(b *policy.Budget, now time.Time) int {
	for n := 0; ; n++ {
		if !b.Take(now) {
			return n
		}
	}
}

func TestBudget_AllowsWhatItSays(t *testing.T) {
	tests := []struct {
		name   string
		config policy.RetryBudget
		calls  int
		after  time.Duration
		want   int
	}{
		{"defaults: nothing happens", policy.RetryBudget{}, 0, 0, 0},
		{"defaults: a tenth of the calls", policy.RetryBudget{}, 100, 0, 10},
		{"defaults: not quite", policy.RetryBudget{}, 9, 0, 0},
		{"defaults: ten in a second", policy.RetryBudget{}, 0, time.Second, 10},
		{"defaults: a tenth of a second", policy.RetryBudget{}, 0, 100 * time.Millisecond, 1},
		{"both together", policy.RetryBudget{Percent: 50, PerSecond: 4}, 20, 2 * time.Second, 18},
		{"no calls", policy.RetryBudget{Percent: -1}, 1000, time.Second, 10},
		{"no time", policy.RetryBudget{PerSecond: -1}, 100, time.Hour, 10},
		{"nothing", policy.RetryBudget{Percent: -1, PerSecond: -1}, 1000, time.Hour, 0},
		{"what is saved is bounded", policy.RetryBudget{}, 10_000_000, time.Hour, limits.RetriesSaved},
		{"by a second, if that is more", policy.RetryBudget{PerSecond: 500}, 0, time.Hour, 500},
		{"a clock that is a little back", policy.RetryBudget{}, 0, -time.Second, 0},
		{"a clock that was set back", policy.RetryBudget{}, 20, -time.Hour, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := policy.NewBudget(test.config, epoch())
			takeAll(b, epoch())
			for range test.calls {
				b.Call()
			}
			if got := takeAll(b, epoch().Add(test.after)); got != test.want {
				t.Errorf("%d attempts were allowed, want %d", got, test.want)
			}
		})
	}
}

func TestBudget_BeginsWithWhatIsSaved(t *testing.T) {
	if got := takeAll(policy.NewBudget(policy.RetryBudget{}, epoch()), epoch()); got != limits.RetriesSaved {
		t.Errorf("it began with %d, want %d", got, limits.RetriesSaved)
	}
	if got := takeAll(policy.NewBudget(policy.RetryBudget{Percent: -1, PerSecond: -1}, epoch()), epoch()); got != 0 {
		t.Errorf("one that is off began with %d", got)
	}
}

// Goroutines that looked at the clock one after the other may come in another order: the
// time in between must not be earned again and again.
func TestBudget_EarnsATimeOnce(t *testing.T) {
	b := policy.NewBudget(policy.RetryBudget{Percent: -1}, epoch())
	takeAll(b, epoch())
	got := 0
	for range 1000 {
		got += takeAll(b, epoch().Add(time.Second))
		got += takeAll(b, epoch().Add(500*time.Millisecond))
	}
	if got != 10 {
		t.Errorf("%d attempts were allowed in a second, want 10", got)
	}
}

func TestBudget_GoesOnAfterTheClockWasSetBack(t *testing.T) {
	b := policy.NewBudget(policy.RetryBudget{}, epoch())
	takeAll(b, epoch())
	takeAll(b, epoch().Add(-time.Hour))
	if got := takeAll(b, epoch().Add(-time.Hour+time.Second)); got != 10 {
		t.Errorf("%d attempts were allowed in the second after, want 10", got)
	}
}

func TestBudget_ChangesWhileItRuns(t *testing.T) {
	b := policy.NewBudget(policy.RetryBudget{}, epoch())
	takeAll(b, epoch())
	for range 100 {
		b.Call()
	}
	b.Configure(policy.RetryBudget{Percent: 50, PerSecond: 100}, epoch())
	if left, most := b.Show(epoch()); left != 10 || most != 100 {
		t.Errorf("what was earned before is %d of %d, want 10 of 100", left, most)
	}
	b.Call()
	b.Call()
	if got := takeAll(b, epoch()); got != 11 {
		t.Errorf("%d attempts were allowed, want the 10 from before and a half of two", got)
	}
	if !b.Take(epoch().Add(10 * time.Millisecond)) {
		t.Error("a hundredth of a second earned nothing")
	}
	b.Configure(policy.RetryBudget{Percent: -1, PerSecond: -1}, epoch())
	if b.Take(epoch().Add(time.Hour)) {
		t.Error("it was switched off and allowed an attempt")
	}
}

// In every stretch of every history there are no more attempts than the calls in it, its
// time and what may be saved are worth. In every other one callers look at a clock that is
// late at times, and so can be late to use what a time before the stretch was worth.
func TestBudget_KeepsItsPromiseInEveryStretch(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		config := policy.RetryBudget{Percent: 1 + random.IntN(100), PerSecond: 1 + random.IntN(100)}
		b := policy.NewBudget(config, epoch())
		_, most := b.Show(epoch())
		saved := float64(most)
		type event struct {
			at           time.Time
			calls, taken int
		}
		late := time.Duration(seed%2) * 700 * time.Millisecond
		history := []event{{at: epoch()}}
		now := epoch()
		for range 200 {
			now = now.Add(time.Duration(random.ExpFloat64() * float64(20*time.Millisecond)))
			last := history[len(history)-1]
			next := event{now, last.calls, last.taken}
			for range random.IntN(4) {
				b.Call()
				next.calls++
			}
			seen := now.Add(-time.Duration(random.IntN(2)) * late)
			for range random.IntN(6) {
				if b.Take(seen) {
					next.taken++
				}
			}
			history = append(history, next)
		}
		for i, from := range history {
			for _, to := range history[i+1:] {
				most := float64(to.calls-from.calls)*float64(config.Percent)/100 + (to.at.Sub(from.at)+late).Seconds()*float64(config.PerSecond) + saved
				if taken := float64(to.taken - from.taken); taken > most+0.001 {
					t.Fatalf("seed %d: %v attempts beside %d calls in %v, at most %.1f", seed, taken, to.calls-from.calls, to.at.Sub(from.at), most)
				}
			}
		}
	}
}

func TestBudget_IsSharedByGoroutines(t *testing.T) {
	b := policy.NewBudget(policy.RetryBudget{PerSecond: -1}, epoch())
	takeAll(b, epoch())
	const goroutines, calls = 8, 1000
	var mu sync.Mutex
	var wait sync.WaitGroup
	taken := 0
	for range goroutines {
		wait.Go(func() {
			mine := 0
			for range calls {
				b.Call()
				if b.Take(epoch()) {
					mine++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			taken += mine
		})
	}
	wait.Wait()
	// A tenth of a call is no exact number, so a sum of them can be a little less.
	if want := goroutines * calls / 10; taken > want || taken < want-1 {
		t.Errorf("%d attempts were allowed, want %d", taken, want)
	}
}
