package gateway

import (
	"context"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/gateway/gen/structs/orders"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// StructGateway does what Gateway does with structs: every order and every receipt is
// decoded and encoded again. It is here to be compared.
type StructGateway struct {
	Europe, World orders.OrdersClient
}

var _ orders.OrdersServer = StructGateway{}

// Place passes an order on to the shop of its region.
func (g StructGateway) Place(ctx context.Context, order *orders.Order) (*orders.Receipt, error) {
	call, _ := fulmar.CallFrom(ctx)
	tenant, found := call.Metadata().Persistent(TenantKey)
	if !found {
		return nil, fulmar.NewError(fulmar.Unauthenticated, "no tenant")
	}
	order.Tenant = thrift.Some(tenant)
	return g.shop(order.Region).Place(ctx, order)
}

func (g StructGateway) shop(region string) orders.OrdersClient {
	if region == "eu" {
		return g.Europe
	}
	return g.World
}
