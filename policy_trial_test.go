package fulmar_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// everyLimit has one of each kind.
func everyLimit() policy.Server {
	return policy.Server{
		Limit: policy.Limit{PerSecond: 50, Burst: 8}, CallerLimit: policy.Limit{Running: 6},
		Methods:  map[string]policy.Limit{"Echo": {Running: 5}, "Echo.nothing": {Running: 4}, "Echo.add": {PerSecond: 10, Burst: 2}},
		Adaptive: policy.Adaptive{Enabled: true},
	}
}

// TestServer_Try has limits on trial: they are told of everything and change nothing. Those
// that hold differ from themselves in nothing, and refuse as many calls.
func TestServer_Try(t *testing.T) {
	for name, holds := range map[string]policy.Server{"none holds": {}, "the same hold": everyLimit()} {
		t.Run(name, func(t *testing.T) {
			var held holder
			stub := held.stub()
			stub.OnAdd = func(_ context.Context, left, right int32) (int32, error) { return left + right, nil }
			config := fulmar.ServerConfig{Policy: holds}
			simulate(t, simnet.Config{}, config, fulmar.ClientConfig{Timeout: -1}, stub, func(s *simulation) {
				trial, err := policy.NewServerTrial(everyLimit(), time.Now())
				if err != nil {
					t.Fatal(err)
				}
				s.share()
				s.server.Try(trial)
				calls, refused := burst(s, &held)
				state := trial.Show(time.Now())
				t.Log(state)
				if state.Calls != calls || state.RefusedLive != refused || state.Refused == 0 || state.Limits.Limit.Running != 0 {
					t.Errorf("of %d calls, of which %d were refused, it knows %+v", calls, refused, state)
				}
				if name == "none holds" && (refused != 0 || state.Differs != state.Refused) || name != "none holds" && (state.Refused != refused || state.Differs != 0) {
					t.Errorf("%d were refused, %v", refused, state)
				}
				s.server.Try(nil)
				burst(s, &held)
				if after := trial.Show(time.Now()); after.Calls != state.Calls {
					t.Errorf("it was told of %d calls behind its end", after.Calls-state.Calls)
				}
			})
		})
	}
}

// burst makes calls of two methods, some of them at once, and returns how many there were
// and how many were refused.
func burst(s *simulation, held *holder) (calls, refused uint64) {
	var mu sync.Mutex
	count := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if calls++; isRefusal(err) {
			refused++
		}
	}
	for range 3 {
		release := held.begin()
		var all sync.WaitGroup
		for range 7 {
			all.Go(func() { count(s.api.Nothing(context.Background())) })
			synctest.Wait()
		}
		for range 5 {
			_, err := s.api.Add(context.Background(), 1, 2)
			count(err)
		}
		release()
		all.Wait()
		synctest.Wait()
		time.Sleep(300 * time.Millisecond)
	}
	return calls, refused
}

