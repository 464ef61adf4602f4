package ledger

import (
	"fmt"
	"time"
)

// Verdict is what the books and the journals say together.
type Verdict struct {
	Calls, Succeeded, NotExecuted, Maybe, Executed int

	// Unfinished calls have no outcome. Crossed ones got a reply of another call.
	Unfinished, Crossed int
	// Lost calls succeeded, or are said to have run, and never ran. Ghosts ran,
	// and are said not to have. Repeated ones ran more than once and must not.
	// Unknown ones ran, and nobody made them.
	Lost, Ghosts, Repeated, Unknown int
	// Late calls ended after their deadline and the patience of the judge.
	Late int
	// Worst is an example.
	Worst string
}

// Failed is how many calls did not succeed.
func (v Verdict) Failed() int { return v.Calls - v.Succeeded }

// Broken is how many times a promise was broken.
func (v Verdict) Broken() int {
	return v.Unfinished + v.Crossed + v.Lost + v.Ghosts + v.Repeated + v.Unknown + v.Late
}

// String tells the promises that were broken.
func (v Verdict) String() string {
	if v.Broken() == 0 {
		return "ledger clean"
	}
	return fmt.Sprintf("ledger: unfinished %d crossed %d lost %d ghosts %d repeated %d unknown %d late %d, such as %s",
		v.Unfinished, v.Crossed, v.Lost, v.Ghosts, v.Repeated, v.Unknown, v.Late, v.Worst)
}

// Judge compares what callers were told with what ran. A call may end so much
// later than its deadline as patience says; 0 is as late as it likes. Without
// executions only the callers' side is judged.
func Judge(books []*Book, executions *Executions, patience time.Duration) Verdict {
	var v Verdict
	known := map[uint64]bool{}
	for _, book := range books {
		for i := range book.calls {
			call := &book.calls[i]
			known[call.ID] = true
			v.call(call, patience)
			if executions != nil {
				v.compare(call, executions.Times[call.ID])
			}
		}
	}
	if executions != nil {
		for id, times := range executions.Times {
			if !known[id] {
				v.broken(&v.Unknown, "call %x ran %d times and was never made", id, times)
			}
		}
	}
	return v
}

func (v *Verdict) broken(count *int, format string, arguments ...any) {
	*count++
	if v.Worst == "" {
		v.Worst = fmt.Sprintf(format, arguments...)
	}
}

// call judges what a caller saw.
func (v *Verdict) call(call *Call, patience time.Duration) {
	v.Calls++
	switch call.Outcome {
	case None:
		v.broken(&v.Unfinished, "call %x has not ended", call.ID)
		return
	case Success:
		v.Succeeded++
		if call.ReplyID != call.ID {
			v.broken(&v.Crossed, "call %x got the reply of %x", call.ID, call.ReplyID)
		}
	case NotExecuted:
		v.NotExecuted++
	case Maybe:
		v.Maybe++
	case Executed:
		v.Executed++
	}
	if patience > 0 && call.Limit > 0 && call.Took > call.Limit+patience {
		v.broken(&v.Late, "call %x took %v of %v (%v)", call.ID, call.Took, call.Limit, call.Err)
	}
}

// compare judges it beside what servers did.
func (v *Verdict) compare(call *Call, times int) {
	switch {
	case times == 0 && (call.Outcome == Success || call.Outcome == Executed):
		v.broken(&v.Lost, "call %x never ran (%v)", call.ID, call.Err)
	case times > 0 && call.Outcome == NotExecuted:
		v.broken(&v.Ghosts, "call %x ran %d times (%v)", call.ID, times, call.Err)
	case times > 1 && !call.Repeatable:
		v.broken(&v.Repeated, "call %x ran %d times", call.ID, times)
	}
}
