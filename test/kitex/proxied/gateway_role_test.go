package proxied_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/bytedance/gopkg/cloud/metainfo"

	"github.com/fulmar-rpc/fulmar/test/kitex/gen/gateway/orders"
	service "github.com/fulmar-rpc/fulmar/test/kitex/gen/gateway/orders/orders"
)

// shop fills the orders of examples/gateway as a server of Kitex.
type shop struct{ name string }

func (s *shop) Place(_ context.Context, order *orders.Order) (*orders.Receipt, error) {
	if len(order.Lines) == 0 {
		return nil, &orders.Refused{Reason: "nothing ordered in " + s.name}
	}
	receipt := &orders.Receipt{Id: order.Id, Shop: s.name, Tenant: order.GetTenant(), Lines: order.Lines}
	for _, line := range order.Lines {
		receipt.Cents += line.Cents * int64(line.Quantity)
	}
	return receipt, nil
}

// serveShop serves a shop of this name.
func serveShop(arguments []string) error {
	listener, err := listen()
	if err != nil {
		return err
	}
	return service.NewServer(&shop{arguments[0]}, serverOptions(listener)...).Run()
}

// callShop places orders at an address.
func callShop(arguments []string) error {
	caller, err := service.NewClient("proxied.server", clientOptions(arguments[0], "ttheader-framed")...)
	if err != nil {
		return err
	}
	forged, long := "forged", make([]*orders.Line, 10_000)
	for i := range long {
		long[i] = &orders.Line{Sku: fmt.Sprint("sku ", i), Quantity: 2, Cents: int64(i)}
	}
	few := []*orders.Line{{Sku: "tea", Quantity: 3, Cents: 250}}
	for _, each := range []struct {
		name, tenant string
		order        *orders.Order
	}{
		{"europe", "acme", &orders.Order{Id: 1, Region: "eu", Lines: few}},
		{"world", "acme", &orders.Order{Id: 2, Region: "us", Lines: few, Wishes: map[string]string{"wrap": "red"}}},
		{"forged tenant", "acme", &orders.Order{Id: 3, Region: "eu", Lines: few, Tenant: &forged}},
		{"long", "globex", &orders.Order{Id: 4, Region: "us", Lines: long}},
		{"refused", "acme", &orders.Order{Id: 5, Region: "eu"}},
		{"no tenant", "", &orders.Order{Id: 6, Region: "eu", Lines: few}},
	} {
		ctx, o := context.Background(), outcome{Case: each.name}
		if each.tenant != "" {
			ctx = metainfo.WithPersistentValue(ctx, "TENANT", each.tenant)
		}
		receipt, err := caller.Place(ctx, each.order)
		if refused, ok := err.(*orders.Refused); ok {
			o.Reply = "refused: " + refused.Reason
		} else if explain(&o, err); err == nil {
			o.Reply = fmt.Sprintf("%d: %s sells %s %d lines for %d", receipt.Id, receipt.Shop, receipt.Tenant, len(receipt.Lines), receipt.Cents)
		}
		o.Text, _, _ = strings.Cut(o.Text, " (")
		if err := tell(o); err != nil {
			return err
		}
	}
	return nil
}
