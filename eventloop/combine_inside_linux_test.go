package eventloop

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"
)

// TestCombined_EndsOnce: somebody waited for the turn to write while another one
// wrote the last of what was left, for which the connection was to close.
func TestCombined_EndsOnce(t *testing.T) {
	l, _ := serveInside(t, Config{}, func(*Conn) error { return nil })
	c := newCombined(&Conn{listener: l, config: &l.config})
	closed := 0
	c.begin()
	if n, ok := c.leave([][]byte{[]byte("left")}); n != 4 || !ok {
		t.Fatalf("leave = %d, %v", n, ok)
	}
	ended, ok := c.closeAfter(func() { closed++ })
	if !ok {
		t.Fatal("there is nothing to wait for")
	}
	c.written(c.take())
	if !c.end() {
		t.Error("something is left")
	}
	<-ended
	c.begin()
	if c.fail() {
		t.Error("something was left")
	}
	if closed != 1 {
		t.Errorf("the connection was closed %d times", closed)
	}
}

// TestCombine_NothingIsLeftWhenItCloses: whoever writes when the connection, or its
// writing side, is closed must not succeed because a writer that is about to fail
// would take the bytes.
func TestCombine_NothingIsLeftWhenItCloses(t *testing.T) {
	l, _ := unserved(t, Config{})
	for name, test := range map[string]struct {
		closes func(*Conn) error
		before bool // the writer begins before that
	}{
		"Close":                        {(*Conn).Close, true},
		"Close before the writer":      {(*Conn).Close, false},
		"Abort":                        {(*Conn).Abort, true},
		"CloseWrite before the writer": {(*Conn).CloseWrite, false},
	} {
		t.Run(name, func(t *testing.T) {
			conn, _ := scriptedConn(l)
			combined := newCombined(conn)
			if test.before {
				combined.begin()
			}
			if err := test.closes(conn); err != nil {
				t.Fatal(err)
			}
			conn.outbound.combined.Store(combined)
			if !test.before {
				combined.begin()
			}
			if _, ok := combined.leave([][]byte{[]byte("late")}); ok {
				t.Error("bytes are left to a writer that is about to fail")
			}
		})
	}
}

// lateSocket lets something happen just before a deadline is set.
type lateSocket struct {
	*scriptedSocket
	late func()
}

func (s lateSocket) SetWriteDeadline(t time.Time) error {
	s.late()
	return s.scriptedSocket.SetWriteDeadline(t)
}

// TestCombine_CloseSucceedsWhenTheWriterIsFaster: what was left is written, and the
// socket closed, before Close says until when.
func TestCombine_CloseSucceedsWhenTheWriterIsFaster(t *testing.T) {
	l, _ := unserved(t, Config{})
	conn, socket := scriptedConn(l)
	combined := newCombined(conn)
	conn.outbound.combined.Store(combined)
	combined.begin()
	if _, ok := combined.leave([][]byte{[]byte("left")}); !ok {
		t.Fatal("nothing can be left")
	}
	conn.socket = lateSocket{socket, func() {
		combined.written(combined.take())
		if !combined.end() {
			t.Error("something is left")
		}
	}}
	if err := conn.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	<-conn.drained
	if !socket.shut {
		t.Error("the socket is not closed")
	}
}

// TestCombine_AStallOfWhatOthersLeftIsCounted: whose bytes are written succeeds, and
// the others have succeeded before; none of them learns that the peer takes nothing.
func TestCombine_AStallOfWhatOthersLeftIsCounted(t *testing.T) {
	l, _ := unserved(t, Config{Logger: slog.New(slog.DiscardHandler)})
	conn, _ := scriptedConn(l)
	combined := newCombined(conn)
	conn.outbound.combined.Store(combined)
	conn.outbound.lock()
	combined.begin()
	if _, ok := combined.leave([][]byte{[]byte("left")}); !ok {
		t.Fatal("nothing can be left")
	}
	conn.outbound.endCombined(fmt.Errorf("test: %w", ErrWriteStalled), false)
	if got := l.Stats().WriteStalls; got != 1 {
		t.Errorf("%d stalls were counted", got)
	}
	if !errors.Is(conn.cause, ErrWriteStalled) {
		t.Errorf("the connection was closed with %v", conn.cause)
	}
}
