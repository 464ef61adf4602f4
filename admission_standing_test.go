package fulmar_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestServer_QueuesThatStandAreShort has twice the calls come that can run, for a second: a
// queue takes them up for as long as one of them may wait, and is short from then on, but never
// empty. When nobody has waited for a while it takes up a burst again.
func TestServer_QueuesThatStandAreShort(t *testing.T) {
	const takes, may = 10 * time.Millisecond, 200 * time.Millisecond
	stub := &testservice.Stub{OnNothing: func(context.Context) error {
		time.Sleep(takes)
		return nil
	}}
	config := fulmar.ServerConfig{MaxRunningCalls: 1, MaxQueueTime: may}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{Timeout: -1}, stub, func(s *simulation) {
		s.share()
		first := s.overload(time.Second, takes/2, may)
		if first.early < may/2 {
			t.Errorf("at first a call waited for %v at most", first.early)
		}
		if most := may / 4; first.late > most {
			t.Errorf("a call waited for %v when the queue had stood for long, want %v at most", first.late, most)
		}
		if first.served < 90 {
			t.Errorf("%d calls were served in a second, of 100 that can be", first.served)
		}
		time.Sleep(2 * may)
		if again := s.overload(may, takes/2, may); again.early < may/3 {
			t.Errorf("after a rest a call waited for %v at most", again.early)
		}
	})
}

// waits is how long calls took that were served at most: those that came within the first
// so much time, and within the last half of all.
type waits struct {
	early, late time.Duration
	served      int
}

// overload makes a call every so often.
func (s *simulation) overload(during, every, early time.Duration) (seen waits) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for begin := time.Now(); time.Since(begin) < during; time.Sleep(every) {
		came := time.Since(begin)
		all.Go(func() {
			start := time.Now()
			if s.api.Nothing(context.Background()) != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen.served++
			if took := time.Since(start); came < early {
				seen.early = max(seen.early, took)
			} else if came > during/2 {
				seen.late = max(seen.late, took)
			}
		})
	}
	all.Wait()
	return seen
}
