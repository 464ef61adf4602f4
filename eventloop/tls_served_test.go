package eventloop_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// serveSecure serves TLS on real TCP; connect then makes the handshake.
func serveSecure(t *testing.T, config eventloop.Config, handler eventloop.Handler) (s *server, plain func() net.Conn) {
	t.Helper()
	serverConfig, clientConfig := tlsConfigs(t)
	if config.TLS == nil {
		config.TLS = serverConfig
	}
	s = serve(t, config, handler)
	dial := s.dial
	s.dial = func() (net.Conn, error) {
		socket, err := dial()
		if err != nil {
			return nil, err
		}
		conn := tls.Client(socket, clientConfig)
		return conn, conn.Handshake()
	}
	return s, func() net.Conn {
		socket, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { socket.Close() })
		return socket
	}
}

func TestSecure_EchoesOnAllEngines(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		s, _ := serveSecure(t, config, echoLines)
		var all sync.WaitGroup
		for i := range 8 {
			client := s.connect()
			all.Go(func() {
				for j := range 20 {
					line := fmt.Sprintf("%d %d %s\n", i, j, strings.Repeat("x", j*j*500))
					go io.WriteString(client, line)
					got := make([]byte, len(line))
					if _, err := io.ReadFull(client, got); err != nil || string(got) != line {
						t.Errorf("echo of %d bytes: %v", len(line), err)
						return
					}
				}
			})
		}
		all.Wait()
		if got := s.Stats(); got.Handshakes != 8 || got.HandshakeErrors != 0 {
			t.Errorf("%d handshakes, %d errors", got.Handshakes, got.HandshakeErrors)
		}
	})
}

// TestSecure_DialledConnections uses eventloop on both sides, with writes of many
// pieces in both directions and TryWriteBuffers.
func TestSecure_DialledConnections(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		s, _ := serveSecure(t, config, echoLines)
		_, clientConfig := tlsConfigs(t)
		address := s.Addr().String()
		if _, err := eventloop.Dial(t.Context(), "tcp", address, eventloop.Config{TLS: clientConfig}); err == nil {
			t.Error("a certificate that nobody has signed is accepted")
		}
		clientConfig.InsecureSkipVerify = true
		client, err := eventloop.Dial(t.Context(), "tcp", address, eventloop.Config{TLS: clientConfig})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if state := client.TLS(); state == nil || state.Version != tls.VersionTLS13 {
			t.Errorf("TLS = %+v", state)
		}
		for _, size := range []int{0, 1, 100, 16<<10 - 1, 16 << 10, 48 << 10, 48<<10 + 1, 3 << 20} {
			line := strings.Repeat("y", size) + "\n"
			rest := [][]byte{}
			for left := line; left != ""; {
				n := min(len(left), 7000)
				rest = append(rest, []byte(left[:n]))
				left = left[n:]
			}
			done := make(chan error, 1)
			go func() {
				n, err := client.TryWriteBuffers(rest)
				if err == nil && n < int64(len(line)) {
					_, err = client.WriteRest([][]byte{[]byte(line[n:])}, n)
				}
				done <- err
			}()
			got, err := client.Reader().Until('\n')
			if err != nil || string(got) != line {
				t.Fatalf("echo of %d bytes: %d bytes, %v", len(line), len(got), err)
			}
			if err := receive(t, done, "the write"); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.CheckIdle(); err != nil {
			t.Errorf("CheckIdle = %v", err)
		}
	})
}

// slowConn passes on one byte at a time.
type slowConn struct{ net.Conn }

func (c slowConn) Write(p []byte) (n int, err error) {
	for i := range p {
		if _, err := c.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// TestSecure_ByteAtATime cuts handshake and records everywhere.
func TestSecure_ByteAtATime(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		s, plain := serveSecure(t, config, echoLines)
		_, clientConfig := tlsConfigs(t)
		clientConfig.InsecureSkipVerify = true
		client := tls.Client(slowConn{plain()}, clientConfig)
		line := strings.Repeat("z", 500) + "\n"
		send(t, client, line+line)
		expect(t, client, line+line)
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		expectEnd(t, client, "")
		if err := receive(t, s.closed, "OnClose"); err != nil {
			t.Errorf("OnClose got %v", err)
		}
	})
}

func TestSecure_PlaintextIsRefusedOrServed(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		s, plain := serveSecure(t, config, echoLines)
		client := plain()
		send(t, client, "GET / HTTP/1.1\n")
		err := receive(t, s.closed, "OnClose")
		var failed *eventloop.HandshakeError
		if !errors.As(err, &failed) || !errors.Is(err, eventloop.ErrPlaintext) || !bytes.HasPrefix(failed.First, []byte("GET")) {
			t.Errorf("OnClose got %v", err)
		}
		if got := s.Stats(); got.HandshakeErrors != 1 || got.Handshakes != 0 {
			t.Errorf("%d handshakes, %d errors", got.Handshakes, got.HandshakeErrors)
		}

		config.AllowPlaintext = true
		both, plain := serveSecure(t, config, echoLines)
		for _, client := range []net.Conn{plain(), both.connect()} {
			send(t, client, "one\ntwo\n")
			expect(t, client, "one\ntwo\n")
			client.(interface{ CloseWrite() error }).CloseWrite()
			expectEnd(t, client, "")
			if err := receive(t, both.closed, "OnClose"); err != nil {
				t.Errorf("OnClose got %v", err)
			}
		}
	})
}

