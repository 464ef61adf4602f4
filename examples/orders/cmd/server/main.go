// Command server serves the shop of the example until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/orders/data"
	"github.com/fulmar-rpc/fulmar/examples/orders/gen/orders"
	"github.com/fulmar-rpc/fulmar/examples/orders/shop"
)

func main() {
	address := flag.String("address", "127.0.0.1:8888", "where to listen; port 0 picks a free one")
	flag.Parse()
	if err := run(*address); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run(address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	file, err := shop.ReadFile(data.Orders)
	if err != nil {
		return err
	}
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: address})
	if err != nil {
		return err
	}
	orders.RegisterOrdersServer(server, shop.New(file))
	listening, err := server.Listen()
	if err != nil {
		return err
	}
	fmt.Println("serving Thrift, bare, framed and in TTHeader, on", listening)
	return server.Serve(ctx)
}
