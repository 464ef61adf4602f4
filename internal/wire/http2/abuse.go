package http2

import "github.com/fulmar-rpc/fulmar/internal/limits"

// counts is what a peer did in the current period. What is not honest work has a
// number that it may reach, some of them besides a share of what is.
type counts struct {
	began Nanoseconds
	// streams were begun by either side, sentBytes of data sent.
	streams   int
	sentBytes int64
	// whole are DATA frames that were sent as long as the message, or a frame, is: windows
	// did not cut them short.
	whole    int
	data     int
	resets   int
	refusals int
	breaches int
	// long are lists of headers that are longer than they may be.
	long    int
	empty   int
	tiny    int
	updates int
	others  int
	// strikes are pings that came too soon since we sent something.
	strikes int
	// ourResets are streams that we reset, or passed over, lostBytes what came for such ones.
	ourResets int
	lostBytes int64
}

// count begins a new period if one is over. There is no sliding: a peer that knows
// when one ends can do twice as much around that moment.
func (c *Conn) count(now Nanoseconds) {
	if now-c.counts.began >= Nanoseconds(limits.HTTP2Period) {
		c.counts = counts{began: now}
	}
}

// calm returns the error for a peer that does more of something than it may.
func (c *Conn) calm(what string, got, limit int) *Error {
	return connectionError(EnhanceYourCalm, "too many %s (limit %d, got %d)", what, limit, got)
}

// countOther counts a frame that does nothing. Headers, trailers and the reset of an answer cross
// the cancellation of a call, so that each stream excuses three at a client, and at a server one.
func (c *Conn) countOther() error {
	c.counts.others++
	excused := c.counts.streams
	if c.config.client {
		excused *= 3
	}
	if allowed := limits.HTTP2OtherFrames + excused; c.counts.others > allowed {
		return c.calm("frames without effect", c.counts.others, allowed)
	}
	return nil
}

// countReset counts a stream that the peer resets: s, or one that was complete, or passed over,
// if that is nil. It does not if something was sent on it, or the peer has waited for that: then it is a call
// that was given up, by its deadline or for another one.
func (c *Conn) countReset(id uint32, s *stream, now Nanoseconds) error {
	if s != nil && (s.answered || now-s.began >= Nanoseconds(limits.HTTP2ResetSoon)) {
		return nil
	}
	if used, ours := c.history.of(id); s == nil && (!used || ours) && !c.history.wasPassed(id) {
		return nil // it crosses a reset of ours
	}
	c.counts.resets++
	if allowed := limits.HTTP2Resets + c.counts.streams/2; c.counts.resets > allowed {
		return c.calm("resets", c.counts.resets, allowed)
	}
	return nil
}

// countRefusal counts a stream that was begun when there were as many as there may be, or
// behind our last GOAWAY.
func (c *Conn) countRefusal() error {
	c.counts.refusals++
	if c.counts.refusals > limits.HTTP2Refusals {
		return c.calm("streams beyond the limit", c.counts.refusals, limits.HTTP2Refusals)
	}
	return nil
}

// countBreach counts a stream that we reset for what the peer did: each is work that
// was begun for nothing, as with a reset of the peer's own (CVE-2025-8671).
func (c *Conn) countBreach() error {
	c.counts.breaches++
	if c.counts.breaches > limits.HTTP2PeerErrors {
		return c.calm("streams with errors", c.counts.breaches, limits.HTTP2PeerErrors)
	}
	return nil
}

// Blame counts work that was done in vain for a stream of the peer's, as much as so many
// streams with errors. An error ends the connection, as of Next.
func (c *Conn) Blame(errors int, now Nanoseconds) error {
	if c.err != nil {
		return c.err
	}
	c.count(now)
	c.counts.breaches += errors - 1
	if err := c.countBreach(); err != nil {
		return c.fail(err)
	}
	return nil
}

// countLong counts a list of headers that is longer than it may be.
func (c *Conn) countLong() error {
	c.counts.long++
	if allowed := limits.HTTP2LongLists + c.counts.streams/2; c.counts.long > allowed {
		return c.calm("lists of headers that are too long", c.counts.long, allowed)
	}
	return nil
}

// countData counts a DATA frame by what it is good for. Everybody cuts messages into frames
// of the same length, and what is left of some has a byte.
func (c *Conn) countData(f *Frame) error {
	c.counts.data++
	n := len(f.Payload)
	switch {
	case f.Ends() || n >= limits.HTTP2TinyDataBytes || n > 0 && c.isTail(f.Stream):
	case n == 0:
		c.counts.empty++
		if c.counts.empty > limits.HTTP2EmptyData {
			return c.calm("DATA frames without data", c.counts.empty, limits.HTTP2EmptyData)
		}
	default:
		c.counts.tiny++
		if allowed := limits.HTTP2TinyData + (c.counts.data-c.counts.tiny)/4; c.counts.tiny > allowed {
			return c.calm("tiny DATA frames", c.counts.tiny, allowed)
		}
	}
	return nil
}

// isTail reports whether a DATA frame is behind one that was not small, on its stream.
func (c *Conn) isTail(id uint32) bool {
	s := c.streams[id]
	return s != nil && s.dataBefore >= limits.HTTP2DataBeforeTiny
}

// countLost counts DATA of streams that we have reset. As much as the window of the
// connection can be on its way then; who goes on sends what nobody looks at.
func (c *Conn) countLost(n int) error {
	c.counts.lostBytes += int64(n)
	if allowed := int64(c.counts.ourResets+1) * c.receive.target; c.counts.lostBytes > allowed {
		return c.calm("bytes for streams that were reset", int(c.counts.lostBytes), int(allowed))
	}
	return nil
}

// excuse allows a ping for a message that goes to and fro. Peers that measure send one
// when data arrives, some with each reset, and what was sent in one go arrives in many
// frames. They are not saved up.
func (c *Conn) excuse() { c.excuses = min(c.excuses+1, limits.HTTP2OtherFrames) }

// excuseSent is excuse for what we send. What came too soon before that is forgiven, as
// servers of gRPC do: clients, which ping when a connection is quiet, know less than we of
// what is on its way. It makes three pings of one for each of our frames.
func (c *Conn) excuseSent() {
	c.excuse()
	c.counts.strikes = 0
}

// TooManyPings is what clients of gRPC, all of them, look for in a GOAWAY: they ping half
// as often on their next connection. Anything else they take for an outage.
const TooManyPings = "too_many_pings"

// countPing counts pings that come too soon and that nothing excuses. A client puts up with
// them, as far as with other frames without effect: servers ping as often as they were told to.
func (c *Conn) countPing(now Nanoseconds) error {
	const least = limits.HTTP2PingInterval * (100 - limits.HTTP2PingEarlyPercent) / 100
	soon := c.pinged && now-c.lastPinged < Nanoseconds(least)
	c.pinged, c.lastPinged = true, now
	switch {
	case !soon:
		return nil
	case c.excuses > 0:
		c.excuses--
		return nil
	case c.config.client:
		return c.countOther()
	}
	c.counts.strikes++
	if c.counts.strikes > limits.HTTP2PingStrikes {
		problem := c.calm("pings", c.counts.strikes, limits.HTTP2PingStrikes)
		problem.told = TooManyPings
		return problem
	}
	return nil
}
