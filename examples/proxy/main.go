// Command proxy forwards every call and every stream that it gets to another server, whatever
// service and method it is of, and knows no definition of any. Deadline and
// persistent metadata go on with it; results, errors and reply metadata come back.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/fulmar-rpc/fulmar"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8889", "where to listen; port 0 picks a free one")
	target := flag.String("target", "127.0.0.1:8888", "the server to forward to")
	protocol := fulmar.TTHeader
	flag.TextVar(&protocol, "protocol", protocol, "the protocol to forward with")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, fulmar.ClientConfig{Target: *target, Protocol: protocol, Caller: "proxy"}, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

// run forwards until ctx ends, and then lets running calls finish.
func run(ctx context.Context, listen string, to fulmar.ClientConfig, out io.Writer) error {
	client, err := fulmar.NewClient(to)
	if err != nil {
		return err
	}
	defer client.Close()
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Address:              listen,
		UnknownHandler:       fulmar.Forward(client),
		UnknownStreamHandler: fulmar.ForwardStreams(client),
		Interceptors:         []fulmar.UnaryInterceptor{report(out)},
	})
	if err != nil {
		return err
	}
	address, err := server.Listen()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "forwarding from", address, "to", to.Target)
	return server.Serve(ctx)
}

// report writes a line for each call.
func report(out io.Writer) fulmar.UnaryInterceptor {
	var mu sync.Mutex
	return func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		err := next(ctx, call)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			fmt.Fprintf(out, "%s.%s: %v\n", call.Service(), call.Method(), err)
		} else {
			fmt.Fprintf(out, "%s.%s: passed on\n", call.Service(), call.Method())
		}
		return err
	}
}
