package policy_test

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/policy"
)

// workshop is a server whose calls wait for one of some places where the work is done, as
// in a database with so many connections: calls beyond them only wait longer.
type workshop struct {
	limit  *policy.AdaptiveLimit
	random *rand.Rand
	places int
	// work is what a call takes once it has a place, on average.
	work func(at time.Duration) time.Duration

	now     time.Duration
	free    []time.Duration // when each place is free
	endings endings
	// done and refused are calls since the last look, took what those that ended took.
	done, refused int
	took          time.Duration
}

type ending struct{ began, ends time.Duration }

type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].ends < e[j].ends }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newWorkshop(seed uint64, places int, config policy.Adaptive) *workshop {
	w := &workshop{
		limit: policy.NewAdaptiveLimit(config, epoch()), random: rand.New(rand.NewPCG(seed, 3)), places: places,
		work: func(time.Duration) time.Duration { return 10 * time.Millisecond },
	}
	w.free = make([]time.Duration, places)
	return w
}

// run lets calls come for a while, so many in a second, at random times.
func (w *workshop) run(perSecond float64, length time.Duration) {
	w.done, w.refused, w.took = 0, 0, 0
	until := w.now + length
	for {
		w.now += time.Duration(w.random.ExpFloat64() / perSecond * float64(time.Second))
		for len(w.endings) > 0 && w.endings[0].ends <= w.now {
			e := heap.Pop(&w.endings).(ending)
			w.limit.Done(epoch().Add(e.ends), e.ends-e.began)
			w.done++
			w.took += e.ends - e.began
		}
		if w.now >= until {
			return
		}
		if !w.limit.Allow() {
			w.refused++
			continue
		}
		first := 0
		for i, at := range w.free {
			if at < w.free[first] {
				first = i
			}
		}
		work := time.Duration((0.5 + w.random.Float64()) * float64(w.work(w.now)))
		w.free[first] = max(w.free[first], w.now) + work
		heap.Push(&w.endings, ending{w.now, w.free[first]})
	}
}

func (w *workshop) average() time.Duration { return w.took / time.Duration(max(w.done, 1)) }

// With 20 places of 10 ms a server does 2,000 calls in a second. Whatever more comes: it
// goes on doing nearly as many, and those take little longer than alone.
func TestAdaptiveLimit_KeepsLatencyAndThroughput(t *testing.T) {
	for _, test := range []struct {
		name      string
		perSecond float64
		least     int
		most      time.Duration
		limit     int
	}{
		{"half of what it can", 1000, 9600, 12 * time.Millisecond, 100},
		{"nearly all it can", 1800, 17_400, 18 * time.Millisecond, 100},
		{"twice", 4000, 18_500, 30 * time.Millisecond, 60},
		{"ten times", 20_000, 18_500, 30 * time.Millisecond, 60},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkshop(1, 20, policy.Adaptive{Enabled: true})
			w.run(1000, 5*time.Second)
			w.run(test.perSecond, 10*time.Second)
			// Longer than the base is believed, so that it was measured in the crowd.
			for range 7 {
				w.run(test.perSecond, 10*time.Second)
				// It does not grow beyond twice what runs: a storm would find the doors open.
				if w.done < test.least || w.average() > test.most || w.limit.Show().Limit > test.limit {
					t.Errorf("after %v: %d calls in 10 s that took %v, want %d and %v; %+v", w.now, w.done, w.average(), test.least, test.most, w.limit.Show())
				}
			}
		})
	}
}

// A server that begins with more than it can do finds the limit all the same.
func TestAdaptiveLimit_BeginsInAStorm(t *testing.T) {
	w := newWorkshop(2, 4, policy.Adaptive{Enabled: true})
	w.run(5000, 30*time.Second)
	w.run(5000, 60*time.Second)
	if state := w.limit.Show(); w.done < 60*400*9/10 || w.average() > 60*time.Millisecond {
		t.Errorf("%d calls in 60 s that took %v, want 21,600 and 60 ms; %+v", w.done, w.average(), state)
	}
}

