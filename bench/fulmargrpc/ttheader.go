package main

import (
	"context"
	"errors"
	"io"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/bench/gen/tts"
)

// thriftHandler has the stream that is called over TTHeader.
type thriftHandler struct{}

func (thriftHandler) Bidi(stream fulmar.BidiStreamingServer[tts.Message, tts.Message]) error {
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&tts.Message{Action: message.Action, Msg: message.Msg}); err != nil {
			return err
		}
	}
}

// thriftCaller has streams in both directions only.
type thriftCaller struct {
	caller
	api tts.StreamsClient
}

func (c thriftCaller) Bidi(ctx context.Context) (func(action, msg string) (string, string, error), error) {
	stream, err := c.api.Bidi(ctx)
	if err != nil {
		return nil, err
	}
	return func(action, msg string) (string, string, error) {
		if err := stream.Send(&tts.Message{Action: action, Msg: msg}); err != nil {
			return "", "", err
		}
		answer, err := stream.Recv()
		if err != nil {
			return "", "", err
		}
		return answer.Action, answer.Msg, nil
	}, nil
}
