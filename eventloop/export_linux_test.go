package eventloop

import (
	"context"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TurnReads is how often a leader reads one connection before others.
const TurnReads = turnReads

// ForceInline makes DispatchAuto run handlers inline, and look after them, until
// it decides otherwise.
func (l *Listener) ForceInline() {
	_ = l.engine.(*epollEngine).start() // the monitor looks at the pollers
	choice := l.engine.(*epollEngine).choice
	choice.mu.Lock()
	defer choice.mu.Unlock()
	choice.startMonitorLocked()
	choice.inline.Store(true)
}

// WaitsToRead reports whether somebody waits for the socket of a served connection.
func (c *Conn) WaitsToRead() bool {
	s := c.socket.(*socket)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in.changed != nil
}

// serveInside serves on EngineEpoll for tests that look inside.
func serveInside(t *testing.T, config Config, handler Handler) (*Listener, *epollEngine) {
	t.Helper()
	config.Engine = EngineEpoll
	l, err := Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- l.Serve(context.Background(), handler) }()
	t.Cleanup(func() {
		_ = l.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	return l, l.engine.(*epollEngine)
}

// unserved returns a listener on EngineEpoll that accepts nothing, for tests that
// make its sockets.
func unserved(t testing.TB, config Config) (*Listener, *epollEngine) {
	t.Helper()
	config.Engine = EngineEpoll
	l, err := Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	engine := l.engine.(*epollEngine)
	t.Cleanup(func() {
		_ = l.Close()
		engine.close()
	})
	return l, engine
}

// busyConn makes a served connection of a socket whose handler runs for ever, as
// far as the engine knows.
func busyConn(l *Listener, s *socket) *Conn {
	c := newConn(s, &l.config)
	c.listener = l
	c.served = &served{}
	c.served.loop.socket, c.served.owned = s, true
	s.conn = c
	return c
}

// socketPair returns two connected sockets of the engine.
func socketPair(t testing.TB, l *Listener) (a, b *socket) {
	t.Helper()
	a, b, err := newSocketPair(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

func newSocketPair(l *Listener) (a, b *socket, err error) {
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	defer dialled.Close()
	accepted, err := l.socket.Accept()
	if err != nil {
		return nil, nil, err
	}
	b = accepted.(*socket)
	fd := -1
	err = rawSocket(dialled).Control(func(original uintptr) {
		fd, err = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil {
		a, err = l.engine.(*epollEngine).adopt(fd)
	}
	if err != nil {
		_ = b.Close()
		return nil, nil, err
	}
	a.local, a.remote = &b.remote, *b.local
	return a, b, nil
}
