package eventloop_test

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// inlineIfAuto makes DispatchAuto run handlers inline, until it decides otherwise.
func inlineIfAuto(s *server, config eventloop.Config) {
	if config.Dispatch == eventloop.DispatchAuto {
		s.ForceInline()
	}
}

// TestDetach_GoesOnWithWhatHappenedBefore: while a handler runs on another
// goroutine than the one that polls, what happens to its connection is left to it.
// The naive version lets go of the connection and forgets it, so it waits as long as
// the call that had let go.
func TestDetach_GoesOnWithWhatHappenedBefore(t *testing.T) {
	for name, test := range map[string]struct {
		happen func(t *testing.T, s *server, conn *eventloop.Conn, client func(string))
		then   string
	}{
		"bytes": {func(t *testing.T, s *server, conn *eventloop.Conn, client func(string)) {
			events := s.Stats().Loop.Events
			client("more\n")
			eventually(t, "the event", func() bool { return s.Stats().Loop.Events > events })
			// The next wait comes after the event was looked at.
			wakeups := s.Stats().Loop.Wakeups
			other := s.connect()
			send(t, other, "wait\n")
			eventually(t, "another event", func() bool { return s.Stats().Loop.Wakeups > wakeups })
		}, "more\n"},
		"a wake": {func(_ *testing.T, _ *server, conn *eventloop.Conn, _ func(string)) { conn.Wake() }, ""},
		"the deadline": {func(t *testing.T, _ *server, conn *eventloop.Conn, _ func(string)) {
			if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
				t.Error(err)
			}
		}, "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			entered, detaches, release := make(chan *eventloop.Conn, 2), make(chan struct{}), make(chan struct{})
			then := make(chan string, 2)
			config := onePoller(eventloop.DispatchSpawn)
			config.OnClose = func(_ *eventloop.Conn, err error) {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					then <- "expired"
				}
			}
			s := serve(t, config, func(conn *eventloop.Conn) error {
				line, err := conn.Reader().Next(conn.Reader().Len())
				if err != nil {
					return err
				}
				if string(line) != "first\n" {
					if string(line) != "wait\n" {
						then <- string(line)
					}
					return nil
				}
				entered <- conn
				<-detaches
				conn.Detach()
				<-release
				return nil
			})
			defer close(release)
			client := s.connect()
			send(t, client, "first\n")
			test.happen(t, s, receive(t, entered, "the handler"), func(line string) { send(t, client, line) })
			close(detaches)
			if got := receive(t, then, "what the connection does then"); got != test.then {
				t.Errorf("then came %q, want %q", got, test.then)
			}
		})
	}
}

// TestDetach_WhoTakesTheConnectionTakesTheRole: a handler on the poller lets go, and
// somebody else goes on with its connection. What the handler waits for after that
// is not to hold up the others.
func TestDetach_WhoTakesTheConnectionTakesTheRole(t *testing.T) {
	large := make([]byte, 32<<20)
	for name, wait := range map[string]func(*eventloop.Conn, <-chan struct{}) error{
		"something else": func(_ *eventloop.Conn, release <-chan struct{}) error { <-release; return nil },
		"its own write": func(conn *eventloop.Conn, _ <-chan struct{}) error {
			_, err := conn.WriteBuffers([][]byte{large})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			detached, woken, proceed, release := make(chan *eventloop.Conn, 1), make(chan struct{}), make(chan struct{}), make(chan struct{})
			s := serve(t, onePoller(eventloop.DispatchInline), func(conn *eventloop.Conn) error {
				switch unread := conn.Reader().Buffered(); {
				case len(unread) == 0:
					woken <- struct{}{}
					return nil
				case unread[0] == 'e':
					return echoLines(conn)
				}
				if err := conn.Reader().Skip(conn.Reader().Len()); err != nil {
					return err
				}
				conn.Detach()
				detached <- conn
				<-proceed
				return wait(conn, release)
			})
			client, other := s.connect(), s.connect()
			send(t, client, "wait\n")
			receive(t, detached, "the handler").Wake()
			receive(t, woken, "the next call")
			close(proceed)
			for range 10 {
				send(t, other, "echo\n")
				expect(t, other, "echo\n")
			}
			if name == "its own write" {
				expect(t, client, string(large))
			}
			close(release)
		})
	}
}

