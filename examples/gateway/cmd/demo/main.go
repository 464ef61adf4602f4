// Command demo starts two shops and the gateway in front of them, once with views and once
// with structs, places orders through it, and checks what comes back.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/gateway/gateway"
	"github.com/fulmar-rpc/fulmar/examples/gateway/gen/structs/orders"
	views "github.com/fulmar-rpc/fulmar/examples/gateway/gen/views/orders"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// patience bounds the demo: it takes a fraction of a second.
const patience = 30 * time.Second

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// shop is behind the gateway. It has structs, and knows of no views.
type shop struct{ name string }

var _ orders.OrdersServer = shop{}

func (s shop) Place(_ context.Context, order *orders.Order) (*orders.Receipt, error) {
	if len(order.Lines) == 0 {
		return nil, &orders.Refused{Reason: "nothing is ordered"}
	}
	receipt := &orders.Receipt{ID: order.ID, Shop: s.name, Tenant: order.Tenant.Or("nobody"), Lines: order.Lines}
	for _, line := range order.Lines {
		receipt.Cents += int64(line.Quantity) * line.Cents
	}
	return receipt, nil
}

// run starts everything, and ends it.
func run(ctx context.Context, out io.Writer) (err error) {
	var ends []func() error
	defer func() {
		for _, end := range ends {
			err = errors.Join(end(), err)
		}
	}()
	serve := func(register func(*fulmar.Server)) (*fulmar.Client, error) {
		client, end, err := start(ctx, register)
		if err == nil {
			ends = append([]func() error{end}, ends...)
		}
		return client, err
	}
	var shops []*fulmar.Client
	for _, name := range []string{"Europe", "World"} {
		client, err := serve(func(server *fulmar.Server) { orders.RegisterOrdersServer(server, shop{name}) })
		if err != nil {
			return err
		}
		shops = append(shops, client)
	}
	for _, form := range []struct {
		name     string
		register func(*fulmar.Server)
	}{
		{"views", func(server *fulmar.Server) {
			views.RegisterOrdersServer(server, gateway.Gateway{Europe: views.NewOrdersClient(shops[0]), World: views.NewOrdersClient(shops[1])})
		}},
		{"structs", func(server *fulmar.Server) {
			orders.RegisterOrdersServer(server, gateway.StructGateway{Europe: orders.NewOrdersClient(shops[0]), World: orders.NewOrdersClient(shops[1])})
		}},
	} {
		front, err := serve(form.register)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "Through a gateway with", form.name)
		if err := visit(ctx, orders.NewOrdersClient(front), out); err != nil {
			return fmt.Errorf("with %s: %w", form.name, err)
		}
	}
	return nil
}

// start serves on a free port until end is called, and returns a client.
func start(ctx context.Context, register func(*fulmar.Server)) (client *fulmar.Client, end func() error, err error) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		return nil, nil, err
	}
	register(server)
	address, err := server.Listen()
	if err != nil {
		return nil, nil, err
	}
	client, err = fulmar.NewClient(fulmar.ClientConfig{Target: address.String()})
	if err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving) }()
	return client, func() error {
		stop()
		return errors.Join(client.Close(), <-served)
	}, nil
}

// visit places orders, and compares what comes of them.
func visit(ctx context.Context, api orders.OrdersClient, out io.Writer) error {
	lines := []orders.Line{{Sku: "tea", Quantity: 2, Cents: 450}, {Sku: "cup", Quantity: 1, Cents: 990}}
	many := make([]orders.Line, 20_000)
	for i := range many {
		many[i] = orders.Line{Sku: "nail", Quantity: 3, Cents: 2}
	}
	for _, step := range []struct {
		what, tenant string
		order        orders.Order
		want         string
	}{
		{"an order for Europe", "acme", orders.Order{ID: 1, Region: "eu", Lines: lines}, "Europe has 2 lines of acme: 1890 cents"},
		{"an order for elsewhere", "acme", orders.Order{ID: 2, Region: "us", Lines: lines}, "World has 2 lines of acme: 1890 cents"},
		{"a forged tenant", "evil", orders.Order{ID: 3, Region: "eu", Lines: lines, Tenant: thrift.Some("acme")}, "Europe has 2 lines of evil: 1890 cents"},
		{"an order of 400 KB", "bulk", orders.Order{ID: 4, Region: "us", Lines: many}, "World has 20000 lines of bulk: 120000 cents"},
		{"an empty order", "acme", orders.Order{ID: 5, Region: "eu"}, "refused: nothing is ordered"},
		{"no tenant", "", orders.Order{ID: 6, Region: "eu", Lines: lines}, "unauthenticated"},
	} {
		result := place(ctx, api, step.tenant, &step.order)
		if !strings.Contains(result, step.want) {
			return fmt.Errorf("%s: %s, want %s", step.what, result, step.want)
		}
		fmt.Fprintf(out, "  %-24s %s\n", step.what, step.want)
	}
	return nil
}

// place places an order, and says what came of it.
func place(ctx context.Context, api orders.OrdersClient, tenant string, order *orders.Order) string {
	if tenant != "" {
		ctx = fulmar.WithPersistent(ctx, gateway.TenantKey, tenant)
	}
	receipt, err := api.Place(ctx, order)
	if refused, ok := errors.AsType[*orders.Refused](err); ok {
		return "refused: " + refused.Reason
	}
	switch {
	case fulmar.CodeOf(err) == fulmar.Unauthenticated:
		return "unauthenticated"
	case err != nil:
		return err.Error()
	case receipt.ID != order.ID:
		return fmt.Sprintf("the receipt is for order %d", receipt.ID)
	}
	return fmt.Sprintf("%s has %d lines of %s: %d cents", receipt.Shop, len(receipt.Lines), receipt.Tenant, receipt.Cents)
}
