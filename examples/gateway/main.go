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
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:8890", "where to listen; port 0 picks a free one")
	flag.StringVar(&s.europe, "europe", "127.0.0.1:8888", `the shop for region "eu"`)
	flag.StringVar(&s.world, "world", "127.0.0.1:8889", "the shop for all other regions")
	flag.TextVar(&s.protocol, "protocol", fulmar.TTHeader, "what the shops speak: ttheader, or framed if they are on Apache Thrift")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// settings are where the gateway is, and what is behind it.
type settings struct {
	listen, europe, world string
	protocol              fulmar.Protocol
}

// run forwards until ctx ends, and then lets running calls finish.
func run(ctx context.Context, s settings, out io.Writer) (err error) {
	shops := make([]orders.OrdersClient, 2)
	for i, target := range []string{s.europe, s.world} {
		client, failed := fulmar.NewClient(fulmar.ClientConfig{Target: target, Caller: "gateway", Protocol: s.protocol})
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, client.Close()) }()
		shops[i] = orders.NewOrdersClient(client)
	}
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: s.listen})
	if err != nil {
		return err
	}
	orders.RegisterOrdersServer(server, gateway.Gateway{Europe: shops[0], World: shops[1]})
	address, err := server.Listen()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "forwarding from", address, "to", s.europe, "and", s.world)
	return server.Serve(ctx)
}
