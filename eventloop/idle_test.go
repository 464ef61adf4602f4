package eventloop_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

func TestConn_CheckIdle(t *testing.T) {
	for name, pair := range map[string]func(t *testing.T) (*eventloop.Conn, net.Conn){
		"tcp": func(t *testing.T) (*eventloop.Conn, net.Conn) { return dialledPair(t, eventloop.Config{}) },
		"simnet": func(t *testing.T) (*eventloop.Conn, net.Conn) {
			client, peer, err := simPair(simnet.New(simnet.Config{}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close(); peer.Close() })
			return eventloop.NewConn(client, eventloop.Config{}), peer
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, peer := pair(t)
			if err := conn.CheckIdle(); err != nil {
				t.Errorf("fresh connection: %v", err)
			}
			send(t, peer, "xy")
			if _, err := conn.Reader().Next(1); err != nil {
				t.Fatal(err)
			}
			if err := conn.CheckIdle(); !errors.Is(err, eventloop.ErrUnread) {
				t.Errorf("byte in the buffer: %v", err)
			}
			if _, err := conn.Reader().Next(1); err != nil {
				t.Fatal(err)
			}
			if err := conn.CheckIdle(); err != nil {
				t.Errorf("everything read: %v", err)
			}
			peer.Close()
			// The end of a real connection arrives when it likes.
			conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
				t.Fatalf("Read = %v", err)
			}
			if err := conn.CheckIdle(); !errors.Is(err, io.EOF) {
				t.Errorf("closed by the peer: %v", err)
			}
		})
	}
	t.Run("byte in the socket", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("sockets cannot be looked into")
		}
		conn, peer := dialledPair(t, eventloop.Config{})
		send(t, peer, "x")
		var err error
		eventually(t, "the byte", func() bool { err = conn.CheckIdle(); return err != nil })
		if !errors.Is(err, eventloop.ErrUnread) {
			t.Errorf("CheckIdle() = %v", err)
		}
	})
	t.Run("unknown type", func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		conn := eventloop.NewConn(a, eventloop.Config{})
		defer conn.Close()
		if err := conn.CheckIdle(); err != nil {
			t.Errorf("CheckIdle() = %v", err)
		}
	})
	t.Run("closed here", func(t *testing.T) {
		conn, _ := dialledPair(t, eventloop.Config{})
		conn.Close()
		if err := conn.CheckIdle(); runtime.GOOS != "windows" && !errors.Is(err, net.ErrClosed) {
			t.Errorf("CheckIdle() = %v", err)
		}
	})
}

// socketsTell skips tests that need a look into sockets.
func socketsTell(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("sockets cannot be looked into")
	}
}

// headerConn is a wrapper as proxies' headers need it.
type headerConn struct {
	net.Conn
	inner net.Conn
}

func (c headerConn) NetConn() net.Conn { return c.inner }

// TestConn_CheckIdleLooksThroughWrappers: what the peer sent or closed must show
// whatever stands between, and nothing that NetConn returns may be a trap.
func TestConn_CheckIdleLooksThroughWrappers(t *testing.T) {
	socketsTell(t)
	for name, wrap := range map[string]func(socket net.Conn) net.Conn{
		"NetConn":        func(socket net.Conn) net.Conn { return headerConn{socket, socket} },
		"NetConn, twice": func(socket net.Conn) net.Conn { return headerConn{socket, headerConn{socket, socket}} },
		"embedded": func(socket net.Conn) net.Conn {
			return struct{ *net.TCPConn }{socket.(*net.TCPConn)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			plain, peer := tcpPair(t)
			conn := eventloop.NewConn(wrap(plain), eventloop.Config{})
			if err := conn.CheckIdle(); err != nil {
				t.Errorf("fresh connection: %v", err)
			}
			send(t, peer, "x")
			var err error
			eventually(t, "the byte", func() bool { err = conn.CheckIdle(); return err != nil })
			if err != eventloop.ErrUnread {
				t.Errorf("byte in the socket: %v", err)
			}
			expect(t, conn, "x")
			if err := conn.CheckIdle(); err != nil {
				t.Errorf("everything read: %v", err)
			}
			peer.Close()
			eventually(t, "the end", func() bool { err = conn.CheckIdle(); return err != nil })
			if err != io.EOF {
				t.Errorf("closed by the peer: %v", err)
			}
		})
	}
	plain, peer := tcpPair(t)
	send(t, peer, "x")
	expect(t, plain, "x")
	circle := &headerConn{Conn: plain}
	circle.inner = circle
	for name, conn := range map[string]net.Conn{"nothing": headerConn{Conn: plain}, "itself": circle} {
		if err := eventloop.NewConn(conn, eventloop.Config{}).CheckIdle(); err != nil {
			t.Errorf("NetConn returns %s: %v", name, err)
		}
	}
}

