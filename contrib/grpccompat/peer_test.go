package grpccompat_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/contrib/grpccompat"
)

// here returns a service whose answers have the address that it was called at in their header.
func here(fails error) *service {
	say := func(ctx context.Context) {
		who, _ := peer.FromContext(ctx)
		_ = grpc.SetHeader(ctx, metadata.Pairs("at", who.LocalAddr.String()))
	}
	return &service{
		unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			say(ctx)
			return &testpb.SimpleResponse{}, fails
		},
		duplex: func(stream testpb.TestService_FullDuplexCallServer) error {
			say(stream.Context())
			return fails
		},
	}
}

// peerOfCalls makes a unary call and a stream with grpc.Peer, and hands over what each says,
// with the header of its answer.
func peerOfCalls(t *testing.T, client *grpccompat.Client, code codes.Code, check func(kind string, said peer.Peer, at string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var said, again peer.Peer
	var header, trailer metadata.MD
	if _, err := ask(ctx, client, grpc.Peer(&said), grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&again)); status.Code(err) != code {
		t.Errorf("unary: %v, want %v", err, code)
	}
	at := append(header.Get("at"), trailer.Get("at")...)
	if len(at) != 1 || again.Addr != said.Addr {
		t.Fatalf("unary: at %q, %v, %v", at, said, again)
	}
	check("unary", said, at[0])
	said = peer.Peer{}
	stream, err := testpb.NewTestServiceClient(client).FullDuplexCall(ctx, grpc.Peer(&said))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err == nil || status.Code(err) != code && code != codes.OK {
		t.Errorf("stream: %v, want %v", err, code)
	}
	md, err := stream.Header()
	if at = append(md.Get("at"), stream.Trailer().Get("at")...); err != nil || len(at) != 1 {
		t.Fatalf("stream: at %q, %v", at, err)
	}
	check("stream", said, at[0])
}

// TestPeer: who was called, also by calls that fail.
func TestPeer(t *testing.T) {
	for name, fails := range map[string]error{"succeeds": nil, "fails": status.Error(codes.NotFound, "no")} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, here(fails), setting{}, func(t *testing.T, client *grpccompat.Client) {
				peerOfCalls(t, client, status.Code(fails), func(kind string, said peer.Peer, at string) {
					if said.Addr == nil || said.Addr.String() != at || said.AuthInfo != nil {
						t.Errorf("%s: %v, %v; want %s", kind, said.Addr, said.AuthInfo, at)
					}
				})
			})
		})
	}
}

// TestPeer_Names: a target that is no address is the peer by its name, and a path is one of Unix.
func TestPeer_Names(t *testing.T) {
	const name = "orders.example:80"
	path := t.TempDir() + "/socket"
	for _, test := range []struct{ address, target, network, text string }{
		{"unix://" + path, "unix://" + path, "unix", path},
		{"127.0.0.1:0", name, "tcp", name},
	} {
		with := setting{server: fulmar.ServerConfig{Address: test.address}, client: grpccompat.ClientConfig{ClientConfig: fulmar.ClientConfig{Target: test.target}}}
		local := ""
		s := here(nil)
		if test.target == name {
			with.client.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, local)
			}
			first := connect(t, s, setting{}, false)
			peerOfCalls(t, first, codes.OK, func(_ string, _ peer.Peer, at string) { local = at })
		}
		peerOfCalls(t, connect(t, s, with, false), codes.OK, func(kind string, said peer.Peer, at string) {
			if said.Addr.Network() != test.network || said.Addr.String() != test.text || test.network == "unix" && at != path {
				t.Errorf("%s, %s: %v at %s, want %s %s", test.target, kind, said.Addr, at, test.network, test.text)
			}
		})
	}
}

