package policy

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// AdaptiveLimit is the state of Adaptive. It compares how long calls take lately with how
// long they take undisturbed, the base: while it is less than half as long again
// (AdaptiveTolerancePercent) there may be more of them, by the root of how many there may
// be; beyond that there may be fewer, in the same proportion. Only while half of what may
// run does run: else it is not their number that makes calls slow.
//
// The base is the least that an interval (AdaptiveInterval) took on average. When it is
// 30 s (AdaptiveBaseAge) old, and calls could not be slow because of their number, what
// they take is the new one. If they could, half of them are let run for 300 ms
// (AdaptiveBaseTime), or three times what they take, to find out, as congestion control in networks does (BBR): an average
// over a long time would drift to what an overload makes of it, and the limit with it.
//
// A queue in which a call waits as long as it takes is what all this comes to. It is not
// for calls that take processors: a server notices by itself that those are busy, and
// before latencies show it.
//
// Streams ask for a place when they begin, and give it back at once. How long one is open is
// no latency, so nothing could be learned from it, and places that streams hold for hours
// would leave none for the calls by which the limit changes: 24 (AdaptiveCalls) idle ones
// refused everybody for good. That they begin is work like a call, and is refused like one
// while there is no room. What those that are open ask of others is not lost: it makes calls
// slower, and so the limit less. Limiter bounds how many are open.
//
// Safe for concurrent use, and without a lock but once in an interval.
type AdaptiveLimit struct {
	base   time.Time
	config atomic.Pointer[adaptiveBounds]
	// calls are those that run, limit how many may.
	calls, limit atomic.Int64
	refused      atomic.Uint64

	// Of the interval: what calls took together and how many they were, in one word so
	// that they fit together, whether half of the limit ran, and when it ends at the
	// earliest.
	ended atomic.Uint64
	busy  atomic.Bool
	until atomic.Int64

	mu sync.Mutex
	// exact is the limit before it is rounded.
	exact float64
	// undisturbed is the base in seconds, 0 if it is not known, and measured when it was
	// seen last.
	undisturbed float64
	measured    time.Duration
	lately      float64
	// measuring: half of the calls run until measuredAt to find the base out, of those
	// that end from measuredFrom on.
	measuring                bool
	measuredFrom, measuredAt time.Duration
}

// The word has 20 bits for calls, and for their time 44 of 128 ns each, which are 26 days. A
// call counts as a minute at most: with more the limit is lost anyway.
const (
	endedBits = 20
	endedMask = 1<<endedBits - 1
	endedUnit = 128 * time.Nanosecond
	endedMost = time.Minute
)

// adaptiveBounds are those of an Adaptive that is enabled, with its defaults.
type adaptiveBounds struct{ least, most float64 }

func (a Adaptive) bounds() (least, most int) {
	return limits.Or(a.MinRunning, limits.AdaptiveRunningMin, 1), limits.Or(a.MaxRunning, limits.AdaptiveRunningMax, limits.PolicyCountMax)
}

// NewAdaptiveLimit returns an AdaptiveLimit that knows nothing at now. It begins with
// 24 (AdaptiveCalls) calls, or the nearest that its bounds allow.
func NewAdaptiveLimit(config Adaptive, now time.Time) *AdaptiveLimit {
	a := &AdaptiveLimit{base: now, exact: limits.AdaptiveCalls}
	a.Configure(config)
	return a
}

// Configure changes the bounds from now on, and switches it on or off. What it has found
// out stays.
func (a *AdaptiveLimit) Configure(config Adaptive) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !config.Enabled {
		a.config.Store(nil)
		return
	}
	least, most := config.bounds()
	bounds := &adaptiveBounds{float64(least), float64(max(least, most))}
	a.set(a.exact, bounds)
	a.config.Store(bounds)
}

// set changes the limit. While the base is measured half of it counts.
func (a *AdaptiveLimit) set(exact float64, bounds *adaptiveBounds) {
	a.exact = min(max(exact, bounds.least), bounds.most)
	limit := a.exact
	if a.measuring {
		limit = max(limit/2, bounds.least)
	}
	a.limit.Store(int64(math.Round(limit)))
}

// Allow reports whether one more call may run, and counts it. Done must follow if it may, of
// a stream at once.
func (a *AdaptiveLimit) Allow() bool {
	if a.config.Load() == nil {
		a.calls.Add(1)
		return true
	}
	for {
		calls, limit := a.calls.Load(), a.limit.Load()
		if calls >= limit {
			a.refused.Add(1)
			return false
		}
		if a.calls.CompareAndSwap(calls, calls+1) {
			if 2*(calls+1) >= limit && !a.busy.Load() {
				a.busy.Store(true)
			}
			return true
		}
	}
}

