package eventloop_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

func TestHandler_LastWordsArriveBeforeTheEnd(t *testing.T) {
	// The client goes on sending, so that unread bytes are there when the
	// server closes: without care that is a reset, and the reply is lost.
	refused := errors.New("refused")
	for name, start := range map[string]func(t *testing.T, handler eventloop.Handler) *server{
		"tcp": func(t *testing.T, handler eventloop.Handler) *server { return serve(t, eventloop.Config{}, handler) },
		"simnet": func(t *testing.T, handler eventloop.Handler) *server {
			return serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, handler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, gently := range []bool{false, true} {
				s := start(t, func(conn *eventloop.Conn) error {
					conn.Writer().AppendString("go away")
					if !gently {
						return refused
					}
					// As somebody else does who has seen the end.
					if err := conn.Writer().Flush(); err != nil {
						return err
					}
					conn.CloseGently(refused)
					return nil
				})
				for range 20 {
					client := s.connect()
					client.Write(make([]byte, 100<<10))
					expectEnd(t, client, "go away")
					client.Close()
					if err := receive(t, s.closed, "OnClose"); err != refused {
						t.Fatalf("OnClose got %v", err)
					}
				}
			}
		})
	}
}

func TestHandler_LingeringIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(conn *eventloop.Conn) error {
			return errors.New("refused")
		})
		silent := s.connect()
		send(t, silent, "x")
		begin := time.Now()
		receive(t, s.closed, "OnClose")
		if got := time.Since(begin); got != 500*time.Millisecond {
			t.Errorf("closed after %v, want LingerTimeout", got)
		}

		endless := s.connect()
		begin = time.Now()
		go func() {
			for {
				if _, err := endless.Write(make([]byte, 10<<10)); err != nil {
					return
				}
			}
		}()
		receive(t, s.closed, "OnClose")
		if got := time.Since(begin); got != 0 {
			t.Errorf("closed after %v although LingerBytes were used up", got)
		}
	})
}

func TestHandler_ItsErrorStaysTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(*eventloop.Conn) error { return refused })
		send(t, s.connect(), "x")
		synctest.Wait() // it lingers
		s.Close()
		if err := receive(t, s.closed, "OnClose"); err != refused {
			t.Errorf("OnClose got %v", err)
		}
	})
}

func TestConn_ReadDeadlineClosesAServedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{
			OnOpen: func(conn *eventloop.Conn) { conn.SetReadDeadline(time.Now().Add(time.Minute)) },
		}, func(conn *eventloop.Conn) error {
			err := echoLines(conn)
			if err == nil {
				conn.SetReadDeadline(time.Now().Add(time.Minute))
			}
			return err
		})
		client := s.connect()
		begin := time.Now()
		for range 3 {
			<-time.After(50 * time.Second)
			send(t, client, "x\n")
			expect(t, client, "x\n")
		}
		// An interrupted wait must not lose the deadline.
		s.Connections(func(conn *eventloop.Conn) bool { conn.Wake(); return true })
		if err := receiveWithin(t, s.closed, time.Hour); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("OnClose got %v", err)
		}
		if got := time.Since(begin); got != 210*time.Second {
			t.Errorf("closed after %v, want 150 s + 60 s", got)
		}
	})
}

func receiveWithin[T any](t *testing.T, from <-chan T, limit time.Duration) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(limit):
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}

// TestConn_CloseDuringTheHandler closes from outside while the handler looks at
// its bytes: they must stay, and OnClose must come after the handler.
func TestConn_CloseDuringTheHandler(t *testing.T) {
	s := serve(t, eventloop.Config{}, func(conn *eventloop.Conn) error {
		bytes := conn.Reader().Buffered()
		content := string(bytes)
		closed := make(chan struct{})
		go func() {
			conn.Close()
			close(closed)
		}()
		<-closed
		if string(bytes) != content {
			t.Errorf("the handler's bytes changed from %q to %q", content, bytes)
		}
		conn.SetContext("returned")
		return nil
	})
	for range 100 {
		client := s.connect()
		send(t, client, "hello")
		if err := receive(t, s.closed, "OnClose"); err != nil {
			t.Errorf("OnClose got %v after a local Close", err)
		}
		client.Close()
	}
}

// TestConn_OnCloseIsCalledOnceAndLast races Close, the peer's Close, Wake and
// Shutdown of reading against the handler, 10,000 times.
func TestConn_OnCloseIsCalledOnceAndLast(t *testing.T) {
	type state struct{ running, closed atomic.Int32 }
	s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{
		OnOpen: func(conn *eventloop.Conn) { conn.SetContext(new(state)) },
		OnClose: func(conn *eventloop.Conn, _ error) {
			state := conn.Context().(*state)
			if state.closed.Add(1) != 1 || state.running.Load() != 0 {
				t.Error("OnClose was called twice or while the handler runs")
			}
		},
	}, func(conn *eventloop.Conn) error {
		state := conn.Context().(*state)
		if state.running.Add(1) != 1 || state.closed.Load() != 0 {
			t.Error("the handler was called twice at once or after OnClose")
		}
		defer state.running.Add(-1)
		conn.Hold()
		go func() {
			conn.Wake()
			conn.WriteBuffers([][]byte{[]byte("reply")})
			conn.Release()
		}()
		return conn.Reader().Skip(conn.Reader().Len())
	})
	var group sync.WaitGroup
	for i := range 10000 {
		client, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			client.Write([]byte("request"))
			if i%3 == 0 {
				client.Read(make([]byte, 10))
			}
			client.Close()
		})
		if i%4 == 0 {
			s.Connections(func(conn *eventloop.Conn) bool {
				conn.Close()
				return false
			})
		}
		receive(t, s.closed, "OnClose")
	}
	group.Wait()
}

// TestHandler_RepliesThatCannotLeaveEndTheConnection: the deadline for writing passes
// before the first byte. What the next call writes would be taken for the reply to
// this one.
func TestHandler_RepliesThatCannotLeaveEndTheConnection(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		s := serve(t, config, func(conn *eventloop.Conn) error {
			line, err := conn.Reader().Until('\n')
			if err != nil {
				return err
			}
			deadline := time.Time{}
			if line[0] == '1' {
				deadline = time.Unix(1, 0)
			}
			conn.Writer().Append(line)
			return conn.SetWriteDeadline(deadline)
		})
		client := s.connect()
		send(t, client, "1\n")
		if err := receive(t, s.closed, "OnClose"); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("OnClose was told %v", err)
		}
	})
}

// usesConn is a slog.Handler that locks what a method of a connection does.
type usesConn struct {
	slog.Handler
	conn atomic.Pointer[eventloop.Conn]
}

func (u *usesConn) Handle(ctx context.Context, record slog.Record) error {
	u.conn.Load().Wake()
	return u.Handler.Handle(ctx, record)
}

// TestConn_ReleaseWithoutHold: a mistake of the user's must not keep a connection for
// ever, nor must what logs it.
func TestConn_ReleaseWithoutHold(t *testing.T) {
	if assert.Enabled {
		t.Skip("with -tags invariants it panics")
	}
	var log recorder
	handler := &usesConn{Handler: log.logger().Handler()}
	s := serve(t, eventloop.Config{Logger: slog.New(handler)}, func(conn *eventloop.Conn) error {
		handler.conn.Store(conn)
		conn.Release()
		return echoLines(conn)
	})
	client := s.connect()
	send(t, client, "one\n")
	expect(t, client, "one\n")
	client.Close()
	receive(t, s.closed, "OnClose")
	if !strings.Contains(log.String(), "Release without Hold") {
		t.Errorf("the log does not say it: %s", log.String())
	}
}
