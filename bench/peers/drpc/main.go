//go:build linux

// Command drpc runs DRPC with everything at its defaults. Its connections carry one call at a
// time, so each caller has one.
package main

import (
	"context"
	"errors"
	"net"

	"storj.io/drpc/drpcconn"
	"storj.io/drpc/drpcmux"
	"storj.io/drpc/drpcserver"

	echopb "github.com/fulmar-rpc/fulmar/bench/peers/gen/protobuf"
	"github.com/fulmar-rpc/fulmar/bench/peers/protobuf"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

func main() {
	rpc.Main(rpc.Contestant{
		Name: "drpc", Modules: []string{"storj.io/drpc", "google.golang.org/protobuf"}, Serve: serve,
		Connect: func(address string, _ rpc.Played) (rpc.Client, error) { return &client{address: address}, nil },
	})
}

func serve(ctx context.Context, listener net.Listener, p rpc.Played) error {
	mux := drpcmux.New()
	if err := echopb.DRPCRegisterEchoService(mux, handler{p}); err != nil {
		return err
	}
	return drpcserver.New(mux).Serve(ctx, listener)
}

type handler struct{ played rpc.Played }

func (h handler) Echo(_ context.Context, message *echopb.Message) (*echopb.Message, error) {
	h.played.Work()
	return &echopb.Message{Action: message.Action, Msg: message.Msg}, nil
}

func (handler) Complex(_ context.Context, message *echopb.Complex) (*echopb.Complex, error) {
	return &echopb.Complex{
		Action: message.Action, Msg: message.Msg, ByName: message.ByName,
		Parts: message.Parts, Groups: message.Groups, Flag: message.Flag,
	}, nil
}

type client struct {
	address     string
	connections []*drpcconn.Conn
}

func (c *client) Caller() (rpc.Caller, error) {
	raw, err := net.Dial("tcp", c.address)
	if err != nil {
		return nil, err
	}
	connection := drpcconn.New(raw)
	c.connections = append(c.connections, connection)
	return caller{echopb.NewDRPCEchoServiceClient(connection)}, nil
}

func (c *client) Close() error {
	var failures []error
	for _, connection := range c.connections {
		failures = append(failures, connection.Close())
	}
	return errors.Join(failures...)
}

type caller struct{ api echopb.DRPCEchoServiceClient }

func (c caller) Echo(ctx context.Context, action, msg string) (string, string, error) {
	reply, err := c.api.Echo(ctx, &echopb.Message{Action: action, Msg: msg})
	if err != nil {
		return "", "", err
	}
	return reply.Action, reply.Msg, nil
}

func (c caller) Complex(data *rpc.Complex) func(context.Context) (bool, error) {
	request := protobuf.New(data)
	return func(ctx context.Context) (bool, error) {
		reply, err := c.api.Complex(ctx, request)
		return err == nil && protobuf.Equal(reply, data), err
	}
}
