package cluster_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// start is a time like any other: a Balancer knows only what it is told.
func start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func seeded(seed uint64) func(n int) int { return rand.New(rand.NewPCG(seed, 0)).IntN }

// call makes a call that ends at once, and returns where it went.
func call(b *cluster.Balancer, now time.Time, outcome cluster.Outcome) int {
	choice := b.Pick(now)
	b.Done(choice, outcome, now)
	return choice.Index
}

// eject makes calls at now until the given instances have refused one each.
func eject(t *testing.T, b *cluster.Balancer, now time.Time, instances ...int) {
	t.Helper()
	wanted := b.Ejected() + len(instances)
	for range 1000 {
		choice := b.Pick(now)
		outcome := cluster.Unknown
		if at := slices.Index(instances, choice.Index); at >= 0 {
			outcome, instances = cluster.Refused, slices.Delete(slices.Clone(instances), at, at+1)
		}
		b.Done(choice, outcome, now)
		if b.Ejected() == wanted {
			return
		}
	}
	t.Fatalf("%d instances are ejected, want %d", b.Ejected(), wanted)
}

func TestBalancer_SharesOutEvenly(t *testing.T) {
	const instances, calls = 4, 10_000
	b := cluster.NewBalancer(instances, seeded(1))
	var count [instances]int
	for range calls {
		count[call(b, start(), cluster.Reached)]++
	}
	for i, n := range count {
		if n < calls/instances*9/10 || n > calls/instances*11/10 {
			t.Errorf("instance %d got %d of %d calls; all: %v", i, n, calls, count)
		}
	}
}

func TestBalancer_PrefersTheLessBusy(t *testing.T) {
	b := cluster.NewBalancer(3, seeded(1))
	busy := b.Pick(start())
	for range 1000 {
		if i := call(b, start(), cluster.Reached); i == busy.Index {
			t.Fatal("a call went to the only instance that has one")
		}
	}
	b.Done(busy, cluster.Reached, start())
	count := map[int]int{}
	for range 1000 {
		count[call(b, start(), cluster.Reached)]++
	}
	if count[busy.Index] == 0 {
		t.Errorf("after its call had ended it got none: %v", count)
	}
}

// TestBalancer_CallsInFlightStayEven: with random choice alone the fullest of
// ten would have about 130 of 1,000.
func TestBalancer_CallsInFlightStayEven(t *testing.T) {
	const instances, calls = 10, 1000
	for seed := range uint64(20) {
		b := cluster.NewBalancer(instances, seeded(seed))
		var count [instances]int
		for range calls {
			count[b.Pick(start()).Index]++
		}
		if least, most := slices.Min(count[:]), slices.Max(count[:]); most-least > 6 {
			t.Errorf("seed %d: calls in flight %v", seed, count)
		}
	}
}

// TestBalancer_DrawsTwoDifferentOnes: whatever is drawn, an idle instance wins
// over a busy one, so the two must never be the same.
func TestBalancer_DrawsTwoDifferentOnes(t *testing.T) {
	const instances = 4
	chosen := map[int]bool{}
	for first := range instances {
		for second := range instances - 1 {
			draws := []int{first, second}
			b := cluster.NewBalancer(instances, func(n int) int {
				drawn := draws[0]
				draws = draws[1:]
				if n != instances-1+len(draws) {
					t.Errorf("drew below %d", n)
				}
				return drawn
			})
			busy := b.Pick(start())
			draws = []int{busy.Index, second}
			if other := b.Pick(start()); other.Index == busy.Index {
				t.Errorf("drew %d and %d: the busy one was chosen", busy.Index, second)
			} else {
				chosen[other.Index] = true
			}
		}
	}
	if len(chosen) != instances {
		t.Errorf("chosen were only %v", chosen)
	}
}

func TestBalancer_OneInstance(t *testing.T) {
	b := cluster.NewBalancer(1, nil)
	for _, outcome := range []cluster.Outcome{cluster.Reached, cluster.Refused, cluster.Refused, cluster.Unknown} {
		choice := b.Pick(start())
		if _, ok := b.PickOther(choice); ok || choice.Index != 0 {
			t.Errorf("chose %d, and there is another: %v", choice.Index, ok)
		}
		b.Done(choice, outcome, start())
	}
}

