package transport_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// TestPeer_ConnectionsThatLeaveUnused: a call that has opened a connection to
// share it, which leaves before the call is on it, says so, and may be made once
// more: it does not look for the next one for ever.
func TestPeer_ConnectionsThatLeaveUnused(t *testing.T) {
	network := simnet.New(simnet.Config{})
	listener, err := network.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	peer := transport.NewPeer(transport.PoolConfig{
		Dial: func(ctx context.Context) (*eventloop.Conn, error) {
			conn, err := network.Dial(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			return eventloop.NewConn(conn, eventloop.Config{}), nil
		},
		Protocol: wire.TTHeader, Limits: limits.DefaultMessage(), Connections: 1, Waiting: 1, Multiplexed: true,
	})
	request, err := peer.NewRequest(transport.Method{Name: "echo", Qualified: "echo"}, transport.RequestHead{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := peer.CallLeft(context.Background(), request)
	var failed *transport.CallError
	if !errors.As(err, &failed) || failed.Phase != transport.PhaseConnect || failed.Sent || !again || !strings.Contains(err.Error(), "broke before it was used") {
		t.Errorf("the call: %v (%+v), may be made again: %v", err, failed, again)
	}
	if stats := peer.Stats(); stats.Connections != 0 || stats.Shared != 0 {
		t.Errorf("%+v", stats)
	}
	request.Release()
	peer.Close()
	_ = listener.Close()
}

// TestPeer_LooksOnWhenConnectionsLeave: a call that is given a connection while
// that leaves goes to another one, however often that happens to it.
func TestPeer_LooksOnWhenConnectionsLeave(t *testing.T) {
	const callers, calls = 16, 500
	network := simnet.New(simnet.Config{})
	listener, err := network.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { inOrder(conn, func(int32) bool { return true }) })
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
		Protocol: wire.TTHeader, Limits: limits.DefaultMessage(), Connections: callers, Waiting: callers, ConnectTimeout: time.Minute,
	})
	var ended atomic.Bool
	var all, leaver sync.WaitGroup
	for caller := range uint64(callers) {
		all.Go(func() {
			for i := range uint64(calls) {
				if _, _, err := echoCall(context.Background(), peer, caller<<32|i); err != nil {
					t.Errorf("call %d of %d: %v", i, caller, err)
					return
				}
			}
		})
	}
	leaver.Go(func() {
		for !ended.Load() {
			peer.LeaveAll()
		}
	})
	all.Wait()
	ended.Store(true)
	leaver.Wait()
	peer.Close()
	_ = listener.Close()
	connections.Wait()
}
