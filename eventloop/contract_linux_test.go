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

// TestContract_OfAConnectionInItsHandler: what net.Conn promises holds for a
// handler that waits. The naive versions return errors of their own at the end,
// and leave Read or Write waiting when a deadline passes.
func TestContract_OfAConnectionInItsHandler(t *testing.T) {
	one, large := make([]byte, 1), make([]byte, 32<<20)
	past := time.Unix(1, 0)
	timeout := func(t *testing.T, what string, err error) {
		t.Helper()
		var netError net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &netError) || !netError.Timeout() {
			t.Errorf("%s: %v, want os.ErrDeadlineExceeded", what, err)
		}
	}
	// later interrupts a call that waits, or is about to.
	later := func(interrupt func()) { go interrupt() }
	cases := map[string]func(t *testing.T, conn *eventloop.Conn){
		"the end is io.EOF": func(t *testing.T, conn *eventloop.Conn) {
			for range 2 {
				if n, err := conn.Read(one); n != 0 || err != io.EOF {
					t.Errorf("Read = %d, %v", n, err)
				}
			}
		},
		"no bytes are wanted": func(t *testing.T, conn *eventloop.Conn) {
			if n, err := conn.Read(nil); n != 0 || err != nil {
				t.Errorf("Read = %d, %v", n, err)
			}
			if n, err := conn.Write(nil); n != 0 || err != nil {
				t.Errorf("Write = %d, %v", n, err)
			}
		},
		"a deadline wakes Read": func(t *testing.T, conn *eventloop.Conn) {
			later(func() { conn.SetReadDeadline(past) })
			_, err := conn.Read(one)
			timeout(t, "Read", err)
			if _, err := conn.Write(one); err != nil {
				t.Errorf("Write after the deadline for reading: %v", err)
			}
		},
		"a later deadline wakes Read": func(t *testing.T, conn *eventloop.Conn) {
			later(func() { conn.SetReadDeadline(time.Now().Add(time.Millisecond)) })
			_, err := conn.Read(one)
			timeout(t, "Read", err)
			conn.SetReadDeadline(time.Time{})
			later(func() { conn.Close() })
			if _, err := conn.Read(one); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Read without a deadline again: %v", err)
			}
		},
		"a deadline wakes Write": func(t *testing.T, conn *eventloop.Conn) {
			later(func() { conn.SetWriteDeadline(past) })
			n, err := conn.Write(large)
			timeout(t, "Write", err)
			if n < 0 || n >= len(large) {
				t.Errorf("Write wrote %d of %d bytes", n, len(large))
			}
		},
		"a deadline wakes WriteBuffers": func(t *testing.T, conn *eventloop.Conn) {
			conn.SetWriteDeadline(time.Now().Add(time.Millisecond))
			_, err := conn.WriteBuffers([][]byte{one, large})
			timeout(t, "WriteBuffers", err)
		},
		"Close wakes Read": func(t *testing.T, conn *eventloop.Conn) {
			later(func() { conn.Close() })
			if _, err := conn.Read(one); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Read: %v", err)
			}
		},
		"Close wakes Write": func(t *testing.T, conn *eventloop.Conn) {
			later(func() { conn.Close() })
			if _, err := conn.Write(large); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Write: %v", err)
			}
		},
		"nothing works after Close": func(t *testing.T, conn *eventloop.Conn) {
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
		},
	}
	onDispatches(t, func(t *testing.T, config eventloop.Config) {
		for name, test := range cases {
			t.Run(name, func(t *testing.T) {
				done := make(chan struct{})
				s := serve(t, config, func(conn *eventloop.Conn) error {
					defer close(done)
					if err := conn.Reader().Skip(conn.Reader().Len()); err != nil {
						return err
					}
					test(t, conn)
					return conn.Close()
				})
				client := s.connect()
				send(t, client, "go")
				if name == "the end is io.EOF" {
					closeWrite(t, client)
				}
				receive(t, done, "the handler")
				receive(t, s.closed, "OnClose")
			})
		}
	})
}
