package transport

import "time"

// arrivals remembers when bytes came that wait in the reader because their connection
// is blocked, while others come behind them. The zero value is empty. One goroutine at a
// time.
type arrivals struct {
	// marks are made when they are needed: a peer that answers in order rarely sends
	// the next call before it has the answer.
	marks []arrival
}

// arrival says that the unread bytes up to end had come at that time.
type arrival struct {
	end int
	at  time.Time
}

// arrivalMarks bounds them. Beyond it bytes count as younger than they are: a call that
// has expired may run, but none is refused that has not.
const arrivalMarks = 16

// note says that unread bytes wait, the last of which came at that time.
func (a *arrivals) note(unread int, at time.Time) {
	last := len(a.marks) - 1
	switch {
	case unread == 0 || last >= 0 && a.marks[last].end >= unread:
	case last+1 >= arrivalMarks:
		a.marks[last] = arrival{unread, at}
	default:
		a.marks = append(a.marks, arrival{unread, at})
	}
}

// take says that used bytes are unread no more, and returns when the last of them came:
// at latest, when the last of all came. behind says that they were noted.
func (a *arrivals) take(used int, latest time.Time) (at time.Time, behind bool) {
	at, kept := latest, 0
	for _, mark := range a.marks {
		if !behind && mark.end >= used {
			at, behind = mark.at, true
		}
		if mark.end > used {
			a.marks[kept] = arrival{mark.end - used, mark.at}
			kept++
		}
	}
	if a.marks = a.marks[:kept]; kept == 0 {
		a.marks = nil // most connections never need them again
	}
	return at, behind
}
