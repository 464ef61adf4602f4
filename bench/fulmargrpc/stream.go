package main

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/bench/gen/echopb"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

func newMessage(action, msg string) *echopb.Message {
	return &echopb.Message{Action: action, Msg: msg}
}

func (handler) Bidi(stream fulmar.BidiStreamingServer[echopb.Message, echopb.Message]) error {
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(newMessage(message.Action, message.Msg)); err != nil {
			return err
		}
	}
}

func (handler) Down(message *echopb.Message, stream fulmar.ServerStreamingServer[echopb.Message]) error {
	for range rpc.StreamMessages {
		if err := stream.Send(newMessage(message.Action, message.Msg)); err != nil {
			return err
		}
	}
	return nil
}

func (handler) Up(stream fulmar.ClientStreamingServer[echopb.Message, echopb.Message]) error {
	received, last := 0, ""
	for message, err := range stream.All() {
		if err != nil {
			return err
		}
		received, last = received+1, message.Msg
	}
	return stream.SendAndClose(newMessage(strconv.Itoa(received), last))
}

func (c caller) Bidi(ctx context.Context) (func(action, msg string) (string, string, error), error) {
	stream, err := c.api.Bidi(ctx)
	if err != nil {
		return nil, err
	}
	return func(action, msg string) (string, string, error) {
		if err := stream.Send(newMessage(action, msg)); err != nil {
			return "", "", err
		}
		answer, err := stream.Recv()
		if err != nil {
			return "", "", err
		}
		return answer.Action, answer.Msg, nil
	}, nil
}

func (c caller) Down(ctx context.Context, action, msg string, each func(action, msg string)) error {
	stream, err := c.api.Down(ctx, newMessage(action, msg))
	if err != nil {
		return err
	}
	for message, err := range stream.All() {
		if err != nil {
			return err
		}
		each(message.Action, message.Msg)
	}
	return nil
}

func (c caller) Up(ctx context.Context, action, msg string) (string, string, error) {
	stream, err := c.api.Up(ctx)
	if err != nil {
		return "", "", err
	}
	for range rpc.StreamMessages {
		if err := stream.Send(newMessage(action, msg)); err != nil {
			break // CloseAndRecv says why
		}
	}
	answer, err := stream.CloseAndRecv()
	if err != nil {
		return "", "", err
	}
	return answer.Action, answer.Msg, nil
}
