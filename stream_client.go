package fulmar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/observe"
)

// StreamCaller opens streams; a *Client is one. Generated clients with streaming methods
// need a Caller that is a StreamCaller as well.
type StreamCaller interface {
	// OpenStream begins a call of a streaming method. Timeout, that of a policy which names
	// the method or its service, and the deadline of ctx are for all of the stream;
	// ClientConfig.Timeout is not.
	OpenStream(ctx context.Context, method *MethodDesc, options ...CallOption) (*ClientMessages, error)
}

// ClientMessages is a stream without types, from which generated code makes one with them.
// Whoever knows its messages only when it runs, such as a proxy or an adapter for stubs
// of another generator, uses it as it is.
type ClientMessages struct{ clientStream }

// Send sends a message that the codec of the method can encode, as
// BidiStreamingClient.Send does.
func (m *ClientMessages) Send(message any) error { return m.send(message, false) }

// Recv waits for the next message, and puts it into one that is empty and that the codec
// of the method can decode into. It returns errors as ServerStreamingClient.Recv does.
func (m *ClientMessages) Recv(message any) error { return m.recv(message) }

// HeaderMetadata is Header for keys with several values.
func (m *ClientMessages) HeaderMetadata() (Metadata, error) {
	pairs, err := m.header()
	return Metadata{pairs: pairs}, err
}

// TrailerMetadata is Trailer for keys with several values.
func (m *ClientMessages) TrailerMetadata() Metadata {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trailer
}

// clientStream is the caller's side of a stream.
type clientStream struct {
	client *Client
	state  streamState
	governedCall
	ctx callContext
	// opened is nil until the stream is open; address is where that was tried last.
	opened  atomic.Pointer[openedStream]
	address string
	// choice is the instance where it is open, if there are several.
	choice  cluster.Choice
	replay  replay
	limit   time.Duration
	chosen  CallOption
	timeout atomic.Int64
	// answer is the message that CloseAndRecv has got while it waits for how the call ends.
	answer atomic.Value

	// One goroutine at a time sends, and one receives: these make sure of it.
	sending, receiving streamLock
	// sentAll: no message follows. Who sends knows it.
	sentAll bool

	mu sync.Mutex
	// ended is how the stream ended, nil before that. hasEnded is for those who ask before
	// each message: a lock is 1 % of what one takes.
	ended    error
	hasEnded atomic.Bool
	trailer  Metadata
	unwatch  func() bool
	observed *observedStream
}

// OpenStream implements StreamCaller; generated clients use it.
func (c *Client) OpenStream(ctx context.Context, method *MethodDesc, options ...CallOption) (*ClientMessages, error) {
	if !method.streams() {
		return nil, noStreams(method)
	}
	m := new(ClientMessages)
	s := &m.clientStream
	s.client, s.start, s.chosen = c, time.Now(), choices(options)
	s.governed = c.governor.method(method)
	s.held = s.governed.held.Load()
	timeout := s.chosen.timeoutOf(s.held.timeoutByName)
	s.limit = max(timeout, 0)
	if outer, ok := ctx.Deadline(); ok && (timeout == 0 || outer.Sub(s.start) < timeout) {
		s.limit = outer.Sub(s.start)
	}
	s.state = streamState{side: SideClient, method: method, peer: c.target, protocol: c.protocol, client: s, log: c.log}
	if c.observers != nil {
		ctx = s.observe(ctx)
	}
	s.ctx.parent = ctx
	if s.limit != 0 || timeout == explicitZero {
		s.ctx.deadline = s.start.Add(s.limit)
	}
	c.explainBegin(&s.governedCall, method, s.chosen.explained)
	if err := s.runChain(); err != nil {
		return nil, s.failed(err)
	}
	if !s.sampled {
		// It belongs to the caller, who may read it from now on.
		c.explainEnd(&s.governedCall, nil)
		s.explained = nil
	}
	// With the lock: the context may end before this returns.
	s.mu.Lock()
	s.unwatch = s.ctx.AfterFunc(func() { s.end(s.failure(s.ctx.Err()), s.ctx.Err()) })
	s.mu.Unlock()
	return m, nil
}

// runChain opens the stream, through the interceptors.
func (s *clientStream) runChain() error {
	returned := false
	defer func() {
		if !returned { // an interceptor has panicked, or ended the goroutine
			_ = s.failed(&Error{code: Internal, message: "the call ended in a panic, or with its goroutine", executed: ExecutedMaybe})
		}
	}()
	err := s.client.nextStream(&s.ctx, Stream{&s.state})
	returned = true
	if err == nil && s.current() == nil {
		return &Error{code: Internal, message: "an interceptor went on without opening the stream", executed: ExecutedNo}
	}
	return err
}