// TestDetach_WithoutConsumingIsNotCalledAgain: the handler would be called for the
// same bytes for ever, each time on one more goroutine.
func TestDetach_WithoutConsumingIsNotCalledAgain(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		var calls atomic.Int64
		release := make(chan struct{})
		s := serve(t, config, func(conn *eventloop.Conn) error {
			calls.Add(1)
			if line := conn.Reader().Buffered(); line[len(line)-1] == '\n' {
				return echoLines(conn)
			}
			call := conn.Detach()
			<-release
			call.Attach()
			return nil
		})
		client := s.connect()
		send(t, client, "x")
		eventually(t, "the call", func() bool { return calls.Load() == 1 })
		send(t, client, "\n")
		expect(t, client, "x\n")
		close(release)
		if n := calls.Load(); n != 2 {
			t.Errorf("%d calls for two pieces", n)
		}
	})
}

// TestDetach_MaxDetachedStopsReading: the naive version starts a goroutine for each
// request that a peer sends, whatever becomes of their replies.
func TestDetach_MaxDetachedStopsReading(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		config.MaxDetached = 3
		const requests = 50
		var running, most atomic.Int64
		release := make(chan struct{})
		s := serveDetached(t, config, func(line string) (string, error) {
			now := running.Add(1)
			defer running.Add(-1)
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			<-release
			return line, nil
		})
		client := s.connect()
		want := make([]string, requests)
		for i := range want {
			want[i] = "request\n"
		}
		send(t, client, strings.Join(want, ""))
		eventually(t, "as many calls as there may be", func() bool { return running.Load() >= 3 })
		send(t, s.connect(), "other\n")
		eventually(t, "a call of another connection", func() bool { return running.Load() >= 4 })
		close(release)
		expectLines(t, client, want...)
		// One that has not been left runs beside them, and one of the other.
		if n := most.Load(); n > 5 {
			t.Errorf("%d calls ran at a time, want 3 that were left, one that was not, and another connection's", n)
		}
	})
}

// TestDetach_ShortCallsUseAllProcessors: requests of one connection whose handlers
// compute for 15 us, too long for one processor to do them all.
func TestDetach_ShortCallsUseAllProcessors(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 || runtime.NumCPU() < 2 {
		t.Skip("one processor runs one at a time")
	}
	for name, dispatch := range map[string]eventloop.Dispatch{"auto": eventloop.DispatchAuto, "spawn": eventloop.DispatchSpawn} {
		t.Run(name, func(t *testing.T) { testShortCalls(t, dispatch) })
	}
}

func testShortCalls(t *testing.T, dispatch eventloop.Dispatch) {
	const batch = 512
	var running, overlapped atomic.Int64
	s := serve(t, eventloop.Config{Engine: eventloop.EngineEpoll, Dispatch: dispatch}, func(conn *eventloop.Conn) error {
		if err := conn.Reader().Skip(1); err != nil {
			return err
		}
		conn.Reader().Done()
		call := conn.Detach()
		others := running.Add(1) > 1
		for began := time.Now(); time.Since(began) < 15*time.Microsecond; {
		}
		if others || running.Load() > 1 {
			overlapped.Add(1)
		}
		running.Add(-1)
		if call.Attach() {
			conn.Writer().AppendString("r")
			return nil
		}
		_, err := conn.WriteBuffers([][]byte{[]byte("r")})
		return err
	})
	client := s.connect()
	// How many overlap depends on what else the machine does, so it may try again.
	const batches, calls = 20, 20 * batch
	best := int64(0)
	for i := 0; i < 20 && best < calls/3; i++ {
		overlapped.Store(0)
		for range batches {
			send(t, client, strings.Repeat("x", batch))
			expect(t, client, strings.Repeat("r", batch))
		}
		best = max(best, overlapped.Load())
	}
	t.Logf("of %d calls %d ran beside another", calls, best)
	if best < calls/3 {
		t.Errorf("of %d calls at most %d ran beside another", calls, best)
	}
}

