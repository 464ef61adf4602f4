package calls_test

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everything"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everythingapache"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// protocols are the two ways to frame messages, by the name that the peers use.
func protocols() map[string]fulmar.Protocol {
	return map[string]fulmar.Protocol{"bare": fulmar.Bare, "framed": fulmar.Framed}
}

// eachPeer runs a test for every peer and protocol.
func eachPeer(t *testing.T, names []string, test func(t *testing.T, name, transport string)) {
	for _, name := range names {
		for transport := range protocols() {
			t.Run(name+"/"+transport, func(t *testing.T) { test(t, name, transport) })
		}
	}
}

// connect returns generated clients for the server at address.
func connect(t *testing.T, address, transport string) (everything.EverythingClient, everythingapache.ApacheClient) {
	t.Helper()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address, Protocol: protocols()[transport]})
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
