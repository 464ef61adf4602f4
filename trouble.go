package fulmar

import (
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// trouble remembers what is wrong with a source that is asked again and again, so that
// what stays wrong is said once, and what comes and goes a few times at once and then now
// and then. The zero value is a source with which nothing is wrong. Safe for concurrent use.
type trouble struct {
	// holds says that what is wrong is so until end, however rarely it is noted. Otherwise
	// it is over when it has not been noted for TroubleLogPause, which is longer than the
	// longest pause of a source that fails: not all sources say that they work again.
	holds bool

	mu sync.Mutex
	// last is what was last wrong, "" if something has come since, and at when.
	last string
	at   time.Time
	// said is what the log says is wrong, "" if it says that nothing is.
	said string
	// paid is until when lines that were written count, each for TroubleLogPause.
	paid time.Time
}

// note notes that something is wrong, and reports whether it was not before, or was
// something else, and whether that may be said.
func (t *trouble) note(err error) (news, say bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if !t.holds && now.Sub(t.at) > limits.TroubleLogPause {
		t.last, t.said = "", ""
	}
	news = t.last != err.Error()
	t.last, t.at = err.Error(), now
	say, _ = t.sayLocked(now)
	return news, say
}

// late reports whether something is wrong that could not be said when it came and may be
// said now. If it is too early again says when to ask again, otherwise it is zero.
func (t *trouble) late() (what string, say bool, again time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	say, again = t.sayLocked(time.Now())
	return t.last, say, again
}

// sayLocked reports whether something is wrong and may be said, and takes that as done, or
// else when it may be, zero if there is nothing to say.
func (t *trouble) sayLocked(now time.Time) (say bool, again time.Time) {
	if t.last == "" || t.last == t.said {
		return false, time.Time{}
	}
	const most = (limits.TroubleLogs - 1) * limits.TroubleLogPause
	if at := t.paid.Add(-most); at.After(now) {
		return false, at
	}
	if t.paid.Before(now) {
		t.paid = now
	}
	t.paid = t.paid.Add(limits.TroubleLogPause)
	t.said = t.last
	return true, time.Time{}
}

// end notes that nothing is wrong any more, and reports whether the log says that
// something is, so that it has to be said.
func (t *trouble) end() (say bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	say = t.said != ""
	t.last, t.said = "", ""
	return say
}
