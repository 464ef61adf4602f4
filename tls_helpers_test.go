package fulmar_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// authority signs certificates for tests.
type authority struct {
	t           testing.TB
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64
}

// Certificates of tests are valid now, and in bubbles, whose time begins in 2000.
var (
	validFrom  = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	validUntil = time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)
)

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, folder: t.TempDir(), serial: 1}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: validFrom, NotAfter: validUntil, KeyUsage: x509.KeyUsageCertSign,
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(encoded); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// issue returns a certificate for a server on loopback, or a client, and what change does
// to it.
func (a *authority) issue(name string, change func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	a.serial++
	spiffe := &url.URL{Scheme: "spiffe", Host: "example.org", Path: "/" + name}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, URIs: []*url.URL{spiffe},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   validFrom, NotAfter: validUntil,
	}
	if change != nil {
		change(template)
	}
	key := newKey(a.t)
	encoded, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{encoded}, PrivateKey: key}
}

// files writes a certificate of that name, and the authority's.
func (a *authority) files(name string) fulmar.CertificateFiles {
	a.t.Helper()
	f := fulmar.CertificateFiles{
		Certificate: filepath.Join(a.folder, name+".pem"), Key: filepath.Join(a.folder, name+".key"),
		Authorities: filepath.Join(a.folder, "authorities.pem"),
	}
	writePEM(a.t, f.Authorities, "CERTIFICATE", a.certificate.Raw)
	a.write(f, a.issue(name, nil))
	return f
}

func (a *authority) write(f fulmar.CertificateFiles, certificate tls.Certificate) {
	a.t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	writePEM(a.t, f.Certificate, "CERTIFICATE", certificate.Certificate[0])
	writePEM(a.t, f.Key, "PRIVATE KEY", key)
}

func writePEM(t testing.TB, file, kind string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// plainListener hides what its connections are, so that the server has a goroutine for
// each.
type plainListener struct{ net.Listener }

func (l plainListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{conn}, nil
}

// eachEngine runs a test with servers whose connections are watched, and with others.
func eachEngine(t *testing.T, test func(t *testing.T, config fulmar.ServerConfig)) {
	t.Run("default", func(t *testing.T) { test(t, fulmar.ServerConfig{}) })
	t.Run("goroutines", func(t *testing.T) {
		socket, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		test(t, fulmar.ServerConfig{Listener: plainListener{socket}})
	})
}
