package fulmar

import (
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// standingQueue bounds a queue by what it is good for. One that takes up bursts is empty in
// between; what always waits is gained by nobody, and waited for by everybody who comes. So the
// fewest that waited during a while are taken from how many may, and when it was empty, and calls
// were refused for this, more may again. This is CoDel's idea (RFC 8289) with a bound in place of
// drops, which comes back where it was needed.
//
//	no bound -- never empty during a while -----------------------> as many fewer as always waited
//	bound    -- never empty during a while -----------------------> as many fewer as always waited
//	bound    -- empty, and calls were refused for it -------------> a quarter more
//	bound    -- empty, and none were, or nobody came for two whiles > no bound
//
// Not safe for concurrent use.
type standingQueue struct {
	// began is when the while did, and lasts how long it is.
	began time.Time
	lasts time.Duration
	// least is the fewest calls that waited in it; refused says that some were because of most.
	least   int
	refused bool
	// most calls may wait; 0: no bound.
	most int
}

// whileCalls is how many calls get their places in a while at least, so that a queue has
// occasions to be empty.
const whileCalls = 8

// shorter notes that n calls wait, fewer than before.
func (q *standingQueue) shorter(n int) { q.least = min(q.least, n) }

// full reports whether a call that comes is one too many: n wait, of which the next one gets its
// place every interval. As many as floor may always wait.
func (q *standingQueue) full(n, floor int, interval time.Duration, now time.Time) bool {
	if passed := now.Sub(q.began); passed > q.lasts {
		q.judge(n, passed)
		q.began, q.least, q.refused = now, n, false
		// Those that wait now have to be gone before it can be empty. A burst on a server that
		// is busy for half of the time takes twice as long as they do.
		drained := time.Duration(n) * interval
		if q.most == 0 {
			drained *= 2
		}
		q.lasts = max(limits.QueueTime, drained+whileCalls*interval)
	}
	if q.most == 0 || n < max(q.most, floor) {
		return false
	}
	q.refused = true
	return true
}

// judge is asked at the end of a while.
func (q *standingQueue) judge(n int, passed time.Duration) {
	switch {
	case q.least > 0:
		bound := q.most
		if bound == 0 {
			bound = n
		}
		// Not all at once: some of what waited always had come before there was a bound.
		q.most = max(bound-q.least, bound/4, 1)
	case q.refused && passed < 2*q.lasts:
		q.most += max(q.most/4, 1)
	default:
		q.most = 0
	}
}
