package ttstream

import "github.com/fulmar-rpc/fulmar/internal/limits"

// counts is what a peer did in the current period. What is not honest work has a number
// that it may reach, some of them besides a share of what is.
type counts struct {
	began Nanoseconds
	// streams were begun by either side, sent are messages that were.
	streams, sent                             int
	resets, refusals, breaches, others, metas int
}

// count begins a new period if one is over. There is no sliding: a peer that knows when
// one ends can do twice as much around that moment.
func (c *Conn) count(now Nanoseconds) {
	if now-c.counts.began >= Nanoseconds(limits.StreamPeriod) {
		c.counts = counts{began: now}
	}
}

func calm(what string, got, limit int) error {
	if got <= limit {
		return nil
	}
	return connectionError(CodeIllegalOperation, "too many %s (limit %d, got %d)", what, limit, got)
}

// countOther counts a frame that does nothing. Each stream excuses two: what a peer
// sends behind a stream's end crosses it.
func (c *Conn) countOther() error {
	c.counts.others++
	return calm("frames without effect", c.counts.others, limits.StreamOtherFrames+2*c.counts.streams)
}

// countReset counts a stream that the peer resets, unless something was sent on it, or it has
// waited for that.
func (c *Conn) countReset(s *stream, now Nanoseconds) error {
	if s.headed || now-s.began >= Nanoseconds(limits.StreamResetSoon) {
		return nil
	}
	c.counts.resets++
	return calm("resets", c.counts.resets, limits.StreamResets+c.counts.streams/2)
}

// countRefusal counts a stream that was refused.
func (c *Conn) countRefusal() error {
	c.counts.refusals++
	return calm("streams that were refused", c.counts.refusals, limits.StreamRefusals)
}

// countBreach counts a stream that we reset for what the peer did.
func (c *Conn) countBreach() error {
	c.counts.breaches++
	return calm("streams with errors", c.counts.breaches, limits.StreamPeerErrors)
}

// countMeta counts what changes windows: one for each message is honest.
func (c *Conn) countMeta() error {
	c.counts.metas++
	return calm("META frames", c.counts.metas, limits.StreamOtherFrames+c.counts.streams+c.counts.sent)
}
