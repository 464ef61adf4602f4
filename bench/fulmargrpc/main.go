// Command fulmargrpc is this project's contestant of suites grpc and stream.
package main

import (
	"context"
	"net"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/bench/gen/echopb"
	"github.com/fulmar-rpc/fulmar/bench/gen/tts"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

//go:generate fulmar gen -o ../gen --namespace echo=echopb ../idl/echo.proto
//go:generate fulmar gen -o ../gen ../idl/tts.thrift

func main() { rpc.Main(contestants()...) }

// connectTimeout is that of suite rpc.
const connectTimeout = 10 * time.Second

func contestants() []rpc.Contestant {
	return []rpc.Contestant{{Name: "fulmar", Serve: serve, Connect: connect}}
}

func connect(address string, p rpc.Played) (rpc.Client, error) {
	protocol := fulmar.GRPC
	if p.TTHeader {
		protocol = fulmar.TTHeader
	}
	config := fulmar.ClientConfig{Target: address, Protocol: protocol, TLS: fulmar.ClientTLS{Config: p.ClientTLS}, ConnectTimeout: connectTimeout}
	inner, err := fulmar.NewClient(config)
	return client{inner, p.TTHeader}, err
}

func serve(ctx context.Context, listener net.Listener, p rpc.Played) error {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Listener: listener, TLS: fulmar.ServerTLS{Config: p.ServerTLS}})
	if err != nil {
		return err
	}
	echopb.RegisterEchoServiceServer(server, handler{p})
	tts.RegisterStreamsServer(server, thriftHandler{})
	return server.Serve(ctx)
}

type handler struct{ played rpc.Played }

func (h handler) Echo(_ context.Context, message *echopb.Message) (*echopb.Message, error) {
	h.played.Work()
	return &echopb.Message{Action: message.Action, Msg: message.Msg}, nil
}

func (handler) Complex(_ context.Context, message *echopb.Complex) (*echopb.Complex, error) {
	return message, nil
}

// client shares its connections between all callers.
type client struct {
	inner *fulmar.Client
	// thrift: its streams are of Thrift, over TTHeader.
	thrift bool
}

func (c client) Close() error { return c.inner.Close() }

func (c client) Caller() (rpc.Caller, error) {
	unary := caller{echopb.NewEchoServiceClient(c.inner)}
	if c.thrift {
		return thriftCaller{unary, tts.NewStreamsClient(c.inner)}, nil
	}
	return unary, nil
}

type caller struct{ api echopb.EchoServiceClient }

func (c caller) Echo(ctx context.Context, action, msg string) (string, string, error) {
	reply, err := c.api.Echo(ctx, &echopb.Message{Action: action, Msg: msg})
	if err != nil {
		return "", "", err
	}
	return reply.Action, reply.Msg, nil
}
