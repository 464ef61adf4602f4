package eventloop_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

func onePoller(dispatch eventloop.Dispatch) eventloop.Config {
	return eventloop.Config{Engine: eventloop.EngineEpoll, Dispatch: dispatch, Pollers: 1}
}

// TestStarvation_ComputingHandlersDoNotStopThePoller: more handlers compute than
// there are processors, and others are served. The naive version runs them where
// it polls.
func TestStarvation_ComputingHandlersDoNotStopThePoller(t *testing.T) {
	var stop atomic.Bool
	var computing atomic.Int64
	s := serve(t, onePoller(eventloop.DispatchSpawn), func(conn *eventloop.Conn) error {
		if conn.Reader().Buffered()[0] == 'e' {
			return echoLines(conn)
		}
		computing.Add(1)
		for x := uint32(1); !stop.Load(); x = x*1664525 + 1013904223 {
			_ = x
		}
		return conn.Reader().Skip(conn.Reader().Len())
	})
	defer stop.Store(true)
	handlers := runtime.GOMAXPROCS(0) + 2
	for range handlers {
		send(t, s.connect(), "compute")
	}
	eventually(t, "all handlers", func() bool { return computing.Load() == int64(handlers) })
	client := s.connect()
	for range 10 {
		send(t, client, "echo\n")
		expect(t, client, "echo\n")
	}
}

// TestStarvation_AFloodDoesNotKeepThePoller: one peer sends faster than its
// handler, which runs on the poller, consumes. The naive version reads as long as
// there is something.
func TestStarvation_AFloodDoesNotKeepThePoller(t *testing.T) {
	// What one read takes; a Unix socket holds so much at once.
	piece := make([]byte, 64<<10)
	flood := make(chan net.Conn, 1)
	var flooded atomic.Int64
	meanwhile := make(chan int64, 1)
	var stop atomic.Bool
	path := filepath.Join(t.TempDir(), "socket")
	s := serveNetwork(t, "unix", path, onePoller(eventloop.DispatchInline), func(conn *eventloop.Conn) error {
		if conn.Reader().Buffered()[0] == 'e' {
			meanwhile <- flooded.Load()
			return echoLines(conn)
		}
		if err := conn.Reader().Skip(conn.Reader().Len()); err != nil || stop.Load() {
			return err
		}
		flooded.Add(1)
		peer := <-flood
		flood <- peer
		_, err := peer.Write(piece)
		return err
	})
	client := s.connect()
	peer := s.connect()
	flood <- peer
	if _, err := peer.Write(piece); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the flood", func() bool { return flooded.Load() > 100 })
	// Until its first reply a connection may be owned by the goroutine that opened it.
	send(t, client, "echo\n")
	expect(t, client, "echo\n")
	<-meanwhile
	for range 100 {
		send(t, client, "echo\n")
		// From here on the poller knows of it: when it has read as often as it may from
		// the flood in this batch, and in the next.
		before := flooded.Load()
		expect(t, client, "echo\n")
		if reads := <-meanwhile - before; reads > 2*eventloop.TurnReads {
			t.Errorf("the flood was read %d times while another request waited, want %d at most", reads, 2*eventloop.TurnReads)
			break
		}
	}
	stop.Store(true)
	if loop := s.Stats().Loop; loop.Rescues+loop.Released != 0 {
		t.Errorf("the role was taken over %d times, so this test shows nothing", loop.Rescues+loop.Released)
	}
}

// TestStarvation_ManyRequestsOfOneConnection: thousands of them arrived together,
// and each takes no time. The naive version handles all of them before it looks at
// other connections.
func TestStarvation_ManyRequestsOfOneConnection(t *testing.T) {
	const requests, most = 30_000, 5_000
	var handled atomic.Int64
	entered, release, echoed := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
	s := serve(t, onePoller(eventloop.DispatchInline), func(conn *eventloop.Conn) error {
		if conn.Reader().Buffered()[0] == 'e' {
			echoed <- struct{}{}
			return echoLines(conn)
		}
		switch handled.Add(1) {
		case 1:
			entered <- struct{}{}
			<-release
		case most: // nobody polls now, unless this goes on elsewhere
			<-echoed
		}
		return conn.Reader().Skip(1)
	})
	other := s.connect()
	send(t, other, "echo\n")
	expect(t, other, "echo\n")
	<-echoed
	send(t, s.connect(), strings.Repeat("x", requests))
	<-entered
	send(t, other, "echo\n")
	close(release)
	expect(t, other, "echo\n")
	eventually(t, "all requests", func() bool { return handled.Load() == requests })
}

