//go:build linux

// Command connectgo runs connect-go as its own documentation does: package net/http with
// HTTP/2 in clear, and the protocol of gRPC.
package main

import (
	"context"
	"net"
	"net/http"

	"connectrpc.com/connect"

	echopb "github.com/fulmar-rpc/fulmar/bench/peers/gen/protobuf"
	"github.com/fulmar-rpc/fulmar/bench/peers/gen/protobuf/echopbconnect"
	"github.com/fulmar-rpc/fulmar/bench/peers/protobuf"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

func main() {
	rpc.Main(rpc.Contestant{
		Name: "connect-go", Modules: []string{"connectrpc.com/connect", "google.golang.org/protobuf"}, Serve: serve,
		Connect: func(address string, _ rpc.Played) (rpc.Client, error) {
			transport := &http.Transport{Protocols: onlyHTTP2()}
			api := echopbconnect.NewEchoServiceClient(&http.Client{Transport: transport}, "http://"+address, connect.WithGRPC())
			return client{transport, api}, nil
		},
	})
}

func onlyHTTP2() *http.Protocols {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return protocols
}

func serve(ctx context.Context, listener net.Listener, p rpc.Played) error {
	mux := http.NewServeMux()
	mux.Handle(echopbconnect.NewEchoServiceHandler(handler{p}))
	server := &http.Server{Handler: mux, Protocols: onlyHTTP2()}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	return server.Serve(listener)
}

type handler struct{ played rpc.Played }

func (h handler) Echo(_ context.Context, request *connect.Request[echopb.Message]) (*connect.Response[echopb.Message], error) {
	h.played.Work()
	return connect.NewResponse(&echopb.Message{Action: request.Msg.Action, Msg: request.Msg.Msg}), nil
}

func (handler) Complex(_ context.Context, request *connect.Request[echopb.Complex]) (*connect.Response[echopb.Complex], error) {
	message := request.Msg
	return connect.NewResponse(&echopb.Complex{
		Action: message.Action, Msg: message.Msg, ByName: message.ByName,
		Parts: message.Parts, Groups: message.Groups, Flag: message.Flag,
	}), nil
}

// client is what all callers use: the transport opens connections as it needs them.
type client struct {
	transport *http.Transport
	api       echopbconnect.EchoServiceClient
}

func (c client) Caller() (rpc.Caller, error) { return caller{c.api}, nil }

func (c client) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

type caller struct {
	api echopbconnect.EchoServiceClient
}

func (c caller) Echo(ctx context.Context, action, msg string) (string, string, error) {
	reply, err := c.api.Echo(ctx, connect.NewRequest(&echopb.Message{Action: action, Msg: msg}))
	if err != nil {
		return "", "", err
	}
	return reply.Msg.Action, reply.Msg.Msg, nil
}

func (c caller) Complex(data *rpc.Complex) func(context.Context) (bool, error) {
	request := protobuf.New(data)
	return func(ctx context.Context) (bool, error) {
		reply, err := c.api.Complex(ctx, connect.NewRequest(request))
		if err != nil {
			return false, err
		}
		return protobuf.Equal(reply.Msg, data), nil
	}
}
