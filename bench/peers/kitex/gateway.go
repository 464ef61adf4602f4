//go:build linux

package main

import (
	"context"
	"net"
	"time"

	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/client/genericclient"
	"github.com/cloudwego/kitex/pkg/connpool"
	"github.com/cloudwego/kitex/pkg/generic"
	"github.com/cloudwego/kitex/server"
	"github.com/cloudwego/kitex/server/genericserver"
	"github.com/cloudwego/kitex/transport"

	service "github.com/fulmar-rpc/fulmar/bench/peers/gen/kitex/echo/echo"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

// serveHop serves a gateway of Kitex's binary generic calls, which passes whole messages on
// and reads and sets nothing, in front of a server.
func serveHop(ctx context.Context, listener net.Listener, p rpc.Played) error {
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	api, err := genericclient.NewClient("echo", generic.BinaryThriftGeneric(),
		client.WithHostPorts(behind.Addr().String()), client.WithTransportProtocol(transport.Framed), client.WithConnectTimeout(connectTimeout),
		client.WithLongConnection(connpool.IdleConfig{MaxIdlePerAddress: 1000, MaxIdleGlobal: 1000, MaxIdleTimeout: time.Minute}))
	if err != nil {
		return err
	}
	back := service.NewServer(&handler{p}, server.WithListener(behind))
	front := genericserver.NewServer(&passing{api}, generic.BinaryThriftGeneric(), server.WithListener(listener))
	stop := context.AfterFunc(ctx, func() {
		_ = front.Stop()
		_ = back.Stop()
	})
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- back.Run() }()
	if err := front.Run(); err != nil {
		return err
	}
	return <-ended
}

type passing struct{ api genericclient.Client }

func (g *passing) GenericCall(ctx context.Context, method string, request any) (any, error) {
	// The client puts a number of its own in place of that of the request, and the reply
	// comes with it.
	number, err := generic.GetSeqID(request.([]byte))
	if err != nil {
		return nil, err
	}
	reply, err := g.api.GenericCall(ctx, method, request)
	if err != nil {
		return nil, err
	}
	return reply, generic.SetSeqID(number, reply.([]byte))
}
