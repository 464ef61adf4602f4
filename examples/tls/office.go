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
	"os"
	"path/filepath"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// office signs certificates. A fleet has one that does more, such as SPIRE or
// cert-manager.
type office struct {
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	issued      int64
}

func openOffice(folder string) (*office, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "office"}, NotAfter: time.Now().Add(time.Hour),
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
	o := &office{folder: folder, certificate: certificate, key: key, issued: 1}
	return o, write(filepath.Join(folder, "authorities.pem"), "CERTIFICATE", encoded)
}

// issue writes a certificate with its key.
func (o *office) issue(files fulmar.CertificateFiles, name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	o.issued++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(o.issued), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, o.certificate, &key.PublicKey, o.key)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(write(files.Certificate, "CERTIFICATE", certificate), write(files.Key, "PRIVATE KEY", encoded))
}

// write puts a file in its place when all of it is there.
func write(file, kind string, content []byte) error {
	fresh := file + ".new"
	if err := os.WriteFile(fresh, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, file)
}
