package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// ttstreamServer serves the streams of a serverConn. Messages of unary calls may come
// between their frames, and are left to the serverConn.
type ttstreamServer struct {
	conn   *serverConn
	mu     sync.Mutex
	flow   ttstreamFlow
	calls  map[int32]*ttstreamCall
	gone   bool
	writer batchWriter
}

// hasStreams reports whether what has arrived is for the streams of the connection: a
// frame, or anything once there was one.
func (c *serverConn) hasStreams(arrived []byte) bool {
	match, need := ttheader.Matches(arrived)
	if c.streams.Load() != nil {
		return match || need > 0
	}
	if frame, _ := ttheader.IsFrame(arrived); !match || !frame || c.server.config.Streams == nil || !c.server.config.Allowed.ReceivesTTHeader() {
		return false
	}
	t := newTTStreamServer(c)
	c.streams.Store(t)
	if c.server.stopping.Load() != nil {
		t.stop()
	}
	return true
}

func newTTStreamServer(c *serverConn) *ttstreamServer {
	t := &ttstreamServer{conn: c, calls: map[int32]*ttstreamCall{}}
	t.flow.base = time.Now()
	t.flow.frames = ttstream.NewConn(ttstream.Config{
		Calls: true, MessageBytes: c.server.config.Limits.Bytes, Streams: min(c.server.config.ConnectionCalls, limits.StreamsPerConnection),
	}, c.server.buffers, 0)
	t.writer.init(c.conn, t, c.server.buffers)
	return t
}

// ttstreamRead is what came of bytes that have arrived.
type ttstreamRead struct {
	// used may be more than there were: what is missing is to be thrown away.
	used, need int
	// begun is a stream that is to be served, unary says that the message of a unary call
	// comes next.
	begun            *ttstreamCall
	unary, congested bool
}

// receive obeys frames, up to the beginning of a stream.
func (t *ttstreamServer) receive(b []byte, now time.Time) (did ttstreamRead, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn.server.stopped() {
		t.flow.frames.Shutdown(true)
	}
	t.writer.gathering.arrived = 0
	for did.begun == nil && did.used <= len(b) {
		event, used, need, err := t.flow.frames.Next(b[did.used:], t.flow.at(now))
		if err != nil {
			return did, err
		}
		did.used += used
		switch event.Kind {
		case ttstream.EventOpen:
			did.begun = t.beginLocked(&event)
			continue
		case ttstream.EventCall:
			did.unary = true
		case ttstream.EventCongested:
			t.flow.congested, did.congested = true, true
		default:
			t.takeLocked(&event)
			if used > 0 || event.Kind != ttstream.EventNone {
				continue
			}
			did.need = need
		}
		break
	}
	t.flow.pumpWaiting()
	return did, nil
}

// data looks at what has arrived, up to the beginning of a stream, and serves that. It
// reports false if the message of a unary call comes next.
func (t *ttstreamServer) data(arrived []byte) (looked bool, err error) {
	c := t.conn
	reader := c.conn.Reader()
	now := reader.Arrived()
	c.decoder.Restart()
	did, err := t.receive(arrived, now)
	if err != nil {
		return true, t.broken(err)
	}
	if did.unary && did.used == 0 {
		return false, nil
	}
	used := min(did.used, len(arrived))
	c.discard = did.used - used
	if used > 0 {
		c.spoke = true
		c.uncharge()
	}
	if used > 0 || did.congested {
		c.started = time.Time{} // each frame has its own time
	}
	if err := reader.Skip(used); err != nil {
		return true, err
	}
	switch {
	case did.begun != nil:
		t.writer.flush() // The peer waits for the window, whatever the handler does.
		t.serve(did.begun, now)
		return true, nil // the event loop calls again if there is more
	case did.congested:
		t.pauseIfCongested()
	case c.discard > 0:
		c.awaitDiscarded()
	case did.unary:
	case used < len(arrived):
		if err := t.awaitFrame(did.need, now); err != nil {
			return true, t.broken(err)
		}
	default:
		c.idle()
	}
	t.writer.flush()
	return true, nil
}

// awaitFrame is the state within a frame of need bytes. For those of a short one there is
// always room, as in budgetBytesMin.
func (t *ttstreamServer) awaitFrame(need int, now time.Time) error {
	c := t.conn
	reader := c.conn.Reader()
	if full := c.charge(held(reader)); full != nil && need >= budgetBytesMin {
		if out, err := t.leaveOut(full, now); out || err != nil {
			return err
		}
	}
	reader.Expect(need)
	if c.started.IsZero() {
		c.started = time.Now()
	}
	c.await("the rest of a frame", c.started, c.frameTimeout(need))
	return nil
}

