// Command quotes serves prices in gRPC and a report about them in Thrift, on one port.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/quotes/gen/audit"
	"github.com/fulmar-rpc/fulmar/examples/quotes/gen/quotes"
	"github.com/fulmar-rpc/fulmar/health"
	"github.com/fulmar-rpc/fulmar/reflection"
)

//go:generate fulmar gen -o gen audit.thrift
//go:generate fulmar gen -o gen -I proto proto/quotes.proto

func main() {
	listen := flag.String("listen", "127.0.0.1:8888", "where to listen; port 0 picks a free one")
	show := flag.Bool("demo", false, "call the service in every way, print what happened, and end")
	python := flag.String("python", "", "with -demo: Python with grpcio and protobuf, to call from there too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *show {
		if err := demo(ctx, os.Stdout, *python); err != nil {
			fmt.Fprintln(os.Stderr, "demo:", err)
			os.Exit(1)
		}
		return
	}
	if err := serve(ctx, *listen, func(address string) { fmt.Println("listening on", address) }); err != nil {
		fmt.Fprintln(os.Stderr, "quotes:", err)
		os.Exit(1)
	}
}

// serve serves both services until ctx ends, and then lets running calls finish.
func serve(ctx context.Context, listen string, ready func(address string)) error {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: listen})
	if err != nil {
		return err
	}
	books := new(books)
	quotes.RegisterQuotesServer(server, &market{books})
	audit.RegisterAuditServer(server, books)
	reflection.Register(server)
	health.Register(server)
	address, err := server.Listen()
	if err != nil {
		return err
	}
	ready(address.String())
	return server.Serve(ctx)
}

// market has the handlers of Quotes.
type market struct{ books *books }

var _ quotes.QuotesServer = (*market)(nil)

// pricesOf returns what a symbol has cost, the last price last.
func pricesOf(symbol string) ([]int64, error) {
	switch symbol {
	case "TEA":
		return []int64{450, 455, 460}, nil
	case "CUP":
		return []int64{990}, nil
	}
	return nil, fulmar.Errorf(fulmar.NotFound, "no symbol %q", symbol)
}

// Last implements QuotesServer.
func (*market) Last(_ context.Context, symbol *quotes.Symbol) (*quotes.Quote, error) {
	known, err := pricesOf(symbol.GetName())
	if err != nil {
		return nil, err
	}
	return &quotes.Quote{Symbol: symbol.GetName(), Cents: known[len(known)-1]}, nil
}

// Watch implements QuotesServer.
func (*market) Watch(symbol *quotes.Symbol, stream fulmar.ServerStreamingServer[quotes.Quote]) error {
	known, err := pricesOf(symbol.GetName())
	if err != nil {
		return err
	}
	for _, cents := range known {
		if err := stream.Send(&quotes.Quote{Symbol: symbol.GetName(), Cents: cents}); err != nil {
			return err
		}
	}
	return nil
}

// cost says what an order costs, and writes it down.
func (m *market) cost(order *quotes.Order) (int64, error) {
	known, err := pricesOf(order.GetSymbol())
	if err != nil {
		return 0, err
	}
	cents := int64(order.GetQuantity()) * known[len(known)-1]
	m.books.write(cents)
	return cents, nil
}

// Fill implements QuotesServer.
func (m *market) Fill(stream fulmar.ClientStreamingServer[quotes.Order, quotes.Total]) error {
	total := new(quotes.Total)
	for order, err := range stream.All() {
		if err != nil {
			return err
		}
		cents, err := m.cost(order)
		if err != nil {
			return err
		}
		total.Orders++
		total.Cents += cents
	}
	return stream.SendAndClose(total)
}

// Trade implements QuotesServer.
func (m *market) Trade(stream fulmar.BidiStreamingServer[quotes.Order, quotes.Quote]) error {
	for {
		order, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		cents, err := m.cost(order)
		if err != nil {
			return err
		}
		if err := stream.Send(&quotes.Quote{Symbol: order.GetSymbol(), Cents: cents}); err != nil {
			return err
		}
	}
}

// books know all trades. They have the handler of Audit.
type books struct {
	mu     sync.Mutex
	report audit.Report
	trades []int64
}

var _ audit.AuditServer = (*books)(nil)

func (b *books) write(cents int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report.Trades++
	b.report.Cents += cents
	b.trades = append(b.trades, cents)
}

// Report implements AuditServer.
func (b *books) Report(context.Context) (*audit.Report, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	report := b.report
	return &report, nil
}

// Trades implements AuditServer.
func (b *books) Trades(since *audit.Since, stream fulmar.ServerStreamingServer[audit.Trade]) error {
	b.mu.Lock()
	trades := b.trades
	b.mu.Unlock()
	skipped := int(since.Trades)
	if skipped < 0 || skipped > len(trades) {
		return fmt.Errorf("there are %d trades, not %d", len(trades), skipped)
	}
	for _, cents := range trades[skipped:] {
		if err := stream.Send(&audit.Trade{Cents: cents}); err != nil {
			return err
		}
	}
	return nil
}