// tcpPair returns two ends of a connection.
func tcpPair(t *testing.T) (dialled, accepted net.Conn) {
	t.Helper()
	return socketPair(t, "tcp", "127.0.0.1:0")
}

func socketPair(t *testing.T, network, address string) (dialled, accepted net.Conn) {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialled, err = net.Dial(network, listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close() })
	accepted, err = listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return dialled, accepted
}

// TestConn_CheckIdleAllocatesNothing: a pool looks before every call.
func TestConn_CheckIdleAllocatesNothing(t *testing.T) {
	skipWhereChecksTakeMemory(t)
	connections := map[string]net.Conn{}
	connections["tcp"], _ = tcpPair(t)
	wrapped, _ := tcpPair(t)
	connections["wrapped"] = headerConn{wrapped, wrapped}
	if runtime.GOOS != "windows" {
		connections["unix"], _ = socketPair(t, "unix", filepath.Join(t.TempDir(), "socket"))
	}
	client, peer, err := simPair(simnet.New(simnet.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); peer.Close() })
	connections["simnet"] = client
	for name, socket := range connections {
		conn := eventloop.NewConn(socket, eventloop.Config{})
		var failed error
		if got := testing.AllocsPerRun(100, func() { failed = errors.Join(failed, conn.CheckIdle()) }); got != 0 || failed != nil {
			t.Errorf("%s: %v allocations, %v", name, got, failed)
		}
	}
}

// tlsPair returns two ends of a TLS connection that has been used: nothing of
// its handshake is on the way any more.
func tlsPair(t *testing.T, sockets func(t *testing.T) (client, server net.Conn)) (conn *eventloop.Conn, peer *tls.Conn) {
	t.Helper()
	clientSocket, serverSocket := sockets(t)
	serverConfig, clientConfig := tlsConfigs(t)
	conn = eventloop.NewConn(tls.Client(clientSocket, clientConfig), eventloop.Config{})
	peer = tls.Server(serverSocket, serverConfig)
	t.Cleanup(func() { conn.Close(); peer.Close() })
	answered := make(chan error, 1)
	go func() {
		_, err := io.CopyN(peer, peer, 5)
		answered <- err
	}()
	send(t, conn, "hello")
	if err := receive(t, answered, "the peer's side"); err != nil {
		t.Fatal(err)
	}
	if got, err := conn.Reader().Next(5); string(got) != "hello" || err != nil {
		t.Fatalf("Next = %q, %v", got, err)
	}
	return conn, peer
}

// tlsCases leave something unread in a TLS connection that was idle. They return
// what must be read then.
func tlsCases() map[string]func(t *testing.T, conn *eventloop.Conn, peer *tls.Conn) string {
	long := strings.Repeat("0123456789", 500)
	return map[string]func(t *testing.T, conn *eventloop.Conn, peer *tls.Conn) string{
		"in the socket": func(t *testing.T, conn *eventloop.Conn, peer *tls.Conn) string {
			send(t, peer, "more")
			return "more"
		},
		"decrypted": func(t *testing.T, conn *eventloop.Conn, peer *tls.Conn) string {
			send(t, peer, long)
			// The Reader takes less than a record, and gives all of that away.
			if _, err := conn.Reader().Peek(1); err != nil {
				t.Fatal(err)
			}
			taken := conn.Reader().Len()
			if got, err := conn.Reader().Next(taken); string(got) != long[:taken] || taken == len(long) || err != nil {
				t.Fatalf("read %d bytes, %v", taken, err)
			}
			return long[taken:]
		},
		"one byte, decrypted": func(t *testing.T, conn *eventloop.Conn, peer *tls.Conn) string {
			send(t, peer, "xy")
			if n, err := conn.Read(make([]byte, 1)); n != 1 || err != nil {
				t.Fatalf("Read = %d, %v", n, err)
			}
			return "y"
		},
		"received, not decrypted": func(t *testing.T, conn *eventloop.Conn, peer *tls.Conn) string {
			send(t, peer, "first")
			send(t, peer, "second") // a record of its own
			synctest.Wait()
			if n, err := conn.Read(make([]byte, 100)); n != 5 || err != nil {
				t.Fatalf("Read = %d, %v", n, err)
			}
			return "second"
		},
	}
}

