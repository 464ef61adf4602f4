package transport

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/peerlog"
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

// TestClient_PanicsEndTheirConnection: a panic while a client reads what a server has sent is
// the end of that connection, and nothing else. The next call has another one.
func TestClient_PanicsEndTheirConnection(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		pair := newStreamPair(t, protocol, echo)
		stream := pair.open(t.Context(), t, "echo")
		switch s := stream.(type) { // closed twice, when the server's header arrives
		case *clientMessages:
			close(s.came)
		case *ttstreamMade:
			close(s.came)
		default:
			t.Fatalf("a stream of %T", stream)
		}
		if err := sends(stream, "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := receivesAll(stream); err == nil || !strings.Contains(err.Error(), "panicked in transport.(*streamHeader).headLocked, line ") {
			t.Errorf("the stream whose connection was read: %v", err)
		}
		next := pair.open(t.Context(), t, "echo")
		if err := errors.Join(sends(next, "a"), next.CloseSend()); err != nil {
			t.Fatal(err)
		}
		if messages, err := receivesAll(next); len(messages) != 1 || err != io.EOF {
			t.Errorf("the next stream: %q, %v", messages, err)
		}
	})
}

// TestMux_PanicsEndTheirConnection is the same for a connection of unary calls: those that
// wait on it are told.
func TestMux_PanicsEndTheirConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		first, done := make(chan struct{}), make(chan struct{})
		peer := newMuxPeerOf(t, 1, new(atomic.Int32), func(call *Inbound) {
			switch calls.Add(1) {
			case 2:
				<-first
			case 3:
				<-done
			}
			_ = answer(call) // nobody may wait for it any more
		})
		var logged strings.Builder // which only reading writes
		peer.config.Log = peerlog.New(slog.New(slog.NewTextHandler(&logged, nil)))
		if err := muxDo(t.Context(), peer); err != nil { // it is shared now
			t.Fatal(err)
		}
		waits := make(chan error, 2)
		for range 2 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				waits <- muxDo(ctx, peer)
			}()
			synctest.Wait()
		}
		conn := peer.shared[0]
		conn.mu.Lock()
		least := int32(math.MaxInt32)
		for sequence := range conn.calls {
			least = min(least, sequence)
		}
		conn.calls[least] = &muxCall{outcome: conn.calls[least].outcome}
		conn.mu.Unlock()
		close(first)
		for range 2 {
			if err := <-waits; err == nil || !strings.Contains(err.Error(), "panicked in transport.(*muxConn).") {
				t.Errorf("a call on the connection: %v", err)
			}
		}
		if line := logged.String(); !strings.Contains(line, "reading what a server has sent panicked") || !strings.Contains(line, "muxConn).deliver") {
			t.Errorf("logged: %q", line)
		}
		close(done)
		if err := muxDo(t.Context(), peer); err != nil {
			t.Errorf("the next call: %v", err)
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
