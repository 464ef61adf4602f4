// Command quickstart serves a small service and calls it, in one process.
//
//	make generate
//	go -C examples/quickstart run .
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/quickstart/gen/orders"
)

//go:generate fulmar gen -o gen orders.thrift

type shop struct{}

func (shop) Place(ctx context.Context, request *orders.PlaceRequest) (*orders.Order, error) {
	if request.Quantity > 5 {
		return nil, &orders.OutOfStock{Sku: request.Sku, Left: 5} // a declared exception is an error
	}
	return &orders.Order{ID: 1, Sku: request.Sku, Quantity: request.Quantity}, nil
}

func (shop) Viewed(ctx context.Context, orderID int64) error { return nil }

// serve answers calls until ctx ends. It reports the address once it listens.
func serve(ctx context.Context, address string, listening func(address string)) error {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: address})
	if err != nil {
		return err
	}
	orders.RegisterOrdersServer(server, shop{})
	bound, err := server.Listen()
	if err != nil {
		return err
	}
	listening(bound.String())
	return server.Serve(ctx) // drains and returns nil when ctx ends
}

// order makes one call and prints what came of it.
func order(ctx context.Context, out io.Writer, target string, quantity int32) error {
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: target})
	if err != nil {
		return err
	}
	defer client.Close()
	api := orders.NewOrdersClient(client)

	request := &orders.PlaceRequest{Sku: "TEA-250", Quantity: quantity}
	placed, err := api.Place(ctx, request, fulmar.Timeout(time.Second))

	var soldOut *orders.OutOfStock
	switch {
	case errors.As(err, &soldOut): // declared in the IDL
		fmt.Fprintf(out, "only %d of %s left\n", soldOut.Left, soldOut.Sku)
	case fulmar.CodeOf(err) == fulmar.DeadlineExceeded: // a *fulmar.Error
		fmt.Fprintln(out, "too slow")
	case err != nil:
		return err
	default:
		fmt.Fprintf(out, "order %d: %d of %s\n", placed.ID, placed.Quantity, placed.Sku)
	}
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run serves on a free port, calls twice, and stops.
func run(out io.Writer) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	address := make(chan string, 1)
	stopped := make(chan error, 1)
	go func() { stopped <- serve(ctx, "localhost:0", func(bound string) { address <- bound }) }()

	select {
	case err := <-stopped:
		return err
	case target := <-address:
		for _, quantity := range []int32{2, 7} {
			if err := order(ctx, out, target, quantity); err != nil {
				return err
			}
		}
	}
	stop()
	return <-stopped
}
