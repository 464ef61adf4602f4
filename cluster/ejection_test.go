package cluster_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// TestEjection_ByFailures: as many as the percentage says, of enough calls, within the
// window, and a trial after the pause.
func TestEjection_ByFailures(t *testing.T) {
	const bad = 0
	// try makes calls until the bad instance has had n, of which the first failures fail.
	try := func(b *bench, now time.Time, n, failures int) {
		for had := 0; had < n; {
			choice, place := b.pick(now)
			outcome := cluster.Reached
			if place == bad {
				if had++; had <= failures {
					outcome = cluster.Failed
				}
			}
			b.done(choice, outcome, now)
			if b.Ejected() > 0 {
				return
			}
		}
	}
	b := newBench(t, 4, seeded(1))
	now := start()
	b.SetConfig(cluster.Balancing{}, cluster.Ejection{Consecutive: -1}, now)
	try(b, now, limits.EjectMinCalls-1, limits.EjectMinCalls)
	if b.Ejected() != 0 {
		t.Error("ejected by fewer calls than say something")
	}
	now = now.Add(2 * limits.EjectWindow)
	try(b, now, 10, 0)
	try(b, now, 10, 9)
	if b.Ejected() != 0 {
		t.Error("ejected by less than half of the calls")
	}
	try(b, now, 2, 2)
	if b.Ejected() != 1 || !b.members[bad].Ejected() {
		t.Fatalf("11 of 22 failed, %d are ejected", b.Ejected())
	}
	if count := b.count(now.Add(limits.EjectPauseMin-1), 400); count[bad] != 0 {
		t.Errorf("in its pause: %v", count)
	}
	now = now.Add(limits.EjectPauseMin)
	if place := b.call(now, cluster.Failed); place != bad || b.Ejected() != 1 {
		t.Errorf("the trial went to %d, %d are ejected", place, b.Ejected())
	}
	if count := b.count(now.Add(2*limits.EjectPauseMin-1), 400); count[bad] != 0 {
		t.Errorf("in its second pause: %v", count)
	}
	now = now.Add(2 * limits.EjectPauseMin)
	if place := b.call(now, cluster.Reached); place != bad || b.Ejected() != 0 {
		t.Errorf("the trial went to %d, %d are ejected", place, b.Ejected())
	}
	try(b, now, limits.EjectMinCalls-1, limits.EjectMinCalls)
	if b.Ejected() != 0 {
		t.Error("what happened before the pause still counts")
	}
	b.SetConfig(cluster.Balancing{}, cluster.Ejection{FailurePercent: -1}, now)
	try(b, now, 1000, 1000)
	if b.Ejected() != 0 {
		t.Error("ejected although that is switched off")
	}
}

// TestEjection_ByFailuresInARow: however many calls were answered before; a call that does
// not fail ends the row.
func TestEjection_ByFailuresInARow(t *testing.T) {
	const bad = 0
	b := newBench(t, 4, seeded(1))
	now := start()
	play := func(outcomes ...cluster.Outcome) {
		for len(outcomes) > 0 && b.Ejected() == 0 {
			choice, place := b.pick(now)
			outcome := cluster.Reached
			if place == bad {
				outcome, outcomes = outcomes[0], outcomes[1:]
			}
			b.done(choice, outcome, now)
		}
	}
	row := slices.Repeat([]cluster.Outcome{cluster.Failed}, limits.EjectConsecutive)
	play(slices.Repeat([]cluster.Outcome{cluster.Reached}, 500)...)
	for range 5 {
		play(row[1:]...)
		play(cluster.Unknown) // says nothing, and does not end it
		play(cluster.Reached)
	}
	if b.Ejected() != 0 {
		t.Fatal("ejected by fewer failures than make a row")
	}
	play(row...)
	if b.Ejected() != 1 || !b.members[bad].Ejected() {
		t.Fatalf("behind %d failures in a row %d are ejected", len(row), b.Ejected())
	}
	now = now.Add(limits.EjectPauseMin)
	if place := b.call(now, cluster.Reached); place != bad || b.Ejected() != 0 {
		t.Fatalf("the trial went to %d, %d are ejected", place, b.Ejected())
	}
	play(row[1:]...)
	if b.Ejected() != 0 {
		t.Error("failures before the pause still count")
	}
}

