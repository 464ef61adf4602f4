package fulmar_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// serverPlaces are the fields that say where a server listens, what it speaks
// and whom it tells.
func serverPlaces() map[string]field[fulmar.ServerConfig] {
	return map[string]field[fulmar.ServerConfig]{
		"Address": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any { return listens(t, config).Network() },
			settings: []setting{
				{"127.0.0.1:0", "tcp"},
				{"unix:@fulmar-test-address-" + fmt.Sprint(os.Getpid()), "unix"},
			},
		},
		"LocalOnly": localOnlyField(),
		"Listener": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				config.Address = "127.0.0.1:0"
				return listens(t, config).Network()
			},
			settings: []setting{{nil, "tcp"}, {&idleListener{}, "idle"}},
		},
		"Protocols": {
			observe: observeProtocols,
			settings: []setting{
				{nil, "bare, framed, ttheader, ttheader-framed"},
				{[]fulmar.Protocol{fulmar.Bare}, "bare"},
				{[]fulmar.Protocol{fulmar.Framed}, "framed"},
				// Either of the two means both.
				{[]fulmar.Protocol{fulmar.TTHeader}, "ttheader, ttheader-framed"},
				{[]fulmar.Protocol{fulmar.Bare, fulmar.TTHeaderFramed}, "bare, ttheader, ttheader-framed"},
			},
		},
		"Interceptors": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				server := serve(t, config, adder())
				sum, err := dial(t, fulmar.ClientConfig{Target: server.address}).Add(context.Background(), 1, 2)
				return fmt.Sprint(sum, " ", fulmar.CodeOf(err))
			},
			settings: []setting{{nil, "3 ok"}, {[]fulmar.UnaryInterceptor{refusing}, "0 permission denied"}},
		},
		"StreamInterceptors": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				server := serveAny(t, config, func(registrar fulmar.Registrar) { testservice.RegisterFeedServer(registrar, &feed{}) })
				return streamed(t, fulmar.ClientConfig{Target: server.address, Protocol: fulmar.GRPC})
			},
			settings: []setting{{nil, "ok"}, {[]fulmar.StreamInterceptor{refusingStreams}, "permission denied"}},
		},
		"BeforeStop": {
			observe:  func(t *testing.T, config fulmar.ServerConfig) any { return serve(t, config, adder()).stopError() },
			settings: []setting{{nil, ""}, {func(context.Context) error { return errNowhere }, "server stop: BeforeStop: " + errNowhere.Error()}},
		},
		"Logger": {
			observe:  observeLogger,
			settings: []setting{{nil, "the default logger"}, {slog.New(slog.NewTextHandler(io.Discard, nil)), "another"}},
		},
	}
}

// serverUnknown are the fields for what is not registered.
func serverUnknown() map[string]field[fulmar.ServerConfig] {
	return map[string]field[fulmar.ServerConfig]{
		"UnknownHandler": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				server := serveAny(t, config, func(fulmar.Registrar) {})
				return fulmar.CodeOf(dial(t, fulmar.ClientConfig{Target: server.address}).Nothing(context.Background())).String()
			},
			settings: []setting{{nil, "unimplemented"}, {fulmar.UnknownHandler(func(context.Context, fulmar.Raw) (fulmar.Raw, error) {
				return nil, fulmar.NewError(fulmar.NotFound, "not here")
			}), "not found"}},
		},
		"UnknownStreamHandler": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				server := serveAny(t, config, func(fulmar.Registrar) {})
				return streamed(t, fulmar.ClientConfig{Target: server.address, Protocol: fulmar.GRPC})
			},
			settings: []setting{{nil, "unimplemented"}, {func(context.Context, *fulmar.ServerMessages) error {
				return fulmar.NewError(fulmar.NotFound, "not here")
			}, "not found"}},
		},
	}
}

func listens(t *testing.T, config fulmar.ServerConfig) net.Addr {
	t.Helper()
	server, err := fulmar.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	return address
}