// TestStarvation_HandlersMayWaitForTheirConnection: what DispatchInline allows. A
// handler waits on the poller for its own connection in each possible way, and
// others are served meanwhile. What it waits for is an event that somebody has to
// poll for.
func TestStarvation_HandlersMayWaitForTheirConnection(t *testing.T) {
	testWaitingHandlers(t, nil)
}

// TestStarvation_DescriptorsThatWait: whoever has the descriptor can make its
// system calls wait. A poller that waits in one serves nobody, and, since the
// scheduler does not know of it, keeps the whole process from collecting garbage.
func TestStarvation_DescriptorsThatWait(t *testing.T) {
	testWaitingHandlers(t, func(conn *eventloop.Conn) {
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Error(err)
			return
		}
		var failed error
		if err := raw.Control(func(fd uintptr) { failed = syscall.SetNonblock(int(fd), false) }); err != nil {
			t.Error(err)
		}
		if failed != nil {
			t.Error(failed)
		}
	})
}

func testWaitingHandlers(t *testing.T, onOpen func(*eventloop.Conn)) {
	t.Helper()
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	for name, wait := range map[string]func(*eventloop.Conn) error{
		"Read":  func(conn *eventloop.Conn) error { _, err := io.ReadFull(conn, make([]byte, len("more"))); return err },
		"Write": func(conn *eventloop.Conn) error { _, err := conn.Write(large); return err },
		"WriteBuffers": func(conn *eventloop.Conn) error {
			_, err := conn.WriteBuffers([][]byte{large[:1], large[1:]})
			return err
		},
		"its replies": func(conn *eventloop.Conn) error { conn.Writer().Insert(large); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var waiting atomic.Bool
			config := onePoller(eventloop.DispatchInline)
			config.OnOpen = onOpen
			s := serve(t, config, func(conn *eventloop.Conn) error {
				if conn.Reader().Buffered()[0] == 'e' {
					return echoLines(conn)
				}
				if err := conn.Reader().Skip(len("wait")); err != nil {
					return err
				}
				waiting.Store(true)
				return wait(conn)
			})
			client, other := s.connect(), s.connect()
			send(t, client, "wait")
			eventually(t, "the handler", waiting.Load)
			for range 10 {
				send(t, other, "echo\n")
				expect(t, other, "echo\n")
			}
			if name == "Read" {
				send(t, client, "more")
			} else {
				expect(t, client, string(large))
			}
			send(t, client, "echo\n")
			expect(t, client, "echo\n")
			if loop := s.Stats().Loop; loop.Released != 1 || loop.Rescues != 0 {
				t.Errorf("the role was given away %d times and taken %d times, want once and never", loop.Released, loop.Rescues)
			}
		})
	}
}

