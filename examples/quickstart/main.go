// Command quickstart serves a small service and calls it, in one process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"example.com/shop/gen/orders"
	"github.com/fulmar-rpc/fulmar"
)

//go:generate fulmar gen -o gen orders.thrift

// shop implements orders.OrdersServer, the interface generated for the service.
type shop struct{}

func (shop) Place(ctx context.Context, request *orders.PlaceRequest) (*orders.Order, error) {
	if request.Quantity > 5 {
		return nil, &orders.OutOfStock{Sku: request.Sku, Left: 5} // a declared exception is an error
	}
	return &orders.Order{ID: 1, Sku: request.Sku, Quantity: request.Quantity}, nil
}

func (shop) Viewed(ctx context.Context, orderID int64) error { return nil }

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run serves on a free port, calls twice, and stops.
func run(out io.Writer) error {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "localhost:0"})
	if err != nil {
		return err
	}
	orders.RegisterOrdersServer(server, shop{})
	address, err := server.Listen()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }() // drains and returns nil when ctx ends

	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String()})
	if err != nil {
		return err
	}
	defer client.Close()
	api := orders.NewOrdersClient(client)
	for _, quantity := range []int32{2, 7} {
		if err := place(ctx, out, api, quantity); err != nil {
			return err
		}
	}
	stop()
	return <-served
}

// place makes one call and prints what came of it.
func place(ctx context.Context, out io.Writer, api orders.OrdersClient, quantity int32) error {
	request := &orders.PlaceRequest{Sku: "TEA-250", Quantity: quantity}
	order, err := api.Place(ctx, request, fulmar.Timeout(time.Second))

	var soldOut *orders.OutOfStock
	switch {
	case errors.As(err, &soldOut): // declared in the IDL
		fmt.Fprintf(out, "only %d of %s left\n", soldOut.Left, soldOut.Sku)
	case fulmar.CodeOf(err) == fulmar.DeadlineExceeded: // everything else is a *fulmar.Error
		fmt.Fprintln(out, "too slow")
	case err != nil:
		return err
	default:
		fmt.Fprintf(out, "order %d: %d of %s\n", order.ID, order.Quantity, order.Sku)
	}
	return nil
}
