package fulmar_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// inStreams are mishaps of streaming methods.
func inStreams() []mishap {
	ending := func(err error) *feed {
		return &feed{list: func(*testservice.Item, fulmar.ServerStreamingServer[testservice.Item]) error { return err }}
	}
	forever := &feed{list: func(_ *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}}
	long := &testservice.Item{Name: strings.Repeat("x", 2000), Count: 1}
	return []mishap{
		{what: "nobody listens at the address", absent: true, call: callList(&testservice.Item{})},
		{what: "the time of the stream is over", feed: forever, call: callList(&testservice.Item{}, fulmar.Timeout(200*time.Millisecond))},
		{what: "no message within `SetRecvTimeout`, and the stream goes on", feed: forever, call: func(ctx context.Context, _ *testing.T, m *stage) error {
			stream, err := testservice.NewFeedClient(m.client).List(ctx, &testservice.Item{})
			if err != nil {
				return err
			}
			stream.SetRecvTimeout(200 * time.Millisecond)
			_, err = stream.Recv()
			return err
		}},
		{what: "the caller cancels meanwhile", feed: forever, meanwhile: func(_ *stage, cancel func()) { cancel() }, call: callList(&testservice.Item{})},
		{what: "the connection breaks meanwhile", feed: forever, meanwhile: func(m *stage, _ func()) { m.network.Cut(stageAddress) }, call: callList(&testservice.Item{})},
		{what: "the handler returns an error", feed: ending(errors.New("disk full")), call: callList(&testservice.Item{})},
		{what: "the handler returns an error with a code", feed: ending(fulmar.NewError(fulmar.NotFound, "no such item")), call: callList(&testservice.Item{})},
		{what: "the handler returns a business error", feed: ending(fulmar.NewBusinessError(1001, "limit reached", nil)), call: callList(&testservice.Item{})},
		{what: "a message is longer than this side may send", client: fulmar.ClientConfig{MaxMessageBytes: 900}, call: callList(long)},
		{what: "a message is longer than the client takes", client: fulmar.ClientConfig{MaxMessageBytes: 900},
			feed: &feed{list: func(_ *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error {
				return stream.Send(long)
			}}, call: callList(&testservice.Item{})},
		{what: "a message is longer than the server takes", server: fulmar.ServerConfig{MaxMessageBytes: 900}, call: callList(long)},
		{what: "the service is not registered", call: func(ctx context.Context, _ *testing.T, m *stage) error {
			method := &fulmar.MethodDesc{Service: "Warehouse", Name: "stock", Codec: testservice.FeedServiceDesc.Methods[0].Codec, ServerStreams: true}
			stream, err := fulmar.OpenServerStream[testservice.Item, testservice.Item](ctx, m.client, method, &testservice.Item{})
			if err != nil {
				return err
			}
			_, err = stream.Recv()
			return err
		}},
	}
}

// callList opens a stream that answers, and receives until it ends.
func callList(item *testservice.Item, options ...fulmar.CallOption) func(context.Context, *testing.T, *stage) error {
	return func(ctx context.Context, _ *testing.T, m *stage) error {
		stream, err := testservice.NewFeedClient(m.client).List(ctx, item, options...)
		if err != nil {
			return err
		}
		for _, err := range stream.All() {
			if err != nil {
				return err
			}
		}
		return nil
	}
}