// leaveOut throws the message away as it comes for which there is no room: its stream ends,
// and others go on. It reports false if the header of the frame is not there.
func (t *ttstreamServer) leaveOut(full error, now time.Time) (out bool, err error) {
	c := t.conn
	reader := c.conn.Reader()
	arrived := reader.Buffered()
	used, err := t.receiveFirst(arrived, full, now)
	if used == 0 || err != nil {
		return false, err
	}
	c.uncharge()
	c.started = time.Time{}
	have := min(used, len(arrived))
	c.discard = used - have
	if err := reader.Skip(have); err != nil {
		return true, err
	}
	c.awaitDiscarded()
	return true, nil
}

// receiveFirst obeys the first frame of what has arrived, of which the message is left out.
func (t *ttstreamServer) receiveFirst(arrived []byte, full error, now time.Time) (used int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	event, used, err := t.flow.frames.LeaveOut(arrived, t.flow.at(now))
	if call, _ := event.Value.(*ttstreamCall); call != nil && event.Kind == ttstream.EventData {
		call.endLocked(full)
	} else {
		t.takeLocked(&event)
	}
	return used, err
}

// pauseIfCongested stops reading while the connection is congested, if enough waits.
func (t *ttstreamServer) pauseIfCongested() {
	c := t.conn
	c.await(awaitMessage, time.Now(), 0)
	// With the lock: who takes messages must find it paused, or not congested.
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.flow.congested {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behind = true
	if !c.paused && c.conn.Reader().Len() >= limits.ReadAheadBytes {
		c.paused = true
		c.conn.PauseReading()
	}
}

// goOn reads again, what has arrived first.
func (c *serverConn) goOn() {
	c.mu.Lock()
	if c.paused && !c.rests {
		c.paused = false
		c.conn.ResumeReading()
	}
	c.mu.Unlock()
	c.conn.Wake()
}

// broken ends a connection whose peer broke a rule.
func (t *ttstreamServer) broken(err error) error {
	t.conn.server.log.Warn("connection closed: broken TTHeader streaming", "peer", t.conn.Peer, "reason", err.Error())
	t.writer.flush()
	return err
}

// tick does what is due.
func (t *ttstreamServer) tick(now time.Time) {
	t.mu.Lock()
	if !t.gone {
		t.flow.frames.Tick(t.flow.at(now))
	}
	congested := t.flow.congested
	t.mu.Unlock()
	t.flushNow()
	if congested {
		t.conn.conn.Wake() // A stream may have ended that has waited for too long.
	}
}

// stop begins the end: peers of ours are told, and streams that are on their way are still
// served.
func (t *ttstreamServer) stop() {
	t.mu.Lock()
	if !t.gone {
		t.flow.frames.Shutdown(false)
	}
	t.mu.Unlock()
	t.flushNow()
}

// closed is the end.
func (t *ttstreamServer) closed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	for _, call := range t.calls {
		call.resetLocked("", context.Canceled)
	}
	t.flow.frames.Close()
	t.writer.closeLocked()
}

// takeLocked obeys an event of a stream.
func (t *ttstreamServer) takeLocked(event *ttstream.Event) {
	call, _ := event.Value.(*ttstreamCall)
	if call == nil {
		if event.Kind == ttstream.EventData {
			t.flow.frames.Consume(event.Stream, len(event.Data))
		}
		return
	}
	switch event.Kind {
	case ttstream.EventData:
		t.writer.gathering.arrived++
		if err := call.messageLocked(event.Data); err != nil {
			call.endLocked(err)
		}
	case ttstream.EventEnd:
		call.endLocked(endOfRequests(event))
	case ttstream.EventReset:
		cause := error(context.Canceled)
		if event.Problem != nil {
			cause = &grpc.Error{Code: codeOfBreach(event.Problem), Detail: event.Problem.Detail}
		}
		call.resetLocked(event.Path, cause)
	}
}

// endOfRequests returns why no message follows a client's TRAILER: io.EOF, unless that says
// that the client has failed. The end of its messages is not where it was meant to be then.
func endOfRequests(event *ttstream.Event) error {
	switch {
	case event.Problem != nil:
		return &grpc.Error{Code: codeOfBreach(event.Problem), Detail: event.Problem.Detail}
	case event.Failed:
		return &grpc.Error{Code: grpc.Unknown, Detail: fmt.Sprintf("the client has failed: %s (exception %d)", event.Failure.Message, event.Failure.Code)}
	}
	return io.EOF
}

// codeOfBreach returns the code for what a peer did wrong on a stream.
func codeOfBreach(problem *ttstream.Error) grpc.Code {
	if problem.TooLarge {
		return grpc.ResourceExhausted
	}
	return grpc.Internal
}

