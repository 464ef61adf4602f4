package transport

import (
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// arriving is the clock of a message that arrives on one stream of many. They take turns, so
// the time in which the connection brings what is of other streams does not count, as far as
// it is FrameBytesPerSecond of that. But it counts where the message stands still for longer
// than it takes each stream to bring one frame at that rate: a peer that keeps one stream
// busy could have all others hold memory for ever.
type arriving struct {
	// began is when the message did, zero if none has, looked when it was last looked at.
	began, looked time.Time
	// length is how much of it there was then, brought what the connection had brought.
	length  int
	brought int64
	// others is how long what was of others takes at FrameBytesPerSecond, as far as it was
	// not given yet, given how much time does not count, still that of it in which the
	// message brought less than its share.
	others, given, still time.Duration
	// unread is how long the connection had not been read, all in all, when the message began.
	unread time.Duration
}

// atFloor returns how long so many bytes take at FrameBytesPerSecond.
func atFloor(bytes int64) time.Duration {
	return time.Duration(bytes) * (time.Second / limits.FrameBytesPerSecond)
}

// look returns how much time of its own the message has taken, of which length bytes are
// there now, on one of so many streams. slack is for how long others may have brought more.
func (a *arriving) look(now time.Time, length, streams int, brought int64, slack time.Duration) time.Duration {
	if since := now.Sub(a.looked); since > 0 {
		own := int64(length - a.length)
		a.still = max(a.still-atFloor(own*int64(streams)), 0)
		a.others += atFloor(max(brought-a.brought-own, 0))
		most := atFloor(int64(streams)*http2.FrameBytesMin) - a.still
		given := max(min(since, a.others, most), 0)
		a.given += given
		a.still += given
		// Peers are uneven: what is left counts, but not that of long ago.
		a.others = min(a.others-given, slack)
		a.looked, a.length, a.brought = now, length, brought
	}
	return now.Sub(a.began) - a.given
}

// readingClock shows how long a connection was read: what its peer has sent meanwhile may wait
// here, for the peer to take what waits for it, say.
type readingClock struct {
	// since is when nothing was read any more, zero while something is, again when it last was
	// again, and still how long nothing was, all in all.
	since, again time.Time
	still        time.Duration
}

// stop is called when nothing is read any more.
func (r *readingClock) stop() {
	if r.since.IsZero() {
		r.since = time.Now()
	}
}

// goOn is called when something is.
func (r *readingClock) goOn() {
	if r.since.IsZero() {
		return
	}
	r.again = time.Now()
	r.still += r.again.Sub(r.since)
	r.since = time.Time{}
}

// at returns what the clock shows at a time. Bytes that arrived while nothing was read did so
// behind that.
func (r *readingClock) at(now time.Time) time.Time {
	if !r.since.IsZero() && now.After(r.since) {
		now = r.since
	}
	if now.Before(r.again) {
		now = r.again
	}
	return now.Add(-r.still)
}

// partLocked says of which length the message is that arrives, 0 if nobody knows, and how
// much of it is there; false if the peer owes none.
func (s *serverStream) partLocked() (length, part int, ok bool) {
	m := s.messages
	switch {
	case m == nil && s.complete: // who serves it has the body
		return 0, 0, false
	case m == nil:
		return s.length, s.prefixed + len(s.body), true
	}
	// Behind a whole message the window waits for who receives, and what is held is no more
	// than that.
	return m.want, len(m.arrived), m.whole == 0 && len(m.arrived) > 0 && m.ended == nil && m.broken == nil && !s.sent
}

// arrivesLocked returns the clock of a message of which a part is there at a time.
func (h *http2Server) arrivesLocked(at time.Time, part int) arriving {
	now := h.reads.at(at)
	return arriving{began: now, looked: now, length: part, brought: h.brought, unread: at.Sub(now)}
}

// overdueLocked reports whether the message that arrives should be there. The time in which
// nothing is read does not count, up to HTTP2UnreadPause: who takes slowly what waits for it
// could have parts of messages held for as long as it likes.
func (s *serverStream) overdueLocked(at time.Time) bool {
	h := s.server
	length, part, ok := s.partLocked()
	a := &s.arriving
	switch {
	case !ok:
		a.began = time.Time{}
		return false
	case a.began.IsZero():
		*a = h.arrivesLocked(at, part)
		return false
	}
	now := h.reads.at(at)
	unread := at.Sub(now) - a.unread
	timeout := h.conn.frameTimeout(length)
	took := a.look(now, part, len(h.streams), h.brought, h.conn.frameTimeout(0))
	return timeout > 0 && took+max(unread-limits.HTTP2UnreadPause, 0) > timeout
}

// lateLocked ends what the peer has taken too long for.
func (h *http2Server) lateLocked(now time.Time) {
	for _, s := range h.streams {
		overdue := s.overdueLocked(now)
		reason := s.lateLocked(now)
		if overdue {
			reason = "the rest of a message"
		}
		if reason == "" {
			continue
		}
		h.conn.server.log.Warn("call ended: peer too slow", "peer", h.conn.Peer, "waited_for", reason)
		if overdue && s.status == "" {
			s.overdueEndLocked()
			continue
		}
		h.http2.Reset(s.id, http2.Cancel)
		h.resetLocked(s)
	}
}

// overdueEndLocked ends a call whose message does not arrive: without its handler, or that
// is told.
func (s *serverStream) overdueEndLocked() {
	const detail = "the rest of a message has not arrived in time (limit FrameTimeout)"
	if s.messages != nil {
		s.messages.failLocked(&grpc.Error{Code: grpc.DeadlineExceeded, Detail: detail})
		return
	}
	s.complete, s.returned = true, true // it never ran
	s.dropRequest()
	_ = s.server.statusLocked(s, ReplyHead{Executed: executedNo, Code: uint32(grpc.DeadlineExceeded)}, detail)
}

// lateLocked says what of the answer the peer has taken too long for, "" if it has not.
func (s *serverStream) lateLocked(now time.Time) string {
	stall := s.server.conn.server.stall
	switch {
	case !s.moved.IsZero() && !s.sent && stall > 0 && now.After(s.moved.Add(stall)):
		return "a window for the answer"
	case s.slow(now):
		return "more than a window now and then for the answer"
	}
	return ""
}

// slow reports whether the peer takes the answer, for which memory is held, at less than
// WriteBytesPerSecond.
func (s *serverStream) slow(now time.Time) bool {
	stall := s.server.conn.server.stall
	if s.waited.IsZero() || s.sent || stall <= 0 {
		return false
	}
	taken := s.counted
	for _, piece := range s.rest {
		taken -= len(piece)
	}
	return now.After(s.waited.Add(stall + time.Duration(taken)*time.Second/limits.WriteBytesPerSecond))
}
