package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// secure returns what a server and a client need for TLS with the certificate of a
// file, which signs itself; its key follows it. Everything else is as package
// crypto/tls has it by default: version 1.3.
func secure(file string) (server, client *tls.Config, err error) {
	if file == "" {
		return nil, nil, errors.New("this case needs -certificate: a file with a certificate for 127.0.0.1 and its key")
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := tls.X509KeyPair(content, content)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate.Leaf)
	return &tls.Config{Certificates: []tls.Certificate{certificate}}, &tls.Config{RootCAs: trusted}, nil
}
