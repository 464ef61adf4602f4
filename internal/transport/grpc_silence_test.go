package transport

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// quiet is a server that answers the message "quick" only, and nothing on its first connection
// once that is mute. held is what goes on there: it stands for a long stream.
type quiet struct {
	opened, settings atomic.Int64
	mute             atomic.Bool
}

func (q *quiet) serve(s *grpcScript) {
	q.opened.Add(1)
	s.serve(func(s *grpcScript, event *http2.Event) {
		if s.number == 0 && q.mute.Load() {
			_, _ = io.Copy(io.Discard, s)
			return
		}
		switch event.Kind {
		case http2.EventSettings:
			q.settings.Add(1)
		case http2.EventData:
			if string(event.Data) == string(framedMessage("quick")) {
				s.answer(event.Stream, "a", "0")
			}
		case http2.EventReset:
			s.http2.Release(event.Stream)
		}
	})
}

// hold makes a call that goes on until end is called.
func hold(t *testing.T, peer *Peer) (end context.CancelFunc) {
	ctx, end := context.WithCancel(t.Context())
	go func() { _, _ = grpcDo(ctx, peer, "held") }()
	synctest.Wait()
	return end
}

// late makes calls that nobody answers, as long as each may take.
func late(t *testing.T, peer *Peer, calls int, timeout time.Duration) {
	t.Helper()
	for range calls {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		if _, err := grpcDo(ctx, peer, "slow"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that nobody answers: %v", err)
		}
		cancel()
	}
}

// TestGRPC_SlowCallsKeepTheirConnection: a server that answers no calls and lives is asked
// whether it does, not too often, and not left. With one connection, which a stream keeps, calls
// would wait for its end.
func TestGRPC_SlowCallsKeepTheirConnection(t *testing.T) {
	for _, timeout := range []time.Duration{limits.SilenceTimeout / 50, 3 * limits.SilenceTimeout} {
		synctest.Test(t, func(t *testing.T) {
			q := new(quiet)
			peer := newScriptedPeer(t, PoolConfig{Connections: 1}, q.serve)
			end := hold(t, peer)
			began := time.Now()
			late(t, peer, 20*limits.SilentCalls, timeout)
			most := int64(time.Since(began)/limits.SilenceTimeout) + 2 // with those of the beginning
			if _, err := grpcDo(t.Context(), peer, "quick"); err != nil {
				t.Error(err)
			}
			if opened, asked := q.opened.Load(), q.settings.Load(); opened != 1 || asked < 2 || asked > most {
				t.Errorf("calls of %v: %d connections, asked %d times, at most %d expected", timeout, opened, asked-1, most-1)
			}
			end()
		})
	}
}

// TestGRPC_LeavesSilentPeers: one that answers nothing at all is left, and another connection
// takes its place, also where one is allowed and the old one still has a call.
func TestGRPC_LeavesSilentPeers(t *testing.T) {
	for name, test := range map[string]struct {
		calls   int
		timeout time.Duration
	}{
		"short calls": {limits.SilentCalls, limits.SilenceTimeout / 10},
		"a long call": {1, limits.SilenceTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := new(quiet)
				peer := newScriptedPeer(t, PoolConfig{Connections: 1}, q.serve)
				end := hold(t, peer)
				q.mute.Store(true)
				time.Sleep(time.Millisecond) // the server's settings are older than the calls
				late(t, peer, test.calls, test.timeout)
				time.Sleep(limits.SilenceTimeout + time.Millisecond)
				synctest.Wait()
				if q.opened.Load() != 1 || peer.Stats().Shared != 0 {
					t.Errorf("%d connections were opened, %+v", q.opened.Load(), peer.Stats())
				}
				for range 3 {
					if _, err := grpcDo(t.Context(), peer, "quick"); err != nil {
						t.Error(err)
					}
				}
				if q.opened.Load() != 2 || peer.Stats().Connections != 2 {
					t.Errorf("%d connections were opened, %+v", q.opened.Load(), peer.Stats())
				}
				end()
				synctest.Wait()
				if peer.Stats().Connections != 1 {
					t.Errorf("behind the last call: %+v", peer.Stats())
				}
			})
		})
	}
}

// TestGRPC_ConnectionsThatAreLeftAreBounded: connections that their servers end keep streams for
// long; as many as may take calls are kept beside them, and no more.
func TestGRPC_ConnectionsThatAreLeftAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 2
		var opened atomic.Int64
		peer := newScriptedPeer(t, PoolConfig{Connections: most}, func(s *grpcScript) {
			opened.Add(1)
			s.serve(func(s *grpcScript, event *http2.Event) {
				if event.Kind == http2.EventData {
					_, _ = s.Write(goAway(event.Stream)) // the call is let go on
				}
			})
		})
		held, end := context.WithCancel(t.Context())
		for range 2 * most {
			go func() { _, _ = grpcDo(held, peer, "held") }()
			synctest.Wait()
		}
		if peer.Stats().Connections != 2*most || opened.Load() != 2*most {
			t.Errorf("%d connections were opened, %+v", opened.Load(), peer.Stats())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := grpcDo(ctx, peer, "held"); !errors.Is(err, context.DeadlineExceeded) || opened.Load() != 2*most {
			t.Errorf("one more: %v, %d connections were opened", err, opened.Load())
		}
		end()
		synctest.Wait()
		if stats := peer.Stats(); stats.Connections > 1 || stats.Connections != stats.Shared {
			t.Errorf("behind the last call: %+v", stats) // one may have been opened for the one more
		}
	})
}
