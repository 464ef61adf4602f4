package fulmar_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// allProtocols are the framings that every test of the call path runs with.
var allProtocols = []fulmar.Protocol{fulmar.Bare, fulmar.Framed, fulmar.TTHeader, fulmar.TTHeaderFramed}

// eachProtocol runs a test with every protocol.
func eachProtocol(t *testing.T, test func(t *testing.T, protocol fulmar.Protocol)) {
	for _, protocol := range allProtocols {
		t.Run(protocol.String(), func(t *testing.T) { test(t, protocol) })
	}
}

// running is a server that serves until the test ends.
type running struct {
	address string
	server  *fulmar.Server
	log     *logRecorder
	// stop ends Serve gracefully and returns what it returned.
	stop func() error
}

// serve runs a server for stub on a free loopback port.
func serve(t testing.TB, config fulmar.ServerConfig, stub *testservice.Stub) *running {
	t.Helper()
	return serveAny(t, config, func(registrar fulmar.Registrar) { testservice.RegisterEchoServer(registrar, stub) })
}

// serveAny is serve for the services that register adds.
func serveAny(t testing.TB, config fulmar.ServerConfig, register func(fulmar.Registrar)) *running {
	t.Helper()
	r := &running{log: &logRecorder{}}
	if config.Address == "" {
		config.Address = "127.0.0.1:0"
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.NewTextHandler(r.log, nil))
	}
	server, err := fulmar.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	register(server)
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	r.server, r.address = server, address.String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-served
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return r
}

// dial returns a client for address that is closed when the test ends.
func dial(t *testing.T, config fulmar.ClientConfig) testservice.EchoClient {
	t.Helper()
	return testservice.NewEchoClient(dialAny(t, config))
}

// dialAny is dial for any service. The defaults for times are tested where time is
// virtual: on a busy machine a test would fail by them, so here they are longer.
func dialAny(t *testing.T, config fulmar.ClientConfig) *fulmar.Client {
	t.Helper()
	if config.Dial == nil {
		config.ConnectTimeout = cmp.Or(config.ConnectTimeout, time.Minute)
		config.Timeout = cmp.Or(config.Timeout, time.Minute)
	}
	client, err := fulmar.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return client
}

// connect opens a raw connection that is closed when the test ends.
func connect(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// asError returns err as what every failed call must be.
func asError(t *testing.T, err error) *fulmar.Error {
	t.Helper()
	var e *fulmar.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v (%T) is not a *fulmar.Error", err, err)
	}
	return e
}

// never stands for what has not happened within patience, which is virtual time.
const (
	patience = time.Hour
	never    = time.Duration(-1)
)

// closedAfter returns how long after start the peer closes conn, which it reads
// to its end and closes.
func closedAfter(t *testing.T, conn net.Conn, start time.Time) time.Duration {
	t.Helper()
	if err := conn.SetReadDeadline(start.Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, err := io.Copy(io.Discard, conn)
	took := time.Since(start)
	_ = conn.Close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return never
	}
	return took
}

// holder has a method "nothing" that runs until the test ends.
type holder struct {
	started atomic.Int64
	release chan struct{}
}

func (h *holder) stub() *testservice.Stub {
	return &testservice.Stub{OnNothing: func(context.Context) error {
		h.started.Add(1)
		<-h.release
		return nil
	}}
}

// begin must be called in the bubble, what it returns at its end.
func (h *holder) begin() (end func()) {
	h.release = make(chan struct{})
	return func() { close(h.release) }
}

func nothingCall() []byte { return frame(message(thriftwire.Call, "nothing", 1, []byte{0})) }

// logRecorder keeps what a server logs.
type logRecorder struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logRecorder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logRecorder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
