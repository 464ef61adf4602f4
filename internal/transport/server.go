package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/peerlog"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/observe"
)

// ServerConfig configures a Server. Every field must be set; limits.Or has been
// applied to what a user gave. A timeout of 0 is off.
type ServerConfig struct {
	Allowed          wire.Set
	Limits           limits.Message
	FirstByteTimeout time.Duration
	FrameTimeout     time.Duration
	IdleTimeout      time.Duration
	DrainTimeout     time.Duration
	// SendTimeout is how long a message of a stream waits while its peer takes nothing.
	SendTimeout time.Duration
	// BufferedBytes bounds the bytes of messages that are held for peers.
	BufferedBytes int64
	// PingAfter, Age and AgeGrace are of connections in HTTP/2: when a silent peer is asked
	// for a sign of life, until when a connection takes new streams, and for how long those
	// that there are may go on then. HTTP2Streams is how many there may be, as in
	// http2.Config.
	PingAfter, Age, AgeGrace time.Duration
	HTTP2Streams             int
	// Encodings of messages in gRPC besides gzip.
	Encodings []Encoding
	// ConnectionCalls bounds calls of one connection that run at a time.
	ConnectionCalls int
	Logger          *slog.Logger
	// TLS, if it is set, secures the connections of a listener with the settings beside
	// it, those of eventloop.Config.
	TLS              *tls.Config
	AllowPlaintext   bool
	HandshakeTimeout time.Duration
	MaxHandshakes    int
	// Identify returns what Inbound.Identity is for calls of a connection, whose TLS is
	// nil if it has none.
	Identify func(*tls.ConnectionState) any
	// Lookup returns the Target of a call, nil if there is no such method. The
	// service is empty if the peer did not name it. It keeps neither.
	Lookup func(service, method []byte, payload wire.Payload) any
	// LookupExact is Lookup for protocols that always name the service.
	LookupExact func(service, method string, payload wire.Payload) any
	// TakesUnknown: Handle serves methods without a Target as well.
	TakesUnknown bool
	// UnknownStream returns the Target of a stream whose method has none, nil if nobody
	// takes it; in gRPC, where a call does not say whether it is one, of every such call.
	// It may be nil.
	UnknownStream func(service, method string, payload wire.Payload) any
	// Streams reports whether a Target is a streaming method; nil if there are none.
	Streams func(target any) bool
	// Handle serves one call, at the same time as others. It may run on the goroutine
	// that polls, until that leaves it behind. It answers through call, or not at all,
	// and must call its LetGo before anything that takes time: nothing else of the
	// connection is served until then. ctx ends when the connection does.
	Handle func(ctx context.Context, call *Inbound)
	// Observed: messages have Stamps. Connection, if set, is told of connections;
	// both are for who observes the server.
	Observed   bool
	Connection func(observe.Connection)
}

// unknownStream returns the Target of a stream whose method has none, or the error for
// it where calls would be taken: nil, nil is for who answers all that are unknown.
func (c *ServerConfig) unknownStream(service, method string, payload wire.Payload) (target any, refused error) {
	if c.UnknownStream != nil {
		if target := c.UnknownStream(service, method, payload); target != nil {
			return target, nil
		}
	}
	if c.TakesUnknown {
		refused = &grpc.Error{Code: grpc.Unimplemented, Detail: fmt.Sprintf(
			"method %.100q is not known here, and such streams are not taken", method)}
	}
	return nil, refused
}

// Server serves the messages of a listener's connections.
type Server struct {
	config  ServerConfig
	buffers *linkbuf.Pool
	budget  budget
	log     *peerlog.Log
	ctx     context.Context
	cancel  context.CancelFunc
	// begun ends when a stop begins, and at the end at the latest.
	begun context.Context
	begin context.CancelFunc
	// stopping is when a graceful stop began, nil while serving.
	stopping atomic.Pointer[time.Time]

	local localCalls

	// replies holds *Reply that are not in use, inbounds *Inbound.
	replies   sync.Pool
	inbounds  sync.Pool
	encodings encodings
	// stall is how long a peer may give an answer no window.
	stall time.Duration

	running atomic.Int64
	mu      sync.Mutex
	// ended is the end of the last call.
	ended ending
}

// NewServer returns a Server. EventLoop must be part of the configuration of
// the listener that Serve is given.
func NewServer(config ServerConfig) *Server {
	s := &Server{
		config:  config,
		buffers: linkbuf.NewPool(),
		log:     peerlog.New(config.Logger),
	}
	s.budget.limit = config.BufferedBytes
	s.encodings = newEncodings(config.Encodings, runtime.GOMAXPROCS(0))
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.begun, s.begin = context.WithCancel(s.ctx)
	s.local.init(s)
	return s
}

// Buffered returns how many bytes of messages are held for peers now.
func (s *Server) Buffered() int64 { return s.budget.used.Load() }

// Log returns where lines go that peers can cause.
func (s *Server) Log() *peerlog.Log { return s.log }