// observe begins to tell observers of the stream.
func (s *clientStream) observe(ctx context.Context) context.Context {
	c, o := s.client, new(observedStream)
	o.observers, s.observed = c.observers, o
	o.call = observe.Call{
		Side: observe.Client, Service: s.state.method.Service, Method: s.state.method.Name,
		Protocol: c.protocol.String(), Peer: c.target, Start: s.start,
	}
	o.err, o.executed = c.observers.notReturned, executedWord(ExecutedNo)
	begun := false
	defer func() {
		if !begun {
			o.done() // one of them has ended the goroutine
		}
	}()
	ctx = o.begin(ctx)
	begun, o.anywhere = true, true
	return ctx
}

// failed ends a stream that nobody gets, because it could not be opened, or because an
// interceptor has failed behind that.
func (s *clientStream) failed(err error) error {
	if s.current() != nil {
		s.stopReplay(context.Canceled).Release()
		s.leave(err)
	}
	s.ctx.finish()
	s.tellEnd(err, s.current() != nil)
	return err
}

// tellEnd tells users of the end of the stream, all of them if one ends the goroutine.
func (s *clientStream) tellEnd(err error, maybe bool) {
	defer func() {
		if o := s.observed; o != nil {
			if o.err = err; maybe {
				o.executed = executedWord(ExecutedMaybe)
			}
			o.tell(observe.Event{Phase: observe.PhaseDone})
		}
	}()
	defer s.state.guard(func() { s.client.explainEnd(&s.governedCall, err) }, func() {})
	s.state.ended(err)
}

// failure returns the error for what the carrier says, or io.EOF.
func (s *clientStream) failure(err error) error { return s.failureAt(s.current(), err) }

func (s *clientStream) failureAt(opened *openedStream, err error) error {
	if err == io.EOF {
		status, trailer := opened.End()
		switch {
		case trailer.Business != nil:
			return &BusinessError{status: trailer.Business.Status, message: trailer.Business.Message, extra: trailer.Business.Extra}
		case status == nil:
			return io.EOF
		}
		failed := statusFailure(status, trailer)
		if status.IsException {
			failed = remoteFailure(thriftwire.ApplicationException{Type: status.Exception, Message: status.Message}, trailer)
		}
		failed.method, failed.address, failed.elapsed = s.state.method.fullName(), opened.address, time.Since(s.start)
		return failed
	}
	failed := callFailure(err, max(s.limit, 1))
	if isStalled(err) {
		failed.code, failed.message = DeadlineExceeded, err.Error()
	}
	if failed.phase == PhaseAcquire {
		failed.phase, failed.executed = PhaseWait, ExecutedMaybe
	}
	failed.method, failed.address, failed.elapsed = s.state.method.fullName(), opened.address, time.Since(s.start)
	return failed
}

// end ends the stream, once, and returns how it ended. The server learns of cause if it
// does not know.
func (s *clientStream) end(err, cause error) error {
	// At first, so that nobody waits for a header that has not come.
	s.current().Cancel(cause)
	opened := s.stopReplay(cause)
	s.mu.Lock()
	if s.ended != nil {
		s.mu.Unlock()
		return s.ended
	}
	s.ended = err
	s.hasEnded.Store(true)
	_, trailer := opened.End()
	s.trailer = Metadata{pairs: slices.Concat(trailer.Metadata, trailer.Trailing)}
	if s.chosen.receive != nil {
		*s.chosen.receive = received(s.trailer.pairs, nil)
	}
	if s.chosen.reply != nil {
		header, _ := opened.Header()
		s.chosen.reply.fill(header, s.trailer.pairs)
	}
	unwatch := s.unwatch
	s.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
	opened.Release()
	s.ctx.finish()
	told := err
	if err == io.EOF {
		told = nil
	}
	s.leave(told)
	s.tellEnd(told, told != nil)
	return err
}

