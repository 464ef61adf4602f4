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
	if c.after.Load() {
		return 0, syscall.ECONNRESET
	}
	return c.Conn.Read(p)
}

// TestClient_TriesAgainOnlyWhatWasNotSent: a pooled connection may have been
// closed by its peer, so a request of which it took nothing is sent once more. A
// fresh connection that fails says that the peer is in trouble, and what was
// sent may have been executed.
func TestClient_TriesAgainOnlyWhatWasNotSent(t *testing.T) {
	const success = fulmar.Executed(255)
	cases := map[string]struct {
		// idle connections are in the pool. The first so many that are dialled
		// break before, or after, the request.
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
			var dials, executed atomic.Int64
			var before, after, whole atomic.Bool
			stub := &testservice.Stub{
				OnAdd:     func(_ context.Context, left, right int32) (int32, error) { time.Sleep(time.Second); return 0, nil },
				OnNothing: func(context.Context) error { executed.Add(1); return nil },
			}
			simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
				config := fulmar.ClientConfig{Target: simAddress}
				config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := s.network.Dial(ctx, network, address)
					breaking := &breakingConn{Conn: conn, before: &whole, after: &whole}
					number := dials.Add(1)
					if number <= test.before {
						breaking.before = &before
					}
					if number <= test.after {
						breaking.after = &after
					}
					return breaking, err
				}
				client, err := fulmar.NewClient(config)
				if err != nil {
					t.Fatal(err)
				}
				api := testservice.NewEchoClient(client)
				fill(t, api, test.idle)
				before.Store(true)
				after.Store(true)
				outcome := success
				if err := api.Nothing(context.Background()); err != nil {
					outcome = asError(t, err).Executed()
				}
				synctest.Wait()
				if outcome != test.outcome || dials.Load() != test.dials || executed.Load() != test.executed {
					t.Errorf("%v after %d dials, executed %d times; want %v, %d, %d", outcome, dials.Load(), executed.Load(), test.outcome, test.dials, test.executed)
				}
				if err := client.Close(); err != nil {
					t.Error(err)
				}
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
	withPeer(t, fulmar.ClientConfig{IdleTimeout: timeout}, func(api testservice.EchoClient, accept func() net.Conn) {
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
