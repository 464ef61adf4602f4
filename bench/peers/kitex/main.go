//go:build linux

// Command kitex runs Kitex the way its own benchmark does: generated FastCodec,
// no tracing, no log, connections kept open.
package main

import (
	"context"
	"io"
	"net"
	"slices"
	"time"

	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/connpool"
	"github.com/cloudwego/kitex/pkg/klog"
	"github.com/cloudwego/kitex/pkg/limit"
	"github.com/cloudwego/kitex/server"
	"github.com/cloudwego/kitex/transport"

	"github.com/fulmar-rpc/fulmar/bench/peers/gen/kitex/echo"
	service "github.com/fulmar-rpc/fulmar/bench/peers/gen/kitex/echo/echo"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

func main() {
	klog.SetOutput(io.Discard)
	modules := []string{"github.com/cloudwego/kitex", "github.com/cloudwego/netpoll", "github.com/cloudwego/gopkg"}
	pooled := connect(
		client.WithTransportProtocol(transport.Framed),
		// More idle connections than any case has callers.
		client.WithLongConnection(connpool.IdleConfig{MaxIdlePerAddress: 1000, MaxIdleGlobal: 1000, MaxIdleTimeout: time.Minute}),
	)
	rpc.Main(
		rpc.Contestant{Name: "kitex", Modules: modules, Serve: serve(true), Connect: pooled},
		// The same, as suites of the article's figures call it.
		rpc.Contestant{Name: "new", Modules: modules, Serve: serve(false), Connect: pooled},
		rpc.Contestant{Name: "kitex-mux", Modules: modules, Serve: serve(false, server.WithMuxTransport()), Connect: connect(
			// Two connections, as Kitex's benchmark has. The option also selects
			// TTHeader.
			client.WithMuxConnection(2),
		)},
	)
}

// serve has a limiter where more is offered than can be done, if limited: it knows
// beforehand how much that is.
func serve(limited bool, options ...server.Option) func(context.Context, net.Listener, rpc.Played) error {
	return func(ctx context.Context, listener net.Listener, p rpc.Played) error {
		if p.Hop {
			return serveHop(ctx, listener, p)
		}
		options := append(slices.Clone(options), server.WithListener(listener))
		if limited && p.Overload > 0 {
			options = append(options, server.WithLimit(&limit.Option{MaxQPS: rpc.BurnsPerSecond}))
		}
		srv := service.NewServer(&handler{p}, options...)
		stop := context.AfterFunc(ctx, func() { _ = srv.Stop() })
		defer stop()
		return srv.Run()
	}
}

type handler struct{ played rpc.Played }

func (h *handler) Notify(_ context.Context, message *echo.Message) error {
	h.played.Notified(message.Action, message.Msg)
	return nil
}

func (h *handler) Echo(_ context.Context, message *echo.Message) (*echo.Message, error) {
	h.played.Work()
	return &echo.Message{Action: message.Action, Msg: message.Msg}, nil
}

func (*handler) Complex(_ context.Context, message *echo.Complex) (*echo.Complex, error) {
	return &echo.Complex{
		Action: message.Action, Msg: message.Msg, ByName: message.ByName,
		Parts: message.Parts, Groups: message.Groups, Flag: message.Flag,
	}, nil
}

// connectTimeout is as our own client has it here. The default of Kitex, 50 ms, fails
// on a busy machine when many connections are opened at once.
const connectTimeout = 10 * time.Second

func connect(options ...client.Option) func(string, rpc.Played) (rpc.Client, error) {
	return func(address string, p rpc.Played) (rpc.Client, error) {
		options := append(slices.Clone(options), client.WithConnectTimeout(connectTimeout))
		if p.Timeout > 0 { // Deadlines of a context count only where there is a timeout.
			options = append(options, client.WithRPCTimeout(p.Timeout))
		}
		api, err := service.NewClient("echo", append(options, client.WithHostPorts(address))...)
		return shared{api}, err
	}
}

// shared is a client that all callers use: Kitex gives each call a connection.
type shared struct{ api service.Client }

func (s shared) Caller() (rpc.Caller, error) { return caller(s), nil }

// Close has nothing to do: the process ends.
func (shared) Close() error { return nil }

type caller struct{ api service.Client }

func (c caller) Echo(ctx context.Context, action, msg string) (string, string, error) {
	reply, err := c.api.Echo(ctx, &echo.Message{Action: action, Msg: msg})
	if err != nil {
		return "", "", err
	}
	return reply.Action, reply.Msg, nil
}

func (c caller) Notify(ctx context.Context, action, msg string) error {
	return c.api.Notify(ctx, &echo.Message{Action: action, Msg: msg})
}

func (c caller) Complex(data *rpc.Complex) func(context.Context) (bool, error) {
	request := newComplex(data)
	return func(ctx context.Context) (bool, error) {
		reply, err := c.api.Complex(ctx, request)
		return err == nil && equal(reply, data), err
	}
}
