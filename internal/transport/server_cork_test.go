package transport

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// countingListener counts what is written to its connections.
type countingListener struct {
	net.Listener
	writes *atomic.Int32
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return countingConn{conn, l.writes}, err
}

// outOfOrderCall returns a call that may be answered in any order.
func outOfOrderCall(name string, sequence int32) []byte {
	head := ttheader.Head{Sequence: sequence, Flags: wire.FlagOutOfOrder}
	size, _ := head.Size()
	length := thriftwire.AppendedHeaderSize(name) + 1
	b := make([]byte, size+length)
	head.Put(b[:size], length)
	thriftwire.PutHeader(b[size:], thriftwire.Call, name, sequence)
	return b // behind the header there is the end of an empty struct
}

// TestServer_RefusalsLeaveTogether: who is answered before the connection is let go of
// costs no system call, which is most of what refusing takes.
func TestServer_RefusalsLeaveTogether(t *testing.T) {
	const calls = 64
	network := simnet.New(simnet.Config{})
	listener, err := network.Listen("server")
	if err != nil {
		t.Fatal(err)
	}
	var writes atomic.Int32
	server := NewServer(ServerConfig{
		ConnectionCalls: limits.ConnectionCalls,
		Allowed:         wire.SetOf(wire.TTHeader), Limits: limits.DefaultMessage(), BufferedBytes: 1 << 30, Logger: slog.New(slog.DiscardHandler),
		Lookup: func(_, method []byte, _ wire.Payload) any { return string(method) },
		Handle: func(_ context.Context, call *Inbound) {
			exception := thriftwire.ApplicationException{Type: thriftwire.ExceptionInternalError, Message: "no room"}
			if err := call.SendException("m", exception, ReplyHead{}); err != nil {
				t.Error(err)
			}
		},
	})
	stop := serveUntil(t, server, countingListener{listener, &writes})
	conn, err := network.Dial(t.Context(), "tcp", "server")
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for i := range calls {
		all = append(all, outOfOrderCall("m", int32(i+1))...)
	}
	if _, err := conn.Write(all); err != nil {
		t.Fatal(err)
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answers, err := io.ReadAll(conn)
	if err != nil || len(answers) < calls*len("no room") {
		t.Errorf("%d bytes of answers, %v", len(answers), err)
	}
	if n := writes.Load(); n == 0 || n > calls/4 {
		t.Errorf("%d writes for %d answers", n, calls)
	}
	_ = conn.Close()
	stop()
}

// serveUntil serves until stop is called, which waits for the end.
func serveUntil(t *testing.T, server *Server, listener net.Listener) (stop func()) {
	t.Helper()
	serving, err := eventloop.NewListener(listener, server.EventLoop(eventloop.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, serving) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}
