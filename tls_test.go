package fulmar_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

func echoing() *testservice.Stub {
	return &testservice.Stub{
		OnEcho:    func(_ context.Context, m *testservice.Message) (*testservice.Message, error) { return m, nil },
		OnNothing: func(context.Context) error { return nil },
	}
}

// TestTLS_AllProtocolsOnAllEngines: calls with certificates on both sides, one after the
// other and many at a time, short and long ones.
func TestTLS_AllProtocolsOnAllEngines(t *testing.T) {
	a := newAuthority(t)
	eachEngine(t, func(t *testing.T, config fulmar.ServerConfig) {
		config.TLS.Files = a.files("server")
		stub := echoing()
		stub.OnNothing = func(ctx context.Context) error {
			call, _ := fulmar.CallFrom(ctx)
			identity, ok := call.Identity()
			if !ok || identity.CommonName() != "client" || !slices.Equal(identity.DNSNames(), []string{"client"}) ||
				!slices.Equal(identity.URIs(), []string{"spiffe://example.org/client"}) || identity.Certificate() == nil {
				return fmt.Errorf("identity %+v, %v", identity, ok)
			}
			return nil
		}
		s := serve(t, config, stub)
		eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
			// The race detector makes twenty handshakes at once take longer than the default.
			client := dial(t, fulmar.ClientConfig{Target: s.address, Protocol: protocol, ConnectTimeout: patience, TLS: fulmar.ClientTLS{Files: a.files("client")}})
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					for j := range 10 {
						text := strings.Repeat("x", i*j*1000)
						reply, err := client.Echo(t.Context(), &testservice.Message{Text: text})
						if err != nil || reply.Text != text {
							t.Errorf("echo of %d bytes: %v", len(text), err)
						}
					}
				})
			}
			all.Wait()
			large := strings.Repeat("0123456789abcdef", 1<<20-64)
			if reply, err := client.Echo(t.Context(), &testservice.Message{Text: large}); err != nil || reply.Text != large {
				t.Errorf("echo of %d bytes: %v", len(large), err)
			}
			if err := client.Nothing(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestTLS_WhoIsRefused: what is wrong with a certificate, and what the error says.
func TestTLS_WhoIsRefused(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	for name, test := range map[string]struct {
		server func(*fulmar.ServerTLS)
		client func(*fulmar.ClientTLS)
		want   string
	}{
		"expired": {server: func(c *fulmar.ServerTLS) {
			expired := a.issue("server", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
			c.Files.Certificate, c.Files.Key = "", ""
			c.Config = &tls.Config{Certificates: []tls.Certificate{expired}}
		}, want: "the server's certificate has expired or is not valid yet"},
		"wrong name": {client: func(c *fulmar.ClientTLS) { c.ServerName = "other.example.org" },
			want: `the server's certificate is not for "other.example.org" (it is for server, 127.0.0.1)`},
		"wrong authority": {client: func(c *fulmar.ClientTLS) { c.Files.Authorities = other.files("x").Authorities },
			want: "the server's certificate is signed by nobody whom this client trusts"},
		"revoked server": {client: func(c *fulmar.ClientTLS) {
			c.Config = &tls.Config{VerifyConnection: func(tls.ConnectionState) error { return errors.New("it was revoked") }}
		}, want: "it was revoked"},
		"no client certificate": {client: func(c *fulmar.ClientTLS) { c.Files.Certificate, c.Files.Key = "", "" }, want: "certificate required"},
		"unknown client certificate": {client: func(c *fulmar.ClientTLS) {
			f := other.files("client")
			c.Files.Certificate, c.Files.Key = f.Certificate, f.Key
		}, want: "unknown certificate authority"},
		"revoked client": {server: func(c *fulmar.ServerTLS) {
			c.Config = &tls.Config{VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error { return errors.New("it was revoked") }}
		}, want: "bad certificate"},
		"another application protocol": {client: func(c *fulmar.ClientTLS) { c.Config = &tls.Config{NextProtos: []string{"spdy/3"}} }, want: "no application protocol"},
		"an old client":                {server: func(c *fulmar.ServerTLS) { c.Config = &tls.Config{MinVersion: tls.VersionTLS13} }, client: func(c *fulmar.ClientTLS) { c.Config = &tls.Config{MaxVersion: tls.VersionTLS12} }, want: "protocol version not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := fulmar.ServerTLS{Files: a.files("server")}, fulmar.ClientTLS{Files: a.files("client")}
			if test.server != nil {
				test.server(&server)
			}
			if test.client != nil {
				test.client(&client)
			}
			var called atomic.Int64
			s := serve(t, fulmar.ServerConfig{TLS: server}, &testservice.Stub{OnNothing: func(context.Context) error { called.Add(1); return nil }})
			for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.Framed} {
				api := dial(t, fulmar.ClientConfig{Target: s.address, Protocol: protocol, TLS: client})
				e := asError(t, api.Nothing(t.Context()))
				if e.Code() != fulmar.Unavailable || e.Executed() != fulmar.ExecutedNo || e.Phase() != fulmar.PhaseHandshake ||
					e.Address() != s.address || !strings.Contains(e.Message(), test.want) {
					t.Errorf("%v: %v", protocol, e)
				}
			}
			if called.Load() != 0 {
				t.Error("the handler was called")
			}
		})
	}
}

