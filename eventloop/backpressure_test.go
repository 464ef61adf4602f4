package eventloop_test

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

func TestConn_PauseReadingSlowsThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan call, 10)
		s := serveSim(t, simnet.New(simnet.Config{BufferBytes: 100}), eventloop.Config{},
			calls(seen, func(r *eventloop.Reader) error { return r.Skip(r.Len()) }))
		client := s.connect()
		send(t, client, "a")
		conn := expectCall(t, seen, "a")
		conn.PauseReading()
		synctest.Wait()
		client.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := client.Write(make([]byte, 300)); n != 100 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write = %d, %v, want only what the network holds", n, err)
		}
		expectQuiet(t, seen)
		conn.Wake() // handles what has arrived, and does not end the pause
		expectCall(t, seen, "")
		expectQuiet(t, seen)
		conn.ResumeReading()
		expectCall(t, seen, strings.Repeat("\x00", 100))
	})
}

func TestConn_PauseInTheHandlerKeepsUnreadBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan call, 10)
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(conn *eventloop.Conn) error {
			seen <- call{conn, string(conn.Reader().Buffered())}
			conn.PauseReading()
			return conn.Reader().Skip(1)
		})
		client := s.connect()
		send(t, client, "abc")
		expectCall(t, seen, "abc")
		expectCall(t, seen, "bc")
		conn := expectCall(t, seen, "c")
		send(t, client, "d")
		expectQuiet(t, seen)
		conn.ResumeReading()
		expectCall(t, seen, "d")
	})
}

func TestConn_ReadBufferBytesStopsReading(t *testing.T) {
	const limit = 1000
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan call, 100)
		var take atomic.Int64
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{ReadBufferBytes: limit},
			calls(seen, func(r *eventloop.Reader) error { return r.Skip(min(int(take.Load()), r.Len())) }))
		client := s.connect()
		send(t, client, strings.Repeat("x", 100<<10))
		var conn *eventloop.Conn
		held := 0
		for synctest.Wait(); len(seen) > 0; synctest.Wait() {
			got := receive(t, seen, "a call")
			conn, held = got.conn, len(got.buffered)
		}
		if held < limit || held > limit+64<<10 {
			t.Errorf("%d bytes are held, want at least %d and at most one read more", held, limit)
		}
		take.Store(1 << 20)
		conn.Wake()
		for total := 0; total < 100<<10; {
			total += len(receive(t, seen, "the rest").buffered)
		}
	})
}

func TestHandler_WantingMoreThanReadBufferBytesEndsTheConnection(t *testing.T) {
	for name, handler := range map[string]eventloop.Handler{
		"by length":    func(conn *eventloop.Conn) error { _, err := conn.Reader().Next(1001); return err },
		"by delimiter": echoLines,
		"by ErrMore":   func(*eventloop.Conn) error { return eventloop.ErrMore },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, eventloop.Config{ReadBufferBytes: 1000}, handler)
			client := s.connect()
			send(t, client, strings.Repeat("x", 1000))
			closeWrite(t, client) // nobody has to linger
			err := receive(t, s.closed, "OnClose")
			if err == nil || !strings.Contains(err.Error(), "limit 1000") {
				t.Errorf("OnClose got %v", err)
			}
		})
	}
}
