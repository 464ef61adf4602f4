package transport_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

const address = "peer:1"

// openPool returns a pool whose connections lead to a listener that never
// answers, and a counter of dials.
func openPool(t *testing.T, config transport.PoolConfig) (*transport.Pool, *atomic.Int64) {
	t.Helper()
	network := simnet.New(simnet.Config{})
	listener, err := network.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	dials := &atomic.Int64{}
	config.Dial = func(ctx context.Context) (*eventloop.Conn, error) {
		dials.Add(1)
		conn, err := network.Dial(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return eventloop.NewConn(conn, eventloop.Config{}), nil
	}
	config.Protocol, config.Limits = wire.Framed, limits.DefaultMessage()
	pool := transport.NewPool(config)
	t.Cleanup(func() {
		pool.Close()
		_ = listener.Close()
	})
	return pool, dials
}

func acquire(t *testing.T, pool *transport.Pool) *transport.ClientConn {
	t.Helper()
	conn, err := pool.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestPool_ReusesTheYoungestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, dials := openPool(t, transport.PoolConfig{Connections: 4, Waiting: 4})
		first, second := acquire(t, pool), acquire(t, pool)
		first.Release()
		second.Release()
		if again := acquire(t, pool); again != second || !again.Reused() {
			t.Error("not the connection that was released last")
		}
		if n := dials.Load(); n != 2 {
			t.Errorf("%d dials, want 2", n)
		}
	})
}

func TestPool_ClosesWhatIsIdleTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, dials := openPool(t, transport.PoolConfig{Connections: 4, Waiting: 4, IdleTimeout: 10 * time.Second})
		old, young := acquire(t, pool), acquire(t, pool)
		old.Release()
		time.Sleep(6 * time.Second)
		young.Release()
		time.Sleep(5 * time.Second)
		if again := acquire(t, pool); again != young {
			t.Error("the young connection did not survive")
		}
		if again := acquire(t, pool); again == old || dials.Load() != 3 {
			t.Errorf("the old connection survived (%d dials)", dials.Load())
		}
	})
}

func TestPool_WaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, dials := openPool(t, transport.PoolConfig{Connections: 1, Waiting: 10})
		held := acquire(t, pool)
		var mu sync.Mutex
		var order []int
		var wait sync.WaitGroup
		for i := range 3 {
			wait.Go(func() {
				conn := acquire(t, pool)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				if i == 1 {
					// The next waiter has to dial.
					conn.Discard()
				} else {
					conn.Release()
				}
			})
			synctest.Wait()
		}
		held.Release()
		wait.Wait()
		if len(order) != 3 || order[0] != 0 || order[1] != 1 || order[2] != 2 {
			t.Errorf("served in the order %v", order)
		}
		if n := dials.Load(); n != 2 {
			t.Errorf("%d dials, want 2", n)
		}
	})
}

func TestPool_RefusesBeyondItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, _ := openPool(t, transport.PoolConfig{Connections: 1, Waiting: 1})
		held := acquire(t, pool)
		ctx, cancel := context.WithCancel(context.Background())
		waiting := make(chan error, 1)
		go func() { _, err := pool.Acquire(ctx); waiting <- err }()
		synctest.Wait()
		if _, err := pool.Acquire(context.Background()); !errors.Is(err, transport.ErrExhausted) || !strings.Contains(err.Error(), "1 calls already wait for one of 1 connections") {
			t.Errorf("a call too many: %v", err)
		}
		cancel()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("the call that waited: %v", err)
		}
		// The place of the call that gave up is free again.
		ctx, cancel = context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := pool.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the next call: %v", err)
		}
		held.Release()
	})
}

func TestPool_CloseEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, _ := openPool(t, transport.PoolConfig{Connections: 1, Waiting: 1})
		held := acquire(t, pool)
		waiting := make(chan error, 1)
		go func() { _, err := pool.Acquire(context.Background()); waiting <- err }()
		synctest.Wait()
		pool.Close()
		if err := <-waiting; !errors.Is(err, transport.ErrClosed) {
			t.Errorf("the call that waited: %v", err)
		}
		held.Release()
		if _, err := pool.Acquire(context.Background()); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("a later call: %v", err)
		}
	})
}

// TestPool_NeverLosesASlot: after any mixture of releases, discards, failures to
// dial and waiters that give up, all connections can be had again, and never
// more than allowed are out at once.
func TestPool_NeverLosesASlot(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			const connections = 3
			pool, _ := openPool(t, transport.PoolConfig{Connections: connections, Waiting: 100, IdleTimeout: 20 * time.Millisecond})
			var out atomic.Int64
			var wait sync.WaitGroup
			for worker := range uint64(12) {
				wait.Go(func() {
					random := rand.New(rand.NewPCG(seed, worker))
					for range 30 {
						ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(10))*time.Millisecond)
						conn, err := pool.Acquire(ctx)
						cancel()
						if err != nil {
							continue
						}
						if n := out.Add(1); n > connections {
							t.Errorf("%d connections out, %d allowed", n, connections)
						}
						time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
						out.Add(-1)
						if random.IntN(3) == 0 {
							conn.Discard()
						} else {
							conn.Release()
						}
					}
				})
			}
			wait.Wait()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			for range connections {
				if _, err := pool.Acquire(ctx); err != nil {
					t.Fatalf("seed %d: a slot is lost: %v", seed, err)
				}
			}
		})
	}
}
