// Command demo is `make demo`: it serves the shop on a free port, calls it in
// every supported way from Go, from Python and from Kitex, calls the same shop on
// a Kitex server, shows what happens when things go wrong, calls over TLS and
// through a proxy, and stops the server in the middle of a call. It prints a line
// for each step and exits with 1 if anything was not as it should be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// messageLimit is the server's, so that the demo can exceed it.
const messageLimit = 1 << 20

// lastResort is how long after its limit the demo ends whatever still waits: by
// then the programs it started are gone, and so are the calls that heed the
// limit, which takes milliseconds.
const lastResort = 5 * time.Second

// errLimit is why steps fail that the limit of the demo has cut off.
var errLimit = errors.New("the demo has reached its time limit (-limit)")

func main() {
	python := flag.String("python", "", "Python with the packages of test/interop/python/requirements.txt; empty leaves Python out")
	client := flag.String("client", "python/client.py", "the Python client")
	kitexShop := flag.String("kitex", "", "the program that is built from test/kitex/shop; empty leaves Kitex out")
	file := flag.String("data", "data/orders.json", "the file that the shop on Kitex starts with; ours is built in")
	limit := flag.Duration("limit", 2*time.Minute, "ends the demo if something hangs; it takes about 7 s")
	flag.Parse()
	ctx, cancel := context.WithTimeoutCause(context.Background(), *limit, errLimit)
	defer cancel()
	time.AfterFunc(*limit+lastResort, func() {
		fmt.Fprintln(os.Stderr, "demo: something hangs and ignores the time limit")
		os.Exit(1)
	})
	report := newReport(os.Stdout)
	if err := run(ctx, report, *python, *client, kitex{program: *kitexShop, data: *file}); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	if !report.finish() {
		os.Exit(1)
	}
}

func run(ctx context.Context, report *report, python, pythonClient string, peer kitex) error {
	// It serves most of the steps, and is stopped in the last ones.
	hook := newStopHook()
	server, err := openShop(ctx, fulmar.ServerConfig{BeforeStop: hook.run})
	if err != nil {
		return err
	}
	defer server.stop()
	expected := server.expected
	fmt.Printf("The shop serves Thrift, bare, framed and in TTHeader, on %s with %d orders.\n\n", server.address, len(expected.Orders))
	report.header()

	for _, protocol := range []fulmar.Protocol{fulmar.Bare, fulmar.Framed, fulmar.TTHeader} {
		visit, err := newVisit("Go", protocol.String(), fulmar.ClientConfig{Target: server.address, Protocol: protocol}, expected)
		if err != nil {
			return err
		}
		visit.callEverything(ctx, report)
		visit.failOnPurpose(ctx, report)
		if protocol == fulmar.TTHeader {
			visit.callWithLimit(ctx, report)
			visit.step(ctx, report, "concurrent calls", visit.manyAtOnce)
		}
		visit.close()
	}
	if peer.program == "" {
		fmt.Println("\nNo program on Kitex was given (-kitex): Kitex is left out.")
	} else if err := errors.Join(peer.callsUs(ctx, report, server.runningServer), peer.isCalled(ctx, report, expected)); err != nil {
		return err
	}
	if python == "" {
		fmt.Println("\nNo Python was given (-python): Python is left out.")
	} else if err := callFromPython(ctx, report, python, pythonClient, server.address); err != nil {
		return err
	}
	refuseForeign(ctx, report, server.runningServer)
	if err := errors.Join(callSecurely(ctx, report), refuseTooMany(ctx, report), callThroughProxy(ctx, report)); err != nil {
		return err
	}
	return stopGracefully(ctx, report, server, hook)
}
