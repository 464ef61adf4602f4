package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fulmar-rpc/fulmar"
)

// TestUnary_OverTLS needs the server to choose h2, without which grpc-go refuses it.
func TestUnary_OverTLS(t *testing.T) {
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
	config := fulmar.ServerConfig{TLS: fulmar.ServerTLS{Config: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}}
	address, _ := serve(t, config, map[string]handler{"Say": echo})
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(roots, "")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, size := range []int{1, 1 << 20} {
		if out, err := call(within(t), conn, "Say", make([]byte, size)); err != nil || len(out) != size {
			t.Errorf("%d bytes: %d, %v", size, len(out), err)
		}
	}
}

// TestUnary_UnknownMethodsGoToTheHandlerForThem is a proxy that knows no schema.
func TestUnary_UnknownMethodsGoToTheHandlerForThem(t *testing.T) {
	config := fulmar.ServerConfig{UnknownHandler: func(ctx context.Context, request fulmar.Raw) (fulmar.Raw, error) {
		return request, nil
	}}
	address, _ := serve(t, config, nil)
	conn := dial(t, address)
	out := new(wrapperspb.BytesValue)
	if err := conn.Invoke(within(t), "/other.Service/Method", wrapperspb.Bytes([]byte("abc")), out); err != nil || string(out.Value) != "abc" {
		t.Errorf("got %q, %v", out.Value, err)
	}
}
