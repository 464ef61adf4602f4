package eventloop_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// bothNetworks runs a test on real sockets and on the simulated network.
func bothNetworks(t *testing.T, test func(t *testing.T, start func(eventloop.Config, eventloop.Handler) *server)) {
	t.Run("tcp", func(t *testing.T) {
		test(t, func(config eventloop.Config, handler eventloop.Handler) *server {
			return serve(t, config, handler)
		})
	})
	t.Run("simnet", func(t *testing.T) {
		test(t, func(config eventloop.Config, handler eventloop.Handler) *server {
			return serveSim(t, simnet.New(simnet.Config{Seed: 1, SplitPercent: 50}), config, handler)
		})
	})
}

// TestEOF_BytesBeforeItAreHandled sends and closes at once: everything must be
// handled before OnClose.
func TestEOF_BytesBeforeItAreHandled(t *testing.T) {
	bothNetworks(t, func(t *testing.T, start func(eventloop.Config, eventloop.Handler) *server) {
		var lines atomic.Int64
		s := start(eventloop.Config{}, func(conn *eventloop.Conn) error {
			_, err := conn.Reader().Until('\n')
			if err == nil {
				lines.Add(1)
			}
			return err
		})
		const count = 1000
		for i := range 20 {
			client := s.connect()
			send(t, client, strings.Repeat(strings.Repeat("x", i*13)+"\n", count))
			client.Close()
			if err := receive(t, s.closed, "OnClose"); err != nil {
				t.Fatalf("OnClose got %v", err)
			}
			if got := lines.Load(); got != int64(count*(i+1)) {
				t.Fatalf("%d lines were handled before OnClose, want %d", got, count*(i+1))
			}
		}
	})
}

func TestEOF_InTheMiddleOfAMessage(t *testing.T) {
	bothNetworks(t, func(t *testing.T, start func(eventloop.Config, eventloop.Handler) *server) {
		s := start(eventloop.Config{}, echoLines)
		client := s.connect()
		send(t, client, "whole\nhal")
		closeWrite(t, client)
		expectEnd(t, client, "whole\n")
		if err := receive(t, s.closed, "OnClose"); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("OnClose got %v", err)
		}
	})
}

// TestEOF_HeldConnectionsGetTheirReplies is a client that sends its requests,
// stops sending and waits for replies that are written later, one after the
// other, by another goroutine.
func TestEOF_HeldConnectionsGetTheirReplies(t *testing.T) {
	bothNetworks(t, func(t *testing.T, start func(eventloop.Config, eventloop.Handler) *server) {
		eof, release := make(chan struct{}), make(chan struct{})
		s := start(eventloop.Config{
			OnEOF: func(*eventloop.Conn) { close(eof) },
		}, func(conn *eventloop.Conn) error {
			if busy, _ := conn.Context().(bool); busy {
				return nil // one request at a time: leave the next where it is
			}
			line, err := conn.Reader().Until('\n')
			if err != nil {
				return err
			}
			conn.SetContext(true)
			conn.Hold()
			reply := "reply to " + string(line)
			go func() {
				<-release
				if _, err := conn.WriteBuffers([][]byte{[]byte(reply)}); err != nil {
					t.Errorf("reply: %v", err)
				}
				conn.SetContext(false)
				conn.Wake()
				conn.Release()
			}()
			return nil
		})
		client := s.connect()
		send(t, client, "one\ntwo\nthree\n")
		closeWrite(t, client)
		receive(t, eof, "OnEOF")
		select {
		case err := <-s.closed:
			t.Fatalf("closed with %v while a reply is due", err)
		default:
		}
		close(release)
		expectEnd(t, client, "reply to one\nreply to two\nreply to three\n")
		if err := receive(t, s.closed, "OnClose"); err != nil {
			t.Errorf("OnClose got %v", err)
		}
	})
}

