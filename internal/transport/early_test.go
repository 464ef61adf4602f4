package transport_test

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// wholeWrites keeps what two goroutines write apart.
type wholeWrites struct {
	net.Conn
	mu sync.Mutex
}

func (c *wholeWrites) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.Write(p)
}

// TestPeer_AnswersMayComeTooEarly: a peer that guesses sequence ids answers calls
// that are still being made ready. Nothing is shared with them then but what
// does not change any more; the race detector looks on.
func TestPeer_AnswersMayComeTooEarly(t *testing.T) {
	const calls = 1000
	network := simnet.New(simnet.Config{})
	listener, err := network.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			conn := &wholeWrites{Conn: accepted}
			var latest atomic.Int32
			connections.Go(func() {
				early := wire.Message{Header: thriftwire.Header{Name: []byte("echo")}, Body: []byte{0}}
				for {
					// The first call is alone on the connection.
					if early.Sequence = latest.Load() + 1; early.Sequence <= 2 {
						runtime.Gosched()
					} else if _, err := conn.Write(answered(nil, &early, early.Sequence, nil)); err != nil {
						return
					}
				}
			})
			connections.Go(func() {
				inOrder(conn, func(sequence int32) bool {
					latest.Store(sequence)
					return true
				})
			})
		}
	})
	peer := transport.NewPeer(transport.PoolConfig{
		Dial: func(ctx context.Context) (*eventloop.Conn, error) {
			var conn net.Conn
			conn, err := network.Dial(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			return eventloop.NewConn(conn, eventloop.Config{}), nil
		},
		Protocol: wire.TTHeader, Limits: limits.DefaultMessage(), Connections: 1, Waiting: 10, ConnectTimeout: time.Minute,
	})
	early := 0
	for i := range uint64(calls) {
		sent, got, err := echoCall(context.Background(), peer, i)
		switch {
		case err != nil:
			t.Fatalf("call %d: %v", i, err)
		case len(got) == 1:
			early++
		case !bytes.Equal(sent, got):
			t.Fatalf("call %d: % x was answered by % x", i, sent, got)
		}
	}
	t.Logf("%d answers came early", early) // with one processor none may
	peer.Close()
	_ = listener.Close()
	connections.Wait()
}