func TestConn_CheckIdleOfTLS(t *testing.T) {
	for name, leave := range tlsCases() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, peer := tlsPair(t, simSockets)
				for range 2 {
					if err := conn.CheckIdle(); err != nil {
						t.Fatalf("before: %v", err)
					}
				}
				want := leave(t, conn, peer)
				synctest.Wait()
				for range 2 {
					if err := conn.CheckIdle(); err == nil || errors.Is(err, io.EOF) || isTimeout(err) {
						t.Errorf("CheckIdle() = %v", err)
					}
				}
				expect(t, conn, want)
				if err := conn.CheckIdle(); err != nil {
					t.Errorf("everything read: %v", err)
				}
				peer.Close()
				synctest.Wait()
				if conn.CheckIdle() == nil {
					t.Error("closed by the peer: taken to be idle")
				}
			})
		})
	}
}

// simSockets returns two ends of a simulated connection.
func simSockets(t *testing.T) (client, server net.Conn) {
	t.Helper()
	client, server, err := simPair(simnet.New(simnet.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestConn_CheckIdleOfTLSOverTCP(t *testing.T) {
	socketsTell(t)
	conn, peer := tlsPair(t, tcpPair)
	if err := conn.CheckIdle(); err != nil {
		t.Errorf("idle: %v", err)
	}
	send(t, peer, "xy")
	var err error
	eventually(t, "the record", func() bool { err = conn.CheckIdle(); return err != nil })
	if err != eventloop.ErrUnread {
		t.Errorf("record in the socket: %v", err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Fatalf("Read = %d, %v", n, err)
	}
	if err := conn.CheckIdle(); err != eventloop.ErrUnread {
		t.Errorf("decrypted byte: %v", err)
	}
	expect(t, conn, "y")
	if err := conn.CheckIdle(); err != nil {
		t.Errorf("everything read: %v", err)
	}
	// The peer vanishes without the end of TLS.
	peer.NetConn().Close()
	eventually(t, "the end", func() bool { err = conn.CheckIdle(); return err != nil })
	if err != io.EOF {
		t.Errorf("closed by the peer: %v", err)
	}
}

// TestConn_CheckIdleKeepsTheDeadline: looking into TLS replaces it for a moment.
func TestConn_CheckIdleKeepsTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := tlsPair(t, simSockets)
		begin := time.Now()
		conn.SetReadDeadline(begin.Add(time.Minute))
		if err := conn.CheckIdle(); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != time.Minute {
			t.Errorf("Read = %v after %v, want the deadline", err, time.Since(begin))
		}
		conn.SetReadDeadline(time.Time{})
		if err := conn.CheckIdle(); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Hour)
			peer.Write([]byte("late"))
		}()
		if got, err := conn.Reader().Next(4); string(got) != "late" || err != nil {
			t.Errorf("Next = %q, %v", got, err)
		}
	})
}

// TestConn_CheckIdleLeavesTheHandshakeAlone: to TLS a handshake that was
// interrupted is the end, and a look must not start one.
func TestConn_CheckIdleLeavesTheHandshakeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientSocket, serverSocket := simSockets(t)
		serverConfig, clientConfig := tlsConfigs(t)
		conn := eventloop.NewConn(tls.Client(clientSocket, clientConfig), eventloop.Config{})
		defer conn.Close()
		peer := tls.Server(serverSocket, serverConfig)
		defer peer.Close()
		if err := conn.CheckIdle(); err != nil {
			t.Errorf("before the handshake: %v", err)
		}
		go io.CopyN(peer, peer, 2)
		send(t, conn, "ok")
		expect(t, conn, "ok")
	})
}

// TestShutdown_TakesWhatTLSHolds: requests that have been decrypted together
// with others were accepted, although the socket is empty.
func TestShutdown_TakesWhatTLSHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		socket, err := network.Listen("server")
		if err != nil {
			t.Fatal(err)
		}
		serverConfig, clientConfig := tlsConfigs(t)
		running, proceed := make(chan struct{}, 10), make(chan struct{})
		s := serveSocket(t, tls.NewListener(socket, serverConfig), eventloop.Config{}, func(conn *eventloop.Conn) error {
			err := echoLines(conn)
			if err == nil {
				running <- struct{}{}
				<-proceed
			}
			return err
		})
		plain, err := network.Dial(context.Background(), "tcp", "server")
		if err != nil {
			t.Fatal(err)
		}
		client := tls.Client(plain, clientConfig)
		defer client.Close()
		// Lines of 1 KiB, so that the 2 KiB in which a TLS connection waits hold
		// no part of a third.
		line := append(bytes.Repeat([]byte{'x'}, 1<<10-1), '\n')
		requests := bytes.Repeat(line, 4)
		send(t, client, string(requests))
		receive(t, running, "the first call")
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		synctest.Wait()
		close(proceed)
		expectEnd(t, client, string(requests))
		client.Close()
		if err := receive(t, done, "Shutdown"); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	})
}
