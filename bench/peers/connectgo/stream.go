//go:build linux

package main

import (
	"context"
	"io"

	"connectrpc.com/connect"

	echopb "github.com/fulmar-rpc/fulmar/bench/peers/gen/protobuf"
	"github.com/fulmar-rpc/fulmar/bench/peers/streams"
)

func newMessage(action, msg string) *echopb.Message {
	return &echopb.Message{Action: action, Msg: msg}
}

func (handler) Bidi(_ context.Context, stream *connect.BidiStream[echopb.Message, echopb.Message]) error {
	return streams.Echo(stream.Receive, stream.Send, newMessage)
}

func (handler) Down(_ context.Context, request *connect.Request[echopb.Message], stream *connect.ServerStream[echopb.Message]) error {
	return streams.Repeat(stream.Send, func() *echopb.Message { return newMessage(request.Msg.Action, request.Msg.Msg) })
}

func (handler) Up(_ context.Context, stream *connect.ClientStream[echopb.Message]) (*connect.Response[echopb.Message], error) {
	action, msg, err := streams.Count(next(stream))
	return connect.NewResponse(newMessage(action, msg)), err
}

// receiver is a stream that is read as bufio.Scanner is.
type receiver interface {
	Receive() bool
	Msg() *echopb.Message
	Err() error
}

func next(stream receiver) func() (*echopb.Message, error) {
	return func() (*echopb.Message, error) {
		if stream.Receive() {
			return stream.Msg(), nil
		}
		if err := stream.Err(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
}

func (c caller) Bidi(ctx context.Context) (func(action, msg string) (string, string, error), error) {
	stream := c.api.Bidi(ctx)
	return func(action, msg string) (string, string, error) {
		return streams.Exchange(stream.Send, stream.Receive, newMessage(action, msg))
	}, nil
}

func (c caller) Down(ctx context.Context, action, msg string, each func(action, msg string)) error {
	stream, err := c.api.Down(ctx, connect.NewRequest(newMessage(action, msg)))
	if err != nil {
		return err
	}
	// Close would read the rest, which Each has done.
	return streams.Each(next(stream), each)
}

func (c caller) Up(ctx context.Context, action, msg string) (string, string, error) {
	stream := c.api.Up(ctx)
	if err := streams.Repeat(stream.Send, func() *echopb.Message { return newMessage(action, msg) }); err != nil {
		return "", "", err
	}
	answer, err := stream.CloseAndReceive()
	if err != nil {
		return "", "", err
	}
	return answer.Msg.Action, answer.Msg.Msg, nil
}
