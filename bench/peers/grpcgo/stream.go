//go:build linux

package main

import (
	"context"

	"google.golang.org/grpc"

	echopb "github.com/fulmar-rpc/fulmar/bench/peers/gen/protobuf"
	"github.com/fulmar-rpc/fulmar/bench/peers/streams"
)

func newMessage(action, msg string) *echopb.Message {
	return &echopb.Message{Action: action, Msg: msg}
}

func (handler) Bidi(stream grpc.BidiStreamingServer[echopb.Message, echopb.Message]) error {
	return streams.Echo(stream.Recv, stream.Send, newMessage)
}

func (handler) Down(message *echopb.Message, stream grpc.ServerStreamingServer[echopb.Message]) error {
	return streams.Repeat(stream.Send, func() *echopb.Message { return newMessage(message.Action, message.Msg) })
}

func (handler) Up(stream grpc.ClientStreamingServer[echopb.Message, echopb.Message]) error {
	action, msg, err := streams.Count(stream.Recv)
	if err != nil {
		return err
	}
	return stream.SendAndClose(newMessage(action, msg))
}

func (c caller) Bidi(ctx context.Context) (func(action, msg string) (string, string, error), error) {
	stream, err := c.api.Bidi(ctx)
	if err != nil {
		return nil, err
	}
	return func(action, msg string) (string, string, error) {
		return streams.Exchange(stream.Send, stream.Recv, newMessage(action, msg))
	}, nil
}

func (c caller) Down(ctx context.Context, action, msg string, each func(action, msg string)) error {
	stream, err := c.api.Down(ctx, newMessage(action, msg))
	if err != nil {
		return err
	}
	return streams.Each(stream.Recv, each)
}

func (c caller) Up(ctx context.Context, action, msg string) (string, string, error) {
	stream, err := c.api.Up(ctx)
	if err != nil {
		return "", "", err
	}
	if err := streams.Repeat(stream.Send, func() *echopb.Message { return newMessage(action, msg) }); err != nil {
		return "", "", err
	}
	answer, err := stream.CloseAndRecv()
	if err != nil {
		return "", "", err
	}
	return answer.Action, answer.Msg, nil
}