// TestStarvation_HandlersThatSayThatTheyWait: on the poller a handler waits for
// something else than its connection, has said so, and others are served meanwhile.
// Where nothing has to be said it changes nothing.
func TestStarvation_HandlersThatSayThatTheyWait(t *testing.T) {
	for _, dispatch := range []eventloop.Dispatch{eventloop.DispatchInline, eventloop.DispatchSpawn} {
		waiting, release := make(chan struct{}), make(chan struct{})
		s := serve(t, onePoller(dispatch), func(conn *eventloop.Conn) error {
			if conn.Reader().Buffered()[0] == 'e' {
				return echoLines(conn)
			}
			conn.WillWait()
			conn.WillWait()
			waiting <- struct{}{}
			<-release
			conn.WillWait()
			return echoLines(conn)
		})
		client, other := s.connect(), s.connect()
		for range 3 {
			send(t, client, "wait\n")
			receive(t, waiting, "the handler")
			for range 10 {
				send(t, other, "echo\n")
				expect(t, other, "echo\n")
			}
			release <- struct{}{}
			expect(t, client, "wait\n")
		}
		want := uint64(3)
		if dispatch == eventloop.DispatchSpawn {
			want = 0
		}
		if loop := s.Stats().Loop; loop.Released != want || loop.Rescues != 0 {
			t.Errorf("dispatch %v: the role was given away %d times and taken %d times, want %d and 0", dispatch, loop.Released, loop.Rescues, want)
		}
		dialled := eventloop.NewConn(s.connect(), eventloop.Config{})
		dialled.WillWait()
		if err := dialled.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestStarvation_AHandlerBehindAnotherWriterDoesNotStopThePoller: the reply of a
// handler that runs on the poller waits behind a write of another goroutine,
// which waits for the peer. Only the poller can tell that one that it can go on,
// so the naive version, which waits for a lock there, waits for itself.
func TestStarvation_AHandlerBehindAnotherWriterDoesNotStopThePoller(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	replies := map[string]func(*eventloop.Conn) error{
		"Write":       func(conn *eventloop.Conn) error { _, err := conn.Write([]byte("reply")); return err },
		"its replies": func(conn *eventloop.Conn) error { conn.Writer().AppendString("reply"); return nil },
	}
	for name, reply := range replies {
		t.Run(name, func(t *testing.T) {
			opened := make(chan *eventloop.Conn, 2)
			config := onePoller(eventloop.DispatchInline)
			config.OnOpen = func(conn *eventloop.Conn) { opened <- conn }
			var replying atomic.Bool
			s := serve(t, config, func(conn *eventloop.Conn) error {
				if conn.Reader().Buffered()[0] == 'e' {
					return echoLines(conn)
				}
				replying.Store(true)
				return reply(conn)
			})
			client := s.connect()
			conn := receive(t, opened, "the connection")
			other := s.connect()
			wrote := make(chan error, 1)
			go func() { _, err := conn.Write(large); wrote <- err }()
			expect(t, client, string(large[:1]))
			send(t, client, "x")
			eventually(t, "the handler", replying.Load)
			for range 10 {
				send(t, other, "echo\n")
				expect(t, other, "echo\n")
			}
			expect(t, client, string(large[1:])+"reply")
			if err := receive(t, wrote, "the writer"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRescue_OthersGoOnInOrder: handlers that wait for something else, in
// DispatchAuto. The poller leaves them behind, other connections are served, and
// requests of one connection are handled one after the other.
func TestRescue_OthersGoOnInOrder(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, 1)
	var running sync.Map
	s := serve(t, onePoller(eventloop.DispatchAuto), func(conn *eventloop.Conn) error {
		if _, twice := running.LoadOrStore(conn, true); twice {
			t.Error("two handlers run for one connection")
		}
		defer running.Delete(conn)
		if conn.Reader().Buffered()[0] == 'w' {
			entered <- struct{}{}
			<-release
		}
		return echoLines(conn)
	})
	slow, other := s.connect(), s.connect()
	eventually(t, "a poller", func() bool { return s.Stats().Accepted == 2 })
	var loop eventloop.LoopStats
	for attempt := 0; loop.Rescues == 0; attempt++ {
		if attempt == 100 {
			t.Fatal("no handler that waits was left behind by its poller in 100 attempts")
		}
		s.ForceInline()
		before := s.Stats().Loop
		send(t, slow, "wait\nthen\n")
		receive(t, entered, "the handler")
		// A handler may have been spawned, if the decision was changed before.
		eventually(t, "the choice", func() bool {
			loop = s.Stats().Loop
			return loop.Rescues > 0 || loop.Spawned > before.Spawned
		})
		for i := range 10 {
			send(t, slow, fmt.Sprintf("next %d\n", i))
			text := fmt.Sprintf("other %d\n", i)
			send(t, other, text)
			expect(t, other, text)
		}
		release <- struct{}{}
		expect(t, slow, "wait\nthen\n")
		for i := range 10 {
			expect(t, slow, fmt.Sprintf("next %d\n", i))
		}
	}
}

// TestRescue_HandlersThatEndTheirGoroutine: the poller goes on without it.
func TestRescue_HandlersThatEndTheirGoroutine(t *testing.T) {
	onDispatches(t, func(t *testing.T, config eventloop.Config) {
		config.Pollers, config.Logger = 1, silence()
		s := serve(t, config, func(conn *eventloop.Conn) error {
			if conn.Reader().Buffered()[0] == 'g' {
				runtime.Goexit()
			}
			return echoLines(conn)
		})
		other := s.connect()
		for range 50 {
			client := s.connect()
			send(t, client, "goexit")
			client.(*net.TCPConn).CloseWrite()
			send(t, other, "echo\n")
			expect(t, other, "echo\n")
			if err := receive(t, s.closed, "OnClose"); err == nil {
				t.Error("OnClose got no error")
			}
		}
	})
}

// TestMemory_InlineHandlersThatWaitAreBounded: each keeps the buffer of its poller,
// 64 KiB. When many do, more are spawned.
func TestMemory_InlineHandlersThatWaitAreBounded(t *testing.T) {
	large := make([]byte, 16<<20)
	var waiting atomic.Int64
	s := serve(t, eventloop.Config{Engine: eventloop.EngineEpoll, Dispatch: eventloop.DispatchInline, Pollers: 1, Logger: silence()}, func(conn *eventloop.Conn) error {
		waiting.Add(1)
		conn.Writer().Insert(large)
		return conn.Reader().Skip(conn.Reader().Len())
	})
	const peers = 3 * limits.LeftBuffers
	for range peers {
		send(t, s.connect(), "x")
	}
	eventually(t, "all handlers", func() bool { return waiting.Load() == peers })
	if n := s.Stats().Loop.Buffers; n > limits.LeftBuffers+2 {
		t.Errorf("%d peers that do not read cost %d read buffers, want at most %d", peers, n, limits.LeftBuffers+2)
	}
}