// over returns how the stream ended, nil before that.
func (s *clientStream) over() error {
	if !s.hasEnded.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Context implements ClientStream.
func (s *clientStream) Context() context.Context { return &s.ctx }

// Header implements ClientStream.
func (s *clientStream) Header() (map[string]string, error) {
	header, err := s.header()
	return received(header, nil), err
}

func (s *clientStream) header() ([]transport.Pair, error) {
	opened := s.current()
	pairs, err := opened.Header()
	if s.reopened(opened, err) {
		return s.header()
	}
	if err != nil {
		if ended := s.over(); ended != nil && ended != io.EOF {
			return nil, ended
		}
		return nil, s.failure(err)
	}
	s.replay.drop()
	return pairs, nil
}

// Trailer implements ClientStream.
func (s *clientStream) Trailer() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return received(s.trailer.pairs, nil)
}

// SetRecvTimeout implements ClientStream.
func (s *clientStream) SetRecvTimeout(d time.Duration) { s.timeout.Store(int64(max(d, 0))) }

// Cancel implements ClientStream.
func (s *clientStream) Cancel() { s.end(s.failure(context.Canceled), context.Canceled) }

// CloseSend says that no message follows.
func (s *clientStream) CloseSend() error {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.sentAll = true
	if ended := s.over(); ended != nil {
		return nil
	}
	opened := s.closing()
	if err := opened.CloseSend(); err != nil && !s.reopened(opened, err) {
		if s.over() != nil {
			return nil // Recv says how
		}
		return s.failure(err)
	}
	return nil
}

// unsendable is the error for a message that is not sent, which ends nothing.
func (s *clientStream) unsendable(code Code, cause error) error {
	return &Error{
		code: code, message: cause.Error(), phase: PhaseEncode, executed: ExecutedMaybe, cause: cause,
		method: s.state.method.fullName(), address: s.current().address, elapsed: time.Since(s.start),
	}
}

// send sends a message, the last one of the client if last.
func (s *clientStream) send(message any, last bool) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	if s.sentAll {
		return s.unsendable(Internal, errors.New("a message is sent behind CloseSend"))
	}
	if err := s.state.sends(message); err != nil {
		return err
	}
	if s.over() != nil {
		return io.EOF
	}
	opened, length, err := s.encode(message, last)
	if err != nil {
		return s.unsendable(encodeCode(err), err)
	}
	switch err := opened.Send(last); {
	case err == nil || s.reopened(opened, err):
		s.observed.message(observe.PhaseSent, length)
		return nil
	case err == io.EOF:
		return err
	case s.over() != nil:
		return io.EOF
	case isStalled(err):
		return s.end(s.failure(err), context.Canceled)
	default:
		return s.failure(err)
	}
}

// recv receives into a message that is empty.
func (s *clientStream) recv(message any) error {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	if ended := s.over(); ended != nil {
		return ended
	}
	if err := s.ctx.parent.Err(); err != nil {
		// What watches the context has not run yet. Who has canceled it gets no message more,
		// however many have arrived.
		return s.end(s.failure(err), err)
	}
	timeout := time.Duration(s.timeout.Load())
	opened := s.current()
	body, err := opened.Receive(timeout)
	for err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		again, late := s.reopenedWithin(timeout, opened, err)
		if late {
			err = os.ErrDeadlineExceeded
		}
		if !again {
			break
		}
		opened = s.current()
		body, err = opened.Receive(timeout)
	}
	switch {
	case err == nil:
		s.replay.drop()
	case errors.Is(err, os.ErrDeadlineExceeded):
		late := noMessage(timeout)
		late.method, late.address, late.elapsed = s.state.method.fullName(), opened.address, time.Since(s.start)
		return late
	default:
		return s.end(s.failure(err), context.Canceled)
	}
	s.observed.message(observe.PhaseArrived, len(body))
	if _, err := s.state.method.Codec.ReadBody(body, message, s.client.limits, false); err != nil {
		bad := s.client.badReply(err)
		bad.method, bad.address, bad.elapsed = s.state.method.fullName(), opened.address, time.Since(s.start)
		return s.end(bad, context.Canceled)
	}
	return s.state.received(message)
}

// noMessage is the error of a Recv that has waited for long enough.
func noMessage(timeout time.Duration) *Error {
	return &Error{code: DeadlineExceeded, origin: OriginLocal, phase: PhaseWait, executed: ExecutedMaybe, message: fmt.Sprintf("no message within %v", timeout)}
}

// clientStreamOf is a clientStream with types.
type clientStreamOf[Req, Res any] struct{ *clientStream }

var (
	_ ServerStreamingClient[int]      = clientStreamOf[int, int]{}
	_ ClientStreamingClient[int, int] = clientStreamOf[int, int]{}
	_ BidiStreamingClient[int, int]   = clientStreamOf[int, int]{}
)

