package fulmar

import (
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// pressure says how many calls of a server should run at a time when nobody has said
// it. What is known of a call is when it had arrived and when it began; the time between
// is spent in queues of the runtime, and in those only if processors are taken: handlers
// that wait, however many, keep nobody waiting.
//
//	calm -- most calls of an interval began late, and not few --> limited, half of those in progress
//	limited -- most calls began late ---------------------------> half as many, one for each processor at least
//	limited -- they did not, and calls waited to run ------------> twice as many
//	limited -- no call waited in a whole interval ---------------> calm
//
// It begins with half because processors may be taken and handlers wait all the same: one
// for each processor would stop a thousand calls that wait for others. Of calls that only
// compute too many run for a second at most, which halving takes.
//
// While it is limited only calls that run count, those that waited from when they got their
// place: refusals are quick, and a goroutine that has just been made runs before those that
// have waited for the processor. With both counted the limit went up to 256 with one
// processor and handlers that computed for 1 ms, at twice the load that it could carry, and
// a quarter of what it could do was lost. Those that have a place and do not run yet count
// as late: of handlers that compute for long hardly one begins in an interval.
//
// A pause of the process, or one long handler, makes calls late that had arrived by
// then, and not most of an interval. Time is an argument, so it can be told. One
// goroutine at a time; but watching and limited may be read by any.
type pressure struct {
	processors int
	// watching: intervals are counted. limited: limit counts.
	watching, limited atomic.Bool
	limit             int

	// start is when the interval began, calls and late how many began in it. queued: one
	// had to wait.
	start       time.Time
	calls, late int
	queued      bool
	// starting is how many calls have got a place and do not run yet.
	starting int
}

// isLate reports whether a call that could have begun then begins late.
func isLate(then, now time.Time) bool { return now.Sub(then) >= limits.LateCall }

// comes notes a call, while so many are in progress. It counts unless it may have to wait.
func (p *pressure) comes(late bool, now time.Time, inProgress int) {
	if p.watching.Load() && now.Sub(p.start) >= limits.LateInterval {
		p.judge(now, inProgress)
	}
	if p.limited.Load() {
		return
	}
	if !p.watching.Load() {
		if !late {
			return
		}
		p.newInterval(now)
	}
	p.runs(late)
}

// runs counts a call that begins to run.
func (p *pressure) runs(late bool) {
	p.calls++
	if late {
		p.late++
	}
}

// rests notes what time it is while no call begins.
func (p *pressure) rests(now time.Time) {
	if p.watching.Load() && now.Sub(p.start) >= 2*limits.LateInterval {
		p.judge(now, 0)
	}
}

// judge looks at an interval that is over.
func (p *pressure) judge(now time.Time, inProgress int) {
	limited := p.limited.Load()
	calls, lates, least := p.calls+p.starting, p.late+p.starting, limits.LateCallsMin
	if limited {
		least = min(least, max(p.limit-1, 1))
	}
	late := lates >= least && lates*100 >= calls*limits.LatePercent
	if !limited && now.Sub(p.start) >= 2*limits.LateInterval {
		late = false // hardly any calls came: that is no queue
	}
	switch {
	case late && limited:
		p.limit = max(p.limit/2, p.processors)
	case late:
		p.limit = max(inProgress/2, p.processors)
		p.limited.Store(true)
	case limited && p.queued:
		p.limit = min(2*p.limit, limits.ServerCalls)
	default:
		p.limited.Store(false)
		p.watching.Store(false)
		return
	}
	p.newInterval(now)
}

func (p *pressure) newInterval(now time.Time) {
	p.start, p.calls, p.late, p.queued = now, 0, 0, false
	p.watching.Store(true)
}