// TestTLS_PlaintextClients: a TLS server never talks plaintext, unless it is told to, and
// says to its operators who tried.
func TestTLS_PlaintextClients(t *testing.T) {
	a := newAuthority(t)
	eachEngine(t, func(t *testing.T, config fulmar.ServerConfig) {
		config.TLS.Files = a.files("server")
		config.TLS.Files.Authorities = ""
		s := serve(t, config, echoing())
		conn := connect(t, s.address)
		if _, err := conn.Write(nothingCall()); err != nil {
			t.Fatal(err)
		}
		// The alert unexpected_message, and no reset.
		if got, err := io.ReadAll(conn); string(got) != "\x15\x03\x03\x00\x02\x02\x0a" || err != nil {
			t.Errorf("the server says %q, %v", got, err)
		}
		for _, protocol := range allProtocols {
			api := dial(t, fulmar.ClientConfig{Target: s.address, Protocol: protocol})
			e := asError(t, api.Nothing(t.Context()))
			if e.Code() != fulmar.Unavailable || e.Executed() != fulmar.ExecutedNo || e.Phase() != fulmar.PhaseHandshake || e.Message() != "the server speaks TLS only, and this client does not" {
				t.Errorf("%v: %v", protocol, e)
			}
		}
		// A client may know of its alert before the server has counted that.
		want := 1 + uint64(len(allProtocols))
		for s.server.Stats().Network.HandshakeErrors < want && t.Context().Err() == nil {
			runtime.Gosched()
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if log := s.log.String(); !strings.Contains(log, `speaks="framed Thrift Binary"`) || !strings.Contains(log, "speaks=TTHeader") {
			t.Errorf("log: %s", log)
		}
		if got := s.server.Stats().Network; got.HandshakeErrors != want {
			t.Errorf("%d handshakes failed", got.HandshakeErrors)
		}
	})
	t.Run("allowed", func(t *testing.T) {
		config := fulmar.ServerConfig{TLS: fulmar.ServerTLS{Files: a.files("server"), AllowPlaintext: true, ClientsMayBeUnknown: true}}
		s := serve(t, config, echoing())
		for _, client := range []fulmar.ClientTLS{{}, {Files: fulmar.CertificateFiles{Authorities: a.files("x").Authorities}}} {
			eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
				api := dial(t, fulmar.ClientConfig{Target: s.address, Protocol: protocol, TLS: client})
				if _, err := api.Echo(t.Context(), &testservice.Message{Text: "x"}); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// TestTLS_ServersWithoutIt: a client with TLS says what it found instead.
func TestTLS_ServersWithoutIt(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	go answerOnce(socket, []byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	for address, want := range map[string]string{
		serve(t, fulmar.ServerConfig{}, echoing()).address: "the server closed the connection in the TLS handshake; maybe it does not speak TLS",
		socket.Addr().String():                             "the server does not speak TLS",
	} {
		api := dial(t, fulmar.ClientConfig{Target: address, TLS: fulmar.ClientTLS{Enable: true}})
		e := asError(t, api.Nothing(t.Context()))
		if e.Message() != want || e.Phase() != fulmar.PhaseHandshake || e.Executed() != fulmar.ExecutedNo {
			t.Error(e)
		}
	}
}

// TestTLS_SilentServers: the error says that it was the handshake that took too long.
func TestTLS_SilentServers(t *testing.T) {
	withPeer(t, fulmar.ClientConfig{ConnectTimeout: time.Second, TLS: fulmar.ClientTLS{Enable: true}}, func(client *fulmar.Client, accept func() net.Conn) {
		called := make(chan error, 1)
		go func() { called <- testservice.NewEchoClient(client).Nothing(context.Background()) }()
		silent := accept()
		e := asError(t, <-called)
		if !strings.Contains(e.Message(), "connect timeout of 1s") || e.Phase() != fulmar.PhaseHandshake || e.Executed() != fulmar.ExecutedNo {
			t.Error(e)
		}
		_ = silent.Close()
	})
}

// TestTLS_HalfHandshakes: clients that begin and do not go on hold up others for a
// moment, and cost no goroutine each beyond the limit.
func TestTLS_HalfHandshakes(t *testing.T) {
	t.Parallel() // it waits most of its time
	a := newAuthority(t)
	eachEngine(t, func(t *testing.T, config fulmar.ServerConfig) {
		config.TLS = fulmar.ServerTLS{Files: a.files("server"), MaxHandshakes: 16}
		s := serve(t, config, echoing())
		good := fulmar.ClientConfig{Target: s.address, ConnectTimeout: time.Minute, Timeout: time.Minute, TLS: fulmar.ClientTLS{Files: a.files("client")}}
		early := dial(t, good)
		if err := early.Nothing(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			conn := connect(t, s.address)
			if _, err := conn.Write([]byte("\x16\x03\x01\x02\x00half")); err != nil {
				t.Fatal(err)
			}
		}
		if err := early.Nothing(t.Context()); err != nil {
			t.Error(err)
		}
		if err := dial(t, good).Nothing(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestTLS_IdleConnectionsHaveNoGoroutine: a thousand of them are no thousand goroutines.
func TestTLS_IdleConnectionsHaveNoGoroutine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere each connection has one")
	}
	const idle = 1000
	a := newAuthority(t)
	config := fulmar.ServerConfig{TLS: fulmar.ServerTLS{Files: a.files("server")}}
	config.TLS.Files.Authorities = ""
	s := serve(t, config, echoing())
	before := runtime.NumGoroutine()
	clientConfig := &tls.Config{RootCAs: a.pool(), ServerName: "server"}
	for range idle {
		conn := tls.Client(connect(t, s.address), clientConfig)
		if _, err := conn.Write(nothingCall()); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.server.Stats().Network; got.Handshakes != idle || got.Open != idle {
		t.Errorf("%d handshakes, %d open", got.Handshakes, got.Open)
	}
	if more := runtime.NumGoroutine() - before; more > idle/10 {
		t.Errorf("%d goroutines more for %d idle connections", more, idle)
	}
}

// TestTLS_Renegotiation: with TLS 1.2 a client could ask for a second handshake on the
// same connection; the server does not make it. Package crypto/tls has no client that
// asks, so the request is one in plaintext, which is refused for that too; the
// configuration allows neither side to.
func TestTLS_Renegotiation(t *testing.T) {
	for _, given := range []tls.RenegotiationSupport{tls.RenegotiateOnceAsClient, tls.RenegotiateFreelyAsClient} {
		config := fulmar.ClientConfig{Target: "host:1", TLS: fulmar.ClientTLS{Config: &tls.Config{Renegotiation: given}}}
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), "Renegotiation") {
			t.Errorf("Validate = %v", err)
		}
	}
	a := newAuthority(t)
	config := fulmar.ServerConfig{TLS: fulmar.ServerTLS{Files: a.files("server")}}
	config.TLS.Files.Authorities = ""
	s := serve(t, config, echoing())
	socket := connect(t, s.address)
	conn := tls.Client(socket, &tls.Config{RootCAs: a.pool(), ServerName: "server", MaxVersion: tls.VersionTLS12})
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	if _, err := socket.Write([]byte("\x16\x03\x03\x00\x2d\x01\x00\x00\x29" + strings.Repeat("\x03", 41))); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the connection goes on: %v", err)
	}
}

// TestTLS_GracefulShutdown: calls that run are answered, and nothing fails.
func TestTLS_GracefulShutdown(t *testing.T) {
	t.Parallel() // it waits most of its time
	a := newAuthority(t)
	eachEngine(t, func(t *testing.T, config fulmar.ServerConfig) {
		config.TLS.Files = a.files("server")
		begun, goOn := make(chan struct{}, 8), make(chan struct{})
		s := serve(t, config, &testservice.Stub{OnNothing: func(context.Context) error {
			begun <- struct{}{}
			<-goOn
			return nil
		}})
		var all sync.WaitGroup
		for _, protocol := range allProtocols {
			api := dial(t, fulmar.ClientConfig{Target: s.address, Protocol: protocol, TLS: fulmar.ClientTLS{Files: a.files("client")}})
			all.Go(func() {
				if err := api.Nothing(t.Context()); err != nil {
					t.Error(err)
				}
			})
			<-begun
		}
		stopped := make(chan error, 1)
		go func() { stopped <- s.stop() }()
		close(goOn)
		all.Wait()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// TestTLS_CertificatesChangeUnderLoad: new connections show the new certificate, and no
// call fails, also while the files are broken for a while.
func TestTLS_CertificatesChangeUnderLoad(t *testing.T) {
	a := newAuthority(t)
	files, clients := a.files("server"), a.files("client")
	files.CheckInterval, clients.CheckInterval = time.Nanosecond, time.Nanosecond
	s := serve(t, fulmar.ServerConfig{TLS: fulmar.ServerTLS{Files: files}}, echoing())
	var calls atomic.Int64
	over := make(chan struct{})
	var all sync.WaitGroup
	for _, protocol := range allProtocols {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				// New connections each time.
				client, err := fulmar.NewClient(fulmar.ClientConfig{Target: s.address, Protocol: protocol, ConnectTimeout: time.Minute, Timeout: time.Minute, TLS: fulmar.ClientTLS{Files: clients}})
				if err != nil {
					t.Error(err)
					return
				}
				for range 5 {
					if _, err := testservice.NewEchoClient(client).Echo(t.Context(), &testservice.Message{Text: "x"}); err != nil {
						t.Error(err)
					}
					calls.Add(1)
				}
				client.Close()
			}
		})
	}
	serials := map[string]bool{}
	serial := func() string {
		conn, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: a.pool(), ServerName: "server", Certificates: []tls.Certificate{a.issue("client", nil)}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	for range 5 {
		before := calls.Load()
		for calls.Load() < before+20 && !t.Failed() {
			runtime.Gosched()
		}
		serials[serial()] = true
		writePEM(t, files.Certificate, "CERTIFICATE", []byte("broken"))
		serials[serial()] = true
		a.write(files, a.issue("server", nil))
	}
	close(over)
	all.Wait()
	if len(serials) < 5 {
		t.Errorf("the certificates were %v", serials)
	}
	if log := s.log.String(); !strings.Contains(log, "certificates cannot be read again") || !strings.Contains(log, "certificates were read again") {
		t.Errorf("log: %s", log)
	}
}

// TestTLS_AuthoritiesChange: who was known is not any more, without a restart.
func TestTLS_AuthoritiesChange(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	files := a.files("server")
	files.CheckInterval = time.Nanosecond
	s := serve(t, fulmar.ServerConfig{TLS: fulmar.ServerTLS{Files: files}}, echoing())
	call := func(by *authority) error {
		config := fulmar.ClientTLS{Config: &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{by.issue("client", nil)}}}
		return dial(t, fulmar.ClientConfig{Target: s.address, TLS: config}).Nothing(t.Context())
	}
	if err := call(a); err != nil {
		t.Error(err)
	}
	if err := call(other); err == nil {
		t.Error("an unknown client is served")
	}
	writePEM(t, files.Authorities, "CERTIFICATE", other.certificate.Raw)
	if err := call(other); err != nil {
		t.Error(err)
	}
	if err := call(a); err == nil {
		t.Error("a client is served whose authority is gone")
	}
}
