// Command demo is `make demo`: it serves the shop on a free port, calls it in
// every supported way from Go, from Python and from Kitex, calls the same shop on
// a Kitex server, shows what happens when things go wrong, and stops the server
// in the middle of a call. It prints a line for
// each step and exits with 1 if anything was not as it should be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/orders/data"
	"github.com/fulmar-rpc/fulmar/examples/orders/gen/orders"
	"github.com/fulmar-rpc/fulmar/examples/orders/shop"
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
	limit := flag.Duration("limit", 2*time.Minute, "ends the demo if something hangs; it takes about 5 s")
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
	// One copy for the shop, one to compare its answers with.
	file, err := shop.ReadFile(data.Orders)
	if err != nil {
		return err
	}
	expected, err := shop.ReadFile(data.Orders)
	if err != nil {
		return err
	}
	server, err := startServer(ctx, shop.New(file))
	if err != nil {
		return err
	}
	defer server.stop()
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
	} else if err := errors.Join(peer.callsUs(ctx, report, server), peer.isCalled(ctx, report, expected)); err != nil {
		return err
	}
	if python == "" {
		fmt.Println("\nNo Python was given (-python): Python is left out.")
	} else if err := callFromPython(ctx, report, python, pythonClient, server.address); err != nil {
		return err
	}
	refuseForeign(ctx, report, server)
	return stopGracefully(ctx, report, server)
}

// runningServer is the shop's server and the text it logged.
type runningServer struct {
	address string
	log     *logText
	server  *fulmar.Server
	// counting gets a value when a stocktake begins.
	counting chan struct{}
	cancel   context.CancelFunc
	served   chan error
}

func startServer(ctx context.Context, implementation *shop.Shop) (*runningServer, error) {
	log := &logText{}
	counting := make(chan struct{}, 1)
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Address:         "127.0.0.1:0",
		MaxMessageBytes: messageLimit,
		Logger:          log.logger(),
		Interceptors: []fulmar.UnaryInterceptor{
			fulmar.OnlyFor(func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
				select {
				case counting <- struct{}{}:
				default:
				}
				return next(ctx, call)
			}, orders.OrdersStocktakeFullMethodName),
		},
	})
	if err != nil {
		return nil, err
	}
	orders.RegisterOrdersServer(server, implementation)
	address, err := server.Listen()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	running := &runningServer{address: address.String(), log: log, server: server, counting: counting, cancel: cancel, served: make(chan error, 1)}
	go func() { running.served <- server.Serve(ctx) }()
	return running, nil
}

// accepted returns how many connections the server has taken since it started.
func (s *runningServer) accepted() uint64 { return s.server.Stats().Network.Accepted }

// stop ends the server, if stopGracefully did not.
func (s *runningServer) stop() { s.cancel() }

// stopGracefully stops the server while a call runs: the call ends well, the
// server then has nothing left to do, and nobody can connect any more.
func stopGracefully(ctx context.Context, report *report, server *runningServer) error {
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: server.address})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	api := orders.NewOrdersClient(client)
	select {
	case <-server.counting: // of an earlier call
	default:
	}
	counted := make(chan error, 1)
	go func() {
		_, err := api.Stocktake(ctx, &orders.StocktakeRequest{MillisecondsPerArticle: 10})
		counted <- err
	}()
	report.step("Go", "graceful stop during a call", fulmar.TTHeader.String(), func() (string, error) {
		select {
		case <-server.counting:
		case err := <-counted:
			return "", errors.Join(errors.New("the call ended before the server began to count"), err)
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		server.cancel()
		if err := errors.Join(await(ctx, counted), await(ctx, server.served)); err != nil {
			return "", err
		}
		_, err := api.Views(ctx, 0)
		if fulmar.CodeOf(err) != fulmar.Unavailable {
			return "", fmt.Errorf("a call after the stop: %v; want unavailable", err)
		}
		return "the call was answered, later ones are unavailable", nil
	})
	return nil
}

// await returns what arrives on result, or why ctx ended first.
func await(ctx context.Context, result <-chan error) error {
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