// TestBalancer_EjectsWhatRefuses: for the pause nothing goes there, then one
// call, and what that one shows decides.
func TestBalancer_EjectsWhatRefuses(t *testing.T) {
	const bad = 1
	b := cluster.NewBalancer(3, seeded(1))
	now := start()
	eject(t, b, now, bad)
	none := func(when string) {
		t.Helper()
		for range 200 {
			if call(b, now, cluster.Reached) == bad {
				t.Fatalf("%s: a call went to the ejected instance", when)
			}
		}
	}
	for pause := limits.EjectPauseMin; pause < 4*limits.EjectPauseMax; pause *= 2 {
		pause := min(pause, limits.EjectPauseMax)
		now = now.Add(pause - 1)
		none("in the pause of " + pause.String())
		now = now.Add(1)
		trial := b.Pick(now)
		if trial.Index != bad {
			t.Fatalf("after the pause of %v the call went to %d", pause, trial.Index)
		}
		none("during the trial after " + pause.String())
		b.Done(trial, cluster.Refused, now)
	}
	now = now.Add(limits.EjectPauseMax)
	if i := call(b, now, cluster.Unknown); i != bad {
		t.Fatalf("the call went to %d", i)
	}
	if i := call(b, now, cluster.Reached); i != bad || b.Ejected() != 0 {
		t.Errorf("a trial that showed nothing was followed by a call to %d; %d are ejected", i, b.Ejected())
	}
	count := map[int]int{}
	for range 300 {
		count[call(b, now, cluster.Reached)]++
	}
	if count[bad] < 50 {
		t.Errorf("after it is back: %v", count)
	}
	eject(t, b, now, bad)
	if now = now.Add(limits.EjectPauseMin); call(b, now, cluster.Refused) != bad {
		t.Error("the pause did not begin anew")
	}
}

// TestBalancer_CallsThatFailTogetherCountOnce: the pause doubles with time, not
// with the number of calls.
func TestBalancer_CallsThatFailTogetherCountOnce(t *testing.T) {
	b := cluster.NewBalancer(2, seeded(1))
	var choices []cluster.Choice
	for range 100 {
		choices = append(choices, b.Pick(start()))
	}
	for _, choice := range choices {
		outcome := cluster.Reached
		if choice.Index == 0 {
			outcome = cluster.Refused
		}
		b.Done(choice, outcome, start())
	}
	if i := call(b, start().Add(limits.EjectPauseMin), cluster.Reached); i != 0 {
		t.Errorf("after the first pause the call went to %d", i)
	}
}

// TestBalancer_OldCallsProveNothing: a call that was sent before its instance
// was ejected may succeed, and the instance stays ejected.
func TestBalancer_OldCallsProveNothing(t *testing.T) {
	b := cluster.NewBalancer(2, seeded(1))
	var old []cluster.Choice
	for range 10 {
		old = append(old, b.Pick(start()))
	}
	for i, choice := range old {
		outcome := cluster.Reached
		if i == 0 {
			outcome = cluster.Refused
		}
		b.Done(choice, outcome, start())
	}
	if b.Ejected() != 1 {
		t.Errorf("%d are ejected", b.Ejected())
	}
}

// TestBalancer_AllEjected: the one whose pause ends first is tried, in turn.
func TestBalancer_AllEjected(t *testing.T) {
	const instances = 3
	b := cluster.NewBalancer(instances, seeded(1))
	now := start()
	order := []int{2, 0, 1}
	for _, i := range order {
		eject(t, b, now, i)
		now = now.Add(time.Millisecond)
	}
	for round := range 4 {
		for _, want := range order {
			if i := call(b, now, cluster.Refused); i != want {
				t.Fatalf("round %d: the call went to %d, want %d", round, i, want)
			}
			now = now.Add(time.Millisecond)
		}
	}
	// While a call hangs at one of them, others have their turn.
	hanging := b.Pick(now)
	if hanging.Index != order[0] {
		t.Errorf("the call went to %d, want %d", hanging.Index, order[0])
	}
	if i := call(b, now, cluster.Reached); i != order[1] || b.Ejected() != instances-1 {
		t.Errorf("the next call went to %d, want %d; %d are ejected", i, order[1], b.Ejected())
	}
	for range 100 {
		if i := call(b, now, cluster.Reached); i != order[1] {
			t.Fatalf("a call went to %d, which is ejected", i)
		}
	}
	b.Done(hanging, cluster.Refused, now)
}

