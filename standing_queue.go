package fulmar

import (
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// standingQueue bounds a queue by what it is good for. One that takes up bursts is short in
// between; what always waits is gained by nobody, and waited for by everybody who comes. This is
// CoDel's idea (RFC 8289) with a bound in place of drops, which grows where it was needed.
//
//	no bound -- never short during a while ---------------------------> short
//	bound    -- never short during a while ---------------------------> as many fewer as always waited
//	bound    -- empty, and calls were refused for it -----------------> a quarter more
//	bound    -- none were refused for it, or nobody came for two whiles -> no bound
//
// Not safe for concurrent use.
type standingQueue struct {
	// began is when the while did, and without a bound when the queue was short.
	began time.Time
	// least is the fewest calls that waited in it; refused says that some were because of most.
	least   int
	refused bool
	// most calls may wait; 0: no bound.
	most int
}

const (
	// whileCalls is how many calls get their places in a while at least, so that a queue has
	// occasions to be empty.
	whileCalls = 8
	// shortCalls always make a short queue, and so do those that wait for a shortPart of
	// limits.QueueTime: callers that come again as soon as they have been served make a queue
	// that stands, and refusing them gains nothing as long as they wait for little. 10 ms
	// are what handlers of 1 ms need to be busy all the time under twice the load
	// (governance/overload-2x).
	shortCalls = 4
	shortPart  = 10
)

// shorter notes that n calls wait, fewer than before.
func (q *standingQueue) shorter(n int) { q.least = min(q.least, n) }

// full returns how many calls may wait if one that comes is one too many, or 0: n wait, of which
// the next one gets its place every interval. As many as floor may always wait.
func (q *standingQueue) full(n, floor int, interval time.Duration, now time.Time) (limit int) {
	short := max(floor, shortCalls, int(limits.QueueTime/shortPart/max(interval, 1)))
	lasts := max(limits.QueueTime, whileCalls*interval)
	if q.most == 0 && (n <= short || q.least <= short) {
		q.start(n, now)
	}
	if passed := now.Sub(q.began); passed > lasts {
		q.judge(short, passed > 2*lasts)
		q.start(n, now)
	}
	if limit = max(q.most, short); q.most == 0 || n < limit {
		return 0
	}
	q.refused = true
	return limit
}

func (q *standingQueue) start(n int, now time.Time) { q.began, q.least, q.refused = now, n, false }

// judge is asked at the end of a while; late: another one has passed, in which nobody came.
func (q *standingQueue) judge(short int, late bool) {
	switch {
	case q.most == 0:
		q.most = short
	case !q.refused || late && q.least == 0:
		q.most = 0
	case q.least > short:
		q.most = max(q.most-(q.least-short), short)
	case q.least == 0:
		q.most += max(q.most/4, 1)
	}
}
