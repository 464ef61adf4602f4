package fulmar

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/peerlog"
)

// ClientStream is what the caller's side of every stream can do, whatever goes through
// it. Its methods may be called at the same time as those that send and receive.
//
// A stream ends when Recv has returned an error, io.EOF among them, when its context
// ends, or with Cancel; until then it takes memory on both sides.
type ClientStream interface {
	// Context is that of the stream. It ends with it.
	Context() context.Context
	// Header waits for the metadata that the server sends in front of its first message,
	// and returns it, behind the end of the stream too. Keys are as ReceiveMetadata has them.
	// It is nil if the server has said how the call ended, and nothing in front of that.
	Header() (map[string]string, error)
	// Trailer returns the metadata that came behind the last message, once Recv has
	// returned an error; nil before.
	Trailer() map[string]string
	// SetRecvTimeout limits how long each later Recv waits for its message: it returns an
	// error with DeadlineExceeded then, and the stream goes on. 0 or less is no limit, which
	// is the default.
	SetRecvTimeout(d time.Duration)
	// Cancel ends the call: both sides learn that it was canceled. It has no effect on a
	// stream that has ended.
	Cancel()
}

// ServerStream is what the handler's side of every stream can do. It may be used until
// the handler returns. Its methods may be called at the same time as those that send and
// receive.
type ServerStream interface {
	// Context is that of the call: CallFrom knows it, SetReplyMetadata sets what is sent
	// behind the last message. It ends when the caller has gone, or its time is over.
	Context() context.Context
	// SendHeader sends metadata at once, in front of the first message. It fails behind
	// that, a second time, and for pairs that SetReplyMetadata refuses.
	SendHeader(metadata map[string]string) error
	// SetRecvTimeout is ClientStream's.
	SetRecvTimeout(d time.Duration)
}

// ServerStreamingClient is the caller's side of a method that answers one message with
// many. Recv must be called by one goroutine at a time.
type ServerStreamingClient[Res any] interface {
	// Recv waits for the next message. It returns io.EOF when the server has succeeded and
	// no message is left, and its error, or that of the network, otherwise.
	Recv() (*Res, error)
	// All yields all messages that are left, and the error if the stream does not end
	// well. Who leaves the loop early cancels the call, and so does an error, that of a
	// receive timeout too.
	All() iter.Seq2[*Res, error]
	ClientStream
}

// ServerStreamingServer is the handler's side of such a method: the stream ends when the
// handler returns, with its error if it has one.
type ServerStreamingServer[Res any] interface {
	// Send sends a message. It waits while the caller takes none, and returns an error
	// when that has gone. It must be called by one goroutine at a time. The message may be
	// changed afterwards.
	Send(message *Res) error
	ServerStream
}

// ClientStreamingClient is the caller's side of a method that answers many messages with
// one. One goroutine at a time may send.
type ClientStreamingClient[Req, Res any] interface {
	// Send sends a message. It waits while the server takes none. io.EOF says that the
	// call has ended already; CloseAndRecv says how. The message may be changed afterwards.
	Send(message *Req) error
	// CloseAndRecv says that no message follows, and waits for the answer and for how the call
	// ends. It may be called again when SetRecvTimeout has ended it.
	CloseAndRecv() (*Res, error)
	ClientStream
}

// ClientStreamingServer is the handler's side of such a method.
type ClientStreamingServer[Req, Res any] interface {
	// Recv waits for the next message; io.EOF says that there is none. It must be called
	// by one goroutine at a time.
	Recv() (*Req, error)
	// All yields all messages that are left, and the error if one is lost.
	All() iter.Seq2[*Req, error]
	// SendAndClose sends the answer. The handler returns afterwards.
	SendAndClose(message *Res) error
	ServerStream
}

// BidiStreamingClient is the caller's side of a method with many messages in both
// directions. One goroutine may send while another one receives.
type BidiStreamingClient[Req, Res any] interface {
	// Send is ClientStreamingClient's; Recv says how the call ended. Behind CloseSend it
	// fails.
	Send(message *Req) error
	// CloseSend says that no message follows.
	CloseSend() error
	// Recv and All are ServerStreamingClient's.
	Recv() (*Res, error)
	All() iter.Seq2[*Res, error]
	ClientStream
}

// BidiStreamingServer is the handler's side of such a method. One goroutine may send
// while another one receives.
type BidiStreamingServer[Req, Res any] interface {
	// Recv and All are ClientStreamingServer's.
	Recv() (*Req, error)
	All() iter.Seq2[*Req, error]
	// Send is ServerStreamingServer's.
	Send(message *Res) error
	ServerStream
}

// StreamInterceptor wraps streaming calls, on the client or the server. It calls next once
// to go on, or not at all to refuse the call with an error. On the server next returns
// when the handler has, on the client when the stream is open. Messages are seen by what
// OnSend and OnRecv are given before that, the end of the stream by OnEnd. Several
// interceptors run in the order in which the configuration lists them, the first outermost.
type StreamInterceptor func(ctx context.Context, call Stream, next StreamNext) error

