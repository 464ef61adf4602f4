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
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/courier"
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
	// multiplexed says that Kitex's servers answer out of order, which they do
	// not tell.
	multiplexed bool
	// peers are who can speak it.
	peers []string
}

// hasHeader reports whether metadata can travel.
func (t transport) hasHeader() bool {
	return t.protocol == fulmar.TTHeader || t.protocol == fulmar.TTHeaderFramed
}

// transports are what is tested.
func transports() []transport {
	everyone := []string{peer.Thriftpy2, peer.Apache, peer.ApacheAccelerated, peer.ApacheGo, peer.Kitex}
	kitex := []string{peer.Kitex, peer.KitexPlain}
	return []transport{
		{name: "bare", protocol: fulmar.Bare, peers: everyone},
		{name: "framed", protocol: fulmar.Framed, peers: everyone},
		{name: "ttheader", protocol: fulmar.TTHeader, peers: kitex},
		{name: "ttheader-framed", protocol: fulmar.TTHeaderFramed, peers: kitex},
		{name: "mux", protocol: fulmar.TTHeaderFramed, multiplexed: true, peers: kitex},
		{name: "mux-bare", protocol: fulmar.TTHeader, multiplexed: true, peers: kitex},
	}
}

// eachPeer runs a test for every transport and every one of the named peers that
// speaks it, some at a time: peers take long to start and to stop.
func eachPeer(t *testing.T, names []string, test func(t *testing.T, name string, transport transport)) {
	for _, transport := range transports() {
		for _, name := range transport.peers {
			if slices.Contains(names, name) {
				t.Run(name+"/"+transport.name, func(t *testing.T) {
					t.Parallel()
					test(t, name, transport)
				})
			}
		}
	}
}

// The names that both sides have for service discovery, as the Kitex peer has
// them too.
const (
	serverName = "interop.server"
	clientName = "interop.client"
)

// clients are the generated clients on one Fulmar client.
type clients struct {
	everything.EverythingClient
	everythingapache.ApacheClient
	courier.CourierClient

	client *fulmar.Client
}

func newClients(client *fulmar.Client) clients {
	return clients{
		EverythingClient: everything.NewEverythingClient(client),
		ApacheClient:     everythingapache.NewApacheClient(client),
		CourierClient:    courier.NewCourierClient(client),
		client:           client,
	}
}

// connect returns generated clients for the server at address.
func connect(t *testing.T, address string, transport transport) clients {
	t.Helper()
	client, err := fulmar.NewClient(fulmar.ClientConfig{
		Target:            address,
		Service:           serverName,
		Caller:            clientName,
		Protocol:          transport.protocol,
		AssumeMultiplexed: transport.multiplexed,
		// A busy machine takes longer than the defaults.
		ConnectTimeout: time.Minute,
		Timeout:        time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return newClients(client)
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

// served is a running Fulmar server.
type served struct {
	*fulmar.Server
	address  string
	listener *countingListener
}

// serve starts a Fulmar server with all services on a free port. It ends with the
// test. seen is called with each call.
func serve(t *testing.T, seen func(fulmar.Call)) served {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := &countingListener{Listener: socket}
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Listener: listener,
		Logger:   slog.New(slog.DiscardHandler),
		Interceptors: []fulmar.UnaryInterceptor{func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
			known, ok := fulmar.CallFrom(ctx)
			if !ok {
				t.Error("an interceptor is not told about the call")
			}
			seen(known)
			return next(ctx, call)
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	implementation := newRules()
	everything.RegisterEverythingServer(server, implementation)
	everythingapache.RegisterApacheServer(server, implementation)
	courier.RegisterCourierServer(server, newMessenger())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return served{Server: server, address: socket.Addr().String(), listener: listener}
}
