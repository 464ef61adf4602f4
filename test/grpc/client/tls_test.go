package client_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	"github.com/fulmar-rpc/fulmar"
)

// TestClient_TLS: grpc-go wants h2 in the handshake, and so do we.
func TestClient_TLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	own := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	secure := fulmar.ClientTLS{Config: &tls.Config{RootCAs: roots}}
	_, address := serve(t, &pantry{}, grpc.Creds(credentials.NewServerTLSFromCert(&own)))
	_, pantry := dial(t, fulmar.ClientConfig{Target: address, TLS: secure, ConnectTimeout: 10 * time.Second})
	for _, n := range []int{1, 1_000_000} {
		want := jar(n)
		if got, err := pantry.Put(t.Context(), want); err != nil || !proto.Equal(got, want) {
			t.Errorf("jar of %d: %v", n, err)
		}
	}

	other, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{own}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake()
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
	}()
	_, pantry = dial(t, fulmar.ClientConfig{Target: other.Addr().String(), TLS: secure, ConnectTimeout: 10 * time.Second})
	if _, err := pantry.Put(t.Context(), jar(1)); fulmar.CodeOf(err) != fulmar.Unavailable || !strings.Contains(err.Error(), "ALPN") {
		t.Errorf("a server without h2: %v", err)
	}
	_ = other.Close()
	<-ended
}
