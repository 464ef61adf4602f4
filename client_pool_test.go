package fulmar_test

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// breakingConn is a connection that looks idle to the pool and breaks when it is
// used: before a request, or after all of it was sent.
type breakingConn struct {
	net.Conn
	before, after *atomic.Bool
}

func (c *breakingConn) Write(p []byte) (int, error) {
	if c.before.Load() {
		return 0, syscall.ECONNRESET
	}
	return c.Conn.Write(p)
}

func (c *breakingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.after.Load() {
		return 0, syscall.ECONNRESET
	}
	return n, err
}

// brokenNetwork is a network whose first connections break once they are armed.
type brokenNetwork struct {
	network *simnet.Network
	// before and after are how many connections break before, or after, a
	// request.
	before, after int64
	armed, never  atomic.Bool
	dials         atomic.Int64
}

func (n *brokenNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := n.network.Dial(ctx, network, address)
	breaking := &breakingConn{Conn: conn, before: &n.never, after: &n.never}
	number := n.dials.Add(1)
	if number <= n.before {
		breaking.before = &n.armed
	}
	if number <= n.after {
		breaking.after = &n.armed
	}
	return breaking, err
}

// TestClient_TriesAgainOnlyWhatWasNotSent: a pooled connection may have been
// closed by its peer, so a request of which it took nothing is sent once more. A
// fresh connection that fails says that the peer is in trouble, and what was
// sent may have been executed.
func TestClient_TriesAgainOnlyWhatWasNotSent(t *testing.T) {
	const success = fulmar.Executed(255)
	cases := map[string]struct {
		// idle connections are open, before and after as in brokenNetwork.
		idle, before, after int64
		outcome             fulmar.Executed
		dials, executed     int64
	}{
		"a fresh connection":                     {0, 1, 0, fulmar.ExecutedNo, 1, 0},
		"a reused connection":                    {1, 1, 0, success, 2, 1},
		"two reused connections":                 {2, 2, 0, fulmar.ExecutedNo, 2, 0},
		"a reused connection, then a fresh one":  {1, 2, 0, fulmar.ExecutedNo, 2, 0},
		"a reused connection, after it was sent": {1, 0, 1, fulmar.ExecutedMaybe, 1, 1},
		"a fresh connection, after it was sent":  {0, 0, 1, fulmar.ExecutedMaybe, 1, 1},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
				var executed atomic.Int64
				stub := &testservice.Stub{
					OnAdd:     func(context.Context, int32, int32) (int32, error) { time.Sleep(time.Second); return 3, nil },
					OnNothing: func(context.Context) error { executed.Add(1); return nil },
				}
				simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
					broken := &brokenNetwork{network: s.network, before: test.before, after: test.after}
					client, err := fulmar.NewClient(fulmar.ClientConfig{Target: simAddress, Protocol: protocol, Dial: broken.dial})
					if err != nil {
						t.Fatal(err)
					}
					api := testservice.NewEchoClient(client)
					fill(t, api, test.idle)
					broken.armed.Store(true)
					outcome := success
					if err := api.Nothing(context.Background()); err != nil {
						outcome = asError(t, err).Executed()
					}
					synctest.Wait()
					if dials := broken.dials.Load(); outcome != test.outcome || dials != test.dials || executed.Load() != test.executed {
						t.Errorf("%v after %d dials, executed %d times; want %v, %d, %d",
							outcome, dials, executed.Load(), test.outcome, test.dials, test.executed)
					}
					if err := client.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		})
	}
}

