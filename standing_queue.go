package fulmar

import (
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// standingQueue bounds a queue that is full by what it is good for. One that takes up bursts is
// short in between; what always waits is gained by nobody, and waited for by everybody who
// comes. So that part is taken off, in CoDel's way (RFC 8289) with a bound in place of drops. As
// long as nobody is refused there is none: callers that come again when they have been served
// make a queue that stands, too, and refusing them gains nothing. If a flood has been there
// before, they are refused until the bound is boundTime old: who comes again because he was
// refused looks like one more.
//
//	no bound -- never short during a while, and calls were refused -> as many as waited, without those that always did
//	bound    -- never short during a while, and calls were refused -> as many fewer as always waited
//	bound    -- empty, and calls were refused ----------------------> a quarter more
//	bound    -- short in a while, and none were refused ------------> twice as many
//	bound    -- empty, and nobody has asked for two whiles ---------> no bound
//	bound    -- more than limits.QueuedCalls, or boundTime old -----> no bound
//
// Calls that nothing keeps from waiting are not counted. Not safe for concurrent use.
type standingQueue struct {
	// began is when the while did, and without a bound when the queue was short; second: the
	// second half of it has begun.
	began  time.Time
	second bool
	// least is the fewest calls that waited in it, or without a bound in its second half: in
	// the first one the queue has grown. peak is the most. granted is how many got a place.
	least, peak, granted int
	// refused says that a call was refused, because of most or because it would have waited,
	// or has, for too long, or of MaxQueuedCalls.
	refused bool
	// most calls may wait, since then; 0: no bound.
	most  int
	since time.Time
}

const (
	// whileCalls is how many calls get their places in a while at least, and no fewer than wait
	// at its end, so that a queue has occasions to be empty.
	whileCalls = 8
	// shortCalls always make a short queue, and so do those that wait for a shortPart of
	// limits.QueueTime. 10 ms are what handlers of 1 ms need to be busy all the time under
	// twice the load (governance/overload-2x).
	shortCalls = 4
	shortPart  = 10
	// boundTime is after how long a bound is given up to see whether it is needed. Under a flood
	// the queue is long for 250 ms then, 0.1 % of the time. With a minute it was one of 30 s of
	// S13 in which one of a hundred refusals took 25 to 116 ms, in place of 2.
	boundTime = 5 * time.Minute
)

// shorter notes that n calls wait, fewer than before, because one has got its place or given up.
func (q *standingQueue) shorter(n int, granted bool) {
	q.least = min(q.least, n)
	if granted {
		q.granted++
	}
}

// bound returns how many calls may wait if one that comes is one too many, or 0: n wait, of
// which the next one gets its place every interval. As many as floor may always wait.
func (q *standingQueue) bound(n, floor int, interval time.Duration, now time.Time) int {
	short := max(floor, shortCalls, int(limits.QueueTime/shortPart/max(interval, 1)))
	lasts := max(limits.QueueTime, whileCalls*interval)
	passed := now.Sub(q.began)
	switch {
	case q.most == 0 && (n <= short || q.least <= short):
		q.start(n, now)
	case q.most == 0 && !q.second && passed > lasts/2:
		q.second, q.least = true, n
	case passed > lasts && (n == 0 || q.granted >= max(n, whileCalls)):
		q.judge(short, passed > 2*lasts, now)
		q.start(n, now)
	}
	q.peak = max(q.peak, n)
	if limit := max(q.most, short); q.most > 0 && n >= limit {
		return limit
	}
	return 0
}

func (q *standingQueue) start(n int, now time.Time) {
	*q = standingQueue{began: now, least: n, most: q.most, since: q.since}
}

// judge is asked at the end of a while; late: it lasted twice as long, because nobody came or
// few got their places.
func (q *standingQueue) judge(short int, late bool, now time.Time) {
	if q.most == 0 {
		if q.refused && q.least > short {
			q.most, q.since = max(q.peak-(q.least-short), short), now
		}
		return
	}
	switch {
	case late && q.least == 0 || now.Sub(q.since) >= boundTime:
		q.most = 0
	case q.least > short:
		if q.refused { // else it is as long as it need be
			q.most = max(q.peak-(q.least-short), short)
		}
	case !q.refused:
		q.most *= 2
	case q.least == 0:
		q.most += max(q.most/4, 1)
	}
	if q.most > limits.QueuedCalls {
		q.most = 0
	}
}
