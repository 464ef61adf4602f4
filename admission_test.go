package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// serverAdmission are the fields that say which calls run, wait or are refused.
func serverAdmission() map[string]field[fulmar.ServerConfig] {
	return map[string]field[fulmar.ServerConfig]{
		"MaxConnectionCalls": {
			observe:  observeConnectionCalls,
			settings: []setting{{3, "3 of 8"}, {nil, "8 of 8"}, {-1, "8 of 8"}},
		},
		"MaxRunningCalls": {
			observe:  observeCalls,
			settings: []setting{{3, "3 of 8"}, {nil, "8 of 8"}, {-1, "8 of 8"}},
		},
		"MaxQueuedCalls": {
			observe:  observeQueued,
			settings: []setting{{3, "4 of 8 refused"}, {nil, "0 of 8 refused"}, {-1, "0 of 8 refused"}},
		},
		"MaxQueueTime": {
			observe: observeQueueTime,
			settings: []setting{
				{time.Second, span{time.Second, time.Second}},
				{nil, span{limits.QueueTime, limits.QueueTime}},
				{-1, span{10 * time.Second, 10 * time.Second}},
			},
		},
		"MaxWaitPercent": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any { return fulmar.WaitsInOverload(t, config) },
			settings: []setting{
				{10, span{fulmar.OverloadTime / 10, fulmar.OverloadTime / 10}},
				{nil, span{fulmar.OverloadTime * limits.WaitPercent / 100, fulmar.OverloadTime * limits.WaitPercent / 100}},
				{-1, span{0, 0}},
			},
		},
	}
}

// observeConnectionCalls returns how many of the calls of one connection reach their
// handlers while none returns.
func observeConnectionCalls(t *testing.T, config fulmar.ServerConfig) any {
	var held holder
	var started int64
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, held.stub(), func(s *simulation) {
		defer held.begin()()
		conn := s.connect()
		defer conn.Close()
		for i := range int32(8) {
			write(t, conn, headed(t, flagged(i), message(thriftwire.Call, "nothing", 1, []byte{0})))
			synctest.Wait()
		}
		// Not at the end: what waits may run when what runs returns.
		started = held.started.Load()
	})
	return fmt.Sprintf("%d of 8", started)
}

// observeQueued returns how many calls are refused while one runs.
func observeQueued(t *testing.T, config fulmar.ServerConfig) any {
	config.MaxRunningCalls, config.MaxQueueTime = 1, -1
	var held holder
	var refused atomic.Int64
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, held.stub(), func(s *simulation) {
		var all sync.WaitGroup
		defer all.Wait()
		defer held.begin()()
		s.share()
		for range 8 {
			all.Go(func() {
				if isRefusal(s.api.Nothing(context.Background())) {
					refused.Add(1)
				}
			})
			synctest.Wait()
		}
		if started := held.started.Load(); started != 1 {
			t.Errorf("%d calls run", started)
		}
	})
	if started := held.started.Load(); started != 8-refused.Load() {
		t.Errorf("%d calls ran, %d were refused", started, refused.Load())
	}
	return fmt.Sprintf("%d of 8 refused", refused.Load())
}

// observeQueueTime returns how long a call waits that does not get to run.
func observeQueueTime(t *testing.T, config fulmar.ServerConfig) any {
	config.MaxRunningCalls = 1
	var held holder
	var took time.Duration
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{Timeout: -1}, held.stub(), func(s *simulation) {
		defer held.begin()()
		s.share()
		go s.api.Nothing(context.Background())
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.api.Nothing(ctx); err == nil {
			t.Error("the call ran")
		}
		took = time.Since(start)
	})
	return took
}

// share makes the client's connection one that calls share, which the first call
// on it finds out.
func (s *simulation) share() { _, _ = s.api.Version(context.Background()) }

// isRefusal reports whether a server had no room for a call, and says so.
func isRefusal(err error) bool {
	var e *fulmar.Error
	return errors.As(err, &e) && e.Code() == fulmar.ResourceExhausted && e.Executed() == fulmar.ExecutedNo && e.Origin() == fulmar.OriginRemote
}

// sleeper is a stub whose calls of "add" take left milliseconds, and what its
// handlers were called with.
func sleeper() (*testservice.Stub, func() []int32) {
	var mu sync.Mutex
	var ran []int32
	stub := &testservice.Stub{OnAdd: func(_ context.Context, left, right int32) (int32, error) {
		mu.Lock()
		ran = append(ran, right)
		mu.Unlock()
		time.Sleep(time.Duration(left) * time.Millisecond)
		return left + right, nil
	}}
	return stub, func() []int32 {
		mu.Lock()
		defer mu.Unlock()
		return ran
	}
}

