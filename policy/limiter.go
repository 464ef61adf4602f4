package policy

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Limiter is the state of a Limit. Safe for concurrent use, without a lock.
type Limiter struct {
	rate    rate
	running running
	refused atomic.Uint64
	limit   atomic.Pointer[Limit]
}

// Refusal is why a call is refused before anything is done for it.
type Refusal uint8

// The refusals.
const (
	// NotRefused: the call may go on.
	NotRefused Refusal = iota
	// RefusedByRate: as many have begun as may.
	RefusedByRate
	// RefusedByRunning: as many run as may.
	RefusedByRunning
	// RefusedByAdaptive: more would make all of them slower.
	RefusedByAdaptive
	// RefusedByMethodBreaker and RefusedByTargetBreaker: too many calls of the method, or
	// to the target, fail.
	RefusedByMethodBreaker
	RefusedByTargetBreaker
	// RefusedByLoad: the server has no room for it, whatever its policy.
	RefusedByLoad
)

// String says it in words.
func (r Refusal) String() string {
	switch r {
	case NotRefused:
		return "not refused"
	case RefusedByRate:
		return "too many in a second"
	case RefusedByRunning:
		return "too many at once"
	case RefusedByAdaptive:
		return "too many for their latency"
	case RefusedByMethodBreaker:
		return "too many of the method fail"
	case RefusedByTargetBreaker:
		return "too many to the target fail"
	case RefusedByLoad:
		return "too much to do"
	}
	return fmt.Sprintf("refusal %d", uint8(r))
}

// NewLimiter returns a Limiter that nothing was taken of.
func NewLimiter(limit Limit, now time.Time) *Limiter {
	l := &Limiter{}
	l.limit.Store(&limit)
	l.rate.begin(limit, now)
	l.running.configure(limit.Running)
	return l
}

// Configure changes the limit from now on. What runs and has begun counts.
func (l *Limiter) Configure(limit Limit, now time.Time) {
	l.limit.Store(&limit)
	l.rate.configure(limit, now)
	l.running.configure(limit.Running)
}

// Limit returns what it was configured with last.
func (l *Limiter) Limit() Limit { return *l.limit.Load() }

// Allow reports whether a call may begin at now. If it may, which is NotRefused, Done must
// follow. If too many have begun, wait is how long until one may.
func (l *Limiter) Allow(now time.Time) (refusal Refusal, wait time.Duration) {
	if !l.running.allow() {
		l.refused.Add(1)
		return RefusedByRunning, 0
	}
	allowed, wait := l.rate.allow(now)
	if !allowed {
		l.running.done()
		l.refused.Add(1)
		return RefusedByRate, wait
	}
	return NotRefused, 0
}

// Done ends a call that was allowed.
func (l *Limiter) Done() { l.running.done() }

// LimiterState is what a Limiter shows of itself, and Callers of one caller.
type LimiterState struct {
	// Caller is the first 64 B (CallerNameBytes) of a caller's name.
	Caller string
	// Running is how many calls run.
	Running int
	// Left is how many could begin at once by PerSecond and Burst; -1 is any number.
	Left int
	// Refused is how many were refused so far.
	Refused uint64
}

// Show returns its state at now.
func (l *Limiter) Show(now time.Time) LimiterState {
	return LimiterState{Running: int(l.running.calls.Load()), Left: l.rate.left(now), Refused: l.refused.Load()}
}
