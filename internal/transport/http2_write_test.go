package transport

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// TestHTTP2Server_ClosedEndsItsWriter: who finds the connection closed, which the server may learn
// later, writes no more: somebody else may have begun, and both would take the same memory. The
// handler is that writer, on the goroutine that the server would learn it on.
func TestHTTP2Server_ClosedEndsItsWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		listener, err := network.Listen("server")
		if err != nil {
			t.Fatal(err)
		}
		handled := false
		server := NewServer(ServerConfig{
			ConnectionCalls: limits.ConnectionCalls,
			Allowed:         wire.SetOf(wire.GRPC), Limits: limits.DefaultMessage(), BufferedBytes: 1 << 30, Logger: slog.New(slog.DiscardHandler),
			Lookup:      func(_, method []byte, _ wire.Payload) any { return string(method) },
			LookupExact: func(_, method string, _ wire.Payload) any { return method },
			Handle: func(_ context.Context, call *Inbound) {
				handled = true
				h := call.stream.(*serverStream).server
				h.mu.Lock()
				h.writing = true
				full := h.http2.Swap(h.spare)
				h.spare = nil
				h.mu.Unlock()
				goesOn := h.wrote(full, net.ErrClosed)
				h.mu.Lock()
				defer h.mu.Unlock()
				if goesOn || h.writing || h.gone {
					t.Errorf("goes on: %v, writing: %v, gone already: %v", goesOn, h.writing, h.gone)
				}
			},
		})
		stop := serveUntil(t, server, listener)
		conn, err := network.Dial(t.Context(), "tcp", "server")
		if err != nil {
			t.Fatal(err)
		}
		pool := linkbuf.NewPool()
		peer := http2.NewConn(http2.Config{Client: true}, pool, 0)
		id, err := peer.Open([]http2.Field{
			{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: "/s/m"},
			{Name: "te", Value: "trailers"}, {Name: "content-type", Value: "application/grpc"},
		}, false, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := peer.Data(id, framedMessage("x"), true); err != nil {
			t.Fatal(err)
		}
		script := &grpcScript{Conn: conn, http2: peer, pool: pool, began: time.Now()}
		script.send()
		synctest.Wait()
		if !handled {
			t.Error("the call was not handled")
		}
		peer.Close()
		_ = conn.Close()
		stop()
	})
}
