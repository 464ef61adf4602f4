package ttstream

import (
	"fmt"
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
		c.pausedAt, c.crowdedAt = now, now
	}
	c.paused = full
	return full || !c.config.client && c.out.Len() >= c.config.unsentBytes || c.control >= limits.StreamControlFrames
}

// full reports whether streams hold more than they may.
func (c *Conn) full() bool {
	if c.excess >= c.config.connection {
		return true
	}
	if c.excess < min(c.config.buffer, c.config.window) {
		return false // Most often; nobody has to be asked.
	}
	for _, s := range c.streams {
		if c.overfull(s) {
			return true
		}
	}
	return false
}

// overfull reports whether a stream holds more than one may. A peer that keeps to windows is
// a message beyond its window at most, and may have sent another window before it knew.
func (c *Conn) overfull(s *stream) bool {
	most := c.config.buffer
	if c.windowed(s) {
		most = max(most, 2*c.config.window+cost(c.config.messageBytes))
	}
	return s.unused >= most
}

// windowed reports whether the peer has our window for a stream.
func (c *Conn) windowed(s *stream) bool { return s.agreed && c.peer.known }

// hold counts that a stream holds so much more, or less.
func (c *Conn) hold(s *stream, bytes int64) {
	c.excess -= c.excessOf(s)
	s.unused += bytes
	c.excess += c.excessOf(s)
}

// excessOf returns what a stream holds that counts for the connection. What its window allows
// does not: otherwise streams of honest peers would end because others are slow. Windows
// bound it, however many bytes the peer sends.
func (c *Conn) excessOf(s *stream) int64 {
	if c.windowed(s) {
		return max(s.unused-c.config.window, 0)
	}
	return s.unused
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
	c.hold(s, -used)
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
	most := c.fullest()
	crowded := c.crowded(most)
	due := c.crowdedAt + Nanoseconds(limits.StreamPause)
	if !crowded {
		c.crowdedAt = now
		due = c.pausedAt + Nanoseconds(limits.StreamPauseAlone)
	}
	if now < due {
		return due
	}
	c.end(most, crowded)
	c.pausedAt, c.crowdedAt = now, now
	if c.paused = c.full(); !c.paused {
		return 0
	}
	return now + Nanoseconds(limits.StreamPause)
}

// fullest returns the stream because of which the connection is not read, of several the one
// that holds most.
func (c *Conn) fullest() (most *stream) {
	together, more := c.excess >= c.config.connection, int64(-1)
	for _, s := range c.streams {
		if n := c.excessOf(s); (together || c.overfull(s)) && (n > more || n == more && s.id < most.id) {
			most, more = s, n
		}
	}
	return most
}

// crowded reports whether anybody waits for a connection that is not read because of a
// stream. If nobody does, TCP holds its peer up, as it should.
func (c *Conn) crowded(most *stream) bool {
	if c.unread || most.state == stateClosed {
		return true
	}
	for _, s := range c.streams {
		if s != most && s.state != stateClosed {
			return true
		}
	}
	return false
}

// end ends a stream that keeps the connection from being read.
func (c *Conn) end(s *stream, crowded bool) {
	c.hold(s, -s.unused)
	if s.state == stateClosed {
		return
	}
	text := "nobody receives from the stream, and others wait"
	if !crowded {
		text = fmt.Sprintf("nobody has received from the stream for %v", limits.StreamPauseAlone)
	}
	problem := streamError(s.id, CodeInternal, "%s", text)
	c.sendReset(s.id, s.method, Failure{Code: CodeInternal, Message: problem.Detail}, "", false)
	c.closeStream(s)
	c.lost = append(c.lost, Event{Kind: EventReset, Stream: s.id, Value: s.value, Problem: problem})
}

// look notes whether b, which waits to be read, has something for others than the stream for
// which it waits, or that nobody wants that any more. What has not arrived nobody knows.
func (c *Conn) look(b []byte) {
	c.unread = false
	if !c.paused || c.config.client {
		return // A client knows of all streams.
	}
	for most := c.fullest(); len(b) > 0 && !c.unread; {
		if isFrame, need := ttheader.IsFrame(b); c.config.calls && need == 0 && !isFrame {
			c.unread = true
			return
		}
		f, used, need, err := frameOf(ttheader.NextFrameHead(b, c.config.messageBytes))
		if need > 0 || err != nil {
			return
		}
		c.unread = f.Type == FrameReset && f.Stream == most.id || f.Type == FrameHeader && f.Stream != most.id
		b = b[min(used, len(b)):]
	}
}
