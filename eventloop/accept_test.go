package eventloop_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// failingListener fails to accept as often as it is told.
type failingListener struct {
	net.Listener
	failures atomic.Int64
	accepts  chan time.Time
}

func (l *failingListener) Accept() (net.Conn, error) {
	l.accepts <- time.Now()
	if l.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

func TestListener_FailedAcceptsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		socket, err := network.Listen("server")
		if err != nil {
			t.Fatal(err)
		}
		failing := &failingListener{Listener: socket, accepts: make(chan time.Time, 100)}
		failing.failures.Store(10)
		logged := new(recorder)
		s := serveSocket(t, failing, eventloop.Config{Logger: logged.logger()}, echoLines)
		s.dial = func() (net.Conn, error) { return network.Dial(context.Background(), "tcp", "server") }
		last := receive(t, failing.accepts, "the first accept")
		for _, milliseconds := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000} {
			next := receive(t, failing.accepts, "the next accept")
			if got := next.Sub(last); got != milliseconds*time.Millisecond {
				t.Errorf("pause of %v, want %v ms", got, int(milliseconds))
			}
			last = next
		}
		client := s.connect()
		send(t, client, "x\n")
		expect(t, client, "x\n")
		if got := s.Stats().AcceptErrors; got != 10 {
			t.Errorf("AcceptErrors = %d", got)
		}
		if !strings.Contains(logged.String(), "accept failed") {
			t.Error("nothing was logged")
		}

		// Closing must not wait for the end of a pause.
		receive(t, failing.accepts, "the accept of the client")
		failing.failures.Store(100)
		send(t, s.connect(), "y\n")
		receive(t, failing.accepts, "a failing accept")
		synctest.Wait()
		begin := time.Now()
		s.stop()
		if got := time.Since(begin); got != 0 {
			t.Errorf("Close took %v", got)
		}
	})
}

// lateListener returns one more connection after it was closed, as can happen
// when both race.
type lateListener struct {
	net.Listener
	accepting, closed chan struct{}
	late              net.Conn
}

func (l *lateListener) Accept() (net.Conn, error) {
	l.accepting <- struct{}{}
	<-l.closed
	if late := l.late; late != nil {
		l.late = nil
		return late, nil
	}
	return nil, net.ErrClosed
}

func (l *lateListener) Close() error {
	close(l.closed)
	return l.Listener.Close()
}

func TestListener_ConnectionAcceptedDuringClose(t *testing.T) {
	network := simnet.New(simnet.Config{})
	client, accepted, err := simPair(network)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	socket, err := network.Listen("server")
	if err != nil {
		t.Fatal(err)
	}
	late := &lateListener{socket, make(chan struct{}, 2), make(chan struct{}), accepted}
	s := serveSocket(t, late, eventloop.Config{}, echoLines)
	receive(t, late.accepting, "Accept")
	s.stop()
	expectEnd(t, client, "")
	if got := s.Stats(); got.Accepted != 0 || got.Refused != 1 {
		t.Errorf("Stats() = %+v", got)
	}
}

// TestServe_SocketClosedFromOutside: whoever owns the net.Listener may close it.
// Serve must say so instead of waiting for ever, and what is open is served on.
func TestServe_SocketClosedFromOutside(t *testing.T) {
	bothSockets(t, func(t *testing.T, socket net.Listener, dial func() (net.Conn, error)) {
		logged := new(recorder)
		s := serveSocket(t, socket, eventloop.Config{Logger: logged.logger()}, echoLines)
		s.dial = dial
		client := s.connect()
		send(t, client, "x\n")
		expect(t, client, "x\n")
		socket.Close()
		err := receive(t, s.served, "Serve to return")
		if !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "listener "+socket.Addr().String()+": its socket was not closed through the Listener") {
			t.Errorf("Serve = %v", err)
		}
		send(t, client, "still served\n")
		expect(t, client, "still served\n")
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		expectEnd(t, client, "")
		if got := s.Stats(); got.AcceptErrors != 1 || got.Open != 0 {
			t.Errorf("Stats() = %+v", got)
		}
		s.served <- nil // for stop
	})
}

func bothSockets(t *testing.T, test func(t *testing.T, socket net.Listener, dial func() (net.Conn, error))) {
	t.Run("tcp", func(t *testing.T) {
		socket, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		test(t, socket, func() (net.Conn, error) { return net.Dial("tcp", socket.Addr().String()) })
	})
	t.Run("simnet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			network := simnet.New(simnet.Config{})
			socket, err := network.Listen("server")
			if err != nil {
				t.Fatal(err)
			}
			test(t, socket, func() (net.Conn, error) { return network.Dial(context.Background(), "tcp", "server") })
		})
	})
}

func TestServe_SocketClosedBefore(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := eventloop.NewListener(socket, eventloop.Config{})
	if err != nil {
		t.Fatal(err)
	}
	socket.Close()
	if err := listener.Serve(t.Context(), echoLines); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve = %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}

// scriptedListener returns errors before it accepts.
type scriptedListener struct {
	net.Listener
	errors []error
}

func (l *scriptedListener) Accept() (net.Conn, error) {
	if len(l.errors) > 0 {
		err := l.errors[0]
		l.errors = l.errors[1:]
		return nil, err
	}
	return l.Listener.Accept()
}

func serveScripted(t *testing.T, accepts ...error) *server {
	t.Helper()
	network := simnet.New(simnet.Config{})
	socket, err := network.Listen("server")
	if err != nil {
		t.Fatal(err)
	}
	s := serveSocket(t, &scriptedListener{socket, accepts}, eventloop.Config{Logger: silence()}, echoLines)
	s.dial = func() (net.Conn, error) { return network.Dial(context.Background(), "tcp", "server") }
	return s
}

func TestServe_PermanentAcceptErrorEndsIt(t *testing.T) {
	for name, accept := range map[string]error{
		"unknown":           errors.New("broken"),
		"invalid socket":    &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EINVAL)},
		"closed, temporary": temporaryError{net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serveScripted(t, accept)
				err := receive(t, s.served, "Serve to return")
				if !errors.Is(err, accept) || !strings.Contains(err.Error(), "eventloop: listener server: ") {
					t.Errorf("Serve = %v, want %v and the address", err, accept)
				}
				if client, err := s.dial(); err == nil {
					client.Close()
					t.Error("the socket still listens, and nobody accepts")
				}
				s.served <- nil // for stop
			})
		})
	}
}

// temporaryError is how a foreign listener says that an error passes.
type temporaryError struct{ error }

func (temporaryError) Temporary() bool { return true }
func (e temporaryError) Unwrap() error { return e.error }

func TestServe_TemporaryAcceptErrorsDoNotEndIt(t *testing.T) {
	accepts := []error{
		fmt.Errorf("listener: %w", os.ErrDeadlineExceeded),
		temporaryError{errors.New("bad proxy header")},
		&net.OpError{Op: "accept", Err: temporaryError{errors.New("bad handshake")}},
	}
	if runtime.GOOS != "windows" && runtime.GOOS != "plan9" {
		for _, errno := range []syscall.Errno{
			syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.ECONNRESET,
			syscall.EINTR, syscall.EAGAIN, syscall.EPROTO, syscall.EPERM, syscall.EHOSTUNREACH,
		} {
			accepts = append(accepts, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", errno)})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := serveScripted(t, accepts...)
		client := s.connect()
		send(t, client, "x\n")
		expect(t, client, "x\n")
		if got := s.Stats().AcceptErrors; got != uint64(len(accepts)) {
			t.Errorf("%d accepts failed, want %d", got, len(accepts))
		}
	})
}
