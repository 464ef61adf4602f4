package transport_test

import (
	"context"
	"errors"
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

// dialer opens connections slowly, as handshakes do.
type dialer struct {
	takes time.Duration
	fails error
	// heedless: what ctx says does not matter, until goOn is closed.
	heedless bool
	goOn     chan struct{}

	network *simnet.Network
	begun   atomic.Int64
	now     atomic.Int64
	most    atomic.Int64
}

func (d *dialer) dial(ctx context.Context) (*eventloop.Conn, error) {
	d.begun.Add(1)
	now := d.now.Add(1)
	for most := d.most.Load(); now > most && !d.most.CompareAndSwap(most, now); most = d.most.Load() {
	}
	defer d.now.Add(-1)
	if d.heedless {
		<-d.goOn
		return nil, errors.New("too late")
	}
	select {
	case <-time.After(d.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.fails != nil {
		return nil, d.fails
	}
	conn, err := d.network.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return eventloop.NewConn(conn, eventloop.Config{}), nil
}

// slowPool runs a test with a pool that opens connections by d, in a bubble.
func slowPool(t *testing.T, d *dialer, config transport.PoolConfig, test func(t *testing.T, pool *transport.Pool)) {
	synctest.Test(t, func(t *testing.T) {
		d.goOn = make(chan struct{}) // of the bubble
		d.network = simnet.New(simnet.Config{})
		listener, err := d.network.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		config.Dial, config.Protocol, config.Limits = d.dial, wire.Framed, limits.DefaultMessage()
		pool := transport.NewPool(config)
		defer pool.Close()
		test(t, pool)
	})
}

// TestPool_ShortCallsGetConnectionsThatTakeLonger: many calls, each of which gives up
// before a connection can be open. What was begun for one is there for later ones, and
// only a few are opened at a time.
func TestPool_ShortCallsGetConnectionsThatTakeLonger(t *testing.T) {
	const callers, calls, timeout = 200, 20, 50 * time.Millisecond
	d := &dialer{takes: 2 * timeout}
	slowPool(t, d, transport.PoolConfig{Connections: 512, Waiting: 1000, ConnectTimeout: time.Second}, func(t *testing.T, pool *transport.Pool) {
		var all sync.WaitGroup
		var got, late atomic.Int64
		for range callers {
			all.Go(func() {
				for range calls {
					ctx, cancel := context.WithTimeout(context.Background(), timeout)
					conn, err := pool.Acquire(ctx)
					switch {
					case err == nil:
						got.Add(1)
						time.Sleep(time.Millisecond)
						conn.Release()
					case errors.Is(err, context.DeadlineExceeded):
						late.Add(1)
					default:
						t.Error(err)
					}
					cancel()
				}
			})
		}
		all.Wait()
		// Two rounds can pass before the first connections are open.
		if late.Load() > 3*callers || got.Load()+late.Load() != callers*calls {
			t.Errorf("%d of %d calls got a connection, %d did not", got.Load(), callers*calls, late.Load())
		}
		if most := d.most.Load(); most > limits.DialsAtOnce || most < 2 {
			t.Errorf("%d connections were opened at a time", most)
		}
	})
}

// TestPool_DialsGoToWhoWaitsLongest: first come, first served, whoever's connection it
// would have been.
func TestPool_DialsGoToWhoWaitsLongest(t *testing.T) {
	const callers = 3 * limits.DialsAtOnce
	slowPool(t, &dialer{takes: time.Second}, transport.PoolConfig{Connections: 512, Waiting: 1000}, func(t *testing.T, pool *transport.Pool) {
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				acquire(t, pool)
				mu.Lock()
				order = append(order, i/limits.DialsAtOnce)
				mu.Unlock()
			})
			synctest.Wait()
		}
		all.Wait()
		for i, batch := range order {
			if batch != i/limits.DialsAtOnce {
				t.Fatalf("served in the order %v", order)
			}
		}
	})
}

// TestPool_FailedDialsFailTheirCalls: each gets the error of a dial that began when it
// waited already, and nobody waits for one that cannot come.
func TestPool_FailedDialsFailTheirCalls(t *testing.T) {
	refused := errors.New("refused")
	d := &dialer{takes: 10 * time.Millisecond, fails: refused}
	slowPool(t, d, transport.PoolConfig{Connections: 512, Waiting: 1000, ConnectTimeout: time.Second}, func(t *testing.T, pool *transport.Pool) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		if _, err := pool.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that does not wait: %v", err)
		}
		// Its dial fails in a moment, which says nothing of those that begin then.
		start := time.Now()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				var failed *transport.CallError
				if _, err := pool.Acquire(context.Background()); !errors.As(err, &failed) || !errors.Is(err, refused) || !failed.Refused || failed.Sent {
					t.Errorf("%+v", err)
				}
			})
		}
		all.Wait()
		if n := d.begun.Load(); n != 101 || time.Since(start) < 10*time.Millisecond {
			t.Errorf("%d dials in %v", n, time.Since(start))
		}
		if pool.Open() != 0 {
			t.Errorf("%d connections are open", pool.Open())
		}
	})
}

// TestPool_WhoWaitsBehindOtherDialsHasTheConnectTimeout: a server that has vanished
// costs no call more than that.
func TestPool_WhoWaitsBehindOtherDialsHasTheConnectTimeout(t *testing.T) {
	const callers = 5 * limits.DialsAtOnce
	for _, d := range []*dialer{{takes: time.Hour}, {heedless: true}} {
		slowPool(t, d, transport.PoolConfig{Connections: 512, Waiting: 1000, ConnectTimeout: time.Second}, func(t *testing.T, pool *transport.Pool) {
			start := time.Now()
			var refused atomic.Int64
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					_, err := pool.Acquire(context.Background())
					var failed *transport.CallError
					if !errors.As(err, &failed) || !strings.Contains(err.Error(), "connect timeout of 1s") {
						t.Errorf("%v", err)
					} else if failed.Refused {
						refused.Add(1)
					}
				})
			}
			all.Wait()
			if time.Since(start) != time.Second || refused.Load() < 1 {
				t.Errorf("after %v, refused %d", time.Since(start), refused.Load())
			}
			close(d.goOn)
		})
	}
}

// TestPool_WithoutConnectTimeoutDialsEndWithTheirCalls: nothing else would end them.
func TestPool_WithoutConnectTimeoutDialsEndWithTheirCalls(t *testing.T) {
	d := &dialer{takes: time.Hour}
	slowPool(t, d, transport.PoolConfig{Connections: 512, Waiting: 1000}, func(t *testing.T, pool *transport.Pool) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := pool.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		if d.now.Load() != 0 || pool.Open() != 0 {
			t.Errorf("%d dials go on, %d connections are open", d.now.Load(), pool.Open())
		}
	})
}