// StreamNext goes on with a streaming call.
type StreamNext func(ctx context.Context, call Stream) error

// Stream is a streaming call as interceptors see it. It must be used by one goroutine at a
// time.
type Stream struct{ state *streamState }

// streamState is what there is of a streaming call on either side.
type streamState struct {
	side           Side
	method         *MethodDesc
	implementation any
	peer           string
	protocol       Protocol
	onSend, onRecv []func(message any) error
	onEnd          []func(err error)
	log            *peerlog.Log
	// On the client: what the call is opened with, and the stream once it is.
	client *clientStream
	// On the server: the stream.
	server *serverStream
}

// Side returns which end of the call this is.
func (s Stream) Side() Side { return s.state.side }

// Service returns the name of the service in the IDL.
func (s Stream) Service() string { return s.state.method.Service }

// Method returns the name of the method in the IDL.
func (s Stream) Method() string { return s.state.method.Name }

// ClientStreams reports whether the client sends any number of messages.
func (s Stream) ClientStreams() bool { return s.state.method.ClientStreams }

// ServerStreams reports whether the server sends any number of messages.
func (s Stream) ServerStreams() bool { return s.state.method.ServerStreams }

// Protocol returns what carries the call.
func (s Stream) Protocol() Protocol { return s.state.protocol }

// Peer returns the other side's address: the caller's on the server, the target on the
// client.
func (s Stream) Peer() string { return s.state.peer }

// OnSend calls f with each message before it is sent, a pointer to the generated type. An
// error is returned by Send, and the message is not sent.
func (s Stream) OnSend(f func(message any) error) { s.state.onSend = append(s.state.onSend, f) }

// OnRecv calls f with each message that has arrived, a pointer to the generated type. An
// error is returned by Recv in place of the message.
func (s Stream) OnRecv(f func(message any) error) { s.state.onRecv = append(s.state.onRecv, f) }

// OnEnd calls f once when the stream has ended: nil says that it has succeeded. On the
// client that may be on another goroutine. A panic there is logged, on either side.
func (s Stream) OnEnd(f func(err error)) { s.state.onEnd = append(s.state.onEnd, f) }

func (s *streamState) sends(message any) error {
	for _, f := range s.onSend {
		if err := f(message); err != nil {
			return err
		}
	}
	return nil
}

func (s *streamState) received(message any) error {
	for _, f := range s.onRecv {
		if err := f(message); err != nil {
			return err
		}
	}
	return nil
}

// ended calls what OnEnd was given, once.
func (s *streamState) ended(err error) {
	onEnd := s.onEnd
	s.onEnd = nil
	s.endFrom(onEnd, err)
}

// endFrom calls functions, also those behind one that panics, or ends the goroutine.
func (s *streamState) endFrom(onEnd []func(err error), err error) {
	for i, f := range onEnd {
		s.guard(func() { f(err) }, func() { s.endFrom(onEnd[i+1:], err) })
	}
}

// endPanicked is a kind of log lines.
const endPanicked = "panic at the end of a stream"

// guard calls code of the user that is told of the end of a stream: a panic is logged and
// goes no further, because the goroutine may be one of ours. rest follows if f ends the
// goroutine.
func (s *streamState) guard(f, rest func()) {
	guarded(f, func(cause any) {
		if cause == nil {
			defer rest()
			if cause = goexit; s.server != nil {
				s.server.in.EndsGoroutine()
			}
		}
		s.log.ErrorWithStack(endPanicked, "method", s.method.fullName(), "peer", s.peer, "panic", fmt.Sprint(cause))
	})
}

// chainStreams puts interceptors around last, once, when a server or client is made.
func chainStreams(interceptors []StreamInterceptor, last StreamNext) StreamNext {
	next := last
	for i := len(interceptors) - 1; i >= 0; i-- {
		interceptor, inner := interceptors[i], next
		next = func(ctx context.Context, call Stream) error { return interceptor(ctx, call, inner) }
	}
	return next
}

// StreamsOnlyFor is OnlyFor for interceptors of streaming calls.
func StreamsOnlyFor(interceptor StreamInterceptor, names ...string) StreamInterceptor {
	if interceptor == nil {
		panic("fulmar: StreamsOnlyFor: the interceptor is nil")
	}
	chosen := chooseNames("StreamsOnlyFor", names)
	return func(ctx context.Context, call Stream, next StreamNext) error {
		if !chosen.has(call.Service(), call.Method()) {
			return next(ctx, call)
		}
		return interceptor(ctx, call, next)
	}
}

// Streams reports whether more than one message may go one way or the other.
func (m *MethodDesc) streams() bool { return m.ClientStreams || m.ServerStreams }

// noStreams is the error for a streaming method that is called as one that is not, or the
// other way round.
func noStreams(m *MethodDesc) *Error {
	message := "is a streaming method, and was called with one message"
	if !m.streams() {
		message = "has one message each way, and was called as a stream"
	}
	return &Error{code: Unimplemented, message: fmt.Sprintf("%s %s", m.fullName(), message), executed: ExecutedNo}
}
