package fulmar_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// anonymous is a TLS server that has no certificate when one is asked for.
func anonymous() fulmar.ServerTLS {
	return fulmar.ServerTLS{Config: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none") }}}
}

func serverSecurity() map[string]field[fulmar.ServerConfig] {
	return map[string]field[fulmar.ServerConfig]{
		"TLS": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				_, err := tls.Dial("tcp", serve(t, config, adder()).address, &tls.Config{InsecureSkipVerify: true})
				return strings.Contains(err.Error(), "tls: internal error")
			},
			settings: []setting{{nil, false}, {anonymous(), true}},
		},
	}
}

func clientSecurity() map[string]field[fulmar.ClientConfig] {
	return map[string]field[fulmar.ClientConfig]{
		"TLS": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				socket, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer socket.Close()
				config.Target = socket.Addr().String()
				api := dial(t, config)
				done := make(chan struct{})
				go func() {
					_, _ = api.Add(t.Context(), 1, 2)
					close(done)
				}()
				conn, err := socket.Accept()
				if err != nil {
					t.Fatal(err)
				}
				var first [1]byte
				_, err = io.ReadFull(conn, first[:])
				conn.Close()
				socket.Close()
				<-done
				return err == nil && first[0] == 0x16
			},
			settings: []setting{{nil, false}, {fulmar.ClientTLS{Enable: true}, true}},
		},
	}
}

func TestServerTLS_ValidateNamesEveryProblem(t *testing.T) {
	a := newAuthority(t)
	files := a.files("server")
	key := files.Key
	for want, config := range map[string]fulmar.ServerTLS{
		"neither Files nor Config is set":      {AllowPlaintext: true},
		"no certificate: neither":              {Config: &tls.Config{}},
		"a certificate and a key are only of":  {Files: fulmar.CertificateFiles{Key: key}},
		"no such file":                         {Files: fulmar.CertificateFiles{Certificate: "/nowhere.pem", Key: key}},
		"no certificate is in it":              {Files: fulmar.CertificateFiles{Certificate: files.Certificate, Key: key, Authorities: key}},
		"Files.Certificate and Config have":    {Files: files, Config: &tls.Config{Certificates: make([]tls.Certificate, 1)}},
		"ClientsMayBeUnknown: Files.Author":    {Files: fulmar.CertificateFiles{Certificate: files.Certificate, Key: key}, ClientsMayBeUnknown: true},
		"Config.GetConfigForClient exclude":    {Files: files, Config: &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }}},
		"Config say both which clients":        {Files: files, Config: &tls.Config{ClientAuth: tls.RequestClientCert}},
		"MinVersion: TLS 1.0 is not secure":    {Files: files, Config: &tls.Config{MinVersion: tls.VersionTLS10}},
		"MaxVersion: TLS 1.1 is less":          {Files: files, Config: &tls.Config{MaxVersion: tls.VersionTLS11}},
		"TLS_RSA_WITH_AES_128_CBC_SHA is not":  {Files: files, Config: &tls.Config{CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}}},
		"Renegotiation: must be":               {Files: files, Config: &tls.Config{Renegotiation: tls.RenegotiateFreelyAsClient}},
		"HandshakeTimeout: 5ns is too short":   {Files: files, HandshakeTimeout: 5},
		"/nowhere.pem, key /nowhere.key: no s": {Files: fulmar.CertificateFiles{Certificate: "/nowhere.pem", Key: "/nowhere.key"}},
	} {
		err := fulmar.ServerConfig{TLS: config}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "server config: TLS: ") {
			t.Errorf("Validate = %v, want %s", err, want)
		}
		if _, newErr := fulmar.NewServer(fulmar.ServerConfig{TLS: config}); newErr == nil || newErr.Error() != err.Error() {
			t.Errorf("NewServer = %v, Validate = %v", newErr, err)
		}
	}
	both := fulmar.ServerConfig{TLS: fulmar.ServerTLS{Files: fulmar.CertificateFiles{Key: key}, Config: &tls.Config{MinVersion: tls.VersionTLS10}, HandshakeTimeout: 5}}
	if err := both.Validate(); err == nil || strings.Count(err.Error(), "server config: TLS: ") != 4 {
		t.Errorf("Validate = %v", err)
	}
}

func TestClientTLS_ValidateNamesEveryProblem(t *testing.T) {
	a := newAuthority(t)
	files := a.files("client")
	for want, config := range map[string]fulmar.ClientTLS{
		"ServerName is set, but Enable":       {ServerName: "x"},
		"a certificate and a key are only of": {Files: fulmar.CertificateFiles{Certificate: files.Certificate}},
		"Files.Certificate and Config have":   {Files: files, Config: &tls.Config{Certificates: make([]tls.Certificate, 1)}},
		"Config.RootCAs say both":             {Files: files, Config: &tls.Config{RootCAs: a.pool()}},
		"MinVersion: TLS 1.1 is not secure":   {Config: &tls.Config{MinVersion: tls.VersionTLS11}},
		"a Unix socket has no name":           {Enable: true},
	} {
		target := "host:1"
		if strings.HasPrefix(want, "a Unix") {
			target = "unix:///run/socket"
		}
		err := fulmar.ClientConfig{Target: target, TLS: config}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "client config: TLS: ") {
			t.Errorf("Validate = %v, want %s", err, want)
		}
	}
	for _, good := range []fulmar.ClientTLS{{Enable: true, ServerName: "x"}, {Config: &tls.Config{InsecureSkipVerify: true}}} {
		if err := (fulmar.ClientConfig{Target: "unix:///run/socket", TLS: good}).Validate(); err != nil {
			t.Error(err)
		}
	}
}

// TestServerTLS_HandshakeTimeout: who does not complete the handshake is closed, with or
// without a first byte.
func TestServerTLS_HandshakeTimeout(t *testing.T) {
	eachEngine(t, func(t *testing.T, config fulmar.ServerConfig) {
		config.TLS = anonymous()
		config.TLS.HandshakeTimeout = 20 * time.Millisecond
		s := serve(t, config, adder())
		silent, half := connect(t, s.address), connect(t, s.address)
		if _, err := half.Write([]byte("\x16\x03\x01\x00\x80half")); err != nil {
			t.Fatal(err)
		}
		for _, conn := range []net.Conn{silent, half} {
			// However it ends, it does.
			_, _ = io.ReadAll(conn)
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if got := s.server.Stats().Network; got.HandshakeErrors != 2 || strings.Count(s.log.String(), "not complete after 20ms") != 2 {
			t.Errorf("%d handshakes failed; log: %s", got.HandshakeErrors, s.log)
		}
	})
}
