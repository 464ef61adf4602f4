//go:build linux

// Command governance runs Kitex in suite governance.
package main

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/cloudwego/gopkg/bufiox"
	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/circuitbreak"
	"github.com/cloudwego/kitex/pkg/connpool"
	"github.com/cloudwego/kitex/pkg/discovery"
	"github.com/cloudwego/kitex/pkg/kerrors"
	"github.com/cloudwego/kitex/pkg/klog"
	"github.com/cloudwego/kitex/pkg/limiter"
	"github.com/cloudwego/kitex/pkg/remote/trans/gonet"
	"github.com/cloudwego/kitex/pkg/retry"
	"github.com/cloudwego/kitex/transport"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/governance"
	"github.com/fulmar-rpc/fulmar/bench/peers/gen/kitex/echo"
	service "github.com/fulmar-rpc/fulmar/bench/peers/gen/kitex/echo/echo"
)

func main() {
	klog.SetOutput(io.Discard)
	contestant.Main(entry().Contestant())
}

func entry() governance.Contestant {
	return governance.Contestant{
		Name: "kitex", Modules: []string{"github.com/cloudwego/kitex", "github.com/cloudwego/gopkg"},
		Plain: plain, Full: full, Updated: updated,
		Refused: func(err error) bool { return errors.Is(err, kerrors.ErrCircuitBreak) },
	}
}

func plain(n *governance.Network, address string) (governance.Client, error) {
	return connect(n, client.WithHostPorts(address))
}

// stack is what Kitex has for the same: tries failed calls again, with the breaker of
// retries that stands in place of a budget, breakers of methods and of instances, and its
// default balancer, which takes instances in turn.
func stack() []client.Option {
	return []client.Option{
		client.WithFailureRetry(retry.NewFailurePolicy()),
		client.WithCircuitBreaker(circuitbreak.NewCBSuite(circuitbreak.RPCInfo2Key)),
	}
}

func full(n *governance.Network, addresses []string) (governance.Client, error) {
	resolver := discovery.SynthesizedResolver{
		TargetFunc:  target,
		NameFunc:    func() string { return "benchmark" },
		ResolveFunc: func(context.Context, string) (discovery.Result, error) { return result(addresses), nil },
	}
	api, err := connect(n, append(stack(), client.WithResolver(resolver))...)
	api.Echo = limited(api.Echo)
	return api, err
}

// limited asks for a call what a server asks that has both of Kitex's limiters. The
// connections are answered without a server.
func limited(call func(action, msg string) (string, string, error)) func(action, msg string) (string, string, error) {
	rate, running := limiter.NewQPSLimiter(100*time.Millisecond, governance.LimitPerSecond), limiter.NewConnectionLimiter(governance.LimitRunning)
	return func(action, msg string) (string, string, error) {
		ctx := context.Background()
		if !running.Acquire(ctx) {
			return "", "", kerrors.ErrOverlimit
		}
		defer running.Release(ctx)
		if !rate.Acquire(ctx) {
			return "", "", kerrors.ErrOverlimit
		}
		return call(action, msg)
	}
}

func result(addresses []string) discovery.Result {
	found := discovery.Result{Cacheable: true, CacheKey: serviceName, Instances: make([]discovery.Instance, len(addresses))}
	for i, address := range addresses {
		found.Instances[i] = discovery.NewInstance("tcp", address, discovery.DefaultWeight, nil)
	}
	return found
}

const serviceName = "echo"

func connect(n *governance.Network, options ...client.Option) (governance.Client, error) {
	api, err := service.NewClient(serviceName, append(options,
		client.WithTransportProtocol(transport.Framed),
		client.WithLongConnection(connpool.IdleConfig{MaxIdlePerAddress: 10, MaxIdleGlobal: 100_000, MaxIdleTimeout: time.Minute}),
		client.WithDialer(dialer{n}), client.WithTransHandlerFactory(gonet.NewCliTransHandlerFactory()))...)
	if err != nil {
		return governance.Client{}, err
	}
	return governance.Client{Echo: func(action, msg string) (string, string, error) {
		reply, err := api.Echo(context.Background(), &echo.Message{Action: action, Msg: msg})
		if err != nil {
			return "", "", err
		}
		return reply.Action, reply.Msg, nil
	}}, nil
}

// dialer opens connections in memory.
type dialer struct{ network *governance.Network }

func (d dialer) DialTimeout(_, address string, _ time.Duration) (net.Conn, error) {
	conn := d.network.Dial(address)
	return &buffered{Conn: conn, reader: bufiox.NewDefaultReader(conn), writer: bufiox.NewDefaultWriter(conn)}, nil
}

// buffered is what Kitex makes of the connections that it dials itself over package net.
type buffered struct {
	net.Conn
	reader *bufiox.DefaultReader
	writer *bufiox.DefaultWriter
}

func (b *buffered) Reader() *bufiox.DefaultReader { return b.reader }

func (b *buffered) Writer() *bufiox.DefaultWriter { return b.writer }

func (b *buffered) Read(p []byte) (int, error) { return b.reader.Read(p) }
