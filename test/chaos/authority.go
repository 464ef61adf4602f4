package main

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
	"slices"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// authority signs certificates, and lists of those that it takes back.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, SubjectKeyId: []byte(name),
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(encoded)
	return &authority{certificate, key, 1}, err
}

// pem returns its certificate, as files have it.
func (a *authority) pem() []byte { return encodePEM("CERTIFICATE", a.certificate.Raw) }

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// issued is a certificate with its key.
type issued struct {
	serial *big.Int
	// pem has both, one behind the other: a file that holds them is replaced at once.
	pem []byte
}

// pair returns it as package crypto/tls has it.
func (i issued) pair() (tls.Certificate, error) { return tls.X509KeyPair(i.pem, i.pem) }

// issue signs a certificate for a server on loopback, or a client, with what change
// does to it.
func (a *authority) issue(change func(*x509.Certificate)) (issued, error) {
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: "chaos"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if change != nil {
		change(template)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issued{}, err
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return issued{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return issued{}, err
	}
	return issued{template.SerialNumber, slices.Concat(encodePEM("CERTIFICATE", encoded), encodePEM("PRIVATE KEY", secret))}, nil
}

// revoked returns a list of certificates that are not good any more.
func (a *authority) revoked(serials ...*big.Int) ([]byte, error) {
	a.serial++
	list := &x509.RevocationList{Number: big.NewInt(a.serial), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour)}
	for _, serial := range serials {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: serial, RevocationTime: time.Now()})
	}
	encoded, err := x509.CreateRevocationList(rand.Reader, list, a.certificate, a.key)
	return encodePEM("X509 CRL", encoded), err
}

func encodePEM(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

// replace puts a new file in the place of an old one, so that nobody reads half of it.
func replace(name string, content []byte) error {
	if err := os.WriteFile(name+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// store writes a certificate and those who are trusted, and returns what a
// configuration says of them.
func store(folder func(string) string, name string, own issued, trusted ...*authority) (fulmar.CertificateFiles, error) {
	files := fulmar.CertificateFiles{CheckInterval: 20 * time.Millisecond}
	if own.pem != nil {
		files.Certificate, files.Key = folder(name+".pem"), folder(name+".pem")
		if err := replace(files.Certificate, own.pem); err != nil {
			return files, err
		}
	}
	if len(trusted) == 0 {
		return files, nil
	}
	files.Authorities = folder(name + "-authorities.pem")
	return files, trust(files, trusted...)
}

// trust changes who is trusted.
func trust(files fulmar.CertificateFiles, trusted ...*authority) error {
	var all []byte
	for _, a := range trusted {
		all = append(all, a.pem()...)
	}
	return replace(files.Authorities, all)
}