// --- writing ---

// Lock implements messageCarrier and batchSource.
func (t *ttstreamServer) Lock() { t.mu.Lock() }

// Unlock implements messageCarrier and batchSource.
func (t *ttstreamServer) Unlock() { t.mu.Unlock() }

// othersLocked implements messageCarrier.
func (t *ttstreamServer) othersLocked() bool { return t.writer.gathering.othersLocked() }

// flushNow implements messageCarrier.
func (t *ttstreamServer) flushNow() {
	t.swapped()
	t.writer.flush()
}

// flushSoon implements messageCarrier.
func (t *ttstreamServer) flushSoon() { t.writer.flushSoon() }

func (t *ttstreamServer) waitsLocked() bool { return !t.gone && t.flow.frames.Unsent() > 0 }

func (t *ttstreamServer) swapLocked(empty *linkbuf.Buffer) *linkbuf.Buffer {
	full := t.flow.frames.Swap(empty)
	t.flow.pumpWaiting()
	return full
}

// swapped reads on if that has waited for something that has happened.
func (t *ttstreamServer) swapped() {
	t.mu.Lock()
	again := !t.gone && t.flow.uncongested()
	t.mu.Unlock()
	if again {
		t.conn.goOn()
	}
}

// writesLocked holds the connection, so that a stopping server does not close it.
func (t *ttstreamServer) writesLocked() { t.conn.conn.Hold() }

func (t *ttstreamServer) rests(err error) {
	if err != nil {
		_ = t.conn.conn.CloseWithError(err)
	}
	t.conn.conn.Release()
}

func (t *ttstreamServer) crowding() int { return t.conn.crowding() }

// --- calls ---

// ttstreamCall is a stream of a ttstreamServer, and the context that its handler runs with.
type ttstreamCall struct {
	ttstreamMessages
	streamEnding
	server    *ttstreamServer
	method    string
	service   string
	head      RequestHead
	headBytes int
	target    any
	refused   error
	// headed: the header of the answer was sent. answered: the end was, or cannot be.
	headed, answered bool
}

var (
	_ ServerStream = (*ttstreamCall)(nil)
	_ callStream   = (*ttstreamCall)(nil)
)

// beginLocked makes a call of a HEADER.
func (t *ttstreamServer) beginLocked(event *ttstream.Event) *ttstreamCall {
	c := t.conn
	config := &c.server.config
	call := &ttstreamCall{server: t}
	head := c.names.read(event.Info)
	call.head, call.headBytes = head.RequestHead, event.Info.Size()
	call.head.Timeout = time.Duration(event.Timeout)
	call.parent = c.context()
	if call.target = config.Lookup(head.service, event.Method, wire.PayloadThrift); call.target == nil {
		call.method, call.service = string(event.Method), string(head.service)
		call.target, call.refused = config.unknownStream(call.service, call.method, wire.PayloadThrift)
	}
	switch {
	case call.target == nil:
	case !config.Streams(call.target):
		call.refused = &grpc.Error{Code: grpc.Unimplemented, Detail: fmt.Sprintf("method %.100q takes one message and answers with one: it was called as a stream", event.Method)}
	}
	call.init(c.server.buffers)
	call.id, call.flow, call.limit, call.budget, call.connection = uint32(event.Stream), &t.flow, config.Limits.Bytes, &c.server.budget, t
	call.patience = config.SendTimeout
	t.flow.frames.Attach(event.Stream, call)
	t.calls[event.Stream] = call
	return call
}

// serve runs a call, on the goroutine of data. Others do not wait for it once it lets go of
// the connection.
func (t *ttstreamServer) serve(s *ttstreamCall, now time.Time) {
	c := t.conn
	server := c.server
	call := c.newInbound(now, now, s.headBytes)
	call.Protocol, call.Payload, call.Type = wire.TTHeader, wire.PayloadThrift, thriftwire.Call
	call.Ends = c.Ends
	call.server, call.conn, call.stream = server, c, s
	call.headerSequence, call.Sequence = int32(s.id), int32(s.id)
	call.Head, call.Target, call.invalid = s.head, s.target, s.refused
	call.Body = []byte{}
	if call.Target == nil {
		call.Name, call.Head.Service = s.method, s.service
	}
	t.mu.Lock()
	call.fulmar = t.flow.frames.Ours()
	t.mu.Unlock()
	server.running.Add(1)
	c.mu.Lock()
	c.running++
	c.streaming++
	c.awaited, c.deadline, c.hurried = awaitMessage, time.Time{}, time.Time{}
	c.mu.Unlock()
	c.conn.Hold()
	c.conn.Reader().Done()
	call.here = true
	if call.invalid == nil {
		if call.invalid = server.budget.take(s.headBytes); call.invalid == nil {
			call.headBytes = s.headBytes
		}
	}
	if call.invalid == nil && call.Target != nil {
		call.Stream = s
		s.willWait = call.WillWait
		s.expireAt(call.Arrived, call.Head.Timeout)
	}
	server.run(s, call)
}