// idleListener is a listener to which nobody connects.
type idleListener struct{ closed atomic.Bool }

func (l *idleListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (l *idleListener) Close() error              { l.closed.Store(true); return nil }
func (l *idleListener) Addr() net.Addr            { return &net.UnixAddr{Net: "idle"} }

func refusing(context.Context, fulmar.Unary, fulmar.UnaryNext) error {
	return fulmar.NewError(fulmar.PermissionDenied, "not you")
}

func observeProtocols(t *testing.T, config fulmar.ServerConfig) any {
	server := serve(t, config, adder())
	var seen []string
	for _, protocol := range allProtocols {
		if _, err := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol}).Add(context.Background(), 1, 2); err == nil {
			seen = append(seen, protocol.String())
		}
	}
	return strings.Join(seen, ", ")
}

// observeLogger makes a server complain, and looks whether the default logger
// hears of it.
func observeLogger(t *testing.T, config fulmar.ServerConfig) any {
	heard := &logRecorder{}
	before, output, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(heard, nil)))
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(output)
		log.SetFlags(flags)
	}()
	server, err := fulmar.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, adder())
	testservice.RegisterCalculatorServer(server, adder())
	if strings.Contains(heard.String(), "methods are in several services") {
		return "the default logger"
	}
	return "another"
}

// serverTimeouts are observed in virtual time: when the server closes a
// connection, or stops.
func serverTimeouts() map[string]field[fulmar.ServerConfig] {
	return map[string]field[fulmar.ServerConfig]{
		"FirstByteTimeout": {
			observe: closesAfter(nil, 0),
			settings: []setting{
				{3 * time.Second, soonAfter(3 * time.Second)}, {nil, soonAfter(limits.FirstByteTimeout)}, {-1, never},
			},
		},
		"FrameTimeout": {
			observe: closesAfter([]byte{0, 0, 0, 0x40, 0x80, 1, 0, 1}, 0),
			settings: []setting{
				{12 * time.Second, soonAfter(12 * time.Second)}, {nil, soonAfter(limits.FrameTimeout)}, {-1, never},
			},
		},
		"IdleTimeout": {
			observe: closesAfter(nothingCall(), 1),
			settings: []setting{
				{7 * time.Second, soonAfter(7 * time.Second)}, {nil, soonAfter(limits.ServerIdleTimeout)}, {-1, never},
			},
		},
		"WriteStallTimeout": {
			observe: observeWriteStall,
			settings: []setting{
				{8 * time.Second, stalledFor(8 * time.Second)}, {nil, stalledFor(limits.WriteStallTimeout)}, {-1, never},
			},
		},
		"DrainTimeout": {
			observe: observeDrain,
			settings: []setting{
				{3 * time.Second, 3 * time.Second}, {nil, limits.DrainTimeout}, {-1, never},
			},
		},
	}
}

// stalledFor allows for the quarter by which eventloop may be late, and for how
// often observeWriteStall looks.
func stalledFor(limit time.Duration) span { return span{limit, limit + limit/4 + time.Second} }

// closesAfter observes when the server closes a connection on which a peer sent
// something, read that many answers and fell silent.
func closesAfter(sent []byte, replies int) func(*testing.T, fulmar.ServerConfig) any {
	return func(t *testing.T, config fulmar.ServerConfig) (took any) {
		stub := &testservice.Stub{OnNothing: func(context.Context) error { return nil }}
		simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
			conn := s.connect()
			write(t, conn, sent)
			for range replies {
				readFrame(t, conn)
			}
			took = closedAfter(t, conn, time.Now())
		})
		return took
	}
}