// TestEjection_WhoErrsMoreThanOthers: errors that may be the fault of callers eject an
// instance only if the others have fewer than half of its share.
func TestEjection_WhoErrsMoreThanOthers(t *testing.T) {
	for _, test := range []struct {
		name        string
		own, others int // of 100 calls
		ejected     int
	}{
		{name: "it alone", own: 100, others: 0, ejected: 1},
		{name: "it much more than others", own: 100, others: 30, ejected: 1},
		{name: "all", own: 100, others: 100},
		{name: "all in part", own: 70, others: 60},
		{name: "it less than the percentage", own: 20, others: 0},
	} {
		b := newBench(t, 5, seeded(1))
		now, random := start(), rand.New(rand.NewPCG(1, 2))
		for range 3000 {
			choice, place := b.pick(now)
			percent, outcome := test.others, cluster.Reached
			if place == 0 {
				percent = test.own
			}
			if random.IntN(100) < percent {
				outcome = cluster.Erred
			}
			b.done(choice, outcome, now)
			now = now.Add(time.Millisecond)
			if b.Ejected() > test.ejected {
				break
			}
		}
		if b.Ejected() != test.ejected || test.ejected == 1 && !b.members[0].Ejected() {
			t.Errorf("%s: %d are ejected", test.name, b.Ejected())
		}
	}
}

// TestEjection_WhereAllErrNobodyIsLeftAlone: whatever the order of the calls, and from the
// first on.
func TestEjection_WhereAllErrNobodyIsLeftAlone(t *testing.T) {
	for _, members := range []int{1, 2, 3, 10} {
		for seed := range uint64(100) {
			b := newBench(t, members, seeded(seed))
			now := start()
			for i := range 40 * limits.EjectMinCalls {
				b.call(now, cluster.Erred)
				now = now.Add(time.Millisecond)
				if b.Ejected() != 0 {
					t.Fatalf("%d members, seed %d: %d are ejected behind %d calls", members, seed, b.Ejected(), i+1)
				}
			}
		}
	}
}

// TestEjection_ErrorsInATrial: whoever refused connections is back when it answers, with
// whatever; whoever erred is not.
func TestEjection_ErrorsInATrial(t *testing.T) {
	now := start()
	b := newBench(t, 3, seeded(1))
	b.eject(now, 0)
	now = now.Add(limits.EjectPauseMin)
	if place := b.call(now, cluster.Erred); place != 0 || b.Ejected() != 0 {
		t.Errorf("the trial went to %d, %d are ejected", place, b.Ejected())
	}
	for i := 0; i < 1000 && b.Ejected() == 0; i++ {
		choice, place := b.pick(now)
		outcome := cluster.Reached
		if place == 0 {
			outcome = cluster.Erred
		}
		b.done(choice, outcome, now)
	}
	for range 3 {
		now = now.Add(limits.EjectPauseMax)
		if place := b.call(now, cluster.Erred); place != 0 || b.Ejected() != 1 {
			t.Errorf("the trial went to %d, %d are ejected", place, b.Ejected())
		}
	}
	now = now.Add(limits.EjectPauseMax)
	if place := b.call(now, cluster.Reached); place != 0 || b.Ejected() != 0 {
		t.Errorf("the trial that succeeded went to %d, %d are ejected", place, b.Ejected())
	}
}

// TestBalancer_QuickErrorsDrawNoCalls: how fast an error or a refusal comes does not make
// its instance look faster.
func TestBalancer_QuickErrorsDrawNoCalls(t *testing.T) {
	b := newBench(t, 2, seeded(1))
	now := start()
	b.SetConfig(cluster.Balancing{}, cluster.Ejection{FailurePercent: -1}, now)
	for _, outcome := range []cluster.Outcome{cluster.Erred, cluster.Busy} {
		count := [2]int{}
		for i := range 4000 {
			choice, place := b.pick(now)
			if place == 0 && i%100 != 0 {
				b.Done(choice, outcome, 10*time.Microsecond, now)
			} else {
				b.Done(choice, cluster.Reached, 10*time.Millisecond, now)
			}
			now = now.Add(100 * time.Microsecond)
			count[place]++
		}
		if count[0] > 2400 {
			t.Errorf("outcome %d: %d of 4000 calls went to the instance that answers with it", outcome, count[0])
		}
	}
}

