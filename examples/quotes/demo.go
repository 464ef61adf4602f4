package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/quotes/gen/audit"
	"github.com/fulmar-rpc/fulmar/examples/quotes/gen/quotes"
)

// patience bounds the demo: it takes a fraction of a second.
const patience = 30 * time.Second

// demo serves on a free port, makes calls of all kinds in gRPC, and one in Thrift on the
// same port, and checks what comes back.
func demo(ctx context.Context, out io.Writer, python string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	serving, stop := context.WithCancel(ctx)
	ready, served := make(chan string, 1), make(chan error, 1)
	go func() { served <- serve(serving, "127.0.0.1:0", func(address string) { ready <- address }) }()
	var address string
	select {
	case address = <-ready:
	case err := <-served:
		stop()
		return err
	}
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	inGRPC, err := fulmar.NewClient(fulmar.ClientConfig{Target: address, Protocol: fulmar.GRPC})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(inGRPC.Close(), err) }()
	inThrift, err := fulmar.NewClient(fulmar.ClientConfig{Target: address})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(inThrift.Close(), err) }()
	fmt.Fprintln(out, "Streams in gRPC, and Thrift on the same port")
	api := quotes.NewQuotesClient(inGRPC)
	for _, step := range []struct {
		what string
		do   func(context.Context, quotes.QuotesClient) (string, error)
		want string
	}{
		{"unary", last, "TEA costs 460"},
		{"server stream", watch, "TEA has cost [450 455 460]"},
		{"client stream", fill, "3 orders cost 5940"},
		{"both ways", trade, "10 TEA cost 4600, 2 CUP cost 1980"},
		{"both ways, an error", refused, `no symbol "gold"`},
	} {
		got, err := step.do(ctx, api)
		if err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		if got != step.want {
			return fmt.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
		fmt.Fprintf(out, "  %-20s %s\n", step.what, got)
	}
	if err := callInThrift(ctx, out, audit.NewAuditClient(inThrift)); err != nil {
		return err
	}
	return callFromPython(ctx, out, python, address)
}

// callInThrift calls the other service of the same server.
func callInThrift(ctx context.Context, out io.Writer, inBooks audit.AuditClient) error {
	report, err := inBooks.Report(ctx)
	if err != nil {
		return err
	}
	if report.Trades != 5 || report.Cents != 12520 {
		return fmt.Errorf("the report in Thrift says %d trades, %d cents; want 5, 12520", report.Trades, report.Cents)
	}
	fmt.Fprintf(out, "  %-20s %d trades, %d cents\n", "Thrift", report.Trades, report.Cents)
	trades, err := inBooks.Trades(ctx, &audit.Since{Trades: 3})
	if err != nil {
		return err
	}
	var cents []int64
	for trade, err := range trades.All() {
		if err != nil {
			return err
		}
		cents = append(cents, trade.Cents)
	}
	if !slices.Equal(cents, []int64{4600, 1980}) {
		return fmt.Errorf("the last trades in Thrift are %d, want 4600 and 1980", cents)
	}
	fmt.Fprintf(out, "  %-20s the last trades were %d\n", "a stream in Thrift", cents)
	return nil
}

// callFromPython has grpcio make calls of the same server.
func callFromPython(ctx context.Context, out io.Writer, python, address string) error {
	if python == "" {
		fmt.Fprintln(out, "No Python was given (-python): Python is left out.")
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, python, "python/client.py", port)
	command.Stderr = os.Stderr
	said, err := command.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	const want = "TEA costs 460\nit has cost [450, 455, 460]\norders cost [460, 1980]\nNOT_FOUND no symbol \"gold\"\n"
	if string(said) != want {
		return fmt.Errorf("grpcio in Python got\n%swant\n%s", said, want)
	}
	for line := range strings.Lines(string(said)) {
		fmt.Fprintf(out, "  %-20s %s", "grpcio in Python", line)
	}
	return nil
}

func last(ctx context.Context, api quotes.QuotesClient) (string, error) {
	quote, err := api.Last(ctx, &quotes.Symbol{Name: "TEA"})
	return fmt.Sprintf("%s costs %d", quote.GetSymbol(), quote.GetCents()), err
}

func watch(ctx context.Context, api quotes.QuotesClient) (string, error) {
	stream, err := api.Watch(ctx, &quotes.Symbol{Name: "TEA"})
	if err != nil {
		return "", err
	}
	var seen []int64
	for quote, err := range stream.All() {
		if err != nil {
			return "", err
		}
		seen = append(seen, quote.GetCents())
	}
	return fmt.Sprint("TEA has cost ", seen), nil
}

func fill(ctx context.Context, api quotes.QuotesClient) (string, error) {
	stream, err := api.Fill(ctx)
	if err != nil {
		return "", err
	}
	for range 3 {
		if err := stream.Send(&quotes.Order{Symbol: "CUP", Quantity: 2}); err != nil {
			break // CloseAndRecv says why
		}
	}
	total, err := stream.CloseAndRecv()
	return fmt.Sprintf("%d orders cost %d", total.GetOrders(), total.GetCents()), err
}

func trade(ctx context.Context, api quotes.QuotesClient) (string, error) {
	stream, err := api.Trade(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Cancel()
	var costs [2]int64
	for i, order := range []*quotes.Order{{Symbol: "TEA", Quantity: 10}, {Symbol: "CUP", Quantity: 2}} {
		if err := stream.Send(order); err != nil {
			return "", err
		}
		quote, err := stream.Recv()
		if err != nil {
			return "", err
		}
		costs[i] = quote.GetCents()
	}
	if err := stream.CloseSend(); err != nil {
		return "", err
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("the stream ended with %w", err)
	}
	return fmt.Sprintf("10 TEA cost %d, 2 CUP cost %d", costs[0], costs[1]), nil
}

// refused returns what the server says of an order that it cannot have.
func refused(ctx context.Context, api quotes.QuotesClient) (string, error) {
	stream, err := api.Trade(ctx)
	if err != nil {
		return "", err
	}
	if err := stream.Send(&quotes.Order{Symbol: "gold", Quantity: 1}); err != nil {
		return "", err
	}
	_, err = stream.Recv()
	if failure := new(fulmar.Error); errors.As(err, &failure) && failure.Code() == fulmar.NotFound {
		return failure.Message(), nil
	}
	return "", fmt.Errorf("an order of what there is not ended with %w", err)
}
