package main

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
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// authority signs certificates, which it writes to a folder. It lives as long as the
// demo.
type authority struct {
	folder, name string
	certificate  *x509.Certificate
	key          *ecdsa.PrivateKey
	issued       int64
}

func newAuthority(folder, name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(encoded)
	if err != nil {
		return nil, err
	}
	a := &authority{folder: folder, name: name, certificate: certificate, key: key, issued: 1}
	return a, writePEM(a.file(), "CERTIFICATE", encoded)
}

// file holds the authority's own certificate, for those who trust it.
func (a *authority) file() string { return filepath.Join(a.folder, a.name+".pem") }

// identity is what a certificate of that name says of who has it, as SPIFFE writes it.
func identity(name string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: "shop.example", Path: "/" + name}
}

// issue writes a certificate for that name, and for servers on loopback, and returns
// where it is.
func (a *authority) issue(name string) (fulmar.CertificateFiles, error) {
	files := fulmar.CertificateFiles{
		Certificate: filepath.Join(a.folder, a.name+"-"+name+".pem"),
		Key:         filepath.Join(a.folder, a.name+"-"+name+".key"),
		Authorities: a.file(),
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return files, err
	}
	a.issued++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.issued), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		URIs: []*url.URL{identity(name)}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return files, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return files, err
	}
	return files, errors.Join(writePEM(files.Certificate, "CERTIFICATE", certificate), writePEM(files.Key, "PRIVATE KEY", encoded))
}

func writePEM(file, kind string, content []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600)
}