// TestEjection_LongTrials: the call that finds out whether an instance is back may take half an
// hour, as of somebody who waits for news. Another one tries meanwhile, and not sooner than it
// must.
func TestEjection_LongTrials(t *testing.T) {
	now := start()
	b := balancerOf(t, cluster.Balancing{Method: cluster.RoundRobin}, seeded(1), instances(3))
	b.eject(now, 0)
	now = now.Add(limits.EjectPauseMin)
	long, place := b.pick(now)
	if place != 0 || !long.Trial() {
		t.Fatalf("the trial went to %d", place)
	}
	if count := b.count(now.Add(limits.EjectTrialTime-1), 100); count[0] != 0 {
		t.Errorf("while it is on trial: %v", count)
	}
	now = now.Add(limits.EjectTrialTime)
	second, place := b.pick(now)
	if place != 0 || second.Reason != cluster.ReasonTrial {
		t.Fatalf("behind a trial that takes long a call went to %d (%v)", place, second.Reason)
	}
	if count := b.count(now, 100); count[0] != 0 {
		t.Errorf("while it is on trial for the second time: %v", count)
	}
	if b.done(second, cluster.Reached, now); b.Ejected() != 0 {
		t.Fatal("it stays ejected though it has answered")
	}
	// It is gone again: what was sent to it before says nothing, and holds up no trial.
	b.eject(now, 0)
	if b.done(long, cluster.Reached, now); b.Ejected() != 1 {
		t.Error("the trial before its last ejection brought it back")
	}
	now = now.Add(limits.EjectPauseMin)
	if place := b.call(now, cluster.Reached); place != 0 || b.Ejected() != 0 {
		t.Errorf("the next trial went to %d, %d are ejected", place, b.Ejected())
	}
}

// TestEjection_OvertakenTrials: a trial that takes long, and ends when another one has brought its
// instance back, does not make that seem slow.
func TestEjection_OvertakenTrials(t *testing.T) {
	now := start()
	b := newBench(t, 3, seeded(1))
	took := func(int) time.Duration { return time.Millisecond }
	_, now = b.drive(now, 300, took)
	b.eject(now, 0)
	now = now.Add(limits.EjectPauseMin)
	long, first := b.pick(now)
	now = now.Add(limits.EjectTrialTime)
	next, second := b.pick(now)
	if first != 0 || second != 0 || !long.Trial() || !next.Trial() {
		t.Fatalf("the trials went to %d and %d", first, second)
	}
	now = now.Add(time.Millisecond)
	b.Done(next, cluster.Reached, time.Millisecond, now)
	_, now = b.drive(now, 60_000, took)
	b.Done(long, cluster.Reached, 70*time.Second, now)
	if count, _ := b.drive(now, 3000, took); count[0] < 700 {
		t.Errorf("calls behind the end of the long trial: %v", count)
	}
}

// TestEjection_TrialsThatAllTakeLong: where every call takes longer than others wait for it,
// what the first one says still counts.
func TestEjection_TrialsThatAllTakeLong(t *testing.T) {
	now := start()
	b := newBench(t, 3, seeded(1))
	b.eject(now, 0)
	now = now.Add(limits.EjectPauseMin)
	var trials []cluster.Choice
	for range 3 {
		trial, place := b.pick(now)
		if place != 0 {
			t.Fatalf("trial %d went to %d", len(trials), place)
		}
		trials = append(trials, trial)
		now = now.Add(limits.EjectTrialTime)
	}
	if b.Done(trials[0], cluster.Reached, time.Minute, now); b.Ejected() != 0 {
		t.Error("it stays ejected though it has answered")
	}
	if b.Done(trials[1], cluster.Failed, time.Minute, now); b.Ejected() != 0 {
		t.Error("a trial that has failed counts though it is back since")
	}
}

// TestEjection_BusyIsNoFault: it ejects nobody, and ends a trial.
func TestEjection_BusyIsNoFault(t *testing.T) {
	now := start()
	b := newBench(t, 3, seeded(1))
	for range 1000 {
		choice, place := b.pick(now)
		outcome := cluster.Reached
		if place == 0 {
			outcome = cluster.Busy
		}
		b.done(choice, outcome, now)
	}
	if b.Ejected() != 0 {
		t.Errorf("%d are ejected", b.Ejected())
	}
	b.eject(now, 0)
	if place := b.call(now.Add(limits.EjectPauseMin), cluster.Busy); place != 0 || b.Ejected() != 0 {
		t.Errorf("the trial went to %d, %d are ejected", place, b.Ejected())
	}
}

// TestBalancer_ForgetsHowSlowAnInstanceWas: once it is back it is taken for what it is now.
func TestBalancer_ForgetsHowSlowAnInstanceWas(t *testing.T) {
	b := newBench(t, 2, seeded(1))
	now := start()
	// How long a failure takes counts only beside what is usual.
	b.drive(now, 20, func(int) time.Duration { return time.Millisecond })
	b.SetConfig(cluster.Balancing{Method: cluster.RoundRobin}, cluster.Ejection{}, now)
	for range 100 {
		choice, place := b.pick(now)
		if place == 0 {
			b.Done(choice, cluster.Failed, 10*time.Second, now)
			continue
		}
		b.Done(choice, cluster.Reached, time.Millisecond, now)
	}
	b.SetConfig(cluster.Balancing{}, cluster.Ejection{}, now)
	if b.Ejected() != 1 {
		t.Fatalf("%d are ejected", b.Ejected())
	}
	now = now.Add(limits.EjectPauseMin)
	count := [2]int{}
	for range 1000 {
		choice, place := b.pick(now)
		b.Done(choice, cluster.Reached, time.Millisecond, now)
		count[place]++
	}
	if count[0] < 300 {
		t.Errorf("behind its pause it got %d of 1000 calls", count[0])
	}
}

