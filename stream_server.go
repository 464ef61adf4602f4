package fulmar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/observe"
)

// ServerMessages is a stream without types, as MethodDesc.InvokeStream gets it.
type ServerMessages struct{ serverStream }

// Send sends a message that the codec of the method can encode, as
// BidiStreamingServer.Send does.
func (m *ServerMessages) Send(message any) error { return m.send(message) }

// Recv waits for the next message, and puts it into one that is empty and that the codec
// of the method can decode into; io.EOF says that there is none.
func (m *ServerMessages) Recv(message any) error { return m.recv(message) }

// SendHeaderMetadata is SendHeader for keys with several values, as Metadata.With makes
// them.
func (m *ServerMessages) SendHeaderMetadata(metadata Metadata) error {
	return m.sendHeader(metadata.pairs)
}

// serverStream is the handler's side of a stream.
type serverStream struct {
	server  *Server
	in      *transport.Inbound
	carrier transport.ServerStream
	ctx     context.Context
	state   *streamState
	timeout atomic.Int64
	// handled: the handler was called.
	handled bool
	// observed is nil if nobody observes.
	observed *observedStream
	// messages is what the stream is part of.
	messages *ServerMessages

	// One goroutine at a time sends, and one receives: these make sure of it.
	sending, receiving streamLock
}

// streamInProgress is what a handler may keep of a streaming call, in one piece.
type streamInProgress struct {
	callInProgress
	messages ServerMessages
	state    streamState
	observed observedStream
}

// handleStream serves one streaming call.
func (s *Server) handleStream(ctx context.Context, in *transport.Inbound, entry *methodEntry, deadline time.Time) {
	// Streams last as long as their users like, most of it waiting: they count when they
	// begin, or those that watch something would leave no room for calls.
	s.admission.leave(time.Time{})
	in.LetGo()
	p := new(streamInProgress)
	method, state := entry.method, &p.state
	*state = streamState{
		side: SideServer, method: method, implementation: entry.implementation,
		peer: in.Peer, protocol: Protocol(in.Protocol), server: &p.messages.serverStream, log: s.transport.Log(),
	}
	p.served.fill(in, entry, deadline)
	callCtx := p.begin(ctx)
	callCtx.detached = in.Detached()
	defer callCtx.finish()
	stream := state.server
	stream.messages = &p.messages
	stream.server, stream.in, stream.carrier, stream.state = s, in, in.Stream, state
	ctx = callCtx
	if entry.forTools {
		carrier := in.Stream
		defer context.AfterFunc(s.transport.Stopping(), func() {
			carrier.EndReceiving()
			callCtx.end(context.Canceled)
		})()
	}
	var o *observedStream
	if s.observers != nil {
		o = &p.observed
		s.observe(&o.observedCall, in, entry)
		stream.observed = o
		defer o.tell(observe.Event{Phase: observe.PhaseDone})
	}
	finished := false
	defer func() {
		if !finished {
			state.ended(s.streamPanicked(stream, &p.served, o, recover()))
		}
	}()
	if o != nil {
		ctx = o.served(ctx) // may end the goroutine
		o.anywhere = true
	}
	stream.ctx = ctx
	err := s.nextStream(ctx, Stream{state})
	err = s.finishStream(stream, &p.served, o, err)
	finished = true
	state.ended(err)
}

// invokeStream is the end of the chain of interceptors: it calls the user's method.
func (s *Server) invokeStream(ctx context.Context, call Stream) error {
	stream := call.state.server
	if stream.handled {
		return &Error{code: Internal, message: "an interceptor called the handler of a stream twice"}
	}
	stream.handled, stream.ctx = true, ctx
	err := call.state.method.InvokeStream(call.state.implementation, stream.messages)
	if o := stream.observed; o != nil {
		o.tell(observe.Event{Phase: observe.PhaseHandled, Err: err})
	}
	return err
}