// TestServer_TryStreams: streams count while they last.
func TestServer_TryStreams(t *testing.T) {
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.GRPC} {
		t.Run(protocol.String(), func(t *testing.T) {
			trial, err := policy.NewServerTrial(policy.Server{Limit: policy.Limit{Running: 2}}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			r := serveAny(t, fulmar.ServerConfig{}, func(registrar fulmar.Registrar) { testservice.RegisterFeedServer(registrar, waitingFeed{}) })
			r.server.Try(trial)
			api := testservice.NewFeedClient(dialAny(t, fulmar.ClientConfig{Target: r.address, Protocol: protocol}))
			ctx, cancel := context.WithCancel(context.Background())
			for range 3 {
				stream, err := api.List(ctx, &testservice.Item{})
				if err == nil {
					_, err = stream.Recv()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if state := trial.Show(time.Now()); state.Calls != 3 || state.Refused != 1 || state.Limits.Limit.Running != 2 {
				t.Errorf("%+v", state)
			}
			cancel()
			eventually(t, func() bool { return trial.Show(time.Now()).Limits.Limit.Running == 0 })
		})
	}
}

// TestServer_TryLearnsFromCallsThatRan: to an adaptive limit on trial it says nothing how long
// streams last, nor how long calls waited that the server then refused.
func TestServer_TryLearnsFromCallsThatRan(t *testing.T) {
	const took, times = 50 * time.Millisecond, 2 * limits.AdaptiveCalls
	for name, test := range map[string]struct {
		call   func(t *testing.T, s *streaming)
		lately time.Duration
	}{
		"calls": {func(t *testing.T, s *streaming) {
			if _, err := testservice.NewEchoClient(s.client).Add(context.Background(), 1, 2); err != nil {
				t.Error(err)
			}
		}, took},
		"streams": {func(t *testing.T, s *streaming) {
			list, err := s.api.List(t.Context(), &testservice.Item{})
			if err != nil {
				t.Fatal(err)
			}
			elapse(took)
			list.Cancel()
			synctest.Wait()
		}, 0},
		"refused calls": {func(t *testing.T, s *streaming) {
			if err := testservice.NewEchoClient(s.client).Nothing(context.Background()); !isRefusal(err) {
				t.Errorf("%v, want a refusal", err)
			}
		}, 0},
	} {
		for _, way := range directWays {
			t.Run(name+" "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var held holder
					stub := held.stub()
					stub.OnAdd = func(context.Context, int32, int32) (int32, error) { elapse(took); return 3, nil }
					config := fulmar.ServerConfig{MaxRunningCalls: 1, MaxQueueTime: took}
					s := newStreamingOf(t, way, func(server *fulmar.Server) {
						testservice.RegisterEchoServer(server, stub)
						testservice.RegisterFeedServer(server, lasting())
					}, config, fulmar.ClientConfig{Timeout: -1})
					trial, err := policy.NewServerTrial(policy.Server{Adaptive: policy.Adaptive{Enabled: true}}, time.Now())
					if err != nil {
						t.Fatal(err)
					}
					if release := held.begin(); name == "refused calls" {
						ended := make(chan error, 1)
						go func() { ended <- testservice.NewEchoClient(s.client).Nothing(context.Background()) }()
						synctest.Wait()
						defer func() {
							release()
							if err := <-ended; err != nil {
								t.Error(err)
							}
							synctest.Wait() // until the server knows that the answer has left
						}()
					}
					s.server.Try(trial)
					for range times {
						test.call(t, s)
					}
					synctest.Wait()
					state := trial.Show(time.Now())
					if state.Calls != times || state.Refused != 0 || state.Limits.Adaptive.Running != 0 || state.Limits.Adaptive.Lately.Round(time.Millisecond) != test.lately {
						t.Errorf("%v, and %+v; want calls to have taken %v", state, state.Limits.Adaptive, test.lately)
					}
				})
			})
		}
	}
}

