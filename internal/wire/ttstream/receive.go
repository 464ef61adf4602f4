package ttstream

import (
	"math"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// Next takes the first frame in b. It returns what that means and how many bytes were
// used, or how many b must hold for the next step. used may be more than b holds: what
// is missing is thrown away as it arrives. The caller goes on until nothing was used and
// there is no event; an event may come without bytes.
//
// An error ends the connection.
func (c *Conn) Next(b []byte, now Nanoseconds) (event Event, used, need int, err error) {
	if c.err != nil {
		return Event{}, 0, 0, c.err
	}
	if len(c.lost) > 0 {
		event, c.lost = c.lost[0], c.lost[1:]
		return event, 0, 0, nil
	}
	if c.Congested(now) {
		c.look(b)
		return Event{Kind: EventCongested}, 0, 0, nil
	}
	if c.config.calls {
		switch isFrame, need := ttheader.IsFrame(b); {
		case need > 0:
			return Event{}, 0, need, nil
		case !isFrame:
			return Event{Kind: EventCall}, 0, 0, nil
		}
	}
	frame, used, need, err := Next(b, c.config.messageBytes)
	if err == nil && used > 0 {
		c.count(now)
		event, err = c.dispatch(&frame, now)
	}
	if err != nil {
		return Event{}, 0, 0, c.fail(err)
	}
	return event, used, need, nil
}

// LeaveOut takes the frame that b begins with, of which Next needs more, without its payload,
// for which there is no room: used is more than b holds. Of a message the event has no Data,
// and nothing of it is to be consumed. Nothing is used as long as the header is not there.
func (c *Conn) LeaveOut(b []byte, now Nanoseconds) (event Event, used int, err error) {
	if c.err != nil {
		return Event{}, 0, c.err
	}
	frame, used, need, err := frameOf(ttheader.NextFrameHead(b, c.config.messageBytes))
	s := c.streams[frame.Stream]
	switch {
	case err != nil, need > 0:
	case frame.Type == FrameHeader:
		err = connectionError(CodeBadFrame, "HEADER with a payload of %d bytes", frame.Length)
	case frame.Type == FrameData && s != nil && judge(s.state, c.config.client, s.headed, FrameData) == accept:
		c.count(now)
		c.hold(s, cost(frame.Length))
		c.Consume(s.id, frame.Length)
		event = Event{Kind: EventData, Stream: s.id, Value: s.value}
	default:
		c.count(now)
		event, err = c.dispatch(&frame, now)
	}
	if err != nil {
		return Event{}, 0, c.fail(err)
	}
	return event, used, nil
}

// fail ends the connection.
func (c *Conn) fail(err error) error {
	problem, ok := err.(*Error)
	if !ok {
		problem = connectionError(CodeInternal, "%v", err)
	}
	c.err = problem
	return problem
}

// dispatch obeys one frame.
func (c *Conn) dispatch(f *Frame, now Nanoseconds) (Event, error) {
	if f.Stream == 0 {
		return c.control0(f)
	}
	s := c.streams[f.Stream]
	if s == nil {
		if f.Type == FrameHeader && !c.config.client {
			return c.begin(f, now)
		}
		return Event{}, c.dropped(f)
	}
	switch judge(s.state, c.config.client, s.headed, f.Type) {
	case drop:
		return Event{}, c.dropped(f)
	case endHeader:
		return c.breach(s, CodeUnexpectedHeader, "HEADER of a stream that has one")
	case endIllegal:
		return c.breach(s, CodeIllegalOperation, "%v behind TRAILER", f.Type)
	}
	switch f.Type {
	case FrameHeader:
		s.headed = true
		return Event{Kind: EventHeader, Stream: s.id, Value: s.value, Info: f.Info}, nil
	case FrameData:
		return c.data(s, f)
	case FrameTrailer:
		return c.trailer(s, f)
	case FrameReset:
		return c.reset(s, f, now)
	default:
		return c.meta(s, f)
	}
}

// dropped counts what concerns no stream. A peer may have sent any number of messages
// before it learns that nobody wants them.
func (c *Conn) dropped(f *Frame) error {
	if f.Type == FrameData && f.Length > 0 {
		return nil
	}
	return c.countOther()
}

// control0 obeys a frame about the connection. Kitex has none, and passes over ours.
func (c *Conn) control0(f *Frame) (Event, error) {
	if f.Type == FrameHeader {
		return Event{}, connectionError(CodeUnexpectedHeader, "HEADER of stream 0, which is the connection")
	}
	if f.Type != FrameMeta {
		return Event{}, c.countOther()
	}
	if err := c.countMeta(); err != nil {
		return Event{}, err
	}
	if c.config.client && !c.peer.known {
		c.learn(f.Info)
	}
	if value, ok := f.Info.String(wire.CloseConnection); ok && string(value) == wire.CloseConnectionValue && !c.peer.gone {
		c.peer.gone = true
		return Event{Kind: EventGoAway}, nil
	}
	return Event{}, nil
}

// learn takes what a server of ours says of all streams of its connection.
func (c *Conn) learn(info wire.Info) {
	text, _ := info.String(wire.StreamWindow)
	window, ok := number(text)
	if !ok {
		return
	}
	c.peer.known, c.peer.window = true, window
	text, _ = info.String(wire.StreamMessage)
	if message, ok := number(text); ok {
		c.peer.message = min(message, limits.FrameLengthMax)
	}
	text, _ = info.String(wire.StreamCount)
	if streams, ok := number(text); ok && streams > 0 {
		c.peer.streams = int(min(streams, math.MaxInt32))
	}
	c.excess = 0
	for _, s := range c.streams {
		c.excess += c.excessOf(s)
		// What went before counts.
		s.limited, s.message = true, c.peer.message
		c.give(s, window)
	}
}

// tooManyStreams is the text of a refusal by which a client knows that another connection may
// take the stream.
const tooManyStreams = "too many streams"

// begin takes a HEADER that begins a stream, at a server.
func (c *Conn) begin(f *Frame, now Nanoseconds) (Event, error) {
	c.counts.streams++
	refusal := Failure{}
	switch {
	case c.refusing:
		refusal = Failure{Code: CodeClosing, Message: "server is going away"}
	case len(c.streams) >= c.config.streams:
		refusal = Failure{Code: CodeInternal, Message: tooManyStreams}
	}
	if err := thriftwire.CheckName(f.Method); err != nil {
		if err := c.countBreach(); err != nil {
			return Event{}, err
		}
		c.refuse(f, Failure{Code: CodeBadFrame, Message: err.Error()})
		return Event{}, nil
	}
	if refusal.Code != 0 {
		if err := c.countRefusal(); err != nil {
			return Event{}, err
		}
		c.refuse(f, refusal)
		return Event{}, nil
	}
	s := &stream{id: f.Stream, began: now, method: string(f.Method), message: limits.FrameLengthMax}
	event := Event{Kind: EventOpen, Stream: s.id, Method: f.Method, Info: f.Info}
	if text, ok := f.Info.String(wire.StreamWindow); ok {
		if s.credit, s.limited = number(text); s.limited {
			s.agreed = true
			c.introduce()
		}
	}
	if text, ok := f.Info.String(wire.StreamMessage); ok {
		if n, ok := number(text); ok {
			s.message = min(n, limits.FrameLengthMax)
		}
	}
	if text, ok := f.Info.Int(wire.KeyTimeout); ok {
		if n, ok := number(text); ok {
			event.Timeout = min(Nanoseconds(n)*1e6, Nanoseconds(limits.PeerStreamTimeout))
		}
	}
	c.streams[s.id] = s
	return event, nil
}

// refuse answers a HEADER for which nothing was done.
func (c *Conn) refuse(f *Frame, failure Failure) {
	name := ""
	if thriftwire.CheckName(f.Method) == nil {
		name = string(f.Method)
	}
	c.control++
	c.sendReset(f.Stream, name, failure, "", true)
}

// introduce answers the first stream of a client of ours with what holds for all.
func (c *Conn) introduce() {
	if c.peer.told {
		return
	}
	c.peer.known, c.peer.told = true, true
	c.pairs = append(c.pairs[:0],
		ttheader.Pair{Key: wire.StreamWindow, Value: c.config.windowText},
		ttheader.Pair{Key: wire.StreamMessage, Value: c.config.messageSizeText},
		ttheader.Pair{Key: wire.StreamCount, Value: c.config.streamsText})
	c.control++
	c.send(&outgoing{kind: FrameMeta, pairs: c.pairs})
	if c.stopping {
		c.sendGoAway()
	}
}

// data takes a message.
func (c *Conn) data(s *stream, f *Frame) (Event, error) {
	switch {
	case f.Payload == nil && f.Length > 0:
		event, err := c.breach(s, CodeBadFrame, "message of %d bytes (limit %d)", f.Length, c.config.messageBytes)
		if event.Problem != nil {
			event.Problem.TooLarge = true
		}
		return event, err
	case f.Length == 0:
		return c.breach(s, CodeBadFrame, "DATA without a message")
	}
	c.hold(s, cost(f.Length))
	return Event{Kind: EventData, Stream: s.id, Value: s.value, Data: f.Payload}, nil
}

// trailer takes the peer's last frame but RST.
func (c *Conn) trailer(s *stream, f *Frame) (Event, error) {
	event := Event{Kind: EventEnd, Stream: s.id, Value: s.value, Info: f.Info}
	if f.Length > 0 {
		failure, err := failureOf(f)
		event.Failure, event.Failed = failure, true
		if err != nil {
			event.Failed = false
			event.Problem = streamError(s.id, CodeBadFrame, "TRAILER: %v", err)
		}
	} else if business, ok, err := parseBusiness(f.Info); err != nil {
		event.Problem = streamError(s.id, CodeBadBusiness, "TRAILER: %v", err)
	} else {
		event.Business, event.HasBusiness = business, ok
	}
	if !c.config.client {
		s.state = stateHalfRemote
		return event, nil
	}
	if s.state == stateOpen && !c.peer.known {
		// Servers of Kitex from before 2025 wait for it.
		c.send(&outgoing{kind: FrameTrailer, stream: s.id, method: s.method})
	}
	c.closeStream(s)
	return event, nil
}

// failureOf reads what is behind a TRAILER or RST; it is never long.
func failureOf(f *Frame) (Failure, error) {
	if f.Payload == nil {
		return Failure{}, connectionError(CodeBadFrame, "exception of %d bytes", f.Length)
	}
	return parseFailure(f.Payload)
}

// reset takes a RST. One that says nothing is of type 13, as with Kitex.
func (c *Conn) reset(s *stream, f *Frame, now Nanoseconds) (Event, error) {
	if !c.config.client {
		if err := c.countReset(s, now); err != nil {
			return Event{}, err
		}
	}
	event := Event{Kind: EventReset, Stream: s.id, Value: s.value, Info: f.Info, Failed: true}
	event.Failure = Failure{Code: codeReset, Message: "rst"}
	if f.Length > 0 {
		if failure, err := failureOf(f); err == nil {
			event.Failure = failure
		}
	}
	if path, ok := f.Info.String(wire.StreamCancelPath); ok {
		event.Path = cleanPath(string(path))
	}
	executed, ok := f.Info.String(wire.Executed)
	event.NotExecuted = ok && string(executed) == executedNo && c.config.client && !s.headed
	event.Full = event.NotExecuted && event.Failure.Message == tooManyStreams
	c.closeStream(s)
	return event, nil
}

// meta takes a META for a stream. What is not ours is a proxy's, for users of Kitex who
// asked for it.
func (c *Conn) meta(s *stream, f *Frame) (Event, error) {
	if err := c.countMeta(); err != nil {
		return Event{}, err
	}
	if text, ok := f.Info.String(wire.StreamWindow); ok && s.limited {
		if n, ok := number(text); ok {
			c.give(s, n)
		}
	}
	return Event{}, nil
}

// breach resets a stream for what its peer did.
func (c *Conn) breach(s *stream, code Code, format string, args ...any) (Event, error) {
	if err := c.countBreach(); err != nil {
		return Event{}, err
	}
	problem := streamError(s.id, code, format, args...)
	if s.state == stateClosed {
		return Event{}, nil
	}
	c.control++
	c.sendReset(s.id, s.method, Failure{Code: code, Message: problem.Detail}, "", false)
	c.closeStream(s)
	return Event{Kind: EventReset, Stream: s.id, Value: s.value, Problem: problem}, nil
}
