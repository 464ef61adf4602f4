package eventloop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
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

func TestConfig_ValidateReportsAllProblems(t *testing.T) {
	if err := (eventloop.Config{}).Validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
	off := eventloop.Config{ReadBufferBytes: -1, WriteStallTimeout: -1, MaxConnections: -1, KeepAlive: -1}
	if err := off.Validate(); err != nil {
		t.Errorf("everything off: %v", err)
	}
	bad := eventloop.Config{Engine: 7, ReadBufferBytes: 1, WriteStallTimeout: 1, KeepAlive: 1}
	err := bad.Validate()
	want := "eventloop config: Engine: unknown (limit 2, got 7)\n" +
		"eventloop config: ReadBufferBytes: too small (limit 512, got 1)\n" +
		"eventloop config: WriteStallTimeout: too short (limit 10ms, got 1ns)\n" +
		"eventloop config: KeepAlive: too short (limit 1s, got 1ns)"
	if err == nil || err.Error() != want {
		t.Errorf("Validate() = %v, want\n%s", err, want)
	}
	if _, err := eventloop.Listen("tcp", "127.0.0.1:0", bad); err == nil {
		t.Error("Listen accepted a bad config")
	}
	if _, err := eventloop.NewListener(nil, bad); err == nil {
		t.Error("NewListener accepted a bad config")
	}
	if _, err := eventloop.NewListener(nil, eventloop.Config{}); err == nil || !strings.Contains(err.Error(), "listener is nil") {
		t.Errorf("NewListener without a listener = %v", err)
	}
}

func TestListen_Networks(t *testing.T) {
	addresses := map[string]string{"tcp": "127.0.0.1:0", "tcp4": "127.0.0.1:0"}
	if runtime.GOOS != "windows" {
		addresses["unix"] = filepath.Join(t.TempDir(), "socket")
	}
	for network, address := range addresses {
		t.Run(network, func(t *testing.T) {
			s := serveNetwork(t, network, address, eventloop.Config{}, echoLines)
			client := s.connect()
			send(t, client, "hello\n")
			expect(t, client, "hello\n")
		})
	}
	t.Run("abstract unix", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("Linux only")
		}
		s := serveNetwork(t, "unix", fmt.Sprintf("@fulmar-test-%d", time.Now().UnixNano()), eventloop.Config{}, echoLines)
		client := s.connect()
		send(t, client, "hello\n")
		expect(t, client, "hello\n")
	})
	for network, address := range map[string]string{"udp": "127.0.0.1:0", "": "127.0.0.1:0", "tcp": "not an address"} {
		if listener, err := eventloop.Listen(network, address, eventloop.Config{}); err == nil {
			listener.Close()
			t.Errorf("Listen(%q, %q) succeeded", network, address)
		}
	}
}

func TestServe_Misuse(t *testing.T) {
	s := serve(t, eventloop.Config{}, echoLines)
	if err := s.Serve(t.Context(), nil); err == nil {
		t.Error("Serve accepted a nil handler")
	}
	send(t, s.connect(), "x") // Serve runs
	eventually(t, "the connection", func() bool { return s.Stats().Accepted > 0 })
	if err := s.Serve(t.Context(), echoLines); err == nil {
		t.Error("a second Serve succeeded")
	}
}

func TestServe_EndsWithItsContext(t *testing.T) {
	listener, err := eventloop.Listen("tcp", "127.0.0.1:0", eventloop.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- listener.Serve(ctx, echoLines) }()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	send(t, client, "x\n")
	expect(t, client, "x\n")
	cancel()
	expectEnd(t, client, "")
	if err := receive(t, served, "Serve"); err != nil {
		t.Errorf("Serve = %v", err)
	}
}