// What the calls wait for becomes ten times slower, and fast again.
func TestAdaptiveLimit_FollowsWhatCallsTake(t *testing.T) {
	w := newWorkshop(3, 20, policy.Adaptive{Enabled: true})
	w.work = func(at time.Duration) time.Duration {
		if at > 20*time.Second && at < 140*time.Second {
			return 100 * time.Millisecond
		}
		return 10 * time.Millisecond
	}
	w.run(3000, 20*time.Second)
	w.run(3000, 60*time.Second)
	w.run(3000, 60*time.Second)
	if state := w.limit.Show(); w.done < 12_000*85/100 || w.average() > 400*time.Millisecond {
		t.Errorf("slow: %d calls in 60 s that took %v; %+v", w.done, w.average(), state)
	}
	w.run(3000, 10*time.Second)
	w.run(3000, 10*time.Second)
	if state := w.limit.Show(); w.done < 20_000*90/100 || w.average() > 40*time.Millisecond {
		t.Errorf("fast again: %d calls in 10 s that took %v; %+v", w.done, w.average(), state)
	}
	// The first measurement was in a crowd, half of which is one still; the next is not.
	w.run(3000, 60*time.Second)
	w.run(3000, 10*time.Second)
	if state := w.limit.Show(); w.done < 20_000*90/100 || w.average() > 30*time.Millisecond {
		t.Errorf("fast for a while: %d calls in 10 s that took %v; %+v", w.done, w.average(), state)
	}
}

// Where calls do not get in each other's way the limit does not get in theirs.
func TestAdaptiveLimit_GrowsWhereNothingIsShort(t *testing.T) {
	w := newWorkshop(4, 100, policy.Adaptive{Enabled: true})
	w.run(4000, 20*time.Second)
	w.run(4000, 20*time.Second)
	if share := float64(w.refused) / 80_000; share > 0.001 {
		t.Errorf("%.2f %% of the calls were refused; %+v", 100*share, w.limit.Show())
	}
}

func TestAdaptiveLimit_KeepsItsBounds(t *testing.T) {
	for _, test := range []struct {
		config      policy.Adaptive
		least, most int
	}{
		{policy.Adaptive{Enabled: true}, limits.AdaptiveRunningMin, limits.AdaptiveRunningMax},
		{policy.Adaptive{Enabled: true, MinRunning: 8, MaxRunning: 30}, 8, 30},
		{policy.Adaptive{Enabled: true, MaxRunning: 2, MinRunning: 1}, 1, 2},
	} {
		for places, perSecond := range map[int]float64{1: 2000, 50: 20_000} {
			w := newWorkshop(5, places, test.config)
			for range 200 {
				w.run(perSecond, 100*time.Millisecond)
				if state := w.limit.Show(); state.Limit < test.least || state.Limit > test.most || state.Running > max(test.most, limits.AdaptiveCalls) {
					t.Fatalf("%+v has %+v", test.config, state)
				}
			}
		}
	}
}

func TestAdaptiveLimit_IsSwitchedOnAndOff(t *testing.T) {
	a := policy.NewAdaptiveLimit(policy.Adaptive{}, epoch())
	for range 5000 {
		if !a.Allow() {
			t.Fatal("a call was refused while it is off")
		}
	}
	if state := a.Show(); state.Limit != 0 || state.Running != 5000 {
		t.Errorf("off, it shows %+v", state)
	}
	a.Configure(policy.Adaptive{Enabled: true, MaxRunning: 10})
	if a.Allow() {
		t.Error("a call was let run beside 5,000, with 10 at most")
	}
	for range 4991 {
		a.Done(epoch(), 0)
	}
	if !a.Allow() || a.Allow() {
		t.Errorf("ten calls run, or eleven: %+v", a.Show())
	}
	a.Configure(policy.Adaptive{})
	if !a.Allow() {
		t.Error("a call was refused while it is off")
	}
}

// A clock that goes back an hour, or forward, does not stop it from learning.
func TestAdaptiveLimit_StandsClocksThatJump(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		w := newWorkshop(6, 4, policy.Adaptive{Enabled: true})
		w.run(1000, 5*time.Second)
		a := w.limit
		before := a.Show()
		now := epoch().Add(w.now + jump)
		for range 100 {
			now = now.Add(limits.AdaptiveInterval)
			for range before.Limit * 2 {
				if !a.Allow() {
					break
				}
			}
			for range max(a.Show().Running, limits.AdaptiveCalls) {
				if a.Show().Running > 0 {
					a.Done(now, time.Second)
				} else if a.Allow() {
					a.Done(now, time.Second)
				}
			}
		}
		if state := a.Show(); state.Lately.Round(time.Millisecond) != time.Second {
			t.Errorf("after %v calls take %v, want 1s; before it was %+v", jump, state.Lately, before)
		}
	}
}

func TestAdaptiveLimit_IsSharedByGoroutines(t *testing.T) {
	a := policy.NewAdaptiveLimit(policy.Adaptive{Enabled: true}, epoch())
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i := range 5000 {
				if a.Allow() {
					a.Done(epoch().Add(time.Duration(i)*time.Millisecond), time.Millisecond)
				}
				if i%100 == 0 {
					a.Show()
				}
			}
		})
	}
	wait.Wait()
	if state := a.Show(); state.Running != 0 || state.Undisturbed.Round(time.Microsecond) != time.Millisecond {
		t.Errorf("it shows %+v", state)
	}
}
