//go:build linux

// Command grpcgo runs grpc-go with everything at its defaults.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	echopb "github.com/fulmar-rpc/fulmar/bench/peers/gen/protobuf"
	"github.com/fulmar-rpc/fulmar/bench/peers/protobuf"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

func main() {
	rpc.Main(rpc.Contestant{
		Name: "grpc-go", Modules: []string{"google.golang.org/grpc", "google.golang.org/protobuf"}, Serve: serve,
		Connect: func(address string, p rpc.Played) (rpc.Client, error) {
			if p.Unix {
				address = "unix-abstract:" + strings.TrimPrefix(address, "@")
			}
			return &client{address: address, shared: p.Shared, secure: transportCredentials(p.ClientTLS)}, nil
		},
	})
}

// transportCredentials are those of no TLS for nil, which is the default of servers
// and what clients have to ask for.
func transportCredentials(config *tls.Config) credentials.TransportCredentials {
	if config == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(config)
}

func serve(ctx context.Context, listener net.Listener, p rpc.Played) error {
	server := grpc.NewServer(grpc.Creds(transportCredentials(p.ServerTLS)))
	echopb.RegisterEchoServiceServer(server, handler{played: p})
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	return server.Serve(listener)
}

type handler struct {
	echopb.UnimplementedEchoServiceServer
	played rpc.Played
}

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

// client has one connection for all callers, or one for each.
type client struct {
	address     string
	shared      bool
	secure      credentials.TransportCredentials
	connections []*grpc.ClientConn
}

func (c *client) Caller() (rpc.Caller, error) {
	if !c.shared || len(c.connections) == 0 {
		connection, err := grpc.NewClient(c.address, grpc.WithTransportCredentials(c.secure))
		if err != nil {
			return nil, err
		}
		c.connections = append(c.connections, connection)
	}
	return caller{echopb.NewEchoServiceClient(c.connections[len(c.connections)-1])}, nil
}

func (c *client) Close() error {
	var failures []error
	for _, connection := range c.connections {
		failures = append(failures, connection.Close())
	}
	return errors.Join(failures...)
}

type caller struct{ api echopb.EchoServiceClient }

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
