package main

import (
	"context"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/examples/fleet/gen/stock"
)

//go:generate fulmar gen -o gen stock.thrift

// service is the name under which the servers are announced.
const service = "stock"

// shelf answers for one server.
type shelf struct{ name string }

func (s shelf) Left(ctx context.Context, sku string) (*stock.Answer, error) {
	select {
	case <-time.After(time.Millisecond): // it looks at a database
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &stock.Answer{Left: int32(len(sku)), Server: s.name}, nil
}

// serve runs a server until ctx ends. It is announced in a folder, and takes itself out
// before it stops.
func serve(ctx context.Context, folder, policy, name, address string) error {
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Address:    address,
		Registry:   cluster.Directory{Path: folder},
		Service:    service,
		PolicyFile: policy,
	})
	if err != nil {
		return err
	}
	stock.RegisterStockServer(server, shelf{name})
	return server.Serve(ctx)
}