// fill makes calls at a time that take a second each, so that there are as many
// idle connections afterwards.
func fill(t *testing.T, api testservice.EchoClient, connections int64) {
	t.Helper()
	var calls sync.WaitGroup
	for range connections {
		calls.Go(func() {
			if _, err := api.Add(context.Background(), 1, 2); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}

// TestClient_ClosesTheOldestFirst: each connection is closed exactly IdleTimeout
// after its last call, and calls use the youngest, so that the others get old.
func TestClient_ClosesTheOldestFirst(t *testing.T) {
	const timeout = 10 * time.Second
	var got [3]time.Duration
	withPeer(t, fulmar.ClientConfig{Protocol: fulmar.Framed, IdleTimeout: timeout}, func(client *fulmar.Client, accept func() net.Conn) {
		api := testservice.NewEchoClient(client)
		start := time.Now()
		var peer sync.WaitGroup
		for i := range got {
			// Three calls, answered after 1, 2 and 3 s.
			go fill(t, api, 1)
			conn := accept()
			peer.Go(func() {
				answerUntilClosed(t, conn, func() { time.Sleep(time.Until(start.Add(time.Duration(i+1) * time.Second))) })
				got[i] = time.Since(start)
			})
		}
		time.Sleep(5 * time.Second)
		fill(t, api, 1)
		peer.Wait()
	})
	if want := [3]time.Duration{1*time.Second + timeout, 2*time.Second + timeout, 5*time.Second + timeout}; got != want {
		t.Errorf("closed after %v, want %v", got, want)
	}
}

// answerUntilClosed answers framed calls of add over conn until its peer closes
// it.
func answerUntilClosed(t *testing.T, conn net.Conn, think func()) {
	call := make([]byte, len(frame(addCall(t, 1, 1, 2))))
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	for {
		if _, err := io.ReadFull(conn, call); err != nil {
			if err != io.EOF {
				t.Errorf("the connection ended with %v", err)
			}
			_ = conn.Close()
			return
		}
		think()
		header, _, _, _ := thriftwire.ParseHeader(call[4:])
		write(t, conn, sumReply(t, header.Sequence))
	}
}

// TestClient_ClosesIdleSharedConnections: a connection that calls share is
// closed when it has had none for IdleTimeout, at most half as long later.
func TestClient_ClosesIdleSharedConnections(t *testing.T) {
	const timeout = 10 * time.Second
	open := func(client fulmar.ClientConfig, wait time.Duration) (connections int) {
		simulate(t, simnet.Config{}, fulmar.ServerConfig{IdleTimeout: -1}, client, adder(), func(s *simulation) {
			fill(t, s.api, 1)
			time.Sleep(timeout / 4)
			fill(t, s.api, 1)
			time.Sleep(wait)
			synctest.Wait()
			stats := s.client.Stats()
			if stats.Multiplexed != stats.Connections {
				t.Errorf("%d of %d connections are shared", stats.Multiplexed, stats.Connections)
			}
			connections = stats.Connections
		})
		return connections
	}
	cases := map[string]struct {
		client fulmar.ClientConfig
		wait   time.Duration
		want   int
	}{
		"just before": {fulmar.ClientConfig{IdleTimeout: timeout}, timeout - 1, 1},
		"after":       {fulmar.ClientConfig{IdleTimeout: timeout}, timeout + timeout/2, 0},
		"default":     {fulmar.ClientConfig{}, limits.ClientIdleTimeout + limits.ClientIdleTimeout/2, 0},
		"off":         {fulmar.ClientConfig{IdleTimeout: -1, MaxConnectionAge: -1}, patience, 1},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if got := open(test.client, test.wait); got != test.want {
				t.Errorf("%d connections are open, want %d", got, test.want)
			}
		})
	}
}

// TestClient_NeedsNoMoreConnectionsThanItMayHave: calls share what there is, also
// when there are so many that another connection would be opened.
func TestClient_NeedsNoMoreConnectionsThanItMayHave(t *testing.T) {
	stub := adder()
	stub.OnNothing = func(context.Context) error { time.Sleep(time.Second); return nil }
	for connections := 1; connections <= limits.MultiplexedConnections+1; connections++ {
		simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{MaxConnections: connections}, stub, func(s *simulation) {
			fill(t, s.api, 1)
			want := min(connections, limits.MultiplexedConnections)
			// Every wave may open one more; it does not if all of its calls choose before
			// the first of them counts. Two more show that there are never too many.
			for more, waves := 2, 0; more > 0 && waves < 20*want; waves++ {
				if s.client.Stats().Connections >= want {
					more--
				}
				var calls sync.WaitGroup
				for range (connections + 1) * limits.MultiplexedGrow {
					calls.Go(func() {
						if err := s.api.Nothing(context.Background()); err != nil {
							t.Errorf("with %d connections: %v", connections, err)
						}
					})
				}
				calls.Wait()
			}
			synctest.Wait() // connections that nobody needs any more may still be closing
			if open := s.client.Stats().Connections; open != want {
				t.Errorf("%d connections are open, %d may be", open, connections)
			}
		})
	}
}

// TestClient_ConnectTimeoutIsNotTheCalls: a dialer's clock may be ahead of its
// context's, and its error then looks as if the call had run out of time. The context
// is not the call's, unless connecting may take any time.
func TestClient_ConnectTimeoutIsNotTheCalls(t *testing.T) {
	ahead := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
	}
	for name, test := range map[string]struct {
		connect, call time.Duration
		want          fulmar.Code
	}{
		"of the connection": {time.Minute, time.Hour, fulmar.Unavailable},
		"off":               {-1, time.Hour, fulmar.DeadlineExceeded},
		"beyond the call":   {time.Hour, time.Minute, fulmar.Unavailable},
	} {
		client := dialAny(t, fulmar.ClientConfig{Target: simAddress, Dial: ahead, ConnectTimeout: test.connect, Timeout: test.call})
		err := asError(t, testservice.NewEchoClient(client).Nothing(context.Background()))
		if err.Code() != test.want || err.Executed() != fulmar.ExecutedNo {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}