// observeWriteStall observes when the server closes a connection whose peer
// reads nothing of a reply that does not fit into the network's buffers.
func observeWriteStall(t *testing.T, config fulmar.ServerConfig) (took any) {
	took = never
	stub := &testservice.Stub{OnVersion: func(context.Context) (string, error) { return strings.Repeat("x", 1<<20), nil }}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
		conn := s.connect()
		start := time.Now()
		write(t, conn, frame(message(thriftwire.Call, "version", 1, []byte{0})))
		for time.Since(start) < patience {
			// Writing tells whether the server still has the connection; the
			// second byte to one that is gone is refused.
			if _, err := conn.Write([]byte{0}); err != nil {
				took = time.Since(start)
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		_ = conn.Close()
	})
	return took
}

// observeDrain observes how long Serve waits for a handler that ignores its
// context.
func observeDrain(t *testing.T, config fulmar.ServerConfig) (took any) {
	took = never
	var held holder
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, held.stub(), func(s *simulation) {
		defer held.begin()()
		write(t, s.connect(), nothingCall())
		synctest.Wait()
		start := time.Now()
		s.stop()
		select {
		case err := <-s.served:
			took = time.Since(start)
			s.served <- err
		case <-time.After(patience):
		}
	})
	return took
}

// serverBounds are observed by eight peers who all want something at a time.
func serverBounds() map[string]field[fulmar.ServerConfig] {
	return map[string]field[fulmar.ServerConfig]{
		"MaxConnections": {
			observe:  observeConnections,
			settings: []setting{{3, "3 of 8"}, {nil, "8 of 8"}, {-1, "8 of 8"}},
		},
		"MaxCalls": {
			observe:  observeCalls,
			settings: []setting{{3, "3 of 8"}, {nil, "8 of 8"}, {-1, "8 of 8"}},
		},
		"MaxBufferedBytes": {
			observe: observeBuffered,
			// An eighth is kept for messages that are complete.
			settings: []setting{{650 << 10, "5 of 8"}, {nil, "3 of 8"}, {-1, "8 of 8"}},
		},
	}
}

// observeConnections returns how many connections are answered while all are
// open.
func observeConnections(t *testing.T, config fulmar.ServerConfig) any {
	answered := 0
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, adder(), func(s *simulation) {
		for range 8 {
			conn := s.connect()
			defer conn.Close()
			if answers(t, conn, frame(addCall(t, 1, 1, 2))) {
				answered++
			}
		}
	})
	return fmt.Sprintf("%d of 8", answered)
}

// observeCalls returns how many calls reach their handlers while none returns.
func observeCalls(t *testing.T, config fulmar.ServerConfig) any {
	var held holder
	var started int64
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, held.stub(), func(s *simulation) {
		defer held.begin()()
		for range 8 {
			conn := s.connect()
			defer conn.Close()
			write(t, conn, nothingCall())
			// One at a time: calls that arrive together count before any of them
			// is refused.
			synctest.Wait()
		}
		// Not at the end: a call that waits may run when those before it return,
		// if the server does not see earlier that its connection ended.
		started = held.started.Load()
	})
	return fmt.Sprintf("%d of 8", started)
}

// observeBuffered returns how many messages of 200 KiB the server holds of which
// the first half has arrived. The default is a quarter of the memory that the
// process may take, which is therefore set to 4 times 400 KiB while the server
// is made.
func observeBuffered(t *testing.T, config fulmar.ServerConfig) any {
	const length, sent, memory = 200 << 10, 100 << 10, 4 * 400 << 10
	refused := 0
	before := debug.SetMemoryLimit(memory)
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, adder(), func(s *simulation) {
		debug.SetMemoryLimit(before)
		half := frame(message(thriftwire.Call, "add", 1, make([]byte, length)))[:sent]
		var all []net.Conn
		for range 8 {
			conn := s.connect()
			defer conn.Close()
			write(t, conn, half)
			all = append(all, conn)
			synctest.Wait()
		}
		for _, conn := range all {
			_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			if n, _ := conn.Read(make([]byte, 1)); n > 0 {
				refused++
			}
		}
	})
	return fmt.Sprintf("%d of 8", 8-refused)
}