// TestClient_TryHandsProbesBack: a call that a breaker on trial would have let through to find
// out whether its target works, but that the policy that holds refuses, finds nothing out. The
// next one does.
func TestClient_TryHandsProbesBack(t *testing.T) {
	const pause, longer = time.Second, 3 * time.Second // both shorter than a probe may take
	breaker := func(pause time.Duration) policy.Breaker {
		return policy.Breaker{FailurePercent: 50, MinCalls: 10, Pause: pause}
	}
	target := func(pause time.Duration) policy.Client { return policy.Client{TargetBreaker: breaker(pause)} }
	method := func(pause time.Duration) policy.Client {
		return policy.Client{Method: policy.Method{Breaker: breaker(pause)}}
	}
	both := func(pause time.Duration) policy.Client {
		return policy.Client{TargetBreaker: breaker(pause), Method: policy.Method{Breaker: breaker(pause)}}
	}
	for name, test := range map[string]struct{ holds, tried policy.Client }{
		"target":                   {target(longer), target(pause)},
		"method":                   {method(longer), method(pause)},
		"target on trial":          {method(longer), target(pause)},
		"method on trial":          {target(longer), method(pause)},
		"both":                     {both(longer), both(pause)},
		"both on trial, of target": {target(longer), both(pause)},
	} {
		t.Run(name, func(t *testing.T) {
			withSeveral(t, 1, fulmar.ClientConfig{Policy: test.holds}, func(s *several) {
				stub, _ := failingCalls(fulmar.Internal, 10)
				s.serve(stub, s.addresses...)
				trial, err := policy.NewTrial(test.tried, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				s.client.Try(trial)
				call := func(times int, want fulmar.Code) {
					t.Helper()
					for range times {
						if _, err := s.api.Add(context.Background(), 1, 2); fulmar.CodeOf(err) != want {
							t.Errorf("%v, want the code %v", err, want)
						}
					}
				}
				call(10, fulmar.Internal)
				elapse(pause)
				call(5, fulmar.Unavailable)
				elapse(longer - pause)
				call(5, 0)
				want := policy.TrialState{Calls: 20, Failures: 10, RefusedLive: 5, Differs: 5}
				if got := trial.Show(); got != want {
					t.Errorf("it shows %+v, want %+v", got, want)
				}
			})
		})
	}
}

// TestClient_TryInAChain: whether the caller of a handler tries again himself is told to a
// policy on trial as it is, whether or not the one that holds ignores it.
func TestClient_TryInAChain(t *testing.T) {
	for name, test := range map[string]struct {
		holds, tried bool // whether it ignores the chain
		want         policy.TrialState
	}{
		"neither ignores it":    {false, false, policy.TrialState{Calls: 2, Failures: 3, Retries: 1, RetriesLive: 1}},
		"both do":               {true, true, policy.TrialState{Calls: 2, Failures: 4, Retries: 2, RetriesLive: 2}},
		"the one that holds":    {true, false, policy.TrialState{Calls: 2, Failures: 4, Retries: 1, RetriesLive: 2, Differs: 1}},
		"the one that is tried": {false, true, policy.TrialState{Calls: 2, Failures: 3, Retries: 2, RetriesLive: 1, Differs: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.GRPC} {
				stub, _ := failingCalls(fulmar.Unavailable, -1)
				retry := policy.Retry{Attempts: 2, BackoffMin: -1, IgnoreChain: test.holds}
				inner, outer := retries(retry), retries(retry)
				inner.Target, inner.Protocol = serve(t, fulmar.ServerConfig{}, stub).address, protocol
				client := dialAny(t, inner)
				retry.Idempotent, retry.IgnoreChain = true, test.tried
				trial, err := policy.NewTrial(policy.Client{Method: policy.Method{Retry: retry}}, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				client.Try(trial)
				middle := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnAdd: func(ctx context.Context, left, right int32) (int32, error) {
					_, err := testservice.NewEchoClient(client).Add(ctx, left, right)
					return 0, fulmar.Errorf(fulmar.Unavailable, "behind: %w", err)
				}})
				outer.Target, outer.Protocol = middle.address, protocol
				if _, err := dial(t, outer).Add(context.Background(), 1, 2); fulmar.CodeOf(err) != fulmar.Unavailable {
					t.Fatal(err)
				}
				if got := trial.Show(); got != test.want {
					t.Errorf("%v: it shows %+v, want %+v", protocol, got, test.want)
				}
			}
		})
	}
}

