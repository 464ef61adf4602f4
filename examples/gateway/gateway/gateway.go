// Package gateway is a gateway in front of two shops. It reads one field of an order and
// one header, writes one field, and decodes nothing else.
package gateway

import (
	"context"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/gateway/gen/views/orders"
)

// Shops have structs and the gateway views: one definition, generated twice.
//go:generate fulmar gen -o ../gen/structs ../orders.thrift
//go:generate fulmar gen --view-methods both -o ../gen/views ../orders.thrift

// TenantKey is the header that says who calls, for the gateway and everything behind it.
const TenantKey = "TENANT"

// Gateway implements orders.OrdersServer.
type Gateway struct {
	// Europe has the orders of region "eu", World all others.
	Europe, World orders.OrdersClient
}

var _ orders.OrdersServer = Gateway{}

// Place passes an order on to the shop of its region.
func (g Gateway) Place(ctx context.Context, order orders.OrderView) (orders.ReceiptView, error) {
	call, _ := fulmar.CallFrom(ctx)
	tenant, found := call.Metadata().Persistent(TenantKey)
	if !found {
		return orders.ReceiptView{}, fulmar.NewError(fulmar.Unauthenticated, "no tenant")
	}
	order.SetTenant(tenant)
	return g.shop(order.Region()).Place(ctx, order)
}

func (g Gateway) shop(region string) orders.OrdersClient {
	if region == "eu" {
		return g.Europe
	}
	return g.World
}
