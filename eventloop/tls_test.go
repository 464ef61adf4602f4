package eventloop_test

import (
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
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// tlsConfigs returns the two sides' configurations.
func tlsConfigs(t *testing.T) (server, client *tls.Config) {
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