func TestBalancer_PickOther(t *testing.T) {
	b := cluster.NewBalancer(3, seeded(1))
	now := start()
	count := map[int]int{}
	for range 300 {
		first := b.Pick(now)
		other, ok := b.PickOther(first)
		if !ok || other.Index == first.Index {
			t.Fatalf("instead of %d: %d, %v", first.Index, other.Index, ok)
		}
		count[other.Index]++
		b.Done(first, cluster.Reached, now)
		b.Done(other, cluster.Reached, now)
	}
	if len(count) != 3 {
		t.Errorf("chosen were only %v", count)
	}
	// One that is due for a trial is for first attempts: a second one is the last.
	eject(t, b, now, 0)
	now = now.Add(limits.EjectPauseMin)
	for range 100 {
		other, _ := b.PickOther(cluster.Choice{Index: 1})
		if other.Index != 2 {
			t.Fatalf("instead of 1: %d, which is ejected", other.Index)
		}
		b.Done(other, cluster.Reached, now)
	}
	eject(t, b, now.Add(-limits.EjectPauseMin), 2)
	if other, ok := b.PickOther(cluster.Choice{Index: 1}); !ok || other.Index == 1 {
		t.Errorf("instead of 1, while the others are ejected: %d, %v", other.Index, ok)
	}
}

// TestBalancer_OneTrialEach: of two that are due each gets one call, and what
// comes meanwhile goes to those that work.
func TestBalancer_OneTrialEach(t *testing.T) {
	b := cluster.NewBalancer(3, seeded(1))
	eject(t, b, start(), 0)
	eject(t, b, start().Add(1), 1)
	now := start().Add(2 * limits.EjectPauseMin)
	for _, want := range []int{0, 1, 2, 2} {
		if choice := b.Pick(now); choice.Index != want {
			t.Errorf("the call went to %d, want %d", choice.Index, want)
		}
	}
}

// TestBalancer_OtherThanTheLastResort: while all are ejected, the second attempt
// of a call that showed nothing of its instance goes to another one.
func TestBalancer_OtherThanTheLastResort(t *testing.T) {
	b := cluster.NewBalancer(2, seeded(1))
	eject(t, b, start(), 0)
	eject(t, b, start().Add(1), 1)
	now := start().Add(2)
	choice := b.Pick(now)
	b.Done(choice, cluster.Unknown, now)
	if other, ok := b.PickOther(choice); choice.Index != 0 || !ok || other.Index != 1 {
		t.Errorf("first %d, then %d, %v", choice.Index, other.Index, ok)
	}
}

// TestBalancer_Concurrent: whatever happens at the same time, nothing is left
// of it: no call in flight, no trial without an end, nobody ejected for ever.
func TestBalancer_Concurrent(t *testing.T) {
	const instances, callers, each = 4, 8, 2000
	b := cluster.NewBalancer(instances, nil)
	var all sync.WaitGroup
	for caller := range uint64(callers) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(caller, 0))
			for i := range each {
				now := start().Add(time.Duration(i) * 10 * time.Millisecond)
				choice := b.Pick(now)
				if random.IntN(4) == 0 {
					if other, ok := b.PickOther(choice); !ok || other.Index == choice.Index {
						t.Errorf("instead of %d: %d, %v", choice.Index, other.Index, ok)
					} else {
						b.Done(other, cluster.Outcome(random.IntN(3)), now)
					}
				}
				b.Done(choice, cluster.Outcome(random.IntN(3)), now)
			}
		})
	}
	all.Wait()
	now := start().Add(time.Hour)
	for range instances {
		call(b, now, cluster.Reached)
	}
	if b.Ejected() != 0 {
		t.Errorf("%d stay ejected", b.Ejected())
	}
	var count [instances]int
	for range 100 * instances {
		count[b.Pick(now).Index]++
	}
	if least, most := slices.Min(count[:]), slices.Max(count[:]); most-least > 4 {
		t.Errorf("calls in flight were left over: %v", count)
	}
}

func BenchmarkBalancer_PickDone(b *testing.B) {
	balancer := cluster.NewBalancer(10, nil)
	now := start()
	b.ReportAllocs()
	for b.Loop() {
		balancer.Done(balancer.Pick(now), cluster.Reached, now)
	}
}