// TestBalancer_RefusedConnectionsAreNotSlow: how long it took until no connection could be
// opened says nothing about calls.
func TestBalancer_RefusedConnectionsAreNotSlow(t *testing.T) {
	b := newBench(t, 2, seeded(1))
	now := start()
	for {
		choice, place := b.pick(now)
		if place == 0 {
			b.Done(choice, cluster.Refused, 10*time.Second, now)
			break
		}
		b.Done(choice, cluster.Reached, time.Millisecond, now)
	}
	now = now.Add(limits.EjectPauseMin)
	// It is back, by an answer that says nothing of how fast it is.
	choice, place := b.pick(now)
	if b.Done(choice, cluster.Busy, 0, now); place != 0 || b.Ejected() != 0 {
		t.Fatalf("the trial went to %d, %d are ejected", place, b.Ejected())
	}
	count := [2]int{}
	for range 100 {
		choice, place := b.pick(now)
		b.Done(choice, cluster.Reached, time.Millisecond, now)
		count[place]++
	}
	if count[0] < 30 {
		t.Errorf("it got %d of 100 calls", count[0])
	}
}

// TestEjection_FailuresGrowOld: a window later they count for nothing.
func TestEjection_FailuresGrowOld(t *testing.T) {
	b := newBench(t, 2, seeded(1))
	now := start()
	for range 10 * limits.EjectMinCalls {
		b.call(now, cluster.Failed)
		now = now.Add(limits.EjectWindow / 20)
	}
	if b.Ejected() != 0 {
		t.Errorf("%d are ejected by ten calls within the window", b.Ejected())
	}
}

// TestEjection_TooManyIsSomebodyElsesFault: if more than half fail, all get calls; whoever
// refuses connections does not.
func TestEjection_TooManyIsSomebodyElsesFault(t *testing.T) {
	const n = 5
	b := newBench(t, n, seeded(1))
	now := start()
	fail := func(calls int, places ...int) {
		for range calls {
			choice, place := b.pick(now)
			outcome := cluster.Reached
			if slices.Contains(places, place) {
				outcome = cluster.Failed
			}
			b.done(choice, outcome, now)
		}
	}
	b.eject(now, 4)
	fail(400, 0, 1)
	if count := b.count(now, 500); b.Ejected() != 3 || count[0]+count[1]+count[4] != 0 {
		t.Errorf("two fail and one refuses: %d are ejected, calls %v", b.Ejected(), count)
	}
	fail(4000, 0, 1, 2)
	count := b.count(now, 500)
	if b.Ejected() != 1 || count[0] < 50 || count[1] < 50 || count[2] < 50 || count[4] != 0 {
		t.Errorf("three fail and one refuses: %d are ejected, calls %v", b.Ejected(), count)
	}
	reasons := map[cluster.Reason]bool{}
	for range 100 {
		choice, place := b.pick(now)
		reasons[choice.Reason] = true
		if (choice.Reason == cluster.ReasonPanic) != (place < 3) {
			t.Errorf("%d: %v", place, choice.Reason)
		}
		b.done(choice, cluster.Unknown, now)
	}
	// Their trials succeed: all is as before.
	now = now.Add(limits.EjectPauseMin)
	for range n {
		b.call(now, cluster.Reached)
	}
	if b.Ejected() != 0 {
		t.Errorf("%d stay ejected", b.Ejected())
	}
	b.SetConfig(cluster.Balancing{}, cluster.Ejection{MaxEjectedPercent: -1}, now)
	fail(20_000, 0, 1, 2, 3, 4)
	if b.Ejected() != n {
		t.Errorf("without a threshold %d are ejected", b.Ejected())
	}
}