// EventLoop adds what the Server needs to the configuration of its listener.
func (s *Server) EventLoop(config eventloop.Config) eventloop.Config {
	config.MaxDetached = -1 // ConnectionCalls is the limit for what runs
	config.ReadBufferBytes = ReadBufferBytes(s.config.Limits)
	s.stall = limits.Or(config.WriteStallTimeout, limits.WriteStallTimeout, 0)
	config.OnOpen = func(conn *eventloop.Conn) {
		c := newServerConn(s, conn)
		conn.SetContext(c)
		if s.stopping.Load() != nil {
			c.announceStop() // nobody else does, maybe
		}
	}
	config.OnEOF = func(conn *eventloop.Conn) { connOf(conn).peerEnded() }
	config.OnClose = func(conn *eventloop.Conn, err error) {
		if c := connOf(conn); c != nil {
			c.closed(err)
		} else {
			s.handshakeFailed(conn, err)
		}
	}
	config.TLS, config.AllowPlaintext = s.config.TLS, s.config.AllowPlaintext
	config.HandshakeTimeout, config.MaxHandshakes = s.config.HandshakeTimeout, s.config.MaxHandshakes
	config.Logger = s.config.Logger
	return config
}

// Serve serves the connections of listener until ctx ends, and then drains:
// it stops accepting, lets running calls finish and closes each connection when
// it has none. It drains as well when listener cannot accept any more, and says
// why. Otherwise it returns nil if all calls could finish.
func (s *Server) Serve(ctx context.Context, listener *eventloop.Listener) error {
	s.local.open()
	defer s.local.workers.Close()
	served := make(chan error, 1)
	go func() {
		served <- listener.Serve(context.Background(), func(conn *eventloop.Conn) error {
			return connOf(conn).data()
		})
	}()
	stopSweep := s.startSweep(listener)
	defer stopSweep()
	defer s.cancel()
	defer s.local.end()
	var failed error
	select {
	case failed = <-served:
	case <-ctx.Done():
	}
	announce := false
	if failed == nil && ctx.Err() == nil {
		// Close ended it: the calls were told, and get the same time.
		s.cancel()
	} else {
		// First, so that who is told finds nobody listening, and goes elsewhere. An
		// error is about the socket only; no connection comes in any case.
		_ = listener.StopAccepting()
		announce = true
	}
	drainCtx, cancel := s.withDrainTimeout()
	defer cancel()
	shut := make(chan struct{})
	go func() {
		if announce { // here, because what connections do with it is part of DrainTimeout
			s.announceStop(listener)
		}
		_ = listener.Shutdown(context.Background())
		close(shut)
	}()
	select {
	case <-shut:
		return errors.Join(failed, s.waitForCalls(drainCtx))
	case <-drainCtx.Done():
	}
	// Counted before the connections are closed, which may end the calls.
	err := s.tooLate()
	// Closed before the calls learn of it: their answers would come by chance.
	_ = listener.Close()
	s.local.end()
	s.cancel()
	<-shut
	return errors.Join(failed, err)
}

// Stopping returns what ends when a stop begins: a graceful one, once peers were told, or Close.
func (s *Server) Stopping() context.Context { return s.begun }

// announceStop begins a graceful stop, and tells peers whose protocol can.
func (s *Server) announceStop(listener *eventloop.Listener) {
	now := time.Now()
	s.stopping.Store(&now)
	s.local.close()
	listener.Connections(func(conn *eventloop.Conn) bool {
		if c := connOf(conn); c != nil {
			c.announceStop()
		}
		return true
	})
	s.begin() // now: who calls again when his stream has ended knows that he must not do it here
}

func (s *Server) withDrainTimeout() (context.Context, context.CancelFunc) {
	if s.config.DrainTimeout > 0 {
		return context.WithTimeout(context.Background(), s.config.DrainTimeout)
	}
	return context.WithCancel(context.Background())
}

// waitForCalls waits until no call runs. If ctx ends first, it ends the
// contexts of those that still do.
func (s *Server) waitForCalls(ctx context.Context) error {
	s.mu.Lock()
	if s.Running() == 0 {
		s.mu.Unlock()
		return nil
	}
	ended := s.ended.awaitedLocked()
	s.mu.Unlock()
	if within(ctx, ended) {
		return nil
	}
	return s.tooLate()
}

// tooLate is the error for calls that run when the time to stop is over.
func (s *Server) tooLate() error {
	running := s.Running()
	if running == 0 {
		return nil
	}
	return fmt.Errorf("server stop: %d calls were still running after %v; their connections were closed", running, s.config.DrainTimeout)
}

// Running returns how many calls run now.
func (s *Server) Running() int { return int(s.running.Load()) }

// stopped reports whether a graceful stop has gone on for longer than
// StopGrace: what arrives then is not started any more, so that a peer that
// never pauses cannot hold up the stop.
func (s *Server) stopped() bool {
	began := s.stopping.Load()
	return began != nil && time.Since(*began) > limits.StopGrace
}

// Close ends everything at once, also if Serve was not called for listener.
func (s *Server) Close(listener *eventloop.Listener) error {
	s.local.close()
	s.local.end()
	s.cancel()
	return listener.Close()
}

// run runs Handle for a call. The connection is held meanwhile: it stays open for
// the answer although the peer may have stopped sending, and a stopping server
// waits for it.
func (s *Server) run(ctx context.Context, call *Inbound) {
	// Also when Handle panics or ends the goroutine, which its owner must not
	// let happen: the connection would wait for ever.
	defer s.callEnded(call)
	if call.ping && call.invalid == nil {
		call.answerPing()
		return
	}
	s.config.Handle(ctx, call)
}

func (s *Server) callEnded(call *Inbound) {
	call.DropBody()
	s.budget.give(call.headBytes)
	call.conn.done(call)
	if call.forgotten {
		*call = Inbound{}
		s.inbounds.Put(call)
	}
	s.oneLess()
}

// oneLess counts a call that runs no more.
func (s *Server) oneLess() {
	if s.running.Add(-1) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Running() == 0 {
		s.ended.comesLocked()
	}
}
