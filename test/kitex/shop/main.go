// Command shop is the order service of examples/orders on the real Kitex: a
// server, and a client that checks a server. `make demo` runs both.
//
//	kitex-shop serve -transport mux
//	kitex-shop call -address 127.0.0.1:8888 -transport ttheader
//
// serve prints its address and serves on the loopback interface until its
// standard input ends, so that it never outlives who started it. A server is
// multiplexed (mux) or takes all other transports. call prints one line of JSON
// for each step: what was called, over which transport, the result, whether it
// is what orders.json and the rules in orders.thrift make it, and how many
// milliseconds it took; its exit code is 1 if one was not.
package main

//go:generate go -C .. tool kitex -module github.com/fulmar-rpc/fulmar/test/kitex -gen-path gen -no-dependency-check ../../examples/orders/orders.thrift

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cloudwego/kitex/pkg/klog"
)

// serverName is what Kitex calls a destination service, clientName a source:
// names for service discovery that have nothing to do with the IDL.
const (
	serverName = "example.orders"
	clientName = "example.visitor"
)

// The transports. Kitex calls ttheaderFramed TTHeader unless it is told
// otherwise: its transports add up, and framed is the default.
const (
	framed         = "framed"
	ttheader       = "ttheader"
	ttheaderFramed = "ttheader-framed"
	multiplexed    = "mux"
)

var errDiffers = errors.New("a step differs")

func main() {
	// Kitex logs every connection that goes, also those that are meant to.
	klog.SetOutput(io.Discard)
	err := run(os.Args[1:])
	switch {
	case errors.Is(err, errDiffers):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "kitex-shop:", err)
		os.Exit(2)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("want serve or call")
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	address := flags.String("address", "", "call: the server to call")
	transports := []string{framed, ttheader, ttheaderFramed, multiplexed}
	transport := flags.String("transport", framed, "how messages travel: "+strings.Join(transports, ", "))
	data := flags.String("data", "examples/orders/data/orders.json", "the file that the shop starts with")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	if !slices.Contains(transports, *transport) {
		return fmt.Errorf("no transport %q (known: %s)", *transport, strings.Join(transports, ", "))
	}
	file, err := readFile(*data)
	if err != nil {
		return err
	}
	switch arguments[0] {
	case "serve":
		return serve(newShop(file), *transport)
	case "call":
		return call(file, *address, *transport)
	}
	return fmt.Errorf("want serve or call (got %q)", arguments[0])
}
