package cluster_test

import (
	"fmt"
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

// bench is a Balancer whose members are known by their places in the list.
type bench struct {
	*cluster.Balancer
	t       testing.TB
	members []*cluster.Member
	places  map[*cluster.Member]int
}

func addressOf(i int) string { return fmt.Sprintf("server%d:1", i) }

// instances returns n of them, with weights if there are any.
func instances(n int, weights ...int) []cluster.Instance {
	list := make([]cluster.Instance, n)
	for i := range list {
		list[i].Address = addressOf(i)
		if i < len(weights) {
			list[i].Weight = weights[i]
		}
	}
	return list
}

func balancerOf(t testing.TB, balancing cluster.Balancing, random func(n int) int, list []cluster.Instance) *bench {
	b := &bench{t: t, Balancer: cluster.NewBalancer(balancing, cluster.Ejection{}, 1, random)}
	b.Update(list, start())
	b.number()
	return b
}

// newBench returns a Balancer of n alike instances with the default configuration.
func newBench(t testing.TB, n int, random func(n int) int) *bench {
	return balancerOf(t, cluster.Balancing{}, random, instances(n))
}

func (b *bench) number() {
	b.members, b.places = b.Members(), map[*cluster.Member]int{}
	for i, m := range b.members {
		b.places[m] = i
	}
}

func (b *bench) pick(now time.Time) (cluster.Choice, int) { return b.pickKey(now, 0) }

func (b *bench) pickKey(now time.Time, key uint64) (cluster.Choice, int) {
	b.t.Helper()
	choice, ok := b.Pick(now, key)
	if !ok {
		b.t.Fatal("no instance")
	}
	return choice, b.places[choice.Member]
}

// other is PickOther; its place is -1 if there is none.
func (b *bench) other(now time.Time, tried ...cluster.Choice) (cluster.Choice, int) {
	var members []*cluster.Member
	for _, choice := range tried {
		members = append(members, choice.Member)
	}
	choice, ok := b.PickOther(now, 0, members)
	if !ok {
		return choice, -1
	}
	return choice, b.places[choice.Member]
}

func (b *bench) done(choice cluster.Choice, outcome cluster.Outcome, now time.Time) {
	b.Done(choice, outcome, 0, now)
}

// call makes a call that ends at once, and returns where it went.
func (b *bench) call(now time.Time, outcome cluster.Outcome) int {
	b.t.Helper()
	choice, place := b.pick(now)
	b.done(choice, outcome, now)
	return place
}

// count makes calls that end at once, and counts where they went.
func (b *bench) count(now time.Time, calls int) []int {
	b.t.Helper()
	count := make([]int, len(b.members))
	for range calls {
		count[b.call(now, cluster.Reached)]++
	}
	return count
}

// eject makes calls at now until the given instances have refused one each.
func (b *bench) eject(now time.Time, places ...int) {
	b.t.Helper()
	wanted := b.Ejected() + len(places)
	for range 1000 {
		choice, place := b.pick(now)
		outcome := cluster.Unknown
		if at := slices.Index(places, place); at >= 0 {
			outcome, places = cluster.Refused, slices.Delete(slices.Clone(places), at, at+1)
		}
		b.done(choice, outcome, now)
		if b.Ejected() == wanted {
			return
		}
	}
	b.t.Fatalf("%d instances are ejected, want %d", b.Ejected(), wanted)
}

func TestBalancer_PrefersTheLessBusy(t *testing.T) {
	b := newBench(t, 3, seeded(1))
	busy, place := b.pick(start())
	for range 1000 {
		if b.call(start(), cluster.Reached) == place {
			t.Fatal("a call went to the only instance that has one")
		}
	}
	b.done(busy, cluster.Reached, start())
	if count := b.count(start(), 1000); count[place] == 0 {
		t.Errorf("after its call had ended it got none: %v", count)
	}
}

// TestBalancer_CallsInFlightStayEven: with random choice alone the fullest of
// ten would have about 130 of 1,000.
func TestBalancer_CallsInFlightStayEven(t *testing.T) {
	const n, calls = 10, 1000
	for seed := range uint64(20) {
		b := newBench(t, n, seeded(seed))
		count := make([]int, n)
		for range calls {
			_, place := b.pick(start())
			count[place]++
		}
		if least, most := slices.Min(count), slices.Max(count); most-least > 6 {
			t.Errorf("seed %d: calls in flight %v", seed, count)
		}
	}
}

// TestBalancer_DrawsTwoDifferentOnes: whatever is drawn, an idle instance wins
// over a busy one, so the two must never be the same.
func TestBalancer_DrawsTwoDifferentOnes(t *testing.T) {
	const n = 4
	chosen := map[int]bool{}
	for first := range n {
		for second := range n - 1 {
			draws := []int{0, first, second} // the first is where turns begin
			b := newBench(t, n, func(n int) int {
				drawn := draws[0]
				draws = draws[1:]
				return drawn
			})
			_, busy := b.pick(start())
			draws = []int{busy, second}
			if _, other := b.pick(start()); other == busy {
				t.Errorf("drew %d and %d: the busy one was chosen", busy, second)
			} else {
				chosen[other] = true
			}
		}
	}
	if len(chosen) != n {
		t.Errorf("chosen were only %v", chosen)
	}
}

func TestBalancer_OneInstance(t *testing.T) {
	b := newBench(t, 1, nil)
	for _, outcome := range []cluster.Outcome{cluster.Reached, cluster.Refused, cluster.Refused, cluster.Unknown} {
		choice, place := b.pick(start())
		if _, other := b.other(start(), choice); other >= 0 || place != 0 {
			t.Errorf("chose %d, and instead of it %d", place, other)
		}
		b.done(choice, outcome, start())
	}
}

func TestBalancer_NoInstance(t *testing.T) {
	b := cluster.NewBalancer(cluster.Balancing{}, cluster.Ejection{}, 0, nil)
	for range 2 {
		if choice, ok := b.Pick(start(), 0); ok {
			t.Errorf("chose %v", choice)
		}
		if choice, ok := b.PickOther(start(), 0, nil); ok || b.Ejected() != 0 {
			t.Errorf("chose %v, %d are ejected", choice, b.Ejected())
		}
		b.Update(nil, start())
	}
}

// TestBalancer_EjectsWhatRefuses: for the pause nothing goes there, then one
// call, and what that one shows decides.
func TestBalancer_EjectsWhatRefuses(t *testing.T) {
	const bad = 1
	b := newBench(t, 3, seeded(1))
	now := start()
	b.eject(now, bad)
	none := func(when string) {
		t.Helper()
		if count := b.count(now, 200); count[bad] > 0 {
			t.Fatalf("%s: calls went to the ejected instance", when)
		}
	}
	for pause := limits.EjectPauseMin; pause < 4*limits.EjectPauseMax; pause *= 2 {
		pause := min(pause, limits.EjectPauseMax)
		now = now.Add(pause - 1)
		none("in the pause of " + pause.String())
		now = now.Add(1)
		trial, place := b.pick(now)
		if place != bad || trial.Reason != cluster.ReasonTrial {
			t.Fatalf("after the pause of %v the call went to %d, %v", pause, place, trial.Reason)
		}
		none("during the trial after " + pause.String())
		b.done(trial, cluster.Refused, now)
	}
	now = now.Add(limits.EjectPauseMax)
	if i := b.call(now, cluster.Unknown); i != bad {
		t.Fatalf("the call went to %d", i)
	}
	none("behind a trial that showed nothing")
	now = now.Add(limits.EjectPauseMin)
	if i := b.call(now, cluster.Reached); i != bad || b.Ejected() != 0 {
		t.Errorf("a trial that showed nothing was followed by a call to %d; %d are ejected", i, b.Ejected())
	}
	if count := b.count(now, 300); count[bad] < 50 {
		t.Errorf("after it is back: %v", count)
	}
	b.eject(now, bad)
	if now = now.Add(limits.EjectPauseMin); b.call(now, cluster.Refused) != bad {
		t.Error("the pause did not begin anew")
	}
}

// TestBalancer_CallsThatFailTogetherCountOnce: the pause doubles with time, not
// with the number of calls.
func TestBalancer_CallsThatFailTogetherCountOnce(t *testing.T) {
	b := newBench(t, 2, seeded(1))
	var choices []cluster.Choice
	for range 100 {
		choice, _ := b.pick(start())
		choices = append(choices, choice)
	}
	for _, choice := range choices {
		outcome := cluster.Reached
		if b.places[choice.Member] == 0 {
			outcome = cluster.Refused
		}
		b.done(choice, outcome, start())
	}
	if i := b.call(start().Add(limits.EjectPauseMin), cluster.Reached); i != 0 {
		t.Errorf("after the first pause the call went to %d", i)
	}
}

// TestBalancer_OldCallsProveNothing: a call that was sent before its instance
// was ejected may succeed, and the instance stays ejected.
func TestBalancer_OldCallsProveNothing(t *testing.T) {
	b := newBench(t, 2, seeded(1))
	var old []cluster.Choice
	for range 10 {
		choice, _ := b.pick(start())
		old = append(old, choice)
	}
	for i, choice := range old {
		outcome := cluster.Reached
		if i == 0 {
			outcome = cluster.Refused
		}
		b.done(choice, outcome, start())
	}
	if b.Ejected() != 1 {
		t.Errorf("%d are ejected", b.Ejected())
	}
}

// TestBalancer_AllEjected: the one whose pause ends first is tried, in turn.
func TestBalancer_AllEjected(t *testing.T) {
	const n = 3
	b := newBench(t, n, seeded(1))
	now := start()
	order := []int{2, 0, 1}
	for _, i := range order {
		b.eject(now, i)
		now = now.Add(time.Millisecond)
	}
	for round := range 4 {
		for _, want := range order {
			if i := b.call(now, cluster.Refused); i != want {
				t.Fatalf("round %d: the call went to %d, want %d", round, i, want)
			}
			now = now.Add(time.Millisecond)
		}
	}
	// While a call hangs at one of them, others have their turn.
	hanging, place := b.pick(now)
	if place != order[0] || hanging.Reason != cluster.ReasonLastResort {
		t.Errorf("the call went to %d (%v), want %d", place, hanging.Reason, order[0])
	}
	if i := b.call(now, cluster.Reached); i != order[1] || b.Ejected() != n-1 {
		t.Errorf("the next call went to %d, want %d; %d are ejected", i, order[1], b.Ejected())
	}
	if count := b.count(now, 100); count[order[1]] != 100 {
		t.Fatalf("calls went to those that are ejected: %v", count)
	}
	b.done(hanging, cluster.Refused, now)
}

func TestBalancer_PickOther(t *testing.T) {
	b := newBench(t, 3, seeded(1))
	now := start()
	count := map[int]int{}
	for range 300 {
		first, place := b.pick(now)
		other, instead := b.other(now, first)
		third, last := b.other(now, first, other)
		if instead < 0 || last < 0 || instead == place || last == place || last == instead {
			t.Fatalf("one after the other: %d, %d, %d", place, instead, last)
		}
		if choice, left := b.other(now, first, other, third); left >= 0 {
			t.Fatalf("with all tried there is %v", choice)
		}
		count[instead]++
		for _, choice := range []cluster.Choice{first, other, third} {
			b.done(choice, cluster.Reached, now)
		}
	}
	if len(count) != 3 {
		t.Errorf("chosen were only %v", count)
	}
	// One that is due for a trial is for first attempts: a second one is the last.
	b.eject(now, 0)
	now = now.Add(limits.EjectPauseMin)
	one := cluster.Choice{Member: b.members[1]}
	for range 100 {
		other, instead := b.other(now, one)
		if instead != 2 {
			t.Fatalf("instead of 1: %d, which is ejected", instead)
		}
		b.done(other, cluster.Reached, now)
	}
	b.eject(now.Add(-limits.EjectPauseMin), 2)
	if other, instead := b.other(now, one); instead < 0 || instead == 1 || other.Reason != cluster.ReasonLastResort {
		t.Errorf("instead of 1, while the others are ejected: %d, %v", instead, other.Reason)
	}
}

// TestBalancer_OneTrialEach: of two that are due each gets one call, and what
// comes meanwhile goes to those that work.
func TestBalancer_OneTrialEach(t *testing.T) {
	b := newBench(t, 3, seeded(1))
	b.eject(start(), 0)
	b.eject(start().Add(1), 1)
	now := start().Add(2 * limits.EjectPauseMin)
	for _, want := range []int{0, 1, 2, 2} {
		if _, place := b.pick(now); place != want {
			t.Errorf("the call went to %d, want %d", place, want)
		}
	}
}

// TestBalancer_OtherThanTheLastResort: while all are ejected, the second attempt
// of a call that showed nothing of its instance goes to another one.
func TestBalancer_OtherThanTheLastResort(t *testing.T) {
	b := newBench(t, 2, seeded(1))
	b.eject(start(), 0)
	b.eject(start().Add(1), 1)
	now := start().Add(2)
	choice, place := b.pick(now)
	b.done(choice, cluster.Unknown, now)
	if _, other := b.other(now, choice); place != 0 || other != 1 {
		t.Errorf("first %d, then %d", place, other)
	}
}

// TestBalancer_Concurrent: whatever happens at the same time, lists and configurations
// that change among it, nothing is left of it: no call in flight, no trial without an
// end, nobody ejected for ever.
func TestBalancer_Concurrent(t *testing.T) {
	const n, callers, each = 4, 8, 2000
	for _, method := range methods() {
		b := balancerOf(t, cluster.Balancing{Method: method}, nil, instances(n))
		var all sync.WaitGroup
		for caller := range uint64(callers) {
			all.Go(func() {
				random := rand.New(rand.NewPCG(caller, 0))
				for i := range each {
					now := start().Add(time.Duration(i) * 10 * time.Millisecond)
					choice, ok := b.Pick(now, random.Uint64N(3))
					if !ok {
						t.Error("no instance")
						return
					}
					if random.IntN(4) == 0 {
						if other, ok := b.PickOther(now, 0, []*cluster.Member{choice.Member}); !ok || other.Member == choice.Member {
							t.Errorf("instead of %s: %v, %v", choice.Member.Address(), other, ok)
						} else {
							b.Done(other, cluster.Outcome(random.IntN(4)), time.Millisecond, now)
						}
					}
					b.Done(choice, cluster.Outcome(random.IntN(4)), time.Millisecond, now)
					if caller == 0 && i%50 == 0 {
						b.Update(instances(n-i/50%2, i%30), now)
						b.SetConfig(cluster.Balancing{Method: method, Zone: []string{"", "a"}[i/100%2]}, cluster.Ejection{}, now)
					}
				}
			})
		}
		all.Wait()
		now := start().Add(time.Hour)
		b.SetConfig(cluster.Balancing{}, cluster.Ejection{}, now)
		b.Update(instances(n), now)
		b.number()
		for range n {
			b.call(now, cluster.Reached)
		}
		if b.Ejected() != 0 {
			t.Errorf("%s: %d stay ejected", method, b.Ejected())
		}
		for _, m := range b.members {
			if m.InFlight() != 0 {
				t.Errorf("%s: calls in flight were left over at %s: %d", method, m.Address(), m.InFlight())
			}
		}
	}
}

// BenchmarkBalancer_PickDone is what a call costs among n instances.
func BenchmarkBalancer_PickDone(b *testing.B) {
	for _, n := range []int{2, 10, 100, 1000} {
		for _, method := range methods() {
			b.Run(fmt.Sprintf("%s/%d", method, n), func(b *testing.B) {
				balancer := balancerOf(b, cluster.Balancing{Method: method}, nil, instances(n))
				now := time.Now()
				key := uint64(0)
				if method == cluster.ConsistentHash {
					key = cluster.Hash("a key")
				}
				b.ReportAllocs()
				for b.Loop() {
					choice, _ := balancer.Pick(now, key)
					balancer.Done(choice, cluster.Reached, time.Millisecond, now)
				}
			})
		}
	}
}

// BenchmarkBalancer_Update is what another list of 10,000 instances costs of which a
// tenth is new.
func BenchmarkBalancer_Update(b *testing.B) {
	for _, method := range []cluster.Method{cluster.LeastLoaded, cluster.ConsistentHash} {
		b.Run(string(method), func(b *testing.B) {
			lists := [2][]cluster.Instance{instances(limits.Instances), instances(limits.Instances)}
			for i := range limits.Instances / 10 {
				lists[1][i*10].Address = fmt.Sprintf("other%d:1", i)
			}
			balancer := balancerOf(b, cluster.Balancing{Method: method}, nil, lists[0])
			turn := 0
			for b.Loop() {
				turn++
				balancer.Update(lists[turn%2], start())
			}
		})
	}
}

func TestBalancer_PickAllocatesNothing(t *testing.T) {
	for _, method := range methods() {
		b := balancerOf(t, cluster.Balancing{Method: method}, nil, instances(100))
		now, key := start(), cluster.Hash("a key")
		if n := testing.AllocsPerRun(100, func() {
			choice, _ := b.Pick(now, key)
			b.Done(choice, cluster.Reached, time.Millisecond, now)
		}); n != 0 {
			t.Errorf("%s: a call allocates %v times", method, n)
		}
	}
}

func methods() []cluster.Method {
	return []cluster.Method{cluster.LeastLoaded, cluster.RoundRobin, cluster.Random, cluster.ConsistentHash, cluster.LeastRequests}
}