// TestEOF_ReleaseBeforeWakeLosesNothing is the wrong order of the two calls.
func TestEOF_ReleaseBeforeWakeLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan call, 10)
		var take atomic.Bool
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(conn *eventloop.Conn) error {
			seen <- call{conn, string(conn.Reader().Buffered())}
			if !take.Load() {
				conn.Hold()
				return nil
			}
			return conn.Reader().Skip(conn.Reader().Len())
		})
		client := s.connect()
		send(t, client, "request")
		conn := expectCall(t, seen, "request")
		closeWrite(t, client)
		expectQuiet(t, seen)
		take.Store(true)
		conn.Release()
		expectCall(t, seen, "request")
		if err := receive(t, s.closed, "OnClose"); err != nil {
			t.Errorf("OnClose got %v", err)
		}
	})
}

func TestOnEOF_IsCalledOnceAfterTheBytesAndMayClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the client is gone")
		var events []string
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{
			OnEOF: func(conn *eventloop.Conn) {
				events = append(events, "eof")
				conn.CloseWithError(gone)
			},
			OnClose: func(conn *eventloop.Conn, err error) { events = append(events, err.Error()) },
		}, func(conn *eventloop.Conn) error {
			events = append(events, string(conn.Reader().Buffered()))
			conn.Hold() // would keep it open
			return conn.Reader().Skip(conn.Reader().Len())
		})
		client := s.connect()
		send(t, client, "request")
		client.Close()
		receive(t, s.closed, "OnClose")
		if got := strings.Join(events, ", "); got != "request, eof, the client is gone" {
			t.Errorf("events: %s", got)
		}
	})
}

func TestOnEOF_PanicClosesTheConnection(t *testing.T) {
	s := serve(t, eventloop.Config{Logger: silence(), OnEOF: func(*eventloop.Conn) { panic("on purpose") }}, echoLines)
	client := s.connect()
	closeWrite(t, client)
	if err := receive(t, s.closed, "OnClose"); err == nil || !strings.Contains(err.Error(), "OnEOF panicked") {
		t.Errorf("OnClose got %v", err)
	}
}

// TestReset_ClosesHeldConnections: a reset means that nobody waits for the
// reply, so the handler's work can be cancelled.
func TestReset_ClosesHeldConnections(t *testing.T) {
	handled := make(chan *eventloop.Conn, 1)
	s := serve(t, eventloop.Config{}, func(conn *eventloop.Conn) error {
		conn.Hold()
		handled <- conn
		return conn.Reader().Skip(conn.Reader().Len())
	})
	client := s.connect()
	send(t, client, "request")
	conn := receive(t, handled, "the handler")
	client.(*net.TCPConn).SetLinger(0) // Close resets
	client.Close()
	if err := receive(t, s.closed, "OnClose"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("OnClose got %v, want a reset", err)
	}
	if _, err := conn.WriteBuffers([][]byte{[]byte("late")}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the late reply: %v", err)
	}
	conn.Release()
}

// TestReset_BytesBeforeItAreHandled: a simulated network destroys what is
// unread, so this is for the bytes that were read already.
func TestReset_BytesBeforeItAreHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		seen := make(chan call, 10)
		s := serveSim(t, network, eventloop.Config{}, calls(seen, func(r *eventloop.Reader) error { return r.Skip(r.Len()) }))
		client := s.connect()
		send(t, client, "abc")
		expectCall(t, seen, "abc")
		network.Cut(s.Addr().String())
		if err := receive(t, s.closed, "OnClose"); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("OnClose got %v", err)
		}
		expectQuiet(t, seen)
	})
}

// TestWriteFailure_ClosesHeldConnections: after the peer stopped sending only
// a write can tell that it is gone.
func TestWriteFailure_ClosesHeldConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(conn *eventloop.Conn) error {
			conn.Hold()
			go func() {
				for {
					<-time.After(time.Second)
					if _, err := conn.WriteBuffers([][]byte{[]byte("event")}); err != nil {
						conn.Release()
						return
					}
				}
			}()
			return conn.Reader().Skip(conn.Reader().Len())
		})
		client := s.connect()
		send(t, client, "subscribe")
		expect(t, client, "event")
		client.Close()
		if err := receive(t, s.closed, "OnClose"); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("OnClose got %v", err)
		}
	})
}
