package ttstream

import (
	"math"
	"strconv"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// windowMax is the largest window, and the most credit that a stream can have.
const windowMax = math.MaxInt32

// Congested reports whether nothing more is read: because nobody uses what was read, or
// because answers to it wait. A client reads on while its messages wait: their senders are
// bounded, and two sides that stopped reading would wait for each other.
func (c *Conn) Congested(now Nanoseconds) bool {
	full := c.full()
	if full && !c.paused {
		c.pausedAt = now
	}
	c.paused = full
	return full || !c.config.client && c.out.Len() >= c.config.unsentBytes || c.control >= limits.StreamControlFrames
}

// full reports whether streams hold more than they may. A peer that keeps to windows is
// a message beyond its window at most, and may have sent another window before it knew.
func (c *Conn) full() bool {
	if c.unused >= c.config.connection {
		return true
	}
	if c.unused < min(c.config.buffer, c.config.window) {
		return false // Most often; nobody has to be asked.
	}
	for _, s := range c.streams {
		most := c.config.buffer
		if s.agreed && c.peer.known {
			most = max(most, 2*c.config.window+cost(c.config.messageBytes))
		}
		if s.unused >= most {
			return true
		}
	}
	return false
}

// Consume says that a message of n bytes was used.
func (c *Conn) Consume(id int32, n int) { c.ConsumeMessages(id, 1, n) }

// ConsumeMessages says that messages of n bytes altogether were used.
func (c *Conn) ConsumeMessages(id int32, messages, n int) {
	s := c.streams[id]
	if s == nil || c.err != nil {
		return
	}
	used := min(int64(n)+messageOverhead*int64(messages), s.unused)
	s.unused -= used
	c.unused -= used
	if !s.agreed || s.state == stateClosed || s.state == stateHalfRemote {
		return
	}
	// As long as half of the window is open, telling is not worth a frame. Kitex is told
	// nothing.
	if s.returned += used; s.returned < max(c.config.window/2, 1) || !c.peer.known {
		return
	}
	c.pairs = append(c.pairs[:0], ttheader.Pair{Key: wire.StreamWindow, Value: strconv.FormatInt(s.returned, 10)})
	s.returned = 0
	c.send(&outgoing{kind: FrameMeta, stream: s.id, method: s.method, pairs: c.pairs})
}

// give adds to what may be sent on a stream.
func (c *Conn) give(s *stream, n int64) {
	s.credit = min(s.credit+n, windowMax)
	c.wake(s)
}

// wake puts a stream into the queue if it has a message and room for it.
func (c *Conn) wake(s *stream) {
	if s.waits && !s.queued && (!s.limited || s.credit > 0) {
		s.queued = true
		c.waiting = append(c.waiting, s)
	}
}

// Writable returns a stream whose message was not taken and that has room for it now,
// false if there is none. The caller calls Send for it, and then Writable again: streams
// take turns. It is to be asked after Next and after Swap.
func (c *Conn) Writable() (id int32, value any, ok bool) {
	if len(c.waiting) == 0 || c.err != nil || c.out.Len() >= c.config.unsentBytes {
		return 0, nil, false
	}
	s := c.waiting[0]
	c.waiting = c.waiting[1:]
	s.queued = false
	return s.id, s.value, true
}

// Tick ends the stream that holds most if streams from which nobody receives have kept
// the connection from being read for too long; Next then tells of it. It returns when it
// wants to be called again, 0 for never.
func (c *Conn) Tick(now Nanoseconds) (next Nanoseconds) {
	if c.err != nil || !c.paused {
		return 0
	}
	if !c.full() {
		c.paused = false
		return 0
	}
	if due := c.pausedAt + Nanoseconds(limits.StreamPause); now < due {
		return due
	}
	var most *stream
	for _, s := range c.streams {
		if most == nil || s.unused > most.unused || s.unused == most.unused && s.id < most.id {
			most = s
		}
	}
	c.pausedAt = now
	if most == nil {
		return 0
	}
	c.unused -= most.unused
	most.unused = 0
	if most.state != stateClosed {
		problem := streamError(most.id, CodeInternal, "nobody receives from the stream, and others wait")
		c.sendReset(most.id, most.method, Failure{Code: CodeInternal, Message: problem.Detail}, "", false)
		c.closeStream(most)
		c.lost = append(c.lost, Event{Kind: EventReset, Stream: most.id, Value: most.value, Problem: problem})
	}
	if c.paused = c.full(); !c.paused {
		return 0
	}
	return now + Nanoseconds(limits.StreamPause)
}
