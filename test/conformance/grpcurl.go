package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/conformance/gen/quotes"
)

// market is what grpcurl calls.
type market struct{}

var _ quotes.QuotesServer = market{}

func (market) Last(_ context.Context, symbol *quotes.Symbol) (*quotes.Quote, error) {
	if symbol.GetName() != "TEA" {
		return nil, fulmar.Errorf(fulmar.NotFound, "no symbol %q", symbol.GetName())
	}
	return &quotes.Quote{Symbol: "TEA", Cents: 460}, nil
}

func (market) Watch(symbol *quotes.Symbol, stream fulmar.ServerStreamingServer[quotes.Quote]) error {
	for cents := range int64(3) {
		if err := stream.Send(&quotes.Quote{Symbol: symbol.GetName(), Cents: cents + 1}); err != nil {
			return err
		}
	}
	return nil
}

func (market) Fill(stream fulmar.ClientStreamingServer[quotes.Order, quotes.Total]) error {
	total := new(quotes.Total)
	for order, err := range stream.All() {
		if err != nil {
			return err
		}
		total.Orders++
		total.Cents += int64(order.GetQuantity())
	}
	return stream.SendAndClose(total)
}

func (market) Trade(stream fulmar.BidiStreamingServer[quotes.Order, quotes.Quote]) error {
	for order, err := range stream.All() {
		if err != nil {
			return err
		}
		if err := stream.Send(&quotes.Quote{Symbol: order.GetSymbol(), Cents: int64(order.GetQuantity())}); err != nil {
			return err
		}
	}
	return nil
}

// grpcurl lists, describes and calls.
func grpcurl(ctx context.Context, address string, out io.Writer) error {
	for _, c := range []struct {
		arguments []string
		// want are parts of what it says, without spaces.
		want []string
		// fails: it ends with an error, and says why.
		fails bool
	}{
		{[]string{address, "list"}, []string{"quotes.v1.Quotes", "grpc.reflection.v1.ServerReflection"}, false},
		{[]string{address, "list", "quotes.v1.Quotes"}, []string{"quotes.v1.Quotes.Last", "quotes.v1.Quotes.Trade"}, false},
		{[]string{address, "describe", "quotes.v1.Quotes"}, []string{"rpcWatch(.quotes.v1.Symbol)returns(stream.quotes.v1.Quote);"}, false},
		{[]string{address, "describe", "quotes.v1.Quote"}, []string{"int64cents=2;"}, false},
		{[]string{"-d", `{"name": "TEA"}`, address, "quotes.v1.Quotes/Last"}, []string{`"cents":"460"`}, false},
		{[]string{"-d", `{"name": "TEA"}`, address, "quotes.v1.Quotes/Watch"}, []string{`"cents":"1"`, `"cents":"3"`}, false},
		{[]string{"-d", `{"quantity": 2} {"quantity": 3}`, address, "quotes.v1.Quotes/Fill"}, []string{`"orders":2`, `"cents":"5"`}, false},
		{[]string{"-d", `{"quantity": 2} {"quantity": 3}`, address, "quotes.v1.Quotes/Trade"}, []string{`"cents":"2"`, `"cents":"3"`}, false},
		{[]string{address, "describe", "grpc.health.v1.Health"}, []string{"rpcWatch(.grpc.health.v1.HealthCheckRequest)returns(stream.grpc.health.v1.HealthCheckResponse);"}, false},
		{[]string{address, "grpc.health.v1.Health/Check"}, []string{`"status":"SERVING"`}, false},
		{[]string{address, "grpc.health.v1.Health/List"}, []string{`"statuses":{"":{"status":"SERVING"}}`}, false},
		{[]string{"-d", `{"name": "gold"}`, address, "quotes.v1.Quotes/Last"}, []string{"Code:NotFound", `nosymbol"gold"`}, true},
	} {
		said, err := exec.CommandContext(ctx, "go", append([]string{"tool", "grpcurl", "-plaintext", "-max-time", "20"}, c.arguments...)...).CombinedOutput()
		if (err != nil) != c.fails {
			return fmt.Errorf("grpcurl %q: %w\n%s", c.arguments, err, said)
		}
		dense := strings.Join(strings.Fields(string(said)), "")
		for _, want := range c.want {
			if !strings.Contains(dense, want) {
				return fmt.Errorf("grpcurl %q does not say %s:\n%s", c.arguments, want, said)
			}
		}
		line, _, _ := bytes.Cut(said, []byte("\n"))
		fmt.Fprintf(out, "grpcurl %s: %s\n", strings.Join(c.arguments[len(c.arguments)-2:], " "), line)
	}
	return nil
}
