package guide_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/protoservice"
)

type shelf struct{}

func (*shelf) List(jar *protoservice.Jar, stream fulmar.ServerStreamingServer[protoservice.Jar]) error {
	for _, inside := range jar.GetInside() {
		if err := stream.Send(inside); err != nil {
			return err // the caller has gone, or its time is over
		}
	}
	return nil
}

func (*shelf) Fill(stream fulmar.ClientStreamingServer[protoservice.Jar, protoservice.Jar]) error {
	all := &protoservice.Jar{Name: "all"}
	for jar, err := range stream.All() {
		if err != nil {
			return err
		}
		all.Inside = append(all.Inside, jar)
	}
	return stream.SendAndClose(all)
}

func (*shelf) Swap(stream fulmar.BidiStreamingServer[protoservice.Jar, protoservice.Jar]) error {
	for {
		jar, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(jar); err != nil {
			return err
		}
	}
}

// counted counts the messages of a stream.
func counted(logger *slog.Logger) fulmar.StreamInterceptor {
	return func(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
		received := 0
		call.OnRecv(func(any) error {
			received++
			return nil
		})
		call.OnEnd(func(err error) {
			logger.Info("stream ended", "method", call.Method(), "received", received, "code", fulmar.CodeOf(err))
		})
		return next(ctx, call)
	}
}

// listAll asks for all that is in a jar.
func listAll(ctx context.Context, api protoservice.ShelfClient, jar *protoservice.Jar) (names []string, err error) {
	stream, err := api.List(ctx, jar, fulmar.Timeout(time.Minute))
	if err != nil {
		return nil, err
	}
	for jar, err := range stream.All() {
		if err != nil {
			return nil, err
		}
		names = append(names, jar.GetName())
	}
	return names, nil
}

// fillAll sends jars one after the other.
func fillAll(ctx context.Context, api protoservice.ShelfClient, jars []*protoservice.Jar) (*protoservice.Jar, error) {
	stream, err := api.Fill(ctx)
	if err != nil {
		return nil, err
	}
	for _, jar := range jars {
		if err := stream.Send(jar); err != nil {
			break // CloseAndRecv says why
		}
	}
	return stream.CloseAndRecv()
}

// TestStreams_Guide runs what docs/guide/streams.md quotes.
func TestStreams_Guide(t *testing.T) {
	config := fulmar.ServerConfig{
		Address:            "127.0.0.1:0",
		StreamInterceptors: []fulmar.StreamInterceptor{counted(slog.New(slog.DiscardHandler))},
	}
	server, err := fulmar.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	protoservice.RegisterShelfServer(server, &shelf{})
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String(), Protocol: fulmar.GRPC})
	if err != nil {
		t.Fatal(err)
	}
	api := protoservice.NewShelfClient(client)
	jars := []*protoservice.Jar{{Name: "plums"}, {Name: "pears"}}
	all, err := fillAll(t.Context(), api, jars)
	if err != nil || len(all.GetInside()) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	if names, err := listAll(t.Context(), api, all); err != nil || len(names) != 2 || names[1] != "pears" {
		t.Errorf("%q, %v", names, err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
