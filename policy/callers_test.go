package policy_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/policy"
)

// callNow makes a call that ends at once.
func callNow(c *policy.Callers, name string, now time.Time) policy.Refusal {
	pass, refusal, _ := c.Allow(name, now)
	if refusal == policy.NotRefused {
		c.Done(pass)
	}
	return refusal
}

func TestCallers_LimitEachCaller(t *testing.T) {
	c := policy.NewCallers(policy.Limit{PerSecond: 10, Burst: 2, Running: 1}, epoch())
	first, refusal, _ := c.Allow("a", epoch())
	if refusal != policy.NotRefused {
		t.Fatalf("the first call was refused: %v", refusal)
	}
	if _, refusal, _ := c.Allow("a", epoch()); refusal != policy.RefusedByRunning {
		t.Errorf("a second call beside the first: %v", refusal)
	}
	if got := callNow(c, "b", epoch()); got != policy.NotRefused {
		t.Errorf("another caller: %v", got)
	}
	c.Done(first)
	if got := callNow(c, "a", epoch()); got != policy.NotRefused {
		t.Errorf("when the first has ended: %v", got)
	}
	if _, refusal, wait := c.Allow("a", epoch()); refusal != policy.RefusedByRate || wait != 100*time.Millisecond {
		t.Errorf("a third call: %v, %v", refusal, wait)
	}
	if got := callNow(c, "a", epoch().Add(100*time.Millisecond)); got != policy.NotRefused {
		t.Errorf("later: %v", got)
	}
	state := c.Show(1, epoch().Add(100*time.Millisecond))
	if want := (policy.LimiterState{Caller: "a", Refused: 2}); state.Known != 2 || state.Refused != 2 || len(state.Callers) != 1 || state.Callers[0] != want {
		t.Errorf("it shows %+v", state)
	}
}

func TestCallers_ChangeWhileTheyRun(t *testing.T) {
	c := policy.NewCallers(policy.Limit{}, epoch())
	for range 100 {
		if got := callNow(c, "a", epoch()); got != policy.NotRefused {
			t.Fatalf("refused without a limit: %v", got)
		}
	}
	if known := c.Show(0, epoch()).Known; known != 0 {
		t.Errorf("%d callers are known without a limit", known)
	}
	c.Configure(policy.Limit{Running: 1})
	pass, _, _ := c.Allow("a", epoch())
	c.Configure(policy.Limit{PerSecond: 1})
	if got := callNow(c, "a", epoch()); got != policy.NotRefused {
		t.Errorf("the first call by rate: %v", got)
	}
	if got := callNow(c, "a", epoch()); got != policy.RefusedByRate {
		t.Errorf("the second call by rate: %v", got)
	}
	c.Configure(policy.Limit{Running: 1})
	if got := callNow(c, "a", epoch()); got != policy.RefusedByRunning {
		t.Errorf("the first one runs still: %v", got)
	}
	c.Configure(policy.Limit{})
	c.Done(pass)
	c.Configure(policy.Limit{Running: 1})
	if got := callNow(c, "a", epoch()); got != policy.NotRefused {
		t.Errorf("nothing runs: %v", got)
	}
}