// TestDetach_AfterSomethingThatEndsIt: on the goroutine that polls, a handler says
// that it waits, or closes its connection, before it lets go. Nothing may depend on
// its return then.
func TestDetach_AfterSomethingThatEndsIt(t *testing.T) {
	for name, test := range map[string]struct {
		first func(*eventloop.Conn)
		ends  bool
	}{
		"WillWait": {(*eventloop.Conn).WillWait, false},
		"Close":    {func(conn *eventloop.Conn) { _ = conn.Close() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			next, release := make(chan struct{}, 1), make(chan struct{})
			s := serve(t, onePoller(eventloop.DispatchInline), func(conn *eventloop.Conn) error {
				request, err := conn.Reader().Next(1)
				if err != nil {
					return err
				}
				if request[0] == 'b' {
					next <- struct{}{}
					return nil
				}
				test.first(conn)
				conn.Detach()
				<-release
				return nil
			})
			defer close(release)
			send(t, s.connect(), "ab")
			if test.ends {
				receive(t, s.closed, "OnClose")
			} else {
				receive(t, next, "the next request")
			}
		})
	}
}

// TestDetach_AfterAReadThatWaited: what wakes the reader is reported to nobody else.
// The naive version goes on with the connection when the call that lets go of it has
// returned.
func TestDetach_AfterAReadThatWaited(t *testing.T) {
	for name, dispatch := range map[string]eventloop.Dispatch{"spawn": eventloop.DispatchSpawn, "inline": eventloop.DispatchInline} {
		t.Run(name, func(t *testing.T) {
			entered, detached, next, release := make(chan *eventloop.Conn, 1), make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
			s := serve(t, onePoller(dispatch), func(conn *eventloop.Conn) error {
				request, err := conn.Reader().Next(1)
				if err != nil {
					return err
				}
				if request[0] == 'c' {
					next <- struct{}{}
					return nil
				}
				entered <- conn
				if _, err := conn.Read(make([]byte, 1)); err != nil {
					return err
				}
				conn.Detach()
				detached <- struct{}{}
				<-release
				return nil
			})
			defer close(release)
			client := s.connect()
			send(t, client, "a")
			eventually(t, "the read to wait", receive(t, entered, "the handler").WaitsToRead)
			send(t, client, "b")
			receive(t, detached, "the handler to let go")
			send(t, client, "c")
			receive(t, next, "the next request")
		})
	}
}

// TestMemory_FormerBuffersDoNotEndInline: buffers that wait for the next handler that
// is left behind are not in its way.
func TestMemory_FormerBuffersDoNotEndInline(t *testing.T) {
	const pollers = 14
	entered, release := make(chan struct{}), make(chan struct{})
	config := onePoller(eventloop.DispatchInline)
	config.Pollers = pollers
	s := serve(t, config, func(conn *eventloop.Conn) error {
		if conn.Reader().Buffered()[0] == 'w' {
			conn.WillWait()
			entered <- struct{}{}
			<-release
		}
		return echoLines(conn)
	})
	var clients []net.Conn
	for range 4 * pollers {
		client := s.connect()
		send(t, client, "wait\n")
		receive(t, entered, "the handler")
		clients = append(clients, client)
	}
	close(release)
	for _, client := range clients {
		expect(t, client, "wait\n")
		client.Close()
		receive(t, s.closed, "OnClose")
	}
	other := s.connect()
	send(t, other, "echo\n")
	expect(t, other, "echo\n")
	before := s.Stats().Loop.Spawned
	for range 100 {
		send(t, other, "echo\n")
		expect(t, other, "echo\n")
	}
	if spawned := s.Stats().Loop.Spawned - before; spawned != 0 {
		t.Errorf("%d of 100 handlers were spawned, with %d buffers", spawned, s.Stats().Loop.Buffers)
	}
}