// TestPeer_OfSeveral: the server that the answer is from.
func TestPeer_OfSeveral(t *testing.T) {
	first, second := connect(t, here(nil), setting{}, false), connect(t, here(nil), setting{}, false)
	targets := ""
	for _, client := range []*grpccompat.Client{first, second} {
		peerOfCalls(t, client, codes.OK, func(kind string, said peer.Peer, _ string) {
			if kind == "unary" {
				targets += "," + said.Addr.String()
			}
		})
	}
	client, err := grpccompat.NewClient(grpccompat.ClientConfig{ClientConfig: fulmar.ClientConfig{Target: "static:///" + targets[1:], ConnectTimeout: patience}})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		peerOfCalls(t, client, codes.OK, func(kind string, said peer.Peer, at string) {
			if _, ok := said.Addr.(*net.TCPAddr); !ok || said.Addr.String() != at {
				t.Errorf("%s: %v, want %s", kind, said.Addr, at)
			}
		})
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// TestPeer_Nobody: a call that reaches nobody leaves the variable alone.
func TestPeer_Nobody(t *testing.T) {
	refuses := func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
	client, err := grpccompat.NewClient(grpccompat.ClientConfig{ClientConfig: fulmar.ClientConfig{Target: "127.0.0.1:1", Dial: refuses}})
	if err != nil {
		t.Fatal(err)
	}
	said := peer.Peer{Addr: &net.UnixAddr{Name: "before"}}
	if _, err := ask(t.Context(), client, grpc.Peer(&said)); status.Code(err) != codes.Unavailable || said.Addr.String() != "before" {
		t.Errorf("%v, %v", err, said)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// TestPeer_TLS: the certificate of the server, beside what the configuration looks at itself.
func TestPeer_TLS(t *testing.T) {
	certificates, pool := certificate(t)
	verified := 0
	look := func(tls.ConnectionState) error { verified++; return nil }
	for name, config := range map[string]*tls.Config{"looks itself": {RootCAs: pool, VerifyConnection: look}, "does not": {RootCAs: pool}} {
		client := connect(t, here(nil), setting{
			server: fulmar.ServerConfig{TLS: fulmar.ServerTLS{Config: &tls.Config{Certificates: certificates}}},
			client: grpccompat.ClientConfig{ClientConfig: fulmar.ClientConfig{TLS: fulmar.ClientTLS{Config: config, ServerName: "example.com"}}},
		}, false)
		peerOfCalls(t, client, codes.OK, func(kind string, said peer.Peer, at string) {
			info, ok := said.AuthInfo.(credentials.TLSInfo)
			if !ok || said.Addr.String() != at || !info.State.HandshakeComplete || info.State.NegotiatedProtocol != "h2" ||
				len(info.State.PeerCertificates) != 1 || info.State.PeerCertificates[0].DNSNames[0] != "example.com" {
				t.Errorf("%s, %s: %v, %+v", name, kind, said.Addr, said.AuthInfo)
			}
			if err := credentials.CheckSecurityLevel(said.AuthInfo, credentials.PrivacyAndIntegrity); err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		})
	}
	if verified != 1 {
		t.Errorf("the configuration looked %d times, want once", verified)
	}
}

// TestStream_EndsUnread: options of a stream that nobody reads until its end hear of it.
func TestStream_EndsUnread(t *testing.T) {
	s := &service{duplex: func(stream testpb.TestService_FullDuplexCallServer) error {
		_ = stream.SendHeader(metadata.Pairs("h", "1"))
		<-stream.Context().Done()
		return stream.Context().Err()
	}}
	eachWay(t, s, setting{}, func(t *testing.T, client *grpccompat.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var header metadata.MD
		var said peer.Peer
		ended := make(chan error, 2)
		stream, err := testpb.NewTestServiceClient(client).FullDuplexCall(ctx, grpc.Header(&header), grpc.Peer(&said), grpc.OnFinish(func(err error) { ended <- err }))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Header(); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-ended; status.Code(err) != codes.Canceled || len(header.Get("h")) != 1 || said.Addr == nil {
			t.Errorf("it ended with %v, header %q, peer %v", err, header, said.Addr)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
			t.Errorf("the caller got %v", err)
		}
		if len(ended) != 0 {
			t.Errorf("it ended again, with %v", <-ended)
		}
	})
}