// Send sends a message.
func (s clientStreamOf[Req, Res]) Send(message *Req) error { return s.send(message, false) }

// Recv receives a message.
func (s clientStreamOf[Req, Res]) Recv() (*Res, error) {
	message := newMessage[Res](s.state.method.NewReply)
	if err := s.recv(message); err != nil {
		return nil, err
	}
	return message, nil
}

// All yields the messages that are left.
func (s clientStreamOf[Req, Res]) All() iter.Seq2[*Res, error] {
	return func(yield func(*Res, error) bool) {
		for {
			message, err := s.Recv()
			if err == io.EOF {
				return
			}
			if !yield(message, err) || err != nil {
				s.Cancel()
				return
			}
		}
	}
}

// CloseAndRecv ends the sending side and returns the answer.
func (s clientStreamOf[Req, Res]) CloseAndRecv() (*Res, error) {
	if err := s.CloseSend(); err != nil {
		return nil, err
	}
	message, _ := s.answer.Load().(*Res)
	if message == nil {
		var err error
		switch message, err = s.Recv(); {
		case err == io.EOF:
			return nil, s.miscounted("the server ended the stream without an answer")
		case err != nil:
			return nil, err
		}
		// Who waits for no longer than a receive timeout may ask again.
		s.answer.Store(message)
	}
	// How the call ended comes behind its message.
	switch _, err := s.Recv(); {
	case err == io.EOF:
		return message, nil
	case err != nil:
		return nil, err
	}
	failed := s.miscounted("the server answered with more than one message")
	s.end(failed, context.Canceled)
	return nil, failed
}

// miscounted is the error for a server that does not answer with one message. The two do not
// mean the same method, which is what gRPC has its code for.
func (s *clientStream) miscounted(message string) *Error {
	return &Error{
		code: Unimplemented, origin: OriginTransport, phase: PhaseReply, executed: ExecutedMaybe, message: message,
		method: s.state.method.fullName(), address: s.current().address, elapsed: time.Since(s.start),
	}
}

// newMessage returns an empty message with the defaults of the IDL.
func newMessage[T any](with func() any) *T {
	if with != nil {
		if message, ok := with().(*T); ok {
			return message
		}
	}
	return new(T)
}

// openMessages opens a stream with any Caller that can.
func openMessages(ctx context.Context, caller Caller, method *MethodDesc, options []CallOption) (*clientStream, error) {
	streams, ok := caller.(StreamCaller)
	if !ok {
		return nil, &Error{code: Unimplemented, message: fmt.Sprintf("%T makes no streaming calls such as %s", caller, method.fullName()), executed: ExecutedNo}
	}
	messages, err := streams.OpenStream(ctx, method, options...)
	if err != nil {
		return nil, err
	}
	return &messages.clientStream, nil
}

// OpenServerStream begins a call that sends one message and receives many; generated code
// uses it.
func OpenServerStream[Req, Res any](ctx context.Context, caller Caller, method *MethodDesc, request *Req, options ...CallOption) (ServerStreamingClient[Res], error) {
	s, err := openMessages(ctx, caller, method, options)
	if err != nil {
		return nil, err
	}
	sent := false
	defer func() {
		if !sent { // what an interceptor does with each message has ended the goroutine
			s.Cancel()
		}
	}()
	err = s.send(request, true)
	sent = true
	if err != nil && err != io.EOF {
		return nil, s.end(err, context.Canceled)
	}
	return clientStreamOf[Req, Res]{s}, nil
}

// OpenClientStream begins a call that sends many messages and receives one; generated code
// uses it.
func OpenClientStream[Req, Res any](ctx context.Context, caller Caller, method *MethodDesc, options ...CallOption) (ClientStreamingClient[Req, Res], error) {
	s, err := openMessages(ctx, caller, method, options)
	if err != nil {
		return nil, err
	}
	return clientStreamOf[Req, Res]{s}, nil
}

// OpenBidiStream begins a call that sends and receives many messages; generated code uses
// it.
func OpenBidiStream[Req, Res any](ctx context.Context, caller Caller, method *MethodDesc, options ...CallOption) (BidiStreamingClient[Req, Res], error) {
	s, err := openMessages(ctx, caller, method, options)
	if err != nil {
		return nil, err
	}
	return clientStreamOf[Req, Res]{s}, nil
}
