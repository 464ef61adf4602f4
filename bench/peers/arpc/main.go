//go:build linux

// Command arpc runs arpc with everything at its defaults except the codec:
// Protobuf, as its own comparisons with others use it, in place of JSON.
package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/lesismal/arpc"
	"github.com/lesismal/arpc/codec"
	"github.com/lesismal/arpc/log"
	"google.golang.org/protobuf/proto"

	echopb "github.com/fulmar-rpc/fulmar/bench/peers/gen/protobuf"
	"github.com/fulmar-rpc/fulmar/bench/peers/protobuf"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

// callTimeout is required by arpc.
const callTimeout = 5 * time.Second

func main() {
	log.SetLevel(log.LevelNone)
	codec.SetCodec(protobufCodec{})
	rpc.Main(rpc.Contestant{
		Name: "arpc", Modules: []string{"github.com/lesismal/arpc", "google.golang.org/protobuf"}, Serve: serve,
		Connect: func(address string, p rpc.Played) (rpc.Client, error) {
			return &client{address: address, shared: p.Shared}, nil
		},
	})
}

// protobufCodec encodes messages that protoc-gen-go has generated.
type protobufCodec struct{}

var _ codec.Codec = protobufCodec{}

func (protobufCodec) Marshal(v any) ([]byte, error) {
	message, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a Protobuf message", v)
	}
	return proto.Marshal(message)
}

func (protobufCodec) Unmarshal(data []byte, v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a Protobuf message", v)
	}
	return proto.Unmarshal(data, message)
}

func serve(ctx context.Context, listener net.Listener, _ rpc.Played) error {
	server := arpc.NewServer()
	server.Handler.Handle("echo", func(c *arpc.Context) {
		var message echopb.Message
		if err := c.Bind(&message); err != nil {
			_ = c.Error(err)
			return
		}
		_ = c.Write(&echopb.Message{Action: message.Action, Msg: message.Msg})
	})
	server.Handler.Handle("complex", func(c *arpc.Context) {
		var message echopb.Complex
		if err := c.Bind(&message); err != nil {
			_ = c.Error(err)
			return
		}
		_ = c.Write(&echopb.Complex{
			Action: message.Action, Msg: message.Msg, ByName: message.ByName,
			Parts: message.Parts, Groups: message.Groups, Flag: message.Flag,
		})
	})
	stop := context.AfterFunc(ctx, func() { _ = server.Stop() })
	defer stop()
	return server.Serve(listener)
}

// client has one connection for all callers, or one for each.
type client struct {
	address     string
	shared      bool
	connections []*arpc.Client
}

func (c *client) Caller() (rpc.Caller, error) {
	if !c.shared || len(c.connections) == 0 {
		connection, err := arpc.NewClient(func() (net.Conn, error) { return net.DialTimeout("tcp", c.address, callTimeout) })
		if err != nil {
			return nil, err
		}
		c.connections = append(c.connections, connection)
	}
	return caller{c.connections[len(c.connections)-1]}, nil
}

func (c *client) Close() error {
	for _, connection := range c.connections {
		connection.Stop()
	}
	return nil
}

type caller struct{ connection *arpc.Client }

func (c caller) Echo(_ context.Context, action, msg string) (string, string, error) {
	var reply echopb.Message
	if err := c.connection.Call("echo", &echopb.Message{Action: action, Msg: msg}, &reply, callTimeout); err != nil {
		return "", "", err
	}
	return reply.Action, reply.Msg, nil
}

func (c caller) Complex(data *rpc.Complex) func(context.Context) (bool, error) {
	request := protobuf.New(data)
	return func(context.Context) (bool, error) {
		var reply echopb.Complex
		err := c.connection.Call("complex", request, &reply, callTimeout)
		return err == nil && protobuf.Equal(&reply, data), err
	}
}
