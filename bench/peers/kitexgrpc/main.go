//go:build linux

// Command kitexgrpc runs Kitex with gRPC, and its streams over TTHeader: code of its own tool,
// no tracing, no log, everything else at its defaults.
package main

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/klog"
	"github.com/cloudwego/kitex/server"
	"github.com/cloudwego/kitex/transport"

	"github.com/fulmar-rpc/fulmar/bench/peers/gen/kitexpb/echopb"
	service "github.com/fulmar-rpc/fulmar/bench/peers/gen/kitexpb/echopb/echoservice"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

// connectTimeout is as the Kitex of suite rpc has it: the default of 50 ms fails on a busy
// machine when many connections are opened at once.
const connectTimeout = 10 * time.Second

func main() {
	klog.SetOutput(io.Discard)
	rpc.Main(rpc.Contestant{
		Name: "kitex", Modules: []string{"github.com/cloudwego/kitex", "github.com/cloudwego/netpoll", "github.com/cloudwego/prutal"},
		Serve: serve,
		Connect: func(address string, p rpc.Played) (rpc.Client, error) {
			if p.TTHeader {
				return connectTTHeader(address)
			}
			api, err := service.NewClient("echo", client.WithHostPorts(address),
				client.WithTransportProtocol(transport.GRPC), client.WithConnectTimeout(connectTimeout))
			return shared{api}, err
		},
	})
}

func serve(ctx context.Context, listener net.Listener, p rpc.Played) error {
	if p.TTHeader {
		return serveTTHeader(ctx, listener)
	}
	srv := service.NewServer(&handler{p}, server.WithListener(listener))
	stop := context.AfterFunc(ctx, func() { _ = srv.Stop() })
	defer stop()
	return srv.Run()
}

type handler struct{ played rpc.Played }

func (h *handler) Echo(_ context.Context, message *echopb.Message) (*echopb.Message, error) {
	h.played.Work()
	return &echopb.Message{Action: message.Action, Msg: message.Msg}, nil
}

// errNoComplex is for what suite grpc has no case for.
var errNoComplex = errors.New("suite grpc has no calls with structs")

func (*handler) Complex(context.Context, *echopb.Complex) (*echopb.Complex, error) {
	return nil, errNoComplex
}

// shared is a client that all callers use: Kitex multiplexes them.
type shared struct{ api service.Client }

func (s shared) Caller() (rpc.Caller, error) { return caller(s), nil }

// Close has nothing to do: the process ends.
func (shared) Close() error { return nil }

type caller struct{ api service.Client }

func (c caller) Echo(ctx context.Context, action, msg string) (string, string, error) {
	reply, err := c.api.Echo(ctx, &echopb.Message{Action: action, Msg: msg})
	if err != nil {
		return "", "", err
	}
	return reply.Action, reply.Msg, nil
}

func (caller) Complex(*rpc.Complex) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) { return false, errNoComplex }
}
