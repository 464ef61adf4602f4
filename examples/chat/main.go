// Command chat is a chat for lines of text, built on the network library
// alone. Start it, and talk with any program that sends lines, such as nc.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

func main() {
	address := flag.String("address", "127.0.0.1:7000", "where to listen; port 0 picks a free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *address, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then says goodbye.
func run(ctx context.Context, address string, out io.Writer) error {
	chat, err := newHall(address, eventloop.Config{})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "chatting on", chat.listener.Addr())
	return chat.serve(ctx)
}
