package cluster

import (
	"sync/atomic"
	"time"
)

// Member is an instance that a Balancer knows: the same one for as long as lists have its
// address, whatever else they say of it. Safe for concurrent use.
type Member struct {
	instance atomic.Pointer[Instance]
	value    atomic.Pointer[any]
	// hash is that of its address, rank what makes the subsets of clients differ.
	hash, rank uint64

	// calls are those in flight.
	calls   atomic.Int64
	latency latency
	window  window
	// failures are those since the last call that did not fail.
	failures atomic.Int32
	// acquitted is how many calls must fail before its share is compared with that of the
	// others again.
	acquitted atomic.Int64
	// resting: it gets no calls, because it is ejected. suspect: it is ejected for failing,
	// and may get calls all the same because too many are. weight is what it has now. They
	// are here, and not only in the view, for the ring, which does not change with them.
	resting, suspect atomic.Bool
	weight           atomic.Int64
	// gone: the last list does not have it. It is written under the lock of the Balancer.
	gone atomic.Bool

	// What follows is guarded by the lock of the Balancer.

	ejection ejection
	// since is when it came, -1 if it was there from the beginning.
	since int64
}

// Instance returns what the last list says of it. Its tags must not be changed.
func (m *Member) Instance() Instance { return *m.instance.Load() }

// Address returns where it is.
func (m *Member) Address() string { return m.instance.Load().Address }

// InFlight returns how many calls are in progress there.
func (m *Member) InFlight() int { return int(m.calls.Load()) }

// Ejected reports whether it is left alone now.
func (m *Member) Ejected() bool { return m.resting.Load() }

// Gone reports whether the last list does not have it any more.
func (m *Member) Gone() bool { return m.gone.Load() }

// Value returns what SetValue has put there; nil before that. It is for whoever has the
// connections.
func (m *Member) Value() any {
	if value := m.value.Load(); value != nil {
		return *value
	}
	return nil
}

// SetValue puts a value there.
func (m *Member) SetValue(value any) { m.value.Store(&value) }

// Weights have room below 1 for instances that start slowly.
const weightScale = 256

// weightNow returns its weight, scaled, at a time. A negative weight is none.
func (m *Member) weightNow(at int64, slowStart time.Duration) int64 {
	weight := int64(m.Instance().Weight)
	switch {
	case weight < 0:
		return 0
	case weight == 0:
		weight = weightDefault
	}
	weight = min(weight, weightMax) * weightScale
	if m.starting(at, slowStart) {
		// A tenth at first: with nothing it would never show how it does.
		done := max(float64(at-m.since)/float64(slowStart), 0.1)
		weight = max(int64(float64(weight)*done), 1)
	}
	return weight
}

// starting reports whether it does not have all of its weight yet.
func (m *Member) starting(at int64, slowStart time.Duration) bool {
	return m.since >= 0 && slowStart > 0 && at-m.since < int64(slowStart)
}

// latency is how long calls took lately, and when the last one ended, in one word so that
// they fit together and one store writes both. Of two calls that end at once one may be
// lost, which no average notices.
type latency struct{ word atomic.Uint64 }

// The upper half of the word is in units of 64 ns, up to 275 s, the lower one in units of
// 17 ms, which it counts for two years.
const (
	latencyShift = 6
	momentShift  = 24
)

// add counts a call. The average rises by a quarter of the difference and falls by an
// eighth: slowness is believed faster than its end. What is older than latencyHalfLife
// counts for nothing beside a call of now.
func (l *latency) add(took time.Duration, at int64) {
	sample := sampleOf(took)
	word := l.word.Load()
	average := word >> 32
	switch {
	case average == 0 || halvings(word, at) > 0:
		average = sample
	case sample > average:
		average += (sample - average + 3) / 4
	default:
		average -= (average - sample) / 8
	}
	l.word.Store(average<<32 | uint64(uint32(at>>momentShift)))
}

// restart forgets all but a call.
func (l *latency) restart(took time.Duration, at int64) {
	l.word.Store(sampleOf(took)<<32 | uint64(uint32(at>>momentShift)))
}

func sampleOf(took time.Duration) uint64 {
	return max(min(uint64(took)>>latencyShift, 1<<32-1), 1)
}

// slower reports whether a call has taken longer than was ever known to be usual.
func (l *latency) slower(took time.Duration) bool {
	usual := int64(l.word.Load() >> 32 << latencyShift)
	return usual > 0 && int64(took) > usual
}

// expected returns how long a call will take, in nanoseconds; 0 if nothing is known. What
// is known halves every latencyHalfLife in which no call ends: else an instance that was
// slow once would get no call that shows what it is like now.
func (l *latency) expected(at int64) int64 {
	word := l.word.Load()
	return int64(word>>32<<latencyShift) >> halvings(word, at)
}

// halvings returns how often what a word says has halved.
func halvings(word uint64, at int64) int64 {
	age := max(int32(uint32(at>>momentShift)-uint32(word)), 0)
	return min(int64(age)/(int64(latencyHalfLife)>>momentShift), 62)
}

// windowParts is into how many parts a window is divided: what happened longer ago is
// forgotten a part at a time.
const windowParts = 8

// window counts calls and failures of the last windowParts parts of time. A word has 16
// bits of the number of its part, 24 of failures and 24 of calls, so that counting a call
// is one addition. An addition may come just when the word goes over to another part, and
// is counted there.
type window [windowParts]atomic.Uint64

const (
	windowTagShift     = 48
	windowFailureShift = 24
	windowCountMax     = 1<<23 - 1
)

// add counts a call in a part.
func (w *window) add(part int64, failed bool) {
	word, tag, one := &w[part%windowParts], uint64(part)&0xffff, uint64(1)
	if failed {
		one |= 1 << windowFailureShift
	}
	old := word.Load()
	if old>>windowTagShift != tag {
		if word.CompareAndSwap(old, tag<<windowTagShift|one) {
			return
		}
		old = word.Load()
	}
	if old&(1<<windowFailureShift-1) < windowCountMax {
		word.Add(one)
	}
}

// sum returns what was counted in the parts up to this one.
func (w *window) sum(part int64) (calls, failures int64) {
	for i := range w {
		word := w[i].Load()
		if (uint64(part)-word>>windowTagShift)&0xffff < windowParts {
			calls += int64(word & (1<<windowFailureShift - 1))
			failures += int64(word >> windowFailureShift & (1<<windowFailureShift - 1))
		}
	}
	return calls, failures
}

// reset forgets everything.
func (w *window) reset() {
	for i := range w {
		w[i].Store(0)
	}
}