// TestUpdate_KeepsWhatStays: calls in flight, latencies, ejections and values; and what
// comes back is new.
func TestUpdate_KeepsWhatStays(t *testing.T) {
	b := newBench(t, 3, seeded(1))
	now := start()
	b.eject(now, 0)
	b.members[1].SetValue("mine")
	held := map[*cluster.Member]cluster.Choice{}
	for len(held) < 2 {
		choice, _ := b.pick(now)
		held[choice.Member] = choice
	}
	list := instances(4, 1, 1, 1, 1)
	list[1].Tags = map[string]string{"version": "2"}
	added, removed := b.Update(append(slices.Clone(list[:2]), list[3], list[3]), now)
	if len(added) != 1 || added[0].Address() != addressOf(3) || len(removed) != 1 || removed[0] != b.members[2] {
		t.Errorf("added %v, removed %v", added, removed)
	}
	old := b.members
	if b.number(); len(b.members) != 3 || b.members[0] != old[0] || b.members[1] != old[1] {
		t.Fatalf("members %v were %v", b.members, old)
	}
	if b.Ejected() != 1 || !old[0].Ejected() || old[1].Value() != "mine" || added[0].Value() != nil || old[1].InFlight() == 0 ||
		old[1].Instance().Tags["version"] != "2" || old[1].Instance().Weight != 1 {
		t.Errorf("%d are ejected, value %v, %d in flight, %v", b.Ejected(), old[1].Value(), old[1].InFlight(), old[1].Instance())
	}
	// What is gone may end its calls as it likes.
	b.Done(held[old[2]], cluster.Refused, 0, now)
	if b.Ejected() != 1 {
		t.Errorf("who is gone was ejected: %d", b.Ejected())
	}
	added, removed = b.Update(nil, now)
	if _, ok := b.Pick(now, 0); ok || len(added) != 0 || len(removed) != 3 || b.Ejected() != 0 {
		t.Errorf("an empty list: %v, %d are gone, %d ejected", ok, len(removed), b.Ejected())
	}
	if added, _ = b.Update(instances(1), now); len(added) != 1 || added[0] == old[0] || added[0].Ejected() {
		t.Errorf("back again: %v", added)
	}
}

// TestUpdate_BoundsTheList.
func TestUpdate_BoundsTheList(t *testing.T) {
	b := cluster.NewBalancer(cluster.Balancing{Method: cluster.ConsistentHash}, cluster.Ejection{}, 0, nil)
	list := instances(limits.Instances + 10)
	for i := range list {
		list[i].Weight = math.MaxInt
	}
	if added, _ := b.Update(list, start()); len(added) != limits.Instances {
		t.Errorf("%d instances", len(added))
	}
	if _, ok := b.Pick(start(), 1); !ok {
		t.Error("no instance")
	}
	// What is there twice leaves no others out.
	list = append(slices.Repeat(list[:1], 2*limits.Instances), list[1])
	if b.Update(list, start()); len(b.Members()) != 2 {
		t.Errorf("%d instances of two", len(b.Members()))
	}
}

// TestBalancer_NeverAnEjectedOneWhileAnotherIsReady, whatever the configuration and the
// history; except for trials, and if too many fail.
func TestBalancer_NeverAnEjectedOneWhileAnotherIsReady(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		balancing := cluster.Balancing{
			Method: methods()[random.IntN(5)], Zone: []string{"", "a", "none"}[random.IntN(3)],
			Subset: random.IntN(4), SlowStart: time.Duration(random.IntN(2)) * time.Second,
		}
		b := balancerOf(t, balancing, seeded(seed), zoned(1+random.IntN(5), random.IntN(5)))
		now := start()
		for range 500 {
			now = now.Add(time.Duration(random.IntN(200)) * time.Millisecond)
			before := map[*cluster.Member]bool{}
			ready := 0
			for _, m := range b.Members() {
				if before[m] = m.Ejected(); !before[m] {
					ready++
				}
			}
			choice, ok := b.Pick(now, random.Uint64N(3))
			if !ok {
				t.Fatalf("seed %d: no instance", seed)
			}
			if before[choice.Member] && ready > 0 && choice.Reason != cluster.ReasonTrial {
				t.Fatalf("seed %d, %+v: %s is ejected and was chosen (%v)", seed, balancing, choice.Member.Address(), choice.Reason)
			}
			b.Done(choice, cluster.Outcome(random.IntN(4)), time.Duration(random.IntN(1e6)), now)
			if random.IntN(50) == 0 {
				b.Update(zoned(1+random.IntN(5), random.IntN(5)), now)
			}
		}
	}
}

func TestReason_HasWords(t *testing.T) {
	seen := map[string]bool{}
	for r := cluster.ReasonLeastLoaded; r <= cluster.ReasonPanic; r++ {
		if text := r.String(); text == "" || seen[text] || text == cluster.Reason(0).String() || strings.HasSuffix(text, ".") {
			t.Errorf("%d: %q", r, text)
		} else {
			seen[text] = true
		}
	}
}
