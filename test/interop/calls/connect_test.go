package calls_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everything"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everythingapache"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

func TestMain(m *testing.M) {
	if err := peer.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testkit.Main(m)
}

// transport is a way to put messages on a connection, by the name that the
// peers have for it.
type transport struct {
	name     string
	protocol fulmar.Protocol
	// peers are who can speak it.
	peers []string
}

// transports are what is tested.
func transports() []transport {
	everyone := []string{peer.Thriftpy2, peer.Apache, peer.ApacheAccelerated, peer.ApacheGo, peer.Kitex}
	return []transport{
		{"bare", fulmar.Bare, everyone},
		{"framed", fulmar.Framed, everyone},
	}
}

// eachPeer runs a test for every transport and every one of the named peers that
// speaks it.
func eachPeer(t *testing.T, names []string, test func(t *testing.T, name string, transport transport)) {
	for _, transport := range transports() {
		for _, name := range transport.peers {
			if slices.Contains(names, name) {
				t.Run(name+"/"+transport.name, func(t *testing.T) { test(t, name, transport) })
			}
		}
	}
}

// connect returns generated clients for the server at address.
func connect(t *testing.T, address string, transport transport) (everything.EverythingClient, everythingapache.ApacheClient) {
	t.Helper()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address, Protocol: transport.protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return everything.NewEverythingClient(client), everythingapache.NewApacheClient(client)
}

// countingListener counts the connections that it accepts.
type countingListener struct {
	net.Listener
	accepted atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return conn, err
}

// serve starts a Fulmar server with the rules on a free port. It ends with the
// test. seen is called with the protocol of each call.
func serve(t *testing.T, seen func(fulmar.Protocol)) (address string, listener *countingListener) {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener = &countingListener{Listener: socket}
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Listener: listener,
		Logger:   slog.New(slog.DiscardHandler),
		Interceptors: []fulmar.UnaryInterceptor{func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
			seen(call.Protocol())
			return next(ctx, call)
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	implementation := newRules()
	everything.RegisterEverythingServer(server, implementation)
	everythingapache.RegisterApacheServer(server, implementation)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return socket.Addr().String(), listener
}