func TestServe_AfterTheEndReturnsAtOnce(t *testing.T) {
	for name, end := range map[string]func(*eventloop.Listener) error{
		"Close":    (*eventloop.Listener).Close,
		"Shutdown": func(l *eventloop.Listener) error { return l.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := eventloop.Listen("tcp", "127.0.0.1:0", eventloop.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if err := end(listener); err != nil {
				t.Errorf("end: %v", err)
			}
			if err := end(listener); err != nil {
				t.Errorf("second end: %v", err)
			}
			if err := listener.Serve(t.Context(), echoLines); err != nil {
				t.Errorf("Serve = %v", err)
			}
		})
	}
}

func TestListener_StatsAndConnections(t *testing.T) {
	s := serve(t, eventloop.Config{}, echoLines)
	first, second := s.connect(), s.connect()
	for _, client := range []net.Conn{first, second} {
		send(t, client, "12345\n")
		expect(t, client, "12345\n")
	}
	want := eventloop.Stats{Accepted: 2, Open: 2, BytesRead: 12, BytesWritten: 12}
	// A reply may arrive before it is counted.
	eventually(t, fmt.Sprintf("%+v", want), func() bool {
		got := s.Stats()
		got.Loop = eventloop.LoopStats{} // has tests of its own
		return got == want
	})
	seen := map[string]bool{}
	s.Connections(func(conn *eventloop.Conn) bool {
		seen[conn.RemoteAddr().String()] = true
		return true
	})
	if len(seen) != 2 || !seen[first.LocalAddr().String()] || !seen[second.LocalAddr().String()] {
		t.Errorf("Connections: %v", seen)
	}
	steps := 0
	s.Connections(func(*eventloop.Conn) bool { steps++; return false })
	if steps != 1 {
		t.Errorf("Connections went on after false: %d steps", steps)
	}
	first.Close()
	receive(t, s.closed, "OnClose")
	// A connection is forgotten just after OnClose.
	eventually(t, "the closed connection to be forgotten", func() bool { return s.Stats().Open == 1 })
}

func TestListener_MaxConnections(t *testing.T) {
	s := serve(t, eventloop.Config{MaxConnections: 2}, echoLines)
	kept := []net.Conn{s.connect(), s.connect()}
	for _, client := range kept {
		send(t, client, "x\n")
		expect(t, client, "x\n")
	}
	for range 5 {
		refused := s.connect()
		refused.SetReadDeadline(time.Now().Add(patience))
		if _, err := refused.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Errorf("connection over the limit: %v, want its end", err)
		}
	}
	if got := s.Stats(); got.Refused != 5 || got.Accepted != 2 || got.Open != 2 {
		t.Errorf("Stats() = %+v", got)
	}
	kept[0].Close()
	receive(t, s.closed, "OnClose")
	eventually(t, "the closed connection to be forgotten", func() bool { return s.Stats().Open == 1 })
	client := s.connect()
	send(t, client, "x\n")
	expect(t, client, "x\n")
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestListener_StopAcceptingKeepsConnections(t *testing.T) {
	s := serve(t, eventloop.Config{}, echoLines)
	client := s.connect()
	send(t, client, "x\n")
	expect(t, client, "x\n")
	for range 2 {
		if err := s.StopAccepting(); err != nil {
			t.Errorf("StopAccepting() = %v", err)
		}
	}
	if _, err := s.dial(); err == nil {
		t.Error("a connection was accepted")
	}
	send(t, client, "still served\n")
	expect(t, client, "still served\n")
}

func TestShutdown_ClosesIdleConnectionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, echoLines)
		var clients []net.Conn
		for range 10 {
			client := s.connect()
			send(t, client, "x\n")
			expect(t, client, "x\n")
			clients = append(clients, client)
		}
		synctest.Wait()
		begin := time.Now()
		if err := s.Shutdown(t.Context()); err != nil || time.Since(begin) != 0 {
			t.Errorf("Shutdown = %v after %v", err, time.Since(begin))
		}
		for _, client := range clients {
			expectEnd(t, client, "")
			if err := receive(t, s.closed, "OnClose"); err != nil {
				t.Errorf("OnClose got %v", err)
			}
		}
	})
}

