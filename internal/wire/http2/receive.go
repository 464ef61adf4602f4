package http2

import (
	"cmp"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Next takes the first frame in b. It returns what that means and how many bytes were
// used, or how many b must hold for the next step. The caller goes on until nothing
// was used and there is no event; an event may come without bytes.
//
// An error ends the connection: GOAWAY is ready to be sent, and then no more.
func (c *Conn) Next(b []byte, now Nanoseconds) (event Event, used, need int, err error) {
	if c.err != nil {
		return Event{}, 0, 0, c.err
	}
	if event, ok := c.nextLost(); ok {
		return event, 0, 0, nil
	}
	if c.congested() {
		return Event{Kind: EventCongested}, 0, 0, nil
	}
	if !c.prefaceDone && !c.config.client {
		used, need, err = c.preface(b)
		if err != nil {
			return Event{}, 0, 0, c.fail(err)
		}
		if used > 0 {
			c.lastArrival = now
		}
		return Event{}, used, need, nil
	}
	frame, used, need, err := Next(b, FrameBytesMin)
	if err == nil && used > 0 {
		c.lastArrival = now
		c.count(now)
		event, err = c.dispatch(&frame, now)
	}
	if err != nil {
		return Event{}, 0, 0, c.fail(err)
	}
	return event, used, need, nil
}

// congested reports whether so much waits to be sent that nothing more is read: what is
// read would be answered. A client reads on while its requests wait, which have their
// bounds: two sides that stopped reading would wait for each other.
func (c *Conn) congested() bool {
	return !c.config.client && c.out.Len() >= c.config.unsentBytes || c.control >= limits.HTTP2ControlFrames
}

// preface wants the client's (RFC 9113, 3.4).
func (c *Conn) preface(b []byte) (used, need int, err error) {
	n := min(len(b), len(Preface))
	switch {
	case string(b[:n]) != Preface[:n]:
		return 0, 0, connectionError(ProtocolError, "first bytes %q are not the preface of HTTP/2", b[:n])
	case n < len(Preface):
		return 0, len(Preface), nil
	}
	c.prefaceDone = true
	return n, 0, nil
}

// fail ends the connection.
func (c *Conn) fail(err error) error {
	problem, ok := err.(*Error)
	if !ok {
		problem = connectionError(InternalError, "%v", err)
	}
	c.err = problem
	last := uint32(0)
	if !c.config.client {
		last = c.history.newest
	}
	told := cmp.Or(problem.told, problem.Detail)
	appendGoAway(c.out, last, problem.Code, told[:min(len(told), goAwayTextBytes)])
	c.block.release(c.pool)
	return problem
}

// goAwayTextBytes bounds the reason that a GOAWAY gives.
const goAwayTextBytes = 256

// dispatch obeys one frame.
func (c *Conn) dispatch(f *Frame, now Nanoseconds) (Event, error) {
	if c.block.open && f.Type != FrameContinuation {
		// RFC 9113, 6.2.
		return Event{}, connectionError(ProtocolError, "%v inside a header block", f.Type)
	}
	if !c.peer.settled && (f.Type != FrameSettings || f.Flags.Has(FlagAck)) {
		return Event{}, connectionError(ProtocolError, "%v before SETTINGS", f.Type)
	}
	switch f.Type {
	case FrameHeaders:
		return c.headers(f, now)
	case FrameContinuation:
		return c.continuation(f, now)
	}
	if f.Invalid != nil {
		return c.invalidFrame(f)
	}
	switch f.Type {
	case FrameData:
		return c.data(f, now)
	case FrameRSTStream:
		return c.rstStream(f, now)
	case FrameSettings:
		return c.settings(f, now)
	case FramePing:
		return c.ping(f, now)
	case FrameGoAway:
		return c.goAway(f)
	case FrameWindowUpdate:
		return c.told(c.windowUpdate(f))
	case FramePushPromise:
		// RFC 9113, 6.6: our settings do not allow it, and a client cannot.
		return Event{}, connectionError(ProtocolError, "PUSH_PROMISE")
	default:
		// PRIORITY, and types that nobody knows (RFC 9113, 5.5).
		return Event{}, c.countOther()
	}
}

// told returns the event that a breach has left, if that is what err is.
func (c *Conn) told(err error) (Event, error) {
	breach, ok := err.(*breachError)
	if !ok {
		return Event{}, err
	}
	problem := breach.problem
	return Event{Kind: EventReset, Stream: problem.Stream, Value: breach.value, Code: problem.Code, Problem: problem}, nil
}

// breachError ends a stream, for what its peer did.
type breachError struct {
	problem *Error
	value   any
}

func (b *breachError) Error() string { return b.problem.Error() }

// breach resets a stream for what its peer did. told makes an event of what it returns.
func (c *Conn) breach(s *stream, code ErrorCode, format string, args ...any) error {
	if err := c.countBreach(); err != nil {
		return err
	}
	c.control++
	c.resetStream(s, code)
	return &breachError{problem: streamError(s.id, code, format, args...), value: s.value}
}

// invalidFrame ends the stream of a frame that breaks a rule by itself.
func (c *Conn) invalidFrame(f *Frame) (Event, error) {
	s := c.streams[f.Stream]
	if s != nil && s.state != stateClosed {
		return c.told(c.breach(s, f.Invalid.Code, "%s", f.Invalid.Detail))
	}
	if !c.isPast(f.Stream) || f.Invalid.Code == FrameSizeError {
		// A RST_STREAM for a stream that is not open would be an error of ours, and a PRIORITY
		// of another length cannot be passed over (RFC 9113, 6.3).
		return Event{}, connectionError(f.Invalid.Code, "stream %d, which is not open: %s", f.Stream, f.Invalid.Detail)
	}
	return Event{}, c.countBreach()
}

// isPast reports whether a stream has been begun, or passed over.
func (c *Conn) isPast(id uint32) bool { return id%2 == 1 && id <= c.history.newest }

// streamFor returns the stream that a frame is for, nil if it is to be dropped.
func (c *Conn) streamFor(f *Frame) (*stream, error) {
	s := c.streams[f.Stream]
	state, used, ours := stateIdle, false, false
	switch {
	case s != nil && s.state != stateClosed:
		state = s.state
	case c.isPast(f.Stream):
		state = stateClosed
		used, ours = c.history.of(f.Stream)
	}
	switch judge(state, ours, f.Type) {
	case accept:
		return s, nil
	case drop:
		return nil, c.countDropped(f)
	case endStream:
		return nil, c.breach(s, StreamClosed, "%v after the end of the stream", f.Type)
	case endClosed:
		if f.Type == FrameHeaders && !used {
			// RFC 9113, 5.1.1: ids only rise.
			return nil, connectionError(ProtocolError, "stream %d after stream %d", f.Stream, c.history.newest)
		}
		return nil, connectionError(StreamClosed, "%v on stream %d, which is closed", f.Type, f.Stream)
	default:
		return nil, connectionError(ProtocolError, "%v on stream %d, which is idle", f.Type, f.Stream)
	}
}

// countDropped counts what is dropped. DATA costs the peer its window, and updates are
// counted already.
func (c *Conn) countDropped(f *Frame) error {
	if f.Type == FrameData || f.Type == FrameWindowUpdate {
		return nil
	}
	return c.countOther()
}

// data takes DATA (RFC 9113, 6.1). Padding counts as used at once.
func (c *Conn) data(f *Frame, now Nanoseconds) (Event, error) {
	if !c.receive.arrived(f.Length) {
		return Event{}, connectionError(FlowControlError, "DATA of %d bytes in a window of %d", f.Length, c.receive.open)
	}
	if err := c.countData(f); err != nil {
		return Event{}, err
	}
	c.consumeConnection(f.Length, now)
	s, err := c.streamFor(f)
	n := len(f.Payload)
	switch {
	case s == nil:
		if err == nil {
			err = c.countLost(f.Length)
		}
		return c.told(err)
	case !s.receive.arrived(f.Length):
		return c.told(c.breach(s, FlowControlError, "DATA of %d bytes in a window of %d", f.Length, s.receive.open))
	case c.config.client && !s.answered:
		return c.told(c.breach(s, ProtocolError, "DATA before HEADERS"))
	}
	s.dataBefore = n
	if s.length >= 0 {
		if s.length -= int64(n); s.length < 0 || f.Ends() && s.length > 0 {
			return c.told(c.breach(s, ProtocolError, "body is not as long as content-length"))
		}
	}
	if f.Ends() {
		c.step(s, s.state.remoteEnded())
	}
	if padding := f.Length - n; padding > 0 {
		c.consumeStream(s, padding, now)
	}
	if n == 0 && !f.Ends() {
		return Event{}, nil
	}
	return Event{Kind: EventData, Stream: s.id, Value: s.value, Data: f.Payload, End: f.Ends()}, nil
}

// rstStream obeys RST_STREAM (RFC 9113, 6.4).
func (c *Conn) rstStream(f *Frame, now Nanoseconds) (Event, error) {
	c.excuse()
	s, err := c.streamFor(f)
	if err == nil && !c.config.client { // A server resets what it likes.
		err = c.countReset(f.Stream, s, now)
	}
	if s == nil || err != nil {
		return c.told(err)
	}
	c.closeStream(s)
	// RFC 9113, 8.7. Who has answered has looked at it, whatever the code says.
	return Event{Kind: EventReset, Stream: s.id, Value: s.value, Code: f.Code, NotExecuted: f.Code == RefusedStream && !s.answered}, nil
}
