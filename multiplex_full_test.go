package fulmar_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestPing_LeavesAFullServerAlone: as many calls as a connection may have run for an
// hour, and others wait behind them, so that the server does not read the pings. It is
// busy, not dead, and none of its calls may fail.
func TestPing_LeavesAFullServerAlone(t *testing.T) {
	for name, test := range map[string]struct {
		limit, calls int
		after        time.Duration
		behind       int
	}{
		"default":                    {0, limits.ConnectionCalls, 0, 1},
		"one call":                   {1, 1, 0, 3},
		"asked often":                {4, 4, time.Second, 2},
		"more than is read in ahead": {4, 4, time.Second, 40},
		"nothing behind":             {4, 4, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			stub := adder()
			stub.OnNothing = func(context.Context) error { time.Sleep(time.Hour); return nil }
			stub.OnEcho = func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
				return message, nil
			}
			client := fulmar.ClientConfig{PingAfter: test.after, MaxConnections: 1, Timeout: -1}
			simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxConnectionCalls: test.limit}, client, stub, func(s *simulation) {
				fill(t, s.api, 1)
				var all sync.WaitGroup
				for range test.calls {
					all.Go(func() {
						if err := s.api.Nothing(context.Background()); err != nil {
							t.Error(err)
						}
					})
				}
				time.Sleep(time.Second)
				for range test.behind {
					all.Go(func() {
						text := strings.Repeat("x", 4<<10)
						if _, err := s.api.Echo(context.Background(), &testservice.Message{Text: text}); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if stats := s.server.Stats(); stats.Network.Accepted != 1 {
					t.Errorf("%d connections, want one", stats.Network.Accepted)
				}
				// A ping may have been sent before the server was full, or said so.
				if stats := s.client.Stats(); stats.LateReplies > 1 {
					t.Errorf("%d replies came too late, want at most one to a ping", stats.LateReplies)
				}
			})
		})
	}
}

// TestPing_MissesAFullServerThatIsStopped: what says that it is alive must not be said
// for it by anybody else.
func TestPing_MissesAFullServerThatIsStopped(t *testing.T) {
	stub := adder()
	stub.OnNothing = func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxConnectionCalls: 4}, fulmar.ClientConfig{Timeout: -1}, stub, func(s *simulation) {
		fill(t, s.api, 1)
		var failed atomic.Int64
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if err := s.api.Nothing(context.Background()); err != nil && strings.Contains(err.Error(), "ping") {
					failed.Add(1)
				}
			})
		}
		time.Sleep(time.Minute)
		s.network.Stall(simAddress, true)
		start := time.Now()
		all.Wait()
		if took := time.Since(start); failed.Load() != 6 || took > 2*limits.PingAfter {
			t.Errorf("%d of 6 calls failed after %v, want all within %v", failed.Load(), took, 2*limits.PingAfter)
		}
		s.network.Stall(simAddress, false)
	})
}

// TestPing_WaitsForALongRequest: on a slow network a request may take longer than a ping
// may, which waits behind it, and may be sent just before its time is over. The connection
// is at work all the time.
func TestPing_WaitsForALongRequest(t *testing.T) {
	slow := simnet.Config{BufferBytes: 16 << 10, Delay: 150 * time.Millisecond} // 107 KB/s
	stub := adder()
	stub.OnEcho = func(context.Context, *testservice.Message) (*testservice.Message, error) {
		return &testservice.Message{}, nil
	}
	for seconds := 15; seconds < 35; seconds++ {
		simulate(t, slow, fulmar.ServerConfig{}, fulmar.ClientConfig{Timeout: -1}, stub, func(s *simulation) {
			fill(t, s.api, 1)
			start := time.Now()
			bytes := seconds * (107 << 10)
			if _, err := s.api.Echo(context.Background(), &testservice.Message{Text: strings.Repeat("x", bytes)}); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took < limits.PingAfter {
				t.Errorf("the call took %v, which shows nothing", took)
			}
		})
	}
}