// TestExplain_NamesTheLimit of a server that has refused a call: as data where the protocol
// has a place for it, and as text.
func TestExplain_NamesTheLimit(t *testing.T) {
	rate := policy.Limit{PerSecond: 1, Burst: 1}
	one := policy.Limit{Running: 1}
	for name, test := range map[string]struct {
		config  fulmar.ServerConfig
		refused policy.Refusal
		text    string
	}{
		"rate":     {fulmar.ServerConfig{Policy: policy.Server{Methods: map[string]policy.Limit{"Echo.echo": rate}}}, policy.RefusedByRate, "limit of Echo.echo: 1 calls in a second"},
		"running":  {fulmar.ServerConfig{Policy: policy.Server{Limit: one}}, policy.RefusedByRunning, "limit of the server: too many at once (limit 1)"},
		"adaptive": {fulmar.ServerConfig{Policy: policy.Server{Adaptive: policy.Adaptive{Enabled: true, MinRunning: 1, MaxRunning: 1}}}, policy.RefusedByAdaptive, "limit of the server: too many for their latency (limit 1)"},
		"load":     {fulmar.ServerConfig{MaxCalls: 1}, policy.RefusedByLoad, "1 calls are running (limit 1)"},
	} {
		for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.GRPC, fulmar.Framed} {
			t.Run(name+" "+protocol.String(), func(t *testing.T) {
				release := make(chan struct{})
				r := serve(t, test.config, &testservice.Stub{OnEcho: func(_ context.Context, m *testservice.Message) (*testservice.Message, error) {
					<-release
					return m, nil
				}})
				api := dial(t, fulmar.ClientConfig{Target: r.address, Protocol: protocol})
				ended := make(chan error, 1)
				go func() {
					_, err := api.Echo(context.Background(), &testservice.Message{})
					ended <- err
				}()
				eventually(t, func() bool { return r.server.Stats().Calls == 1 })
				var explained policy.Explanation
				_, _ = api.Echo(context.Background(), &testservice.Message{}, fulmar.Explain(&explained))
				close(release)
				if err := <-ended; err != nil {
					t.Error(err)
				}
				refused := test.refused
				if protocol == fulmar.Framed {
					refused = policy.NotRefused // it has no place for it
				}
				if explained.Len() != 1 || explained.At(0).Refused != refused || !strings.HasPrefix(explained.At(0).Detail, test.text) ||
					!strings.Contains(explained.String(), `: "`+test.text) {
					t.Errorf("%s", &explained)
				}
				if encoded, err := json.Marshal(&explained); err != nil || !strings.Contains(string(encoded), fmt.Sprintf(`"Refused":%d,"Detail":"%s`, refused, test.text)) {
					t.Errorf("%s, %v", encoded, err)
				}
			})
		}
	}
}

// TestClient_TryThePolicyThatHolds: it differs from itself in nothing, with what takes its
// time before a call is made, with deadlines that are the caller's, and with hedges.
func TestClient_TryThePolicyThatHolds(t *testing.T) {
	slowly := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		time.Sleep(5 * time.Millisecond)
		return next(ctx, call)
	}
	within := func(d time.Duration) func(testservice.EchoClient) error {
		return func(api testservice.EchoClient) error {
			ctx, cancel := context.WithTimeout(context.Background(), d)
			defer cancel()
			_, err := api.Add(ctx, 1, 2)
			return err
		}
	}
	option := func(d time.Duration) func(testservice.EchoClient) error {
		return func(api testservice.EchoClient) error {
			_, err := api.Add(context.Background(), 1, 2, fulmar.Timeout(d))
			return err
		}
	}
	for name, test := range map[string]struct {
		call     func(testservice.EchoClient) error
		timedOut uint64
	}{
		"its own timeout":    {within(time.Hour), 10},
		"an earlier one":     {within(30 * time.Millisecond), 0},
		"an option":          {option(30 * time.Millisecond), 0},
		"a longer option":    {option(300 * time.Millisecond), 0},
		"no time, by option": {option(-1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			config := fulmar.ClientConfig{Interceptors: []fulmar.UnaryInterceptor{slowly}, Policy: policy.Client{
				Method: policy.Method{Timeout: 100 * time.Millisecond, Retry: policy.Retry{Idempotent: true}, Hedge: policy.Hedge{After: 20 * time.Millisecond}},
			}}
			withSeveral(t, 2, config, func(s *several) {
				s.serve(&testservice.Stub{OnAdd: func(ctx context.Context, _, _ int32) (int32, error) {
					select {
					case <-ctx.Done():
					case <-time.After(time.Second):
					}
					return 3, nil
				}}, s.addresses...)
				trial, err := policy.NewTrial(config.Policy, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				s.client.Try(trial)
				for range 10 {
					_ = test.call(s.api)
				}
				if got := trial.Show(); got.Calls != 10 || got.Differs != 0 || got.TimedOut != test.timedOut || got.TimedOutLive != test.timedOut {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}
