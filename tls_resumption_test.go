package fulmar_test

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// TestTLS_NoTicketsForKnownClients: who may have been refused since he got a ticket does
// not come back with it, also where the configuration of package crypto/tls says that
// clients need certificates: that package calls VerifyPeerCertificate for new sessions only.
func TestTLS_NoTicketsForKnownClients(t *testing.T) {
	a := newAuthority(t)
	for name, kind := range map[string]tls.ClientAuthType{
		"verified": tls.RequireAndVerifyClientCert, "if given": tls.VerifyClientCertIfGiven, "any": tls.RequireAnyClientCert,
	} {
		t.Run(name, func(t *testing.T) {
			var looked, resumed atomic.Int32
			given := &tls.Config{
				Certificates: []tls.Certificate{a.issue("server", nil)}, ClientCAs: a.pool(), ClientAuth: kind,
				VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error { looked.Add(1); return nil },
			}
			s := serve(t, fulmar.ServerConfig{TLS: fulmar.ServerTLS{Config: given}}, echoing())
			client := dial(t, fulmar.ClientConfig{Target: s.address, ShortConnections: true, TLS: fulmar.ClientTLS{Config: &tls.Config{
				RootCAs: a.pool(), Certificates: []tls.Certificate{a.issue("client", nil)}, ClientSessionCache: tls.NewLRUClientSessionCache(1),
				VerifyConnection: func(state tls.ConnectionState) error {
					if state.DidResume {
						resumed.Add(1)
					}
					return nil
				},
			}}})
			const calls = 3
			for range calls {
				if err := client.Nothing(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if looked.Load() != calls || resumed.Load() != 0 {
				t.Errorf("%d of %d certificates were looked at, %d sessions resumed", looked.Load(), calls, resumed.Load())
			}
			if given.SessionTicketsDisabled {
				t.Error("the configuration of the user was changed")
			}
		})
	}
}

// TestTLS_ClientsLogToTheirLogger: what becomes of a client's certificates is told to
// the logger of its configuration.
func TestTLS_ClientsLogToTheirLogger(t *testing.T) {
	a := newAuthority(t)
	s := serve(t, fulmar.ServerConfig{TLS: fulmar.ServerTLS{Files: a.files("server")}}, echoing())
	files, heard := a.files("client"), &logRecorder{}
	files.CheckInterval = time.Nanosecond
	client := dial(t, fulmar.ClientConfig{
		Target: s.address, Logger: slog.New(slog.NewTextHandler(heard, nil)), TLS: fulmar.ClientTLS{Files: files},
	})
	writePEM(t, files.Key, "PRIVATE KEY", []byte("no key at all"))
	if err := client.Nothing(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(heard.String(), "certificates cannot be read again") {
		t.Errorf("the logger of the client heard %q", heard)
	}
}
