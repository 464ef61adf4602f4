// Command gateway forwards orders to one of two shops, by a field of the order, and tells
// them who orders, from a header. It decodes nothing that it does not read: its handler is
// in package gateway.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/gateway/gateway"
	"github.com/fulmar-rpc/fulmar/examples/gateway/gen/views/orders"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8890", "where to listen; port 0 picks a free one")
	europe := flag.String("europe", "127.0.0.1:8888", `the shop for region "eu"`)
	world := flag.String("world", "127.0.0.1:8889", "the shop for all other regions")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *europe, *world, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// run forwards until ctx ends, and then lets running calls finish.
func run(ctx context.Context, listen, europe, world string, out io.Writer) (err error) {
	shops := make([]orders.OrdersClient, 2)
	for i, target := range []string{europe, world} {
		client, failed := fulmar.NewClient(fulmar.ClientConfig{Target: target, Caller: "gateway"})
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, client.Close()) }()
		shops[i] = orders.NewOrdersClient(client)
	}
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: listen})
	if err != nil {
		return err
	}
	orders.RegisterOrdersServer(server, gateway.Gateway{Europe: shops[0], World: shops[1]})
	address, err := server.Listen()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "forwarding from", address, "to", europe, "and", world)
	return server.Serve(ctx)
}
