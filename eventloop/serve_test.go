package eventloop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// call is what a handler saw.
type call struct {
	conn     *eventloop.Conn
	buffered string
}

// calls is a handler that reports each call, consumes some bytes and returns an
// error, as do says.
func calls(seen chan<- call, do func(r *eventloop.Reader) error) eventloop.Handler {
	return func(conn *eventloop.Conn) error {
		seen <- call{conn, string(conn.Reader().Buffered())}
		return do(conn.Reader())
	}
}

func expectCall(t *testing.T, seen <-chan call, buffered string) *eventloop.Conn {
	t.Helper()
	got := receive(t, seen, "a call of the handler")
	if got.buffered != buffered {
		t.Fatalf("the handler saw %q, want %q", got.buffered, buffered)
	}
	return got.conn
}

// expectQuiet lets everything come to rest, which needs a bubble of synctest,
// and fails if the handler was called.
func expectQuiet(t *testing.T, seen <-chan call) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-seen:
		t.Fatalf("unexpected call of the handler with %q", got.buffered)
	default:
	}
}

// contractCase is a handler, what is sent to it piece by piece, and the calls
// that each piece must cause.
type contractCase struct {
	name  string
	do    func(r *eventloop.Reader) error
	sent  []string
	calls [][]string
}

func contractCases() []contractCase {
	consume := func(n int) func(*eventloop.Reader) error {
		return func(r *eventloop.Reader) error { return r.Skip(min(n, r.Len())) }
	}
	return []contractCase{
		{
			"everything consumed", consume(100),
			[]string{"abc", "de"},
			[][]string{{"abc"}, {"de"}},
		},
		{
			"bytes left after consuming: called again at once", consume(2),
			[]string{"abcde", "f"},
			[][]string{{"abcde", "cde", "e"}, {"f"}},
		},
		{
			"nothing consumed: called when more arrives", consume(0),
			[]string{"a", "b", "c"},
			[][]string{{"a"}, {"ab"}, {"abc"}},
		},
		{
			"ErrMore gives back what was consumed",
			func(r *eventloop.Reader) error {
				r.Skip(1)
				_, err := r.Next(3)
				return err
			},
			[]string{"a", "b", "cd", "e", "fghi"},
			[][]string{{"a"}, {"ab"}, {"abcd"}, {"e"}, {"efghi", "i"}},
		},
		{
			"wrapped ErrMore",
			func(r *eventloop.Reader) error {
				if _, err := r.Next(2); err != nil {
					return fmt.Errorf("pair: %w", err)
				}
				return nil
			},
			[]string{"a", "b"},
			[][]string{{"a"}, {"ab"}},
		},
		{
			"ErrMore after Commit keeps what was committed",
			func(r *eventloop.Reader) error {
				for r.Len() >= 2 {
					r.Skip(2)
					r.Commit()
				}
				r.Skip(r.Len())
				return eventloop.ErrMore
			},
			[]string{"abcde", "f", "g"},
			[][]string{{"abcde"}, {"ef"}, {"g"}},
		},
	}
}

func TestHandler_Contract(t *testing.T) {
	for _, test := range contractCases() {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := make(chan call, 100)
				s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, calls(seen, test.do))
				conn := s.connect()
				for i, piece := range test.sent {
					send(t, conn, piece)
					for _, buffered := range test.calls[i] {
						expectCall(t, seen, buffered)
					}
					expectQuiet(t, seen)
				}
			})
		})
	}
}

func TestHandler_ReadInTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan call, 10)
		got := make(chan string, 10)
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(conn *eventloop.Conn) error {
			seen <- call{conn, string(conn.Reader().Buffered())}
			p := make([]byte, 6)
			_, err := io.ReadFull(conn, p) // waits for what has not arrived
			got <- string(p)
			return errors.Join(err, eventloop.ErrMore)
		})
		conn := s.connect()
		send(t, conn, "abc")
		expectCall(t, seen, "abc")
		send(t, conn, "defgh")
		if got := receive(t, got, "Read"); got != "abcdef" {
			t.Errorf("read %q", got)
		}
		// What Read returned does not come back.
		expectCall(t, seen, "gh")
	})
}

