package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateValidity is longer than any run.
const certificateValidity = 7 * 24 * time.Hour

// newCertificate returns a certificate that signs itself, for servers on the
// loopback device, and behind it its key, as PEM. The key is of the kind that most
// servers have: ECDSA with P-256.
func newCertificate(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "benchmark"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateValidity),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	return append(certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})...), nil
}

// certificateFile writes a new certificate to a file of a folder of its own, which
// remove removes.
func certificateFile() (name string, remove func() error, err error) {
	content, err := newCertificate(time.Now())
	if err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp("", "bench-certificate")
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(folder) }
	name = filepath.Join(folder, "server.pem")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return name, remove, nil
}