// TestSecure_EndWithoutNotice: an end that anybody on the way can cause is an error,
// one with close_notify is not, and has OnEOF.
func TestSecure_EndWithoutNotice(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		eofs := make(chan struct{}, 2)
		config.OnEOF = func(*eventloop.Conn) { eofs <- struct{}{} }
		s, plain := serveSecure(t, config, echoLines)
		_, clientConfig := tlsConfigs(t)
		clientConfig.InsecureSkipVerify = true
		for _, part := range []string{"", "\x17\x03\x03", "\x17\x03\x03\x40\x00half of a record"} {
			socket := plain()
			client := tls.Client(socket, clientConfig)
			send(t, client, "whole\n")
			expect(t, client, "whole\n")
			if part != "" {
				send(t, socket, part)
			}
			closeWrite(t, socket)
			if err := receive(t, s.closed, "OnClose"); !errors.Is(err, eventloop.ErrTruncated) {
				t.Errorf("after %q OnClose got %v", part, err)
			}
		}
		if len(eofs) != 0 {
			t.Error("OnEOF was called")
		}
		client := s.connect()
		send(t, client, "whole\n")
		expect(t, client, "whole\n")
		client.Close()
		if err := receive(t, s.closed, "OnClose"); err != nil {
			t.Errorf("OnClose got %v", err)
		}
		receive(t, eofs, "OnEOF")
	})
}

// TestSecure_BrokenRecord: the peer gets an alert, the connection an error.
func TestSecure_BrokenRecord(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		s, plain := serveSecure(t, config, echoLines)
		_, clientConfig := tlsConfigs(t)
		clientConfig.InsecureSkipVerify = true
		socket := plain()
		client := tls.Client(socket, clientConfig)
		send(t, client, "whole\n")
		expect(t, client, "whole\n")
		send(t, socket, "\x17\x03\x03\x00\x20"+strings.Repeat("?", 32))
		if err := receive(t, s.closed, "OnClose"); err == nil || !strings.Contains(err.Error(), "bad record MAC") {
			t.Errorf("OnClose got %v", err)
		}
		if _, err := client.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "bad record MAC") {
			t.Errorf("the client got %v", err)
		}
	})
}

// TestSecure_LastWords: what a failing handler wrote arrives, and then the notice that
// nothing more will come.
func TestSecure_LastWords(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		enough := errors.New("enough")
		s, _ := serveSecure(t, config, func(conn *eventloop.Conn) error {
			conn.Writer().AppendString(strings.Repeat("last words\n", 1000))
			return enough
		})
		client := s.connect()
		send(t, client, "x"+strings.Repeat("unread", 1000))
		expectEnd(t, client, strings.Repeat("last words\n", 1000))
		client.Close()
		if err := receive(t, s.closed, "OnClose"); err != enough {
			t.Errorf("OnClose got %v", err)
		}
	})
}

// TestSecure_SlowReader: a peer that takes nothing stalls writes, and Close does not
// wait for it.
func TestSecure_SlowReader(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		config.WriteStallTimeout = 50 * time.Millisecond
		s, _ := serveSecure(t, config, func(conn *eventloop.Conn) error {
			conn.Reader().Skip(conn.Reader().Len())
			conn.Writer().Append(make([]byte, 32<<20))
			return nil
		})
		client := s.connect()
		send(t, client, "x")
		if err := receive(t, s.closed, "OnClose"); !errors.Is(err, eventloop.ErrWriteStalled) {
			t.Errorf("OnClose got %v", err)
		}
	})
}

// TestSecure_GracefulShutdown: idle connections end with a notice, one with a call
// when it is over, and a handshake that goes on at once.
func TestSecure_GracefulShutdown(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		s, plain := serveSecure(t, config, func(conn *eventloop.Conn) error {
			if err := conn.Reader().Skip(2); err != nil {
				return err
			}
			close(begun)
			conn.WillWait()
			<-goOn
			conn.Writer().AppendString("ok")
			return nil
		})
		idle, busy, silent, half := s.connect(), s.connect(), plain(), plain()
		send(t, half, "\x16\x03\x01\x00\x50")
		send(t, busy, "go")
		receive(t, begun, "the handler")
		eventually(t, "all connections, and what the server has to do for two handshakes", func() bool {
			return s.Stats().Open == 4 && s.Stats().Handshakes == 2
		})
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(t.Context()) }()
		expectEnd(t, idle, "")
		for _, conn := range []net.Conn{silent, half} {
			if _, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Error(err)
			}
		}
		close(goOn)
		expectEnd(t, busy, "ok")
		if err := receive(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}