// TestHandler_WakeLeavesReadInTheHandlerAlone: waking interrupts the engine's
// wait for bytes, not the handler's.
func TestHandler_WakeLeavesReadInTheHandlerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan call, 10)
		got := make(chan error, 1)
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(conn *eventloop.Conn) error {
			seen <- call{conn, string(conn.Reader().Buffered())}
			if conn.Reader().Len() == 0 {
				return nil
			}
			_, err := io.ReadFull(conn, make([]byte, 2))
			got <- err
			return nil
		})
		client := s.connect()
		send(t, client, "a")
		conn := expectCall(t, seen, "a")
		synctest.Wait()
		conn.Wake()
		synctest.Wait()
		send(t, client, "b")
		if err := receive(t, got, "Read"); err != nil {
			t.Errorf("Read in the handler = %v", err)
		}
		expectCall(t, seen, "")
		expectQuiet(t, seen)
	})
}

func TestHandler_ReadBehindConsumedBytesCommitsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 10)
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(conn *eventloop.Conn) error {
			head, err := conn.Reader().Next(1)
			if err != nil {
				return err
			}
			p := []byte{0}
			_, err = conn.Read(p)
			got <- string(head) + string(p)
			return errors.Join(err, eventloop.ErrMore)
		})
		conn := s.connect()
		for _, b := range "abcd" {
			send(t, conn, string(b))
			synctest.Wait()
		}
		if first, second := receive(t, got, "a call"), receive(t, got, "a call"); first != "ab" || second != "cd" {
			t.Errorf("read %q and %q", first, second)
		}
	})
}

func TestHandler_RepliesOfABatchLeaveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, counting := serveCounted(t, echoLines)
		conn := s.connect()
		send(t, conn, "a\nb\nc\nd")
		expect(t, conn, "a\nb\nc\n")
		synctest.Wait()
		if got := counting.last.writes; got != 1 {
			t.Errorf("%d writes, want 1", got)
		}
	})
}

// countingListener accepts connections that count their writes.
type countingListener struct {
	net.Listener
	last *countingConn
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.last = &countingConn{Conn: conn}
	return l.last, nil
}

// serveCounted serves on a network in memory, and counts writes.
func serveCounted(t *testing.T, handler eventloop.Handler) (*server, *countingListener) {
	t.Helper()
	network := simnet.New(simnet.Config{})
	socket, err := network.Listen("server")
	if err != nil {
		t.Fatal(err)
	}
	counting := &countingListener{Listener: socket}
	s := serveSocket(t, counting, eventloop.Config{}, handler)
	s.dial = func() (net.Conn, error) { return network.Dial(context.Background(), "tcp", "server") }
	return s, counting
}

// TestHandler_FirstRepliesToMuchLeaveEarly: so that the peer has something to do.
func TestHandler_FirstRepliesToMuchLeaveEarly(t *testing.T) {
	const replyBytes = 512
	for name, test := range map[string]struct{ requests, requestBytes, writes int }{
		"much":   {16, 512, 2},
		"little": {16, 32, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, counting := serveCounted(t, func(conn *eventloop.Conn) error {
					// Together, however they arrive.
					if all := test.requests * test.requestBytes; conn.Reader().Buffered()[0] == 'a' && conn.Reader().Len() < all {
						_, err := conn.Reader().Peek(all)
						return err
					}
					if err := conn.Reader().Skip(test.requestBytes); err != nil {
						return err
					}
					conn.Writer().Append(make([]byte, replyBytes))
					return nil
				})
				conn := s.connect()
				send(t, conn, "a"+strings.Repeat("x", test.requests*test.requestBytes-1))
				expect(t, conn, string(make([]byte, test.requests*replyBytes)))
				synctest.Wait()
				if got := counting.last.writes; got != test.writes {
					t.Errorf("%d writes, want %d", got, test.writes)
				}
			})
		})
	}
}

