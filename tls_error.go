package fulmar

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// handshakeReason says what a TLS handshake failed for, in words that do not need the
// documentation of package crypto/x509; "" if err is about something else.
func handshakeReason(err error) string {
	var failed *eventloop.HandshakeError
	if !errors.As(err, &failed) {
		return ""
	}
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	switch {
	case errors.Is(failed, transport.ErrWantsTLS):
		return "the server speaks TLS only, and this client does not"
	case errors.Is(failed, eventloop.ErrPlaintext):
		return "the server does not speak TLS"
	case errors.Is(failed, io.ErrUnexpectedEOF):
		return "the server closed the connection in the TLS handshake; maybe it does not speak TLS"
	case errors.As(failed, &unknown):
		return "the server's certificate is signed by nobody whom this client trusts"
	case errors.As(failed, &name):
		return fmt.Sprintf("the server's certificate is not for %q (it is for %s)", name.Host, namesOf(name.Certificate))
	case errors.As(failed, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate has expired or is not valid yet: " + invalid.Detail
	case errors.As(failed, &verification):
		return "the server's certificate was refused: " + verification.Err.Error()
	}
	var remote *net.OpError
	if errors.As(failed, &remote) && remote.Op == "remote error" {
		return "the server refused the TLS handshake: " + strings.TrimPrefix(remote.Err.Error(), "tls: ")
	}
	return "TLS handshake: " + reason(failed.Err)
}

// namesOf lists whom a certificate is for.
func namesOf(certificate *x509.Certificate) string {
	names := certificate.DNSNames
	for _, address := range certificate.IPAddresses {
		names = append(names[:len(names):len(names)], address.String())
	}
	if len(names) == 0 {
		return "no name"
	}
	const most = 3
	if len(names) > most {
		names = append(names[:most:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}
