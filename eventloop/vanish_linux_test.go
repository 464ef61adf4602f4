package eventloop_test

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// Peers that vanish without a word, as when their machine loses its power: the half
// of scenario S7 that connections answer for. Each waits for the kernel, so that
// its end takes the seconds that are configured.

// vanish lets the peer of conn vanish: its kernel drops every segment for it, and
// so acknowledges none.
func vanish(t *testing.T, conn syscall.Conn) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	drop := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}
	controlErr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop})
	})
	if err := errors.Join(controlErr, err); err != nil {
		t.Fatal(err)
	}
}

// vanishing is how soon the tests miss a peer.
func vanishing(engine eventloop.Engine) eventloop.Config {
	return eventloop.Config{Engine: engine, KeepAlive: time.Second, UserTimeout: 2 * time.Second, Logger: silence()}
}

// onVanishing runs tests on both engines, and checks that together they leave
// nothing. All run at the same time: t.Parallel would let as many wait as there are
// processors.
func onVanishing(t *testing.T, tests map[string]func(*testing.T, eventloop.Config)) {
	baseline := testkit.NewBaseline()
	var group sync.WaitGroup
	for engine, number := range map[string]eventloop.Engine{"epoll": eventloop.EngineEpoll, "std": eventloop.EngineStd} {
		for name, test := range tests {
			group.Go(func() {
				t.Run(name+"/"+engine, func(t *testing.T) { test(t, vanishing(number)) })
			})
		}
	}
	group.Wait()
	if err := baseline.Check(patience); err != nil {
		t.Error(err)
	}
}

func expectTimedOut(t *testing.T, err error, stalled bool) {
	t.Helper()
	if !errors.Is(err, unix.ETIMEDOUT) || errors.Is(err, eventloop.ErrWriteStalled) != stalled {
		t.Errorf("%v, want that the system gave up the peer, write stalled: %v", err, stalled)
	}
}

// TestVanish_EndsConnections fails, after patience, without the options of the
// sockets that these end by.
func TestVanish_EndsConnections(t *testing.T) {
	onVanishing(t, map[string]func(*testing.T, eventloop.Config){
		"idle":              vanishIdle,
		"without a timeout": vanishWithoutUserTimeout,
		"reply":             vanishAfterReply,
		"handler waits":     vanishWhileHandlerWrites,
		"another waits":     vanishWhileAnotherWrites,
		"zero window":       stayWithoutReading,
		"dialled, reads":    vanishWhileReading,
		"dialled, writes":   vanishWhileWriting,
	})
}

func vanishIdle(t *testing.T, config eventloop.Config) {
	s := serve(t, config, echoLines)
	client := s.connect()
	send(t, client, "here\n")
	expect(t, client, "here\n")
	vanish(t, client.(*net.TCPConn))
	expectTimedOut(t, receive(t, s.closed, "OnClose"), false)
}

// vanishWithoutUserTimeout: the number of probes counts.
func vanishWithoutUserTimeout(t *testing.T, config eventloop.Config) {
	config.UserTimeout = -1
	vanishIdle(t, config)
}

// vanishAfterReply: the reply is on its way, and nobody acknowledges it. Keep-alive
// does nothing meanwhile.
func vanishAfterReply(t *testing.T, config eventloop.Config) {
	config.KeepAlive = -1
	called, gone := make(chan struct{}), make(chan struct{})
	s := serve(t, config, func(conn *eventloop.Conn) error {
		close(called)
		<-gone
		return echoLines(conn)
	})
	client := s.connect()
	send(t, client, "are you there?\n")
	receive(t, called, "the handler")
	vanish(t, client.(*net.TCPConn))
	close(gone)
	expectTimedOut(t, receive(t, s.closed, "OnClose"), false)
	if stats := s.Stats(); stats.WriteStalls != 0 || stats.BytesWritten == 0 {
		t.Errorf("%+v, want a reply and no stall: nobody waited to write it", stats)
	}
}

// muchBytes is more than the system takes for a peer that reads nothing. Tests make so
// much before the peer vanishes: it may take longer than the user timeout.
const muchBytes = 32 << 20

