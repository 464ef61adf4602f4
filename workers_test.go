package fulmar_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// goroutines returns how many there are. The world has to stop for that:
// runtime.NumGoroutine also counts some that have ended, 32 or more, while the
// runtime moves them from one of its lists to another.
func goroutines() int {
	count, _ := runtime.GoroutineProfile(make([]runtime.StackRecord, 1))
	return count
}

// TestServer_KeepsNoMoreGoroutinesThanItNeeds: those that a burst of calls took
// are reused by calls that follow, and end when nobody needs them.
func TestServer_KeepsNoMoreGoroutinesThanItNeeds(t *testing.T) {
	const calls = 200
	// A burst may open more connections, with a goroutine at each end.
	const connections = 2 * limits.MultiplexedConnections
	stub := &testservice.Stub{OnNothing: func(context.Context) error { time.Sleep(time.Second); return nil }}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		burst := func(n int) (during int) {
			var callers sync.WaitGroup
			for range n {
				callers.Go(func() {
					if err := s.api.Nothing(context.Background()); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			during = goroutines()
			callers.Wait()
			synctest.Wait()
			return during
		}
		burst(1) // connects
		idle := goroutines()
		first := burst(calls)
		after := goroutines()
		if after < idle+calls-2 {
			t.Errorf("%d goroutines after a burst of %d calls, %d before: none is kept for the next", after, calls, idle)
		}
		if second := burst(calls); second > first+connections {
			t.Errorf("a second burst took %d goroutines, the first %d", second, first)
		}
		time.Sleep(5 * time.Second)
		if left := goroutines(); left > idle+connections {
			t.Errorf("%d goroutines are left, %d before", left, idle)
		}
	})
}