// finishStream tells the caller how the call ended, which it returns.
func (s *Server) finishStream(stream *serverStream, call *servedCall, o *observedStream, err error) error {
	in, method := stream.in, stream.state.method
	head := call.reply.take()
	var business *BusinessError
	if errors.As(err, &business) && business.status == 0 {
		err = &Error{code: Internal, message: business.Error() + ", which would be a success"}
		business = nil
	}
	if o != nil {
		if o.err, o.executed = err, executedText(err, stream.handled); o.executed == "" {
			o.executed = executedWord(ExecutedMaybe)
		}
		if business != nil {
			o.declared = err
		}
	}
	if err != nil && business == nil {
		head.Executed = executedText(err, stream.handled)
		s.sendException(in, method.Name, err, head)
		return err
	}
	if business != nil {
		head.Business, head.Executed = business.businessStatus(), executedYes
	}
	left := in.FinishStream(head)
	if told := (*grpc.Error)(nil); errors.As(left, &told) {
		err = &Error{code: Code(told.Code), message: told.Detail, executed: ExecutedYes}
		if o != nil {
			o.err, o.declared = err, nil
		}
		return err
	}
	s.delivered(in, method.Name, left)
	return cmp.Or(err, left)
}

// streamPanicked is panicked for streams.
func (s *Server) streamPanicked(stream *serverStream, call *servedCall, o *observedStream, cause any) error {
	if cause == nil {
		stream.in.EndsGoroutine()
		cause = goexit
	}
	s.transport.Log().ErrorWithStack("panic in a handler", "method", stream.state.method.fullName(), "peer", stream.in.Peer, "panic", fmt.Sprint(cause))
	return s.finishStream(stream, call, o, &Error{code: Internal, message: "panic in the handler"})
}

// Context implements ServerStream.
func (s *serverStream) Context() context.Context { return s.ctx }

// SetRecvTimeout implements ServerStream.
func (s *serverStream) SetRecvTimeout(d time.Duration) { s.timeout.Store(int64(max(d, 0))) }

// SendHeader implements ServerStream.
func (s *serverStream) SendHeader(metadata map[string]string) error {
	pairs := make([]transport.Pair, 0, len(metadata))
	for key, value := range metadata {
		if value != "" {
			pairs = append(pairs, transport.Pair{Key: key, Value: value})
		}
	}
	return s.sendHeader(pairs)
}

func (s *serverStream) sendHeader(pairs []transport.Pair) error {
	for i := range pairs {
		switch pair := &pairs[i]; {
		case pair.Key == "":
			return fmt.Errorf("header of a stream: the key of %q is empty", pair.Value)
		case isReserved(pair.Prefix + pair.Key):
			return fmt.Errorf("header of a stream: %q: the protocol uses this key itself", pair.Prefix+pair.Key)
		case Protocol(s.in.Protocol) == GRPC:
			if err := transport.CheckReplyPair(*pair); err != nil {
				return fmt.Errorf("header of a stream: %q: %w", pair.Prefix+pair.Key, err)
			}
		}
	}
	return s.failure(s.carrier.SendHeader(pairs))
}

// send sends a message.
func (s *serverStream) send(message any) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	if err := s.state.sends(message); err != nil {
		return err
	}
	length, err := s.state.method.encodeStreamed(s.carrier, message, s.server.sends)
	if err != nil {
		return &Error{code: encodeCode(err), message: "the message cannot be encoded: " + err.Error(), cause: err}
	}
	if err := s.carrier.Send(false); err != nil {
		return s.failure(err)
	}
	s.observed.message(observe.PhaseSent, length)
	return nil
}

// recv receives into a message that is empty.
func (s *serverStream) recv(message any) error {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	timeout := time.Duration(s.timeout.Load())
	body, err := s.carrier.Receive(timeout)
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		return noMessage(timeout)
	default:
		return s.failure(err)
	}
	s.observed.message(observe.PhaseArrived, len(body))
	if _, err := s.state.method.Codec.ReadBody(body, message, s.server.limits, false); err != nil {
		s.server.transport.Log().Warn("message refused", "peer", s.in.Peer, "method", s.state.method.Name, "reason", err.Error())
		bad := invalid(err)
		bad.executed = ExecutedMaybe
		return bad
	}
	return s.state.received(message)
}

// failure returns the error for what a carrier says.
func (s *serverStream) failure(err error) error {
	switch {
	case err == nil || err == io.EOF:
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{code: DeadlineExceeded, origin: OriginTransport, executed: ExecutedMaybe, message: "the call's time is over", cause: err}
	case isStalled(err):
		return &Error{code: DeadlineExceeded, origin: OriginTransport, executed: ExecutedMaybe, message: err.Error(), cause: err}
	case errors.Is(err, context.Canceled):
		return &Error{code: Canceled, origin: OriginTransport, executed: ExecutedMaybe, message: "the caller has gone", cause: err}
	case errors.Is(err, transport.ErrOverloaded):
		return &Error{code: ResourceExhausted, executed: ExecutedMaybe, message: "no room for a message of the stream: " + err.Error(), cause: err}
	}
	failed := invalid(err)
	failed.executed = ExecutedMaybe
	return failed
}

