package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/gateway/gateway"
	"github.com/fulmar-rpc/fulmar/examples/gateway/gen/views/orders"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// shop answers with what it was asked.
type shop struct{ name string }

func (s shop) Place(_ context.Context, order orders.OrderView) (receipt orders.ReceiptView, _ error) {
	receipt.SetID(order.ID())
	receipt.SetShop(s.name)
	receipt.SetTenant(order.Tenant())
	return receipt, nil
}

// serve runs a server until the test ends.
func serve(t *testing.T, run func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// lines is what the program writes.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func TestRun_ForwardsByRegion(t *testing.T) {
	var targets []string
	for _, name := range []string{"Europe", "World"} {
		server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		orders.RegisterOrdersServer(server, shop{name})
		address, err := server.Listen()
		if err != nil {
			t.Fatal(err)
		}
		serve(t, server.Serve)
		targets = append(targets, address.String())
	}
	out := make(lines, 1)
	serve(t, func(ctx context.Context) error {
		return run(ctx, settings{listen: "127.0.0.1:0", europe: targets[0], world: targets[1]}, out)
	})
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: strings.Fields(<-out)[2]})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := fulmar.WithPersistent(t.Context(), gateway.TenantKey, "acme")
	for region, want := range map[string]string{"eu": "Europe", "us": "World", "": "World"} {
		var order orders.OrderView
		order.SetID(7)
		order.SetRegion(region)
		receipt, err := orders.NewOrdersClient(client).Place(ctx, order)
		if err != nil || receipt.Shop() != want || receipt.ID() != 7 || receipt.Tenant() != "acme" {
			t.Errorf("region %q: %v, %v; want it from %s", region, &receipt, err, want)
		}
	}
}

func TestRun_RefusesAWrongTarget(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), settings{listen: "127.0.0.1:0", europe: "nowhere", world: "127.0.0.1:1"}, &out); err == nil || out.Len() > 0 {
		t.Errorf("%v, and it wrote %s", err, out.String())
	}
}
