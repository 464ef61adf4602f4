package eventloop

import (
	"math/bits"
	"time"

	"golang.org/x/sys/unix"
)

// coalescer decides when a poller sleeps for a moment where it would wait for the next event,
// so that requests gather. Where many connections take turns and keep it busy the next request
// comes within microseconds: who spins takes each alone and pays for the looks in between,
// who waits is woken for one, which takes time of both ends. Network cards hold interrupts
// back for the same reason. One goroutine at a time.
//
// pingpong-1k-c100 of suite rpc, pinned, against the build before: 1.05 times the calls for
// 0.86 of the processor ([decision 28]).
//
// [decision 28]: https://github.com/fulmar-rpc/fulmar/blob/main/docs/adr/0028-epoll-engine.md
type coalescer struct {
	// pause is how long it sleeps, to which Linux adds up to 50 us; 0 is never.
	pause time.Duration
	// seen has a bit for each connection that had one of the last events, looked counts these,
	// and crowd is of how many connections the coalesceEvents before were. Two that share a bit
	// are one.
	seen   uint64
	looked int
	crowd  int
	// busy and idle are the moving averages of how long it takes from wait to wait, and of how
	// long these waits are, pauses included: a pause in which less comes than it takes as long
	// to answer is not worth it. resumed is when the last one ended, zero if what was done since
	// is no work of the poller.
	busy, idle time.Duration
	resumed    time.Time
	// refused is how many waits more there is no attempt, pauses counts those there were.
	refused, pauses int
}

const (
	// coalesceEvents is of how many events one knows which connections they are of.
	coalesceEvents = 64
	// coalesceCrowd is of how many connections they must be.
	coalesceCrowd = 16
	// coalesceShare is the share of those connections that may have sent meanwhile, which is 16
	// at most. If more have, callers wait for the poller, and sleeping has them make fewer calls.
	coalesceShare = 4
	// coalesceRefused is for how many waits there is no other attempt then.
	coalesceRefused = 64
	// coalesceIdleMost bounds what one wait adds to the average, so that one between two bursts
	// does not end it, and coalesceBusyMost what a handler that takes long does: less, so that
	// who works for milliseconds and waits for seconds is not busy.
	coalesceIdleMost = time.Millisecond
	coalesceBusyMost = coalesceIdleMost / 2
	// coalesceParks is after how many pauses with one processor the leader gives that to others,
	// and has the runtime look at its own poller, as it does when it waits. By itself the
	// runtime would look every 10 ms. From pause to pause it is 100 or 200 us.
	coalesceParks = 8
)

// saw records whose event came, by a number that the connections of a poller share out
// from 0 on.
func (c *coalescer) saw(connection uint32) {
	c.seen |= 1 << (connection % 64)
	if c.looked++; c.looked == coalesceEvents {
		c.crowd = bits.OnesCount64(c.seen)
		c.seen, c.looked = 0, 0
	}
}

// worth reports, when there are no more events, whether to let some gather.
func (c *coalescer) worth(now time.Time) bool {
	if !c.resumed.IsZero() {
		c.busy += (min(now.Sub(c.resumed), coalesceBusyMost) - c.busy) / 8
	}
	switch {
	case c.pause <= 0 || c.crowd < coalesceCrowd || c.busy <= c.idle:
		return false
	case c.refused > 0:
		c.refused--
		return false
	}
	return true
}

// gathered records how many events there were behind a pause.
func (c *coalescer) gathered(events int) {
	if events*coalesceShare > c.crowd {
		c.refused = coalesceRefused
	}
}

// waited records that a wait has ended, and how long it took.
func (c *coalescer) waited(now time.Time, took time.Duration) {
	c.resumed = now
	c.idle += (min(took, coalesceIdleMost) - c.idle) / 8
}

// coalesces reports whether the leader lets requests gather now.
func (l *leader) coalesces(now time.Time) bool {
	p := l.poller
	// Who sleeps has the only processor meanwhile.
	return p.coalescer.worth(now) && !p.starved.Load() && !(p.engine.single && goroutinesWait(&l.samples))
}

// pause sleeps for a moment.
func (l *leader) pause() {
	c := &l.poller.coalescer
	if c.pauses++; l.poller.engine.single && c.pauses%coalesceParks == 0 {
		l.sleepFor(c.pause)
		return
	}
	length := unix.NsecToTimespec(int64(c.pause))
	// A signal ends it early, and that does no harm.
	_ = unix.Nanosleep(&length, nil)
}
