package calls_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/interop/cases"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everythingapache"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/views/everything"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

// serveGateway starts a gateway in view form in front of the server at address, and
// returns where it listens.
func serveGateway(t *testing.T, address string, protocol fulmar.Protocol) string {
	t.Helper()
	client, err := fulmar.NewClient(fulmar.ClientConfig{
		Target: address, Service: serverName, Caller: clientName, Protocol: protocol,
		ConnectTimeout: time.Minute, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	everything.RegisterEverythingServer(server, gateway{everything.NewEverythingClient(client)})
	bound, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		client.Close()
	})
	return bound.String()
}

// isOfApache says that a case is about the service that only Apache's runtime has, which the
// gateway does not pass on.
func isOfApache(step cases.Step) bool {
	return slices.ContainsFunc(everythingapache.ApacheServiceDesc.Methods, func(method *fulmar.MethodDesc) bool {
		return method.Name == step.Method
	})
}

// TestThrough_ViewsPassWhatPeersSay has peers before and behind a gateway in view form:
// what the one sends and the other answers arrives as if they had called each other.
func TestThrough_ViewsPassWhatPeersSay(t *testing.T) {
	file := loadCases(t, "cases.json")
	for _, test := range []struct {
		before, transport string
		behind            string
		protocol          fulmar.Protocol
	}{
		{peer.Kitex, "framed", peer.ApacheGo, fulmar.Framed},
		{peer.Kitex, "ttheader", peer.Kitex, fulmar.TTHeader},
		{peer.ApacheGo, "bare", peer.Kitex, fulmar.TTHeaderFramed},
		{peer.Apache, "framed", peer.Kitex, fulmar.Framed},
		{peer.ApacheGo, "framed", peer.Apache, fulmar.Bare},
	} {
		t.Run(test.before+" "+test.behind, func(t *testing.T) {
			t.Parallel()
			behind := map[fulmar.Protocol]string{fulmar.Framed: "framed", fulmar.Bare: "bare", fulmar.TTHeader: "ttheader", fulmar.TTHeaderFramed: "ttheader-framed"}[test.protocol]
			address := serveGateway(t, peer.Serve(t, test.behind, behind), test.protocol)
			var want []string
			for _, c := range file.Cases {
				if c.TakesPart(test.before) && !slices.ContainsFunc(c.All(), isOfApache) {
					want = append(want, c.Name)
				}
			}
			if len(want) == 0 {
				t.Fatal("there are no cases")
			}
			expectOutcomes(t, want, peer.Call(t, test.before, test.transport, address, "cases.json"))
		})
	}
}
