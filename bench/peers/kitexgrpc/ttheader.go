//go:build linux

package main

import (
	"context"
	"net"

	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/server"

	"github.com/fulmar-rpc/fulmar/bench/peers/gen/kitex/tts"
	ttservice "github.com/fulmar-rpc/fulmar/bench/peers/gen/kitex/tts/streams"
	"github.com/fulmar-rpc/fulmar/bench/peers/streams"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

func serveTTHeader(ctx context.Context, listener net.Listener) error {
	srv := ttservice.NewServer(&ttHandler{}, server.WithListener(listener))
	stop := context.AfterFunc(ctx, func() { _ = srv.Stop() })
	defer stop()
	return srv.Run()
}

func newTTMessage(action, msg string) *tts.Message { return &tts.Message{Action: action, Msg: msg} }

type ttHandler struct{}

func (*ttHandler) Bidi(ctx context.Context, stream tts.Streams_bidiServer) error {
	return streams.Echo(
		func() (*tts.Message, error) { return stream.Recv(ctx) },
		func(m *tts.Message) error { return stream.Send(ctx, m) }, newTTMessage)
}

// connectTTHeader needs no protocol: generated clients with streams have it.
func connectTTHeader(address string) (rpc.Client, error) {
	api, err := ttservice.NewClient("streams", client.WithHostPorts(address), client.WithConnectTimeout(connectTimeout))
	return ttShared{api}, err
}

type ttShared struct{ api ttservice.Client }

func (s ttShared) Caller() (rpc.Caller, error) { return ttCaller{api: s.api}, nil }

// Close has nothing to do: the process ends.
func (ttShared) Close() error { return nil }

// ttCaller has streams in both directions only.
type ttCaller struct {
	caller
	api ttservice.Client
}

func (c ttCaller) Bidi(ctx context.Context) (func(action, msg string) (string, string, error), error) {
	stream, err := c.api.Bidi(ctx)
	if err != nil {
		return nil, err
	}
	return func(action, msg string) (string, string, error) {
		return streams.Exchange(
			func(m *tts.Message) error { return stream.Send(ctx, m) },
			func() (*tts.Message, error) { return stream.Recv(ctx) }, newTTMessage(action, msg))
	}, nil
}