// A flood of names: the callers that are known keep their limits, in both directions, the
// flood shares what is left, and memory stays what it is.
func TestCallers_StandAFloodOfNames(t *testing.T) {
	const names = 300_000
	limit := policy.Limit{PerSecond: 10, Burst: 5}
	c := policy.NewCallers(limit, epoch())
	now := epoch()
	// A busy caller, which has used its burst up and goes on all the time.
	use := func(at time.Time) (allowed int) {
		for range 3 {
			if callNow(c, "greedy", at) == policy.NotRefused {
				allowed++
			}
		}
		return allowed
	}
	use(now)
	use(now)
	var before, after runtime.MemStats
	greedy, flood := 0, 0
	for i := range names {
		if i%1000 == 0 {
			now = now.Add(10 * time.Millisecond)
			greedy += use(now)
		}
		if callNow(c, fmt.Sprintf("flood %d", i), now) == policy.NotRefused {
			flood++
		}
		switch i {
		case names / 2:
			runtime.GC()
			runtime.ReadMemStats(&before)
		case names - 1:
			runtime.GC()
			runtime.ReadMemStats(&after)
		}
	}
	seconds := now.Sub(epoch()).Seconds()
	if most := int(seconds*10) + 1; greedy > most {
		t.Errorf("the greedy caller made %d calls in %.1f s, at most %d are its own", greedy, seconds, most)
	}
	if greedy < int(seconds*10)-1 {
		t.Errorf("the greedy caller made %d calls in %.1f s only", greedy, seconds)
	}
	if state := c.Show(10, now); state.Known > limits.Callers || state.Refused == 0 {
		t.Errorf("%d callers are known, %d calls were refused", state.Known, state.Refused)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("the second half of the names took %d bytes", grown)
	}
	// Every name that gets a place may begin one call, and a place is free when the call
	// before is a tenth of a second ago.
	if most := limits.Callers * int(seconds*10+10); flood > most {
		t.Errorf("%d calls of the flood were allowed, at most %d", flood, most)
	}
}

// A caller that used its burst up is not forgotten before it is whole again, however many
// names come.
func TestCallers_ForgetNobodyWhoMustWait(t *testing.T) {
	c := policy.NewCallers(policy.Limit{PerSecond: 1, Burst: 2}, epoch())
	for range 2 {
		callNow(c, "greedy", epoch())
	}
	for i := range 5 * limits.Callers {
		callNow(c, fmt.Sprintf("flood %d", i), epoch().Add(time.Duration(i)*10*time.Microsecond))
	}
	now := epoch().Add(500 * time.Millisecond)
	if got := callNow(c, "greedy", now); got != policy.RefusedByRate {
		t.Errorf("half a second later: %v", got)
	}
}

// All places are taken by callers with calls that run: the others share a limit, and what
// runs is not forgotten.
func TestCallers_ForgetNobodyWhoMatters(t *testing.T) {
	c := policy.NewCallers(policy.Limit{Running: 1}, epoch())
	passes := map[string]policy.CallerPass{}
	withoutPlace := 0
	for i := range 2 * limits.Callers {
		name := fmt.Sprint(i)
		pass, refusal, _ := c.Allow(name, epoch().Add(time.Duration(i)*time.Hour))
		if refusal == policy.NotRefused {
			passes[name] = pass
		} else {
			withoutPlace++
		}
	}
	if known := c.Show(0, epoch()).Known; known > limits.Callers || known < limits.Callers*9/10 {
		t.Errorf("%d callers are known, at most %d", known, limits.Callers)
	}
	if len(passes) > limits.Callers+16 || withoutPlace == 0 {
		t.Errorf("%d callers have a call, and %d were refused", len(passes), withoutPlace)
	}
	for name := range passes {
		if got := callNow(c, name, epoch()); got != policy.RefusedByRunning {
			t.Fatalf("a second call of %s: %v", name, got)
		}
	}
	for _, pass := range passes {
		c.Done(pass)
	}
	for _, name := range []string{"new", "newer"} {
		if got := callNow(c, name, epoch()); got != policy.NotRefused {
			t.Errorf("%s, when all have ended: %v", name, got)
		}
	}
	for _, caller := range c.Show(2*limits.Callers, epoch()).Callers {
		if caller.Running != 0 {
			t.Fatalf("%+v runs still", caller)
		}
	}
}

func TestCallers_AreSharedByGoroutines(t *testing.T) {
	c := policy.NewCallers(policy.Limit{PerSecond: 1000, Burst: 100, Running: 2}, epoch())
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for i := range 5000 {
				callNow(c, fmt.Sprint((i*(g+1))%100), epoch().Add(time.Duration(i)*time.Millisecond))
				if i%1000 == 0 {
					c.Show(5, epoch())
				}
			}
		})
	}
	wait.Wait()
	for _, caller := range c.Show(100, epoch()).Callers {
		if caller.Running != 0 {
			t.Errorf("%+v runs still", caller)
		}
	}
}
