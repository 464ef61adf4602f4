package cluster

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Balancer chooses the instance that a call goes to: of two that are drawn at
// random, the one with fewer calls in flight. Instances that refuse connections
// are ejected: left alone for a pause that doubles with every failure, after
// which one call tries whether they are back. If all are ejected, the one whose
// pause ends first is chosen: a call that may fail is better than one that must.
//
// Instances are known by their place in the list. Safe for concurrent use.
type Balancer struct {
	random func(n int) int
	// calls are those in flight at each instance.
	calls []atomic.Int64
	view  atomic.Pointer[view]

	// mu guards ejections, and who replaces view.
	mu        sync.Mutex
	ejections []ejection
}

// NewBalancer returns a Balancer of n instances, at least one. random returns a
// number from 0 to below its argument, and must be safe for concurrent use; nil
// means the generator of package math/rand/v2.
func NewBalancer(n int, random func(n int) int) *Balancer {
	if random == nil {
		random = rand.IntN
	}
	b := &Balancer{random: random, calls: make([]atomic.Int64, n), ejections: make([]ejection, n)}
	b.view.Store(newView(b.ejections))
	return b
}

// Choice is the instance that a call goes to.
type Choice struct {
	// Index is its place in the list.
	Index int
	// trial: it was ejected when it was chosen.
	trial bool
}

// Outcome is what a call has shown of its instance.
type Outcome uint8

// The outcomes.
const (
	// Unknown: nothing, for example because the caller gave up before there was
	// a connection.
	Unknown Outcome = iota
	// Reached: there was a connection, whatever became of the call.
	Reached
	// Refused: no connection could be opened.
	Refused
)

// Pick chooses an instance for a call at now. Done must follow.
func (b *Balancer) Pick(now time.Time) Choice {
	seen := b.view.Load()
	if seen.calm(now) {
		return b.begin(lessBusy(seen.ready, b.inFlight, b.random), false)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	index := nextDue(b.ejections, now)
	ready := b.view.Load().ready
	switch {
	case index >= 0:
		return b.tryLocked(index)
	case len(ready) > 0:
		return b.begin(lessBusy(ready, b.inFlight, b.random), false)
	}
	return b.tryLocked(lastResort(b.ejections, -1))
}

// PickOther chooses an instance other than that of a choice, for the second
// attempt of a call, which prefers instances that are not ejected. ok is false
// if there is only one instance. Done must follow if it is true.
func (b *Balancer) PickOther(than Choice) (other Choice, ok bool) {
	if len(b.calls) < 2 {
		return Choice{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ready := slices.DeleteFunc(slices.Clone(b.view.Load().ready), func(i int) bool { return i == than.Index })
	if len(ready) > 0 {
		return b.begin(lessBusy(ready, b.inFlight, b.random), false), true
	}
	return b.tryLocked(lastResort(b.ejections, than.Index)), true
}

// Done ends what Pick or PickOther began.
func (b *Balancer) Done(choice Choice, outcome Outcome, now time.Time) {
	b.calls[choice.Index].Add(-1)
	// A call that was sent before its instance was ejected proves nothing: a
	// server that stops answers what it has, and accepts no connections.
	if outcome != Refused && !choice.trial {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &b.ejections[choice.Index]
	if choice.trial {
		e.trials--
	}
	switch outcome {
	case Refused:
		*e = e.refused(now)
	case Reached:
		*e = e.reached()
	}
	b.view.Store(newView(b.ejections))
}

// Ejected returns how many instances are ejected.
func (b *Balancer) Ejected() int { return len(b.calls) - len(b.view.Load().ready) }

func (b *Balancer) tryLocked(index int) Choice {
	b.ejections[index].trials++
	b.view.Store(newView(b.ejections))
	return b.begin(index, true)
}

func (b *Balancer) begin(index int, trial bool) Choice {
	b.calls[index].Add(1)
	return Choice{Index: index, trial: trial}
}

func (b *Balancer) inFlight(index int) int64 { return b.calls[index].Load() }

// lessBusy draws two of the instances and returns the one with fewer calls.
func lessBusy(instances []int, calls func(index int) int64, random func(n int) int) int {
	if len(instances) == 1 {
		return instances[0]
	}
	first, second := random(len(instances)), random(len(instances)-1)
	if second >= first {
		second++ // Two different ones, each pair as likely as the others.
	}
	if calls(instances[second]) < calls(instances[first]) {
		return instances[second]
	}
	return instances[first]
}
