package eventloop_test

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// patience bounds every wait for something that must happen: a test that waits
// this long has failed.
const patience = 20 * time.Second

// receive returns what a channel delivers, and fails the test if that takes too
// long. Inside a bubble of synctest the time is virtual.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case value := <-from:
		return value
	case <-timer.C:
		t.Fatalf("waited %v for %s", patience, what)
		panic("unreachable")
	}
}

// eventually waits until a condition holds that nothing announces.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for begin := time.Now(); !condition(); runtime.Gosched() {
		if time.Since(begin) > patience {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// silence is for tests whose handlers panic on purpose.
func silence() *slog.Logger { return slog.New(slog.DiscardHandler) }

// recorder is a logger whose lines a test can look at.
type recorder struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines.Write(p)
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines.String()
}

func (r *recorder) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

// server is a Listener that serves until the end of the test.
type server struct {
	*eventloop.Listener
	t      *testing.T
	dial   func() (net.Conn, error)
	served chan error
	// closed receives the error of each connection that ended.
	closed chan error
}

// serve serves on real TCP.
func serve(t *testing.T, config eventloop.Config, handler eventloop.Handler) *server {
	t.Helper()
	return serveNetwork(t, "tcp", "127.0.0.1:0", config, handler)
}

func serveNetwork(t *testing.T, network, address string, config eventloop.Config, handler eventloop.Handler) *server {
	t.Helper()
	s := newServer(t, &config)
	listener, err := eventloop.Listen(network, address, config)
	if err != nil {
		t.Fatal(err)
	}
	s.dial = func() (net.Conn, error) { return net.Dial(network, listener.Addr().String()) }
	s.start(listener, handler)
	return s
}

// serveSim serves on a simulated network, which a bubble of synctest needs.
func serveSim(t *testing.T, network *simnet.Network, config eventloop.Config, handler eventloop.Handler) *server {
	t.Helper()
	s := newServer(t, &config)
	socket, err := network.Listen("server:0")
	if err != nil {
		t.Fatal(err)
	}
	s.dial = func() (net.Conn, error) {
		return network.Dial(context.Background(), "tcp", socket.Addr().String())
	}
	s.use(socket, config, handler)
	return s
}

// serveSocket serves the connections of a listener.
func serveSocket(t *testing.T, socket net.Listener, config eventloop.Config, handler eventloop.Handler) *server {
	t.Helper()
	s := newServer(t, &config)
	s.use(socket, config, handler)
	return s
}

// Flags that make the tests run on another engine than the default one, unless
// they choose theirs; `make test` runs them on all.
var (
	testEngine   = flag.String("engine", "", "std or epoll")
	testDispatch = flag.String("dispatch", "", "spawn, inline or auto")
)

func newServer(t *testing.T, config *eventloop.Config) *server {
	engines := map[string]eventloop.Engine{"": eventloop.EngineDefault, "std": eventloop.EngineStd, "epoll": eventloop.EngineEpoll}
	dispatches := map[string]eventloop.Dispatch{
		"": eventloop.DispatchDefault, "spawn": eventloop.DispatchSpawn, "inline": eventloop.DispatchInline, "auto": eventloop.DispatchAuto,
	}
	engine, knownEngine := engines[*testEngine]
	dispatch, knownDispatch := dispatches[*testDispatch]
	if !knownEngine || !knownDispatch {
		t.Fatalf("-engine %q or -dispatch %q is none", *testEngine, *testDispatch)
	}
	// A test that is about one of them has chosen it.
	if config.Engine == eventloop.EngineDefault {
		config.Engine = engine
	}
	if config.Dispatch == eventloop.DispatchDefault {
		config.Dispatch = dispatch
	}
	s := &server{t: t, served: make(chan error, 1), closed: make(chan error, 20000)}
	onClose := config.OnClose
	config.OnClose = func(conn *eventloop.Conn, err error) {
		if onClose != nil {
			onClose(conn, err)
		}
		s.closed <- err
	}
	return s
}

func (s *server) use(socket net.Listener, config eventloop.Config, handler eventloop.Handler) {
	s.t.Helper()
	listener, err := eventloop.NewListener(socket, config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.start(listener, handler)
}

func (s *server) start(listener *eventloop.Listener, handler eventloop.Handler) {
	s.Listener = listener
	go func() { s.served <- listener.Serve(context.Background(), handler) }()
	s.t.Cleanup(s.stop)
}

// stop closes everything and waits for Serve.
func (s *server) stop() {
	s.t.Helper()
	s.Close()
	if err := receive(s.t, s.served, "Serve to return"); err != nil {
		s.t.Errorf("Serve = %v", err)
	}
	s.served <- nil // for a second stop
}

// connect returns a plain connection to the server. It is closed at the end of
// the test.
func (s *server) connect() net.Conn {
	s.t.Helper()
	conn, err := s.dial()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func expect(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(text))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("read %q, %v, want %q", got[:n], err, text)
	}
	conn.SetReadDeadline(time.Time{})
}

// expectEnd reads until the peer stops sending in good order, and compares what
// came before.
func expectEnd(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(patience))
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != text {
		t.Fatalf("read %q, %v, want %q and the end", got, err, text)
	}
}

func closeWrite(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
}

// echoLines is the handler of the package example.
func echoLines(conn *eventloop.Conn) error {
	line, err := conn.Reader().Until('\n')
	if err != nil {
		return err
	}
	conn.Writer().Append(line)
	return nil
}