// TestServer_RunsWaitingCallsInTheirOrder: and all of them, if there is time.
func TestServer_RunsWaitingCallsInTheirOrder(t *testing.T) {
	stub, ran := sleeper()
	simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxRunningCalls: 1}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		s.share()
		var all sync.WaitGroup
		for i := range int32(9) {
			all.Go(func() {
				if _, err := s.api.Add(context.Background(), 10, i); err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
	if got, want := fmt.Sprint(ran()), "[0 1 2 3 4 5 6 7 8]"; got != want {
		t.Errorf("they ran as %s, want %s", got, want)
	}
}

// TestServer_DoesNotRunCallsThatExpired: neither one whose caller stopped waiting
// while it waited to run, nor one that waits when its connection is closed.
func TestServer_DoesNotRunCallsThatExpired(t *testing.T) {
	stub, ran := sleeper()
	config := fulmar.ServerConfig{MaxRunningCalls: 1, MaxQueueTime: time.Minute}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
		s.share()
		ctx := context.Background()
		var all sync.WaitGroup
		all.Go(func() { _, _ = s.api.Add(ctx, 100, 0) })
		synctest.Wait()
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if _, err := s.api.Add(short, 1, 1); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
			t.Errorf("a call that expires: %v", err)
		}
		all.Wait()
		if _, err := s.api.Add(ctx, 1, 2); err != nil {
			t.Errorf("a call afterwards: %v", err)
		}
		for i := range int32(2) {
			all.Go(func() { _, _ = s.api.Add(ctx, 100, 3+i) })
			synctest.Wait()
		}
		_ = s.server.Close()
		all.Wait()
		time.Sleep(time.Second)
		if running := s.server.Stats().Calls; running != 0 {
			t.Errorf("%d calls run in the end", running)
		}
	})
	if got := fmt.Sprint(ran()); got != "[0 2 3]" {
		t.Errorf("%s ran, want 0, 2 and 3", got)
	}
}

// TestServer_PlacesOfExpiredCallsAreGivenOn: also if a call is given its place at the
// very moment at which it expires.
func TestServer_PlacesOfExpiredCallsAreGivenOn(t *testing.T) {
	stub, _ := sleeper()
	config := fulmar.ServerConfig{MaxRunningCalls: 1, MaxQueueTime: 50 * time.Millisecond}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
		s.share()
		for i := range 50 {
			var all sync.WaitGroup
			all.Go(func() { _, _ = s.api.Add(context.Background(), 50, 0) })
			synctest.Wait()
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				defer cancel()
				_, _ = s.api.Add(ctx, 1, 1)
			})
			all.Wait()
			time.Sleep(time.Second)
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				t.Fatalf("after %d rounds: %v", i+1, err)
			}
		}
	})
}

// TestServer_RefusesAtOnceWhatWouldWaitTooLong: how long is told by how long calls
// have run lately.
func TestServer_RefusesAtOnceWhatWouldWaitTooLong(t *testing.T) {
	stub, _ := sleeper()
	simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxRunningCalls: 1}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		ctx := context.Background()
		for range 100 { // 40 ms is what a call takes.
			_, _ = s.api.Add(ctx, 40, 0)
		}
		var all sync.WaitGroup
		refused := 0
		for range 10 {
			all.Go(func() {
				start := time.Now()
				_, err := s.api.Add(ctx, 40, 0)
				switch {
				case err == nil:
				case !isRefusal(err) || !strings.Contains(err.Error(), "calls wait, the last one for about") || time.Since(start) > 0:
					t.Errorf("after %v: %v", time.Since(start), err)
				default:
					refused++
				}
			})
			synctest.Wait()
		}
		all.Wait()
		// One runs, and one can within three quarters of 100 ms.
		if refused != 8 {
			t.Errorf("%d of 10 were refused at once, want 8", refused)
		}
	})
}

// TestServer_RestsFromConnectionsThatBringTooMuch: there is a bound on the time that
// goes into refusing calls, and later all of them have their answers.
func TestServer_RestsFromConnectionsThatBringTooMuch(t *testing.T) {
	var held holder
	simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxCalls: 1}, fulmar.ClientConfig{}, held.stub(), func(s *simulation) {
		defer held.begin()()
		go s.api.Nothing(context.Background())
		synctest.Wait()
		conn := s.connect()
		defer conn.Close()
		const calls = limits.ShedRefusals + 500
		var answered atomic.Int64
		var reader sync.WaitGroup
		reader.Go(func() {
			for range calls {
				if answer, err := nextHeaded(conn); err != nil || answer.Type != thriftwire.Exception {
					t.Errorf("answer %d: %v, %v", answered.Load(), answer.Type, err)
					return
				}
				answered.Add(1)
			}
		})
		call := headed(t, flagged(1), message(thriftwire.Call, "nothing", 1, []byte{0}))
		for range calls {
			write(t, conn, call)
		}
		synctest.Wait()
		// A few may have begun before the first of them was too many.
		if n := answered.Load(); n < limits.ShedRefusals || n > limits.ShedRefusals+100 {
			t.Errorf("%d of %d were answered at once, want %d and few more", n, calls, limits.ShedRefusals)
		}
		other := s.connect()
		defer other.Close()
		if !answers(t, other, nothingCall()) {
			t.Error("another connection is not answered")
		}
		reader.Wait()
	})
}
