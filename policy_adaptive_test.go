package fulmar_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// watched is a server with an adaptive limit that holds, and one that is on trial, whose
// streams last until their callers end them.
func watched(t *testing.T, way string, held *holder, adaptive policy.Adaptive) (s *streaming, trial *policy.ServerTrial) {
	t.Helper()
	document := policy.Server{Adaptive: adaptive}
	s = newStreamingOf(t, way, func(server *fulmar.Server) {
		testservice.RegisterEchoServer(server, held.stub())
		testservice.RegisterFeedServer(server, lasting())
	}, fulmar.ServerConfig{Policy: document}, fulmar.ClientConfig{Timeout: -1})
	trial, err := policy.NewServerTrial(document, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.server.Try(trial)
	return s, trial
}

// watch opens a stream, and returns when its handler runs, or why it does not.
func watch(ctx context.Context, s *streaming) error {
	list, err := s.api.List(ctx, &testservice.Item{})
	if err == nil {
		_, err = list.Recv()
	}
	return err
}

// TestServerPolicy_AdaptiveIsNotHeldByStreams opens streams that send nothing, many times as
// many as calls may run at once, and then makes calls, one by one. Places that streams hold
// would never come back: the limit grows by calls that end, and none could begin.
func TestServerPolicy_AdaptiveIsNotHeldByStreams(t *testing.T) {
	const streams = 5 * limits.AdaptiveCalls
	for _, way := range directWays {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var held holder
				held.begin()()
				s, trial := watched(t, way, &held, policy.Adaptive{Enabled: true})
				ctx, cancel := context.WithCancel(t.Context())
				for i := range streams {
					if err := watch(ctx, s); err != nil {
						t.Fatalf("stream %d: %v", i, err)
					}
				}
				for i := range 3 * limits.AdaptiveCalls {
					if err := testservice.NewEchoClient(s.client).Nothing(t.Context()); err != nil {
						t.Fatalf("call %d beside %d streams: %v", i, streams, err)
					}
				}
				synctest.Wait()
				if running := s.server.Stats().Policy.Limit.Running; running != streams {
					t.Errorf("%d streams are open, want %d", running, streams)
				}
				if tried := trial.Show(time.Now()); tried.Refused != 0 || tried.Limits.Limit.Running != streams {
					t.Errorf("on trial: %v, %d run", tried, tried.Limits.Limit.Running)
				}
				cancel()
				synctest.Wait()
				for of, a := range map[string]policy.AdaptiveState{"held": s.server.Stats().Policy.Adaptive, "tried": trial.Show(time.Now()).Limits.Adaptive} {
					if a.Running != 0 || a.Refused != 0 {
						t.Errorf("%s, when all have ended: %+v", of, a)
					}
				}
			})
		})
	}
}

// TestServerPolicy_AdaptiveRefusesStreams: one that begins is work like a call, so while as
// many calls run as may it is refused, and begins when one of them has ended.
func TestServerPolicy_AdaptiveRefusesStreams(t *testing.T) {
	const calls = 3
	for _, way := range directWays {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var held holder
				held.begin()()
				s, trial := watched(t, way, &held, policy.Adaptive{Enabled: true, MinRunning: calls, MaxRunning: calls})
				if err := testservice.NewEchoClient(s.client).Nothing(t.Context()); err != nil {
					t.Fatal(err) // behind its answer calls share a connection
				}
				release := sync.OnceFunc(held.begin())
				defer release()
				if err := watch(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // the call before has its answer before its place is free
				ended := make(chan error, calls)
				for range calls {
					go func() { ended <- testservice.NewEchoClient(s.client).Nothing(context.Background()) }()
				}
				synctest.Wait()
				for range 2 {
					wantOverLimit(t, watch(t.Context(), s), "limit of the server: too many for their latency (limit 3)")
				}
				if tried := trial.Show(time.Now()); tried.Refused != 2 || tried.Limits.Adaptive.Running != calls {
					t.Errorf("on trial: %v, %+v", tried, tried.Limits.Adaptive)
				}
				release()
				for range calls {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
				synctest.Wait()
				if err := watch(t.Context(), s); err != nil {
					t.Errorf("when all calls have ended: %v", err)
				}
			})
		})
	}
}
