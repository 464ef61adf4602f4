package cluster

import (
	"math"
	"slices"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// The names are for other files of this package.
const (
	weightDefault   = limits.InstanceWeight
	weightMax       = limits.InstanceWeightMax
	latencyHalfLife = limits.LatencyHalfLife
)

// rules is an Ejection with its defaults.
type rules struct {
	// failurePercent and maxPercent are above 100 where they are off.
	failurePercent, maxPercent int64
	minCalls                   int64
	consecutive                int32
	part                       int64
	pauseMin, pauseMax         time.Duration
}

func (e Ejection) rules() rules {
	window := limits.Or(e.Window, limits.EjectWindow, math.MaxInt64)
	r := rules{
		failurePercent: int64(limits.Or(e.FailurePercent, limits.EjectFailurePercent, 101)),
		maxPercent:     int64(limits.Or(e.MaxEjectedPercent, limits.EjectMaxPercent, 101)),
		minCalls:       int64(limits.Or(e.MinCalls, limits.EjectMinCalls, 1)),
		consecutive:    int32(min(limits.Or(e.Consecutive, limits.EjectConsecutive, math.MaxInt32), math.MaxInt32)),
		part:           max(int64(window)/windowParts, 1),
		// Without a pause the next call is a trial.
		pauseMin: limits.Or(e.PauseMin, limits.EjectPauseMin, 1),
		pauseMax: limits.Or(e.PauseMax, limits.EjectPauseMax, math.MaxInt64/4),
	}
	r.pauseMax = max(r.pauseMax, r.pauseMin)
	return r
}

// fault is why an instance is ejected.
type fault uint8

const (
	// refusing: no connection can be opened. It is certain, and the same for every call.
	refusing fault = iota
	// failing: too many of its calls fail, which may be somebody else's fault.
	failing
)

// ejection is whether an instance is left alone, and until when. The zero value
// is an instance that is not.
type ejection struct {
	// pause is how long, 0 if the instance is not ejected, and until when that
	// ends.
	pause time.Duration
	until int64
	fault fault
	// trials counts the calls that are finding out whether it is back, and tried is when the
	// last of them began.
	trials int
	tried  int64
	// round is how often it came back: who was sent to try it in an earlier round says nothing
	// of this one.
	round uint32
}

func (e ejection) ejected() bool { return e.pause > 0 }

// due returns when the next call may find out whether the instance is back: one at a time,
// but one that takes long, as the call of somebody who waits for news does, keeps others from
// it no longer than limits.EjectTrialTime.
func (e ejection) due() int64 {
	if e.trials == 0 {
		return e.until
	}
	return max(e.until, e.tried+int64(limits.EjectTrialTime))
}

// failed returns what follows when the instance has refused a connection, or a call has
// failed that ejects it. The pause doubles only if the one before has ended: many calls
// can fail at once, and while all instances are ejected they are tried in spite of their
// pauses.
func (e ejection) failed(why fault, at int64, r *rules) ejection {
	switch {
	case !e.ejected():
		e.pause = r.pauseMin
	case at >= e.until:
		e.pause = min(2*e.pause, r.pauseMax)
	}
	e.fault = why
	e.until = at + int64(e.pause)
	return e
}

// reached returns what follows when a trial has shown that the instance is back.
func (e ejection) reached() ejection { return ejection{round: e.round + 1} }

// undecided returns what follows when a trial has shown nothing, because its call was given
// up: another one comes after the shortest pause, and not with the next call, which would have
// as little to show where the instance hangs and callers do not wait.
func (e ejection) undecided(at int64, r *rules) ejection {
	e.until = at + int64(r.pauseMin)
	return e
}

// nextDue returns the ejected member that is due first at a time; nil if none is.
func nextDue(ejected []*Member, at int64) (found *Member) {
	for _, m := range ejected {
		due := m.ejection.due()
		if due <= at && (found == nil || due < found.ejection.due()) {
			found = m
		}
	}
	return found
}

// lastResort returns the ejected member that was not tried yet whose pause ends
// first, of those that the fewest calls are trying: that may be one that does
// not answer at all, and then the others should have their turn. It returns nil
// if there is none.
func lastResort(ejected, tried []*Member) (found *Member) {
	for _, m := range ejected {
		e := &m.ejection
		if slices.Contains(tried, m) {
			continue
		}
		if found == nil || e.trials < found.ejection.trials ||
			e.trials == found.ejection.trials && e.until < found.ejection.until {
			found = m
		}
	}
	return found
}

// firstDue returns when the next of the ejected members is to be tried.
func firstDue(ejected []*Member) int64 {
	due := int64(math.MaxInt64)
	for _, m := range ejected {
		due = min(due, m.ejection.due())
	}
	return due
}