// resetLocked ends a stream that its peer has given up, or that cannot go on.
func (s *ttstreamCall) resetLocked(path string, cause error) {
	s.answered = true
	s.cancelFrom(path)
	s.breakLocked(cause)
}

func (s *ttstreamCall) answerableLocked() error {
	if s.server.gone || s.answered {
		return context.Canceled
	}
	return nil
}

// Send implements Stream.
func (s *ttstreamCall) Send(bool) error {
	return s.sendRoom(false, func() error {
		if s.broken != nil {
			return s.broken
		}
		s.server.writer.gathering.messages++
		s.headed = true
		return s.answerableLocked()
	})
}

// CloseSend implements Stream. The end of a handler is the end of what it sends.
func (s *ttstreamCall) CloseSend() error { return nil }

// SendHeader implements ServerStream.
func (s *ttstreamCall) SendHeader(metadata []Pair) error {
	t := s.server
	t.mu.Lock()
	err := s.broken
	if err == nil {
		err = s.answerableLocked()
	}
	switch {
	case err != nil:
	case s.headed:
		err = errHeaderSent
	default:
		if err = t.flow.frames.Header(int32(s.id), appendSingle(nil, metadata)); err == nil {
			s.headed = true
		}
	}
	t.mu.Unlock()
	flushHeader(t, metadata)
	return err
}

// keepHead implements callStream.
func (s *ttstreamCall) keepHead(ReplyHead) {}

// errUnaryAnswer is why a stream cannot be answered as other calls are.
var errUnaryAnswer = errors.New("a stream over TTHeader ends with a trailer, not with a message")

// send implements callStream.
func (s *ttstreamCall) send(*Inbound, *outgoing) error { return errUnaryAnswer }

// finish implements callStream.
func (s *ttstreamCall) finish(call *Inbound, head ReplyHead) error {
	return s.end(call, head, nil)
}

// sendException implements callStream.
func (s *ttstreamCall) sendException(call *Inbound, _ string, exception thriftwire.ApplicationException, head ReplyHead) error {
	return s.end(call, head, &ttstream.Failure{Code: exception.Type, Message: exception.Message})
}

// end sends the TRAILER. A grpc.Error says that a call which has succeeded has failed after all,
// as the peer is told.
func (s *ttstreamCall) end(call *Inbound, head ReplyHead, failure *ttstream.Failure) error {
	t := s.server
	if !call.fulmar {
		head.leaveOut()
	}
	pairs, err := head.appendPairs(nil)
	t.mu.Lock()
	if answerable := s.answerableLocked(); answerable != nil {
		t.mu.Unlock()
		return answerable
	}
	s.answered = true
	var why *grpc.Error
	fails := func(reason *grpc.Error) {
		if failure == nil {
			why, failure = reason, &ttstream.Failure{Code: ttstream.CodeInternal, Message: reason.Detail}
		}
	}
	if (s.rest != nil || s.unsendable != nil) && head.Business == nil {
		fails(lacksMessage())
	}
	s.rest = nil // The handler does not wait for it.
	if err == nil {
		err = t.flow.frames.End(int32(s.id), pairs, failure)
	}
	if err != nil {
		// Better without metadata than not at all.
		least, _ := (&ReplyHead{Executed: head.Executed, Code: head.Code}).appendPairs(nil)
		fails(&grpc.Error{Code: grpc.Internal, Detail: err.Error()})
		err = t.flow.frames.End(int32(s.id), least, failure)
	}
	if err == nil && why != nil {
		err = why
	}
	s.closeLocked()
	t.mu.Unlock()
	t.flushNow()
	return err
}

// finished implements callStream.
func (s *ttstreamCall) finished(call *Inbound) {
	t := s.server
	t.mu.Lock()
	unanswered := s.answerableLocked() == nil
	t.mu.Unlock()
	if unanswered {
		// The peer waits for an answer that nobody has made.
		_ = s.end(call, ReplyHead{}, &ttstream.Failure{Code: ttstream.CodeInternal, Message: "the call ended without an answer"})
	}
	t.mu.Lock()
	s.giveUpLocked()
	delete(t.calls, int32(s.id))
	if !t.gone {
		t.flow.frames.Release(int32(s.id))
	}
	t.mu.Unlock()
	t.flushNow()
	t.conn.ended(call, 1)
}
