package fulmar_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// inTheHandshake are mishaps of TLS.
func inTheHandshake(t *testing.T) []mishap {
	a, other := newAuthority(t), newAuthority(t)
	serving := func(certificate tls.Certificate) fulmar.ServerConfig {
		return fulmar.ServerConfig{TLS: fulmar.ServerTLS{Config: &tls.Config{Certificates: []tls.Certificate{certificate}}}}
	}
	const host = "orders.internal"
	good := serving(a.issue(host, nil))
	knowing := good
	knowing.TLS.Config = good.TLS.Config.Clone()
	knowing.TLS.Config.ClientAuth, knowing.TLS.Config.ClientCAs = tls.RequireAndVerifyClientCert, a.pool()
	expired := a.issue(host, func(c *x509.Certificate) { c.NotAfter = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) })
	trusting := func(change func(*fulmar.ClientConfig)) fulmar.ClientConfig {
		config := fulmar.ClientConfig{TLS: fulmar.ClientTLS{Config: &tls.Config{RootCAs: a.pool()}}}
		if change != nil {
			change(&config)
		}
		return config
	}
	return []mishap{
		{what: "nobody whom the client trusts has signed the server's certificate", server: serving(other.issue(host, nil)), client: trusting(nil), call: callNothing},
		{what: "the server's certificate is for another host", server: serving(a.issue("other.internal", nil)), client: trusting(nil), call: callNothing},
		{what: "the server's certificate has expired", server: serving(expired), client: trusting(nil), call: callNothing},
		{what: "the server wants a certificate of the client", server: knowing, client: trusting(nil), call: callNothing},
		{what: "the server does not know who signed the client's certificate", server: knowing, client: trusting(func(c *fulmar.ClientConfig) {
			c.TLS.Config.Certificates = []tls.Certificate{other.issue("client", nil)}
		}), call: callNothing},
		{what: "the two know no common application protocol", server: good, client: trusting(func(c *fulmar.ClientConfig) {
			c.TLS.Config.NextProtos = []string{"spdy/3"}
		}), call: callNothing},
		{what: "the server answers, but not with TLS", answer: func() []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }, client: trusting(nil), call: callNothing},
		{what: "the server closes when it sees TLS", answer: func() []byte { return nil }, client: trusting(nil), call: callNothing},
		{what: "the server says nothing", absent: true, client: trusting(func(c *fulmar.ClientConfig) {
			c.Dial = func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				return ours, nil
			}
		}), call: callNothing},
		{what: "the server wants TLS, and the client has none", server: good, call: callNothing},
	}
}