func TestHandler_LargeBatchesAreFlushedOnTheWay(t *testing.T) {
	var most atomic.Int64
	s := serve(t, eventloop.Config{}, func(conn *eventloop.Conn) error {
		if err := conn.Reader().Skip(1); err != nil {
			return err
		}
		conn.Writer().Insert(make([]byte, 20<<10))
		most.Store(max(most.Load(), int64(conn.Writer().Len())))
		return nil
	})
	conn := s.connect()
	send(t, conn, strings.Repeat("x", 1000))
	closeWrite(t, conn)
	if n, err := io.Copy(io.Discard, conn); n != 1000*20<<10 || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if got := most.Load(); got > 100<<10 {
		t.Errorf("the Writer held %d bytes", got)
	}
}

// TestWriter_FlushOfMoreThanOneCallTakes links 3,000 pieces, three times as many
// as the system takes at once, to a peer that reads when all are on their way.
func TestWriter_FlushOfMoreThanOneCallTakes(t *testing.T) {
	var want strings.Builder
	pieces := make([]string, 1500)
	for i := range pieces {
		pieces[i] = strings.Repeat(string(rune('a'+i%26)), 1+i)
		want.WriteString(pieces[i] + ",")
	}
	s := serve(t, eventloop.Config{}, func(conn *eventloop.Conn) error {
		if err := conn.Reader().Skip(1); err != nil {
			return err
		}
		for _, piece := range pieces {
			conn.Writer().InsertString(piece)
			conn.Writer().Insert([]byte(","))
		}
		return conn.Writer().Flush()
	})
	conn := s.connect()
	send(t, conn, "x")
	expect(t, conn, want.String())
}

func TestHandler_WakeCallsItWithoutNewBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan call, 10)
		var limit atomic.Int64
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, calls(seen, func(r *eventloop.Reader) error {
			return r.Skip(min(int(limit.Load()), r.Len()))
		}))
		client := s.connect()
		send(t, client, "abc")
		conn := expectCall(t, seen, "abc")
		expectQuiet(t, seen)

		conn.Wake()
		expectCall(t, seen, "abc")
		expectQuiet(t, seen)

		limit.Store(1)
		conn.Wake()
		expectCall(t, seen, "abc")
		expectCall(t, seen, "bc")
		expectCall(t, seen, "c")
		expectQuiet(t, seen)

		conn.Wake() // with nothing unread
		expectCall(t, seen, "")
		expectQuiet(t, seen)

		send(t, client, "d") // reading goes on
		expectCall(t, seen, "d")
		expectQuiet(t, seen)
	})
}

// TestHandler_NoWakeIsLost wakes a connection from several goroutines while
// bytes arrive. After each Wake a call must begin, calls must not overlap, and
// no byte may be lost.
func TestHandler_NoWakeIsLost(t *testing.T) {
	const wakes, wakers = 2500, 4
	var conn atomic.Pointer[eventloop.Conn]
	opened := make(chan struct{})
	var running, began atomic.Int64
	var received int
	s := serve(t, eventloop.Config{
		OnOpen: func(c *eventloop.Conn) { conn.Store(c); close(opened) },
	}, func(c *eventloop.Conn) error {
		if running.Add(1) != 1 {
			t.Error("two calls of the handler at once")
		}
		defer running.Add(-1)
		began.Add(1)
		received += c.Reader().Len()
		return c.Reader().Skip(c.Reader().Len())
	})
	client := s.connect()
	receive(t, opened, "OnOpen")
	var group sync.WaitGroup
	for range wakers {
		group.Go(func() {
			for range wakes {
				before, woken := began.Load(), time.Now()
				conn.Load().Wake()
				for began.Load() == before {
					if time.Since(woken) > patience {
						t.Error("no call after Wake")
						return
					}
					runtime.Gosched()
				}
			}
		})
	}
	group.Go(func() {
		for range wakes {
			client.Write([]byte("x"))
		}
	})
	group.Wait()
	client.Close()
	if err := receive(t, s.closed, "OnClose"); err != nil {
		t.Errorf("OnClose got %v", err)
	}
	if received != wakes {
		t.Errorf("%d bytes were handled, want %d", received, wakes)
	}
}
