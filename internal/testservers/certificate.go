package testservers

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
	"os"
	"path/filepath"
	"time"
)

// TLSFiles are what a server encrypts its connections with: its certificate and key, and
// the authority of its clients' certificates.
type TLSFiles struct{ Certificate, Key, ClientAuthority string }

// NewTLSFiles makes an authority that is one certificate for both sides, with files for
// the server in a folder, and the configuration of a client. It is good for an hour.
func NewTLSFiles(folder string) (TLSFiles, *tls.Config, error) {
	files := TLSFiles{Certificate: filepath.Join(folder, "certificate.pem"), Key: filepath.Join(folder, "key.pem")}
	files.ClientAuthority = files.Certificate
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return files, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fulmar test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return files, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return files, nil, err
	}
	for name, block := range map[string]*pem.Block{
		files.Certificate: {Type: "CERTIFICATE", Bytes: certificate}, files.Key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			return files, nil, err
		}
	}
	parsed, err := x509.ParseCertificate(certificate)
	if err != nil {
		return files, nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	pair := tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
	return files, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, nil
}
