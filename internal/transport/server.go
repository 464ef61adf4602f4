package transport

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire"
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
	Logger           *slog.Logger
	// Handle serves one call, on a goroutine of its own. It answers through
	// call, or not at all. ctx ends when the connection does.
	Handle func(ctx context.Context, call *Inbound)
}

// Server serves the messages of a listener's connections.
type Server struct {
	config  ServerConfig
	buffers *linkbuf.Pool
	log     *PeerLog
	ctx     context.Context
	cancel  context.CancelFunc
	calls   sync.WaitGroup
	running atomic.Int64
}

// NewServer returns a Server. EventLoop must be part of the configuration of
// the listener that Serve is given.
func NewServer(config ServerConfig) *Server {
	s := &Server{
		config:  config,
		buffers: linkbuf.NewPool(),
		log:     NewPeerLog(config.Logger),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Log returns where lines go that peers can cause.
func (s *Server) Log() *PeerLog { return s.log }

// EventLoop adds what the Server needs to the configuration of its listener.
func (s *Server) EventLoop(config eventloop.Config) eventloop.Config {
	// A whole message must fit, because it is decoded in one piece.
	config.ReadBufferBytes = s.config.Limits.Bytes + limits.ReadAheadBytes
	config.OnOpen = func(conn *eventloop.Conn) { conn.SetContext(newServerConn(s, conn)) }
	config.OnClose = func(conn *eventloop.Conn, _ error) { connOf(conn).closed() }
	config.Logger = s.config.Logger
	return config
}

// sweepInterval is how often deadlines of connections are looked at: they are
// seconds long, and looking at 10,000 connections takes well under a
// millisecond.
const sweepInterval = 500 * time.Millisecond

// Serve serves the connections of listener until ctx ends, and then drains:
// it stops accepting, lets running calls finish and closes each connection when
// it has none. It returns nil if all calls could finish.
func (s *Server) Serve(ctx context.Context, listener *eventloop.Listener) error {
	served := make(chan error, 1)
	go func() {
		served <- listener.Serve(context.Background(), func(conn *eventloop.Conn) error {
			return connOf(conn).data()
		})
	}()
	stopSweep := s.startSweep(listener)
	defer stopSweep()
	defer s.cancel()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	return s.drain(listener, served)
}

// drain waits until every connection is closed, for at most DrainTimeout. A
// connection with half a message gets the time that this always has.
func (s *Server) drain(listener *eventloop.Listener, served <-chan error) error {
	drainCtx := context.Background()
	if s.config.DrainTimeout > 0 {
		var cancel context.CancelFunc
		drainCtx, cancel = context.WithTimeout(drainCtx, s.config.DrainTimeout)
		defer cancel()
	}
	err := listener.Shutdown(drainCtx)
	if running := s.running.Load(); err != nil && running > 0 {
		s.cancel()
		return fmt.Errorf("graceful stop: %d calls still running after %v; their connections were closed", running, s.config.DrainTimeout)
	}
	<-served
	s.calls.Wait()
	return nil
}

// Close ends everything at once, also if Serve was not called for listener.
func (s *Server) Close(listener *eventloop.Listener) error {
	s.cancel()
	return listener.Close()
}

// startSweep looks at the deadlines of all connections from time to time. The
// returned function ends that.
func (s *Server) startSweep(listener *eventloop.Listener) (stop func()) {
	ticker := time.NewTicker(sweepInterval)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case now := <-ticker.C:
				listener.Connections(func(conn *eventloop.Conn) bool {
					if c := connOf(conn); c != nil {
						c.expire(now)
					}
					return true
				})
			case <-quit:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(quit)
		<-done
	}
}

// start runs Handle for a call. The connection is held meanwhile: it stays open
// for the answer although the peer may have stopped sending, and a stopping
// server waits for it.
func (s *Server) start(call *Inbound) {
	s.running.Add(1)
	call.conn.conn.Hold()
	s.calls.Go(func() {
		// Also when Handle panics or ends the goroutine, which its owner must
		// not let happen: the connection would wait for ever.
		defer func() {
			s.running.Add(-1)
			call.conn.done()
		}()
		s.config.Handle(call.conn.context(), call)
	})
}
