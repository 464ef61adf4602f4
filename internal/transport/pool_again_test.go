package transport_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// TestPool_WhoWaitsAgainIsInAHurry: a call gets a connection that its peer has closed
// meanwhile, while as many are being opened for others as may. There is room for one of
// its own, so it leaves half of its time for another instance, as it would have from the
// start.
func TestPool_WhoWaitsAgainIsInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		listener, err := network.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		reachable := true
		pool := transport.NewPool(transport.PoolConfig{
			Connections: 64, Waiting: 64, ConnectTimeout: 2 * time.Second, Elsewhere: true,
			Protocol: wire.Framed, Limits: limits.DefaultMessage(),
			Dial: func(ctx context.Context) (*eventloop.Conn, error) {
				if !reachable {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				conn, err := network.Dial(ctx, "tcp", address)
				if err != nil {
					return nil, err
				}
				return eventloop.NewConn(conn, eventloop.Config{}), nil
			},
		})
		defer pool.Close()
		good, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		served, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		reachable = false
		ended := make(chan time.Time, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		acquire := func(ctx context.Context) {
			if _, err := pool.Acquire(ctx); err == nil {
				t.Error("a connection came from nowhere")
			}
		}
		go func() {
			acquire(ctx)
			ended <- time.Now()
		}()
		synctest.Wait()
		var others sync.WaitGroup
		for range limits.DialsAtOnce {
			others.Go(func() { acquire(t.Context()) })
		}
		time.Sleep(200 * time.Millisecond)
		if err := served.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		again := time.Now()
		good.Release() // to the first, which finds it closed
		if took := (<-ended).Sub(again); took != 400*time.Millisecond {
			t.Errorf("the call waited for another connection for %v, want half of the 800 ms that it had", took)
		}
		others.Wait()
	})
}