// Done ends a call that was allowed, at now, and says how long it took. A call whose time
// says nothing about others, because it failed before anything was done or is a stream that
// begins, says 0.
func (a *AdaptiveLimit) Done(now time.Time, took time.Duration) {
	a.calls.Add(-1)
	config := a.config.Load()
	if config == nil || took <= 0 {
		return
	}
	ended := a.ended.Add(uint64(min(took, endedMost)/endedUnit)<<endedBits + 1)
	passed := now.Sub(a.base)
	if ended&endedMask < limits.AdaptiveCalls || int64(passed) < a.until.Load() && !a.setBack(passed) {
		return
	}
	if !a.mu.TryLock() {
		return // Somebody else is about to look.
	}
	defer a.mu.Unlock()
	if config = a.config.Load(); config != nil {
		a.judge(config, passed)
	}
}

// setBack reports whether the interval ends later than it can.
func (a *AdaptiveLimit) setBack(passed time.Duration) bool {
	return int64(passed+limits.AdaptiveInterval+limits.ClockSlack) < a.until.Load()
}

// judge looks at an interval that is over.
func (a *AdaptiveLimit) judge(bounds *adaptiveBounds, passed time.Duration) {
	ended, busy := a.ended.Swap(0), a.busy.Swap(false)
	a.until.Store(int64(passed + limits.AdaptiveInterval))
	calls := ended & endedMask
	if calls == 0 {
		return
	}
	a.lately = max(float64(ended>>endedBits), 1) * endedUnit.Seconds() / float64(calls)
	if passed < a.measured-limits.ClockSlack {
		a.measured, a.measuring = passed, false // The clock was set back.
	}
	switch {
	case a.measuring:
		if passed < a.measuredFrom {
			return // These calls began in the crowd.
		}
		a.remember(passed)
		if a.measuring = passed < a.measuredAt; !a.measuring {
			a.set(a.exact, bounds)
		}
		return
	case a.undisturbed == 0 || a.lately <= a.undisturbed:
		a.remember(passed)
	case passed-a.measured < limits.AdaptiveBaseAge:
	case !busy:
		a.remember(passed)
	default:
		a.measuring, a.undisturbed = true, 0
		// What is in the crowd has to end first, which takes longer than the average.
		a.measuredFrom = passed + max(limits.AdaptiveBaseTime/2, 2*seconds(a.lately))
		a.measuredAt = a.measuredFrom + max(limits.AdaptiveBaseTime/2, seconds(a.lately))
		a.set(a.exact, bounds)
		return
	}
	if busy {
		a.set(a.better(), bounds)
	}
}

// remember makes what calls take lately the base, or the lesser of both while it is
// measured.
func (a *AdaptiveLimit) remember(passed time.Duration) {
	if !a.measuring || a.undisturbed == 0 || a.lately < a.undisturbed {
		a.undisturbed = a.lately
	}
	a.measured = passed
}

// better returns the limit that comes after an interval. It goes a fifth of the way: calls
// that end now began under the limit before, and what they took comes late.
func (a *AdaptiveLimit) better() float64 {
	const (
		step  = 0.2
		least = 0.5
	)
	share := limits.AdaptiveTolerancePercent / 100.0 * a.undisturbed / a.lately
	aim := a.exact*min(max(share, least), 1) + math.Sqrt(a.exact)
	return a.exact + step*(aim-a.exact)
}

// AdaptiveState is what an AdaptiveLimit shows of itself.
type AdaptiveState struct {
	// Running is how many calls run, without streams, and Limit how many may; 0 is any
	// number.
	Running, Limit int
	// Refused is how many were refused so far.
	Refused uint64
	// Undisturbed is how long calls take when they are not in each other's way, and Lately
	// how long they took in the last interval; 0 if that is not known.
	Undisturbed, Lately time.Duration
	// Measuring: fewer calls run than may, to find Undisturbed out.
	Measuring bool
}

// Show returns its state.
func (a *AdaptiveLimit) Show() AdaptiveState {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := AdaptiveState{
		Running:     int(a.calls.Load()),
		Refused:     a.refused.Load(),
		Undisturbed: seconds(a.undisturbed),
		Lately:      seconds(a.lately),
		Measuring:   a.measuring,
	}
	if a.config.Load() != nil {
		state.Limit = int(a.limit.Load())
	}
	return state
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