func TestShutdown_WaitsForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(conn *eventloop.Conn) error {
			line, err := conn.Reader().Until('\n')
			if err != nil {
				return err
			}
			switch string(line) {
			case "running\n":
				<-time.After(10 * time.Second)
			case "held\n":
				conn.Hold()
				go func() {
					<-time.After(20 * time.Second)
					conn.WriteBuffers([][]byte{[]byte("held done\n")})
					conn.Release()
				}()
				return nil
			}
			conn.Writer().Append(line)
			return nil
		})
		running, held, half := s.connect(), s.connect(), s.connect()
		send(t, running, "running\n")
		send(t, held, "held\n")
		send(t, half, "half a li")
		synctest.Wait()
		begin := time.Now()
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(t.Context()) }()
		expectEnd(t, running, "running\n")
		if got := time.Since(begin); got != 10*time.Second {
			t.Errorf("the running call ended after %v", got)
		}
		// The rest of a request that has begun is still taken, and answered.
		send(t, half, "ne\n")
		expectEnd(t, half, "half a line\n")
		expectEnd(t, held, "held done\n")
		if got := time.Since(begin); got != 20*time.Second {
			t.Errorf("the held connection ended after %v", got)
		}
		if err := receive(t, done, "Shutdown"); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	})
}

// TestShutdown_TakesWhatHasArrived: a request that waits in the socket while the
// one before it is handled has been accepted.
func TestShutdown_TakesWhatHasArrived(t *testing.T) {
	bothNetworks(t, func(t *testing.T, start func(eventloop.Config, eventloop.Handler) *server) {
		running, proceed := make(chan struct{}, 2), make(chan struct{})
		s := start(eventloop.Config{}, func(conn *eventloop.Conn) error {
			err := echoLines(conn)
			if err == nil {
				running <- struct{}{}
				<-proceed
			}
			return err
		})
		client := s.connect()
		send(t, client, "one\n")
		receive(t, running, "the first call")
		send(t, client, "two\n")
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		eventually(t, "Shutdown to begin", func() bool {
			conn, err := s.dial()
			if err == nil {
				conn.Close()
			}
			return err != nil
		})
		close(proceed)
		expectEnd(t, client, "one\ntwo\n")
		if err := receive(t, done, "Shutdown"); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	})
}

func TestShutdown_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, echoLines)
		client := s.connect()
		send(t, client, "half a li")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 5*time.Second {
			t.Errorf("Shutdown = %v after %v", err, time.Since(begin))
		}
		expectEnd(t, client, "")
	})
}

// TestShutdown_UnderLoad stops a server while clients send requests one after
// the other. Every request that was handled must be answered.
func TestShutdown_UnderLoad(t *testing.T) {
	bothNetworks(t, func(t *testing.T, start func(eventloop.Config, eventloop.Handler) *server) {
		for range 20 {
			var handled, answered atomic.Int64
			s := start(eventloop.Config{}, func(conn *eventloop.Conn) error {
				err := echoLines(conn)
				if err == nil {
					handled.Add(1)
				}
				return err
			})
			var group sync.WaitGroup
			busy := make(chan struct{}, 100)
			for range 8 {
				client := s.connect()
				group.Go(func() {
					p := make([]byte, 10)
					for {
						if _, err := client.Write([]byte("request\n")); err != nil {
							return
						}
						if _, err := io.ReadFull(client, p[:8]); err != nil {
							return
						}
						answered.Add(1)
						select {
						case busy <- struct{}{}:
						default:
						}
					}
				})
			}
			for range 100 {
				receive(t, busy, "load")
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown = %v", err)
			}
			group.Wait()
			if handled.Load() != answered.Load() {
				t.Fatalf("%d requests were handled, %d answered", handled.Load(), answered.Load())
			}
		}
	})
}