// vanishWhileHandlerWrites: what the handler waits for never comes.
func vanishWhileHandlerWrites(t *testing.T, config eventloop.Config) {
	config.KeepAlive = -1 // nothing must happen before it writes
	much := make([]byte, muchBytes)
	var logged recorder
	config.Logger = logged.logger()
	called, gone, wrote := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	s := serve(t, config, func(conn *eventloop.Conn) error {
		close(called)
		<-gone
		_, err := conn.Write(much)
		wrote <- err
		return conn.Reader().Skip(conn.Reader().Len())
	})
	client := s.connect()
	send(t, client, "x")
	receive(t, called, "the handler")
	vanish(t, client.(*net.TCPConn))
	close(gone)
	expectTimedOut(t, receive(t, wrote, "Write"), true)
	expectStall(t, s, &logged)
}

// expectStall checks that OnClose, the counters and the log say that a write has
// stalled.
func expectStall(t *testing.T, s *server, logged *recorder) {
	t.Helper()
	expectTimedOut(t, receive(t, s.closed, "OnClose"), true)
	if got := s.Stats().WriteStalls; got != 1 {
		t.Errorf("WriteStalls = %d, want 1", got)
	}
	if text := logged.String(); !bytes.Contains([]byte(text), []byte("the peer takes no bytes")) {
		t.Errorf("the log has no stall: %s", text)
	}
}

// vanishWhileAnotherWrites: the connection waits for requests at the same time. The
// system tells one of the two waits only what has happened, so this test does not
// ask for the words: both end.
func vanishWhileAnotherWrites(t *testing.T, config eventloop.Config) {
	much := make([]byte, muchBytes)
	opened, wrote := make(chan *eventloop.Conn, 1), make(chan error, 1)
	config.OnOpen = func(conn *eventloop.Conn) { opened <- conn }
	s := serve(t, config, echoLines)
	client := s.connect()
	conn := receive(t, opened, "the connection")
	vanish(t, client.(*net.TCPConn))
	go func() {
		_, err := conn.WriteBuffers([][]byte{much})
		wrote <- err
	}()
	if err := receive(t, wrote, "WriteBuffers"); err == nil {
		t.Error("WriteBuffers has not failed")
	}
	receive(t, s.closed, "OnClose")
}

// stayWithoutReading: this peer is there, acknowledges, and has no room. The user
// timeout ends that too.
func stayWithoutReading(t *testing.T, config eventloop.Config) {
	var logged recorder
	config.Logger = logged.logger()
	s := serve(t, config, func(conn *eventloop.Conn) error {
		_, err := conn.Write(make([]byte, muchBytes))
		return err
	})
	send(t, s.connect(), "x")
	expectStall(t, s, &logged)
}

// dialVanished returns a connection whose served end has vanished, which is that of
// a server without time limits.
func dialVanished(t *testing.T, config eventloop.Config) *eventloop.Conn {
	t.Helper()
	opened := make(chan *eventloop.Conn, 1)
	s := serve(t, eventloop.Config{Engine: config.Engine, KeepAlive: -1, UserTimeout: -1, OnOpen: func(conn *eventloop.Conn) { opened <- conn }}, echoLines)
	conn, err := eventloop.Dial(t.Context(), "tcp", s.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	vanish(t, receive(t, opened, "the served end"))
	return conn
}

func vanishWhileReading(t *testing.T, config eventloop.Config) {
	conn := dialVanished(t, config)
	read := make(chan error, 1)
	go func() {
		_, err := conn.Reader().Next(1)
		read <- err
	}()
	expectTimedOut(t, receive(t, read, "the reader"), false)
}

func vanishWhileWriting(t *testing.T, config eventloop.Config) {
	var told atomic.Pointer[error]
	config.OnClose = func(_ *eventloop.Conn, err error) { told.Store(&err) }
	config.KeepAlive = -1 // nothing must happen before it writes
	much := make([]byte, muchBytes)
	conn := dialVanished(t, config)
	wrote := make(chan error, 1)
	go func() {
		_, err := conn.Write(much)
		wrote <- err
	}()
	expectTimedOut(t, receive(t, wrote, "Write"), true)
	if err := told.Load(); err == nil {
		t.Error("OnClose was not called")
	} else {
		expectTimedOut(t, *err, true)
	}
}
