package main

import (
	"context"
	"testing"

	"example.com/shop/gen/orders"
	"github.com/fulmar-rpc/fulmar"
)

// TestOnlyFor_GuardsTheNamedMethod refuses one of the two methods, at the end of
// the server for the first client and at its own for the second.
func TestOnlyFor_GuardsTheNamedMethod(t *testing.T) {
	closed := func(context.Context, fulmar.Unary, fulmar.UnaryNext) error {
		return fulmar.NewError(fulmar.PermissionDenied, "the shop is closed")
	}
	config := fulmar.ServerConfig{Address: "localhost:0"}
	config.Interceptors = []fulmar.UnaryInterceptor{fulmar.OnlyFor(closed, orders.OrdersPlaceFullMethodName)}
	server, err := fulmar.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	orders.RegisterOrdersServer(server, shop{})
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	for end, interceptors := range map[string][]fulmar.UnaryInterceptor{"server": nil, "client": config.Interceptors} {
		client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String(), Interceptors: interceptors})
		if err != nil {
			t.Fatal(err)
		}
		api := orders.NewOrdersClient(client)
		if _, err := api.Place(ctx, &orders.PlaceRequest{Sku: "TEA-250", Quantity: 1}); fulmar.CodeOf(err) != fulmar.PermissionDenied {
			t.Errorf("%s: place: %v, want that the shop is closed", end, err)
		}
		if err := api.Viewed(ctx, 1); err != nil {
			t.Errorf("%s: viewed: %v", end, err)
		}
		if err := client.Close(); err != nil {
			t.Errorf("%s: Close: %v", end, err)
		}
	}
	stop()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
