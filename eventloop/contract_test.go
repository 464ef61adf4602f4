package eventloop_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// TestConn_MethodsCallNoCallback calls every method that can end a served
// connection while a lock is held that the handler and the callbacks take: if
// one of them called those itself, it would wait for ever.
func TestConn_MethodsCallNoCallback(t *testing.T) {
	ends := map[string]func(*eventloop.Conn) error{
		"Close":          func(conn *eventloop.Conn) error { return conn.Close() },
		"CloseWithError": func(conn *eventloop.Conn) error { return conn.CloseWithError(errors.New("enough")) },
		"Abort":          func(conn *eventloop.Conn) error { return conn.Abort() },
		"failed write": func(conn *eventloop.Conn) error {
			if err := conn.CloseWrite(); err != nil {
				return err
			}
			if _, err := conn.WriteBuffers([][]byte{[]byte("x")}); err == nil {
				return errors.New("written after CloseWrite")
			}
			return nil
		},
	}
	for name, end := range ends {
		for _, inside := range []bool{false, true} {
			t.Run(name+map[bool]string{false: " from outside", true: " from the handler"}[inside], func(t *testing.T) {
				var mu sync.Mutex
				locked := func() { mu.Lock(); defer mu.Unlock() }
				conns := make(chan *eventloop.Conn, 1)
				use := func(conn *eventloop.Conn) {
					mu.Lock()
					defer mu.Unlock()
					conn.Hold()
					conn.PauseReading()
					conn.ResumeReading()
					conn.Wake()
					conn.Release()
					if err := end(conn); err != nil {
						t.Error(err)
					}
				}
				config := eventloop.Config{
					OnOpen:  func(*eventloop.Conn) { locked() },
					OnEOF:   func(*eventloop.Conn) { locked() },
					OnClose: func(*eventloop.Conn, error) { locked() },
				}
				called := false
				s := serve(t, config, func(conn *eventloop.Conn) error {
					locked()
					if called {
						return conn.Reader().Skip(conn.Reader().Len())
					}
					called = true
					if inside {
						use(conn)
					} else {
						conns <- conn
					}
					return nil
				})
				send(t, s.connect(), "x")
				if !inside {
					use(receive(t, conns, "the handler"))
				}
				receive(t, s.closed, "OnClose")
			})
		}
	}
}

// TestWriter_IsFlushedBeforeItHoldsMuch has a peer whose one read makes replies
// of many times its length: the Writer may not collect all of them.
func TestWriter_IsFlushedBeforeItHoldsMuch(t *testing.T) {
	reply := strings.Repeat("x", 1<<10)
	longest := make(chan int, 1)
	most := 0
	s := serve(t, eventloop.Config{}, func(conn *eventloop.Conn) error {
		b, err := conn.Reader().Next(1)
		if err != nil {
			return err
		}
		conn.Writer().AppendString(reply)
		if most = max(most, conn.Writer().Len()); b[0] == '.' {
			longest <- most
		}
		return nil
	})
	const requests = 1000
	client := s.connect()
	send(t, client, strings.Repeat("?", requests-1)+".")
	expect(t, client, strings.Repeat(reply, requests))
	if got := receive(t, longest, "the last request"); got > 128<<10 {
		t.Errorf("the Writer held %d of %d bytes", got, requests*len(reply))
	}
}
