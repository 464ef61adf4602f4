package transport

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// TestServer_PanicsEndTheirConnection: a panic while frames are obeyed is the end of its
// connection. Others are looked at still, and the server can stop, which newStreamPair sees.
func TestServer_PanicsEndTheirConnection(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		pair := newStreamPair(t, protocol, echo)
		for range 3 {
			if messages, err := receivesAll(pair.open(t.Context(), t, panicMethod)); err == nil || len(messages) > 0 {
				t.Errorf("%q, %v, want an error", messages, err)
			}
			stream := pair.open(t.Context(), t, "echo")
			if err := sends(stream, "a"); err != nil {
				t.Fatal(err)
			}
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
			if messages, err := receivesAll(stream); len(messages) != 1 {
				t.Errorf("the next stream: %q, %v", messages, err)
			}
			time.Sleep(2 * sweepInterval)
		}
	})
}

// TestServer_StopsInTime: what is done to tell a connection of a stop is part of DrainTimeout.
func TestServer_StopsInTime(t *testing.T) {
	network := simnet.New(simnet.Config{})
	listener, err := network.Listen("server")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(ServerConfig{
		Allowed: wire.SetOf(wire.GRPC), Limits: limits.DefaultMessage(), BufferedBytes: 64 << 20, ConnectionCalls: 1, Logger: slog.New(slog.DiscardHandler), DrainTimeout: time.Millisecond,
	})
	serving, err := eventloop.NewListener(listener, server.EventLoop(eventloop.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, serving) }()
	conn, err := network.Dial(ctx, "tcp", "server")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	settings := make([]byte, http2.FrameHeaderSize)
	http2.PutFrameHeader(settings, 0, http2.FrameSettings, 0, 0)
	if _, err := conn.Write(append([]byte(http2.Preface), settings...)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	serving.Connections(func(conn *eventloop.Conn) bool {
		h := connOf(conn).http2.Load()
		h.mu.Lock()
		stop()
		<-server.ctx.Done() // calls are told that the time is over
		h.mu.Unlock()
		return true
	})
	if err := <-served; err != nil {
		t.Error(err)
	}
}
