package cluster

import (
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// ejection is whether an instance is left alone, and until when. The zero value
// is an instance that is not.
type ejection struct {
	// pause is how long, 0 if the instance is not ejected, and until when that
	// ends.
	pause time.Duration
	until time.Time
	// trials counts the calls that are finding out whether it is back.
	trials int
}

func (e ejection) ejected() bool { return e.pause > 0 }

// refused returns what follows when the instance has refused a connection. The
// pause doubles only if the one before has ended: many calls can fail at once,
// and while all instances are ejected they are tried in spite of their pauses.
func (e ejection) refused(now time.Time) ejection {
	switch {
	case !e.ejected():
		e.pause = limits.EjectPauseMin
	case !now.Before(e.until):
		e.pause = min(2*e.pause, limits.EjectPauseMax)
	}
	e.until = now.Add(e.pause)
	return e
}

// reached returns what follows when a trial has got a connection.
func (e ejection) reached() ejection { return ejection{trials: e.trials} }

// nextDue returns the ejected instance whose pause has ended first by now, of
// those that no call is trying; -1 if there is none.
func nextDue(ejections []ejection, now time.Time) int {
	found := -1
	for i, e := range ejections {
		if !e.ejected() || e.trials > 0 || now.Before(e.until) {
			continue
		}
		if found < 0 || e.until.Before(ejections[found].until) {
			found = i
		}
	}
	return found
}

// lastResort returns the ejected instance other than but whose pause ends
// first, of those that the fewest calls are trying: that may be one that does
// not answer at all, and then the others should have their turn. It returns -1
// if none is ejected.
func lastResort(ejections []ejection, but int) int {
	found := -1
	for i, e := range ejections {
		if !e.ejected() || i == but {
			continue
		}
		if found < 0 || e.trials < ejections[found].trials ||
			e.trials == ejections[found].trials && e.until.Before(ejections[found].until) {
			found = i
		}
	}
	return found
}

// view is what Pick needs to know of the ejections. It never changes.
type view struct {
	// ready are the instances that are not ejected, due is when the next one is
	// to be tried; zero if none is.
	ready []int
	due   time.Time
}

func newView(ejections []ejection) *view {
	v := &view{ready: make([]int, 0, len(ejections))}
	for i, e := range ejections {
		switch {
		case !e.ejected():
			v.ready = append(v.ready, i)
		case e.trials == 0 && (v.due.IsZero() || e.until.Before(v.due)):
			v.due = e.until
		}
	}
	return v
}

// calm reports whether a call can simply go to one of those that are ready.
func (v *view) calm(now time.Time) bool {
	return len(v.ready) > 0 && (v.due.IsZero() || now.Before(v.due))
}
