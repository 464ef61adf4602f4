package eventloop_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// tlsConfigs returns the two sides' configurations.
func tlsConfigs(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	encoded, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(encoded)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	server = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{encoded}, PrivateKey: key}}}
	return server, &tls.Config{RootCAs: roots, ServerName: "server"}
}

// TestTLS_ServedAndDialled runs both sides over TLS, which has no descriptor to
// look at, waits inside its reads, and must survive being interrupted.
func TestTLS_ServedAndDialled(t *testing.T) {
	serverConfig, clientConfig := tlsConfigs(t)
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	s := serveSocket(t, tls.NewListener(socket, serverConfig), eventloop.Config{}, func(conn *eventloop.Conn) error {
		line, err := conn.Reader().Until('\n')
		if err != nil {
			return err
		}
		conn.Writer().Append(line)
		if string(line) == "bye\n" {
			return refused
		}
		return nil
	})
	s.dial = func() (net.Conn, error) { return tls.Dial("tcp", socket.Addr().String(), clientConfig) }
	client := eventloop.NewConn(s.connect(), eventloop.Config{})
	defer client.Close()
	for _, line := range []string{"hello\n", strings.Repeat("x", 100<<10) + "\n", "small again\n"} {
		if _, err := client.WriteBuffers([][]byte{[]byte(line[:1]), []byte(line[1:])}); err != nil {
			t.Fatal(err)
		}
		got, err := client.Reader().Until('\n')
		if err != nil || string(got) != line {
			t.Fatalf("echo of %d bytes: %d bytes, %v", len(line), len(got), err)
		}
		for range 100 {
			s.Connections(func(conn *eventloop.Conn) bool { conn.Wake(); return true })
		}
	}
	send(t, client, "bye\nunread")
	expectEnd(t, client, "bye\n")
	client.Close()
	if err := receive(t, s.closed, "OnClose"); err != refused {
		t.Errorf("OnClose got %v", err)
	}
}

// serveTLS serves on a simulated network.
func serveTLS(t *testing.T, config eventloop.Config, handler eventloop.Handler) (s *server, clientConfig *tls.Config) {
	t.Helper()
	network := simnet.New(simnet.Config{})
	socket, err := network.Listen("server")
	if err != nil {
		t.Fatal(err)
	}
	serverConfig, clientConfig := tlsConfigs(t)
	s = serveSocket(t, tls.NewListener(socket, serverConfig), config, handler)
	s.dial = func() (net.Conn, error) { return network.Dial(context.Background(), "tcp", "server") }
	return s, clientConfig
}

// TestTLS_WakeDuringTheHandshake: a handshake that is interrupted cannot go on,
// so Wake must wait for its end, and then be obeyed although nothing arrives.
func TestTLS_WakeDuringTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := make(chan *eventloop.Conn, 1)
		s, clientConfig := serveTLS(t, eventloop.Config{OnOpen: func(conn *eventloop.Conn) { opened <- conn }}, func(conn *eventloop.Conn) error {
			conn.Writer().AppendString("woken\n")
			return nil
		})
		socket := s.connect()
		conn := receive(t, opened, "OnOpen")
		synctest.Wait() // the server waits for the client's first bytes
		conn.Wake()
		synctest.Wait()
		client := tls.Client(socket, clientConfig)
		expect(t, client, "woken\n")
	})
}

// TestTLS_ShutdownDuringTheHandshake: nobody has to wait for a peer that does
// not go on with its handshake.
func TestTLS_ShutdownDuringTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := serveTLS(t, eventloop.Config{}, echoLines)
		silent, talking := s.connect(), s.connect()
		send(t, talking, "\x16\x03\x01") // the beginning of a record
		synctest.Wait()
		begin := time.Now()
		if err := s.Shutdown(t.Context()); err != nil || time.Since(begin) != 0 {
			t.Errorf("Shutdown = %v after %v", err, time.Since(begin))
		}
		for range 2 {
			if err := receive(t, s.closed, "OnClose"); err != nil {
				t.Errorf("OnClose got %v", err)
			}
		}
		silent.Close()
	})
}

func TestTLS_BrokenHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := serveTLS(t, eventloop.Config{}, echoLines)
		client := s.connect()
		send(t, client, "GET / HTTP/1.1\r\n\r\n")
		if err := receive(t, s.closed, "OnClose"); err == nil || !strings.Contains(err.Error(), "TLS handshake") {
			t.Errorf("OnClose got %v", err)
		}
	})
}

// TestTLS_PanicInTheHandshake: callbacks of a tls.Config are the user's, and run
// on goroutines of the engine.
func TestTLS_PanicInTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		socket, err := network.Listen("server")
		if err != nil {
			t.Fatal(err)
		}
		_, clientConfig := tlsConfigs(t)
		panicking := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { panic("on purpose") }}
		logged := new(recorder)
		s := serveSocket(t, tls.NewListener(socket, panicking), eventloop.Config{Logger: logged.logger()}, echoLines)
		for range 2 {
			plain, err := network.Dial(context.Background(), "tcp", "server")
			if err != nil {
				t.Fatal(err)
			}
			if err := tls.Client(plain, clientConfig).Handshake(); err == nil {
				t.Error("the handshake succeeded")
			}
			plain.Close()
			if err := receive(t, s.closed, "OnClose"); err == nil || !strings.Contains(err.Error(), "handshake panicked: on purpose") {
				t.Errorf("OnClose got %v", err)
			}
		}
		if got := s.Stats().Panics; got != 2 || !strings.Contains(logged.String(), "tls_test.go") {
			t.Errorf("%d panics were counted, log: %s", got, logged)
		}
	})
}
