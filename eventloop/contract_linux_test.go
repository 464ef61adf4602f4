package eventloop_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// contract is a promise of net.Conn that a handler relies on.
type contract struct {
	name string
	// ends: the peer stops sending.
	ends bool
	test func(t *testing.T, conn *eventloop.Conn)
}

// later interrupts a call that waits, or is about to.
func later(interrupt func() error) { go func() { _ = interrupt() }() }

func expectTimeout(t *testing.T, what string, err error) {
	t.Helper()
	var netError net.Error
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &netError) || !netError.Timeout() {
		t.Errorf("%s: %v, want os.ErrDeadlineExceeded", what, err)
	}
}

func readContracts() []contract {
	one, past := make([]byte, 1), time.Unix(1, 0)
	return []contract{
		{"the end is io.EOF", true, func(t *testing.T, conn *eventloop.Conn) {
			for range 2 {
				if n, err := conn.Read(one); n != 0 || err != io.EOF {
					t.Errorf("Read = %d, %v", n, err)
				}
			}
		}},
		{"no bytes are wanted", false, func(t *testing.T, conn *eventloop.Conn) {
			if n, err := conn.Read(nil); n != 0 || err != nil {
				t.Errorf("Read = %d, %v", n, err)
			}
			if n, err := conn.Write(nil); n != 0 || err != nil {
				t.Errorf("Write = %d, %v", n, err)
			}
		}},
		{"a deadline wakes Read", false, func(t *testing.T, conn *eventloop.Conn) {
			later(func() error { return conn.SetReadDeadline(past) })
			_, err := conn.Read(one)
			expectTimeout(t, "Read", err)
			if _, err := conn.Write(one); err != nil {
				t.Errorf("Write after the deadline for reading: %v", err)
			}
		}},
		{"a later deadline wakes Read", false, func(t *testing.T, conn *eventloop.Conn) {
			later(func() error { return conn.SetReadDeadline(time.Now().Add(time.Millisecond)) })
			_, err := conn.Read(one)
			expectTimeout(t, "Read", err)
			conn.SetReadDeadline(time.Time{})
			later(conn.Close)
			if _, err := conn.Read(one); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Read without a deadline again: %v", err)
			}
		}},
		{"Close wakes Read", false, func(t *testing.T, conn *eventloop.Conn) {
			later(conn.Close)
			if _, err := conn.Read(one); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Read: %v", err)
			}
		}},
	}
}

func writeContracts() []contract {
	one, large, past := make([]byte, 1), make([]byte, 32<<20), time.Unix(1, 0)
	return []contract{
		{"a deadline wakes Write", false, func(t *testing.T, conn *eventloop.Conn) {
			later(func() error { return conn.SetWriteDeadline(past) })
			n, err := conn.Write(large)
			expectTimeout(t, "Write", err)
			if n < 0 || n >= len(large) {
				t.Errorf("Write wrote %d of %d bytes", n, len(large))
			}
		}},
		{"a deadline wakes WriteBuffers", false, func(t *testing.T, conn *eventloop.Conn) {
			conn.SetWriteDeadline(time.Now().Add(time.Millisecond))
			_, err := conn.WriteBuffers([][]byte{one, large})
			expectTimeout(t, "WriteBuffers", err)
		}},
		{"Close wakes Write", false, func(t *testing.T, conn *eventloop.Conn) {
			later(conn.Close)
			if _, err := conn.Write(large); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Write: %v", err)
			}
		}},
		{"nothing works after Close", false, func(t *testing.T, conn *eventloop.Conn) {
			if err := conn.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			_, readErr := conn.Read(one)
			_, writeErr := conn.Write(one)
			for what, err := range map[string]error{"Read": readErr, "Write": writeErr, "SetDeadline": conn.SetDeadline(past)} {
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := conn.Close(); err != nil {
				t.Errorf("a second Close: %v", err)
			}
		}},
	}
}

// TestContract_OfAConnectionInItsHandler: what net.Conn promises holds for a
// handler that waits. The naive versions return errors of their own at the end,
// and leave Read or Write waiting when a deadline passes.
func TestContract_OfAConnectionInItsHandler(t *testing.T) {
	onDispatches(t, func(t *testing.T, config eventloop.Config) {
		for _, promise := range append(readContracts(), writeContracts()...) {
			t.Run(promise.name, func(t *testing.T) {
				done := make(chan struct{})
				s := serve(t, config, func(conn *eventloop.Conn) error {
					defer close(done)
					if err := conn.Reader().Skip(conn.Reader().Len()); err != nil {
						return err
					}
					promise.test(t, conn)
					return conn.Close()
				})
				client := s.connect()
				send(t, client, "go")
				if promise.ends {
					closeWrite(t, client)
				}
				receive(t, done, "the handler")
				receive(t, s.closed, "OnClose")
			})
		}
	})
}

// TestSyscallConn_WhoWaitsThereTakesNoEvents: somebody waits for a served connection
// through its descriptor, and reads nothing. The naive version tells only that one,
// and watches the connection no more.
func TestSyscallConn_WhoWaitsThereTakesNoEvents(t *testing.T) {
	opened := make(chan *eventloop.Conn, 1)
	config := onePoller(eventloop.DispatchSpawn)
	config.OnOpen = func(conn *eventloop.Conn) { opened <- conn }
	s := serve(t, config, echoLines)
	client := s.connect()
	conn := receive(t, opened, "OnOpen")
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	looks := 0
	go func() {
		waited <- raw.Read(func(uintptr) bool {
			looks++
			return looks > 1
		})
	}()
	eventually(t, "somebody to wait", conn.WaitsToRead)
	for range 3 {
		send(t, client, "line\n")
		expect(t, client, "line\n")
	}
	if err := receive(t, waited, "the end of the wait"); err != nil {
		t.Errorf("Read = %v", err)
	}
}