// isStalled reports whether an error is that of a peer that takes no messages.
func isStalled(err error) bool {
	var stalled *transport.StalledError
	return errors.As(err, &stalled)
}

// recvOnly receives the one message of a client that sends no other. In gRPC it waits for
// the end of what the client sends, as servers of grpc-go do: who sends more means another
// method.
func (s *serverStream) recvOnly(message any) error {
	switch err := s.recv(message); {
	case err == io.EOF:
		return &Error{code: Unimplemented, message: "the caller sent no message to a method that takes one", executed: ExecutedNo}
	case err != nil || s.state.protocol != GRPC:
		return err
	}
	switch _, err := s.carrier.Receive(0); err {
	case io.EOF:
		return nil
	case nil:
		return &Error{code: Unimplemented, message: "the caller sent more than one message to a method that takes one", executed: ExecutedNo}
	default:
		return s.failure(err)
	}
}

// encodeStreamed puts a message into the room of a stream, and returns its length.
func (m *MethodDesc) encodeStreamed(carrier transport.Stream, message any, limit limits.Message) (length int, err error) {
	room := carrier.Room()
	limit.LikelyBytes = 0
	before := room.Len()
	if err := m.Codec.AppendBody(room, message, limit); err != nil {
		room.Release()
		return 0, err
	}
	return room.Len() - before, nil
}

// serverStreamOf is a serverStream with types.
type serverStreamOf[Req, Res any] struct{ *serverStream }

var (
	_ ServerStreamingServer[int]      = serverStreamOf[int, int]{}
	_ ClientStreamingServer[int, int] = serverStreamOf[int, int]{}
	_ BidiStreamingServer[int, int]   = serverStreamOf[int, int]{}
)

// Send sends a message.
func (s serverStreamOf[Req, Res]) Send(message *Res) error { return s.send(message) }

// SendAndClose sends the answer.
func (s serverStreamOf[Req, Res]) SendAndClose(message *Res) error { return s.send(message) }

// Recv receives a message.
func (s serverStreamOf[Req, Res]) Recv() (*Req, error) {
	message := newMessage[Req](s.state.method.NewRequest)
	if err := s.recv(message); err != nil {
		return nil, err
	}
	return message, nil
}

// All yields the messages that are left.
func (s serverStreamOf[Req, Res]) All() iter.Seq2[*Req, error] {
	return func(yield func(*Req, error) bool) {
		for {
			message, err := s.Recv()
			if err == io.EOF || !yield(message, err) || err != nil {
				return
			}
		}
	}
}

// ServeServerStream makes the InvokeStream of a method that answers one message with many;
// generated code uses it.
func ServeServerStream[Req, Res any](call func(implementation any, request *Req, stream ServerStreamingServer[Res]) error) func(any, *ServerMessages) error {
	return func(implementation any, messages *ServerMessages) error {
		s := serverStreamOf[Req, Res]{&messages.serverStream}
		request := newMessage[Req](s.state.method.NewRequest)
		if err := s.recvOnly(request); err != nil {
			return err
		}
		return call(implementation, request, s)
	}
}

// ServeClientStream makes the InvokeStream of a method that answers many messages with one;
// generated code uses it.
func ServeClientStream[Req, Res any](call func(implementation any, stream ClientStreamingServer[Req, Res]) error) func(any, *ServerMessages) error {
	return func(implementation any, messages *ServerMessages) error {
		return call(implementation, serverStreamOf[Req, Res]{&messages.serverStream})
	}
}

// ServeBidiStream makes the InvokeStream of a method with many messages in both
// directions; generated code uses it.
func ServeBidiStream[Req, Res any](call func(implementation any, stream BidiStreamingServer[Req, Res]) error) func(any, *ServerMessages) error {
	return func(implementation any, messages *ServerMessages) error {
		return call(implementation, serverStreamOf[Req, Res]{&messages.serverStream})
	}
}

// streamsTarget reports whether what lookup has found is a streaming method.
func (s *Server) streamsTarget(target any) bool {
	entry, ok := target.(*methodEntry)
	return ok && entry.method != nil && entry.method.streams()
}
