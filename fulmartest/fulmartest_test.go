package fulmartest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/fulmartest"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// adds registers a service that adds.
func adds(s *fulmar.Server) {
	testservice.RegisterEchoServer(s, &testservice.Stub{
		OnAdd:    func(_ context.Context, left, right int32) (int32, error) { return left + right, nil },
		OnNotify: func(context.Context, string) error { return nil },
	})
}

func add(api testservice.EchoClient, options ...fulmar.CallOption) error {
	sum, err := api.Add(context.Background(), 1, 2, options...)
	if err == nil && sum != 3 {
		err = fmt.Errorf("1 + 2 = %d", sum)
	}
	return err
}

// fakeT is a test that can fail without that this one does.
type fakeT struct {
	testing.TB
	log      []string
	failed   bool
	cleanups []func()
}

func (t *fakeT) Helper()          {}
func (t *fakeT) Failed() bool     { return t.failed }
func (t *fakeT) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *fakeT) Logf(format string, arguments ...any) {
	t.log = append(t.log, fmt.Sprintf(format, arguments...))
}

func (t *fakeT) Errorf(format string, arguments ...any) {
	t.Logf(format, arguments...)
	t.failed = true
}

// Fatalf ends the function that do runs.
func (t *fakeT) Fatalf(format string, arguments ...any) {
	t.Errorf(format, arguments...)
	panic(t)
}

// do runs f, and what it wants to be done in the end.
func (t *fakeT) do(f func(t testing.TB)) {
	defer func() {
		for _, cleanup := range slices.Backward(t.cleanups) {
			cleanup()
		}
	}()
	defer func() {
		if cause := recover(); cause != nil && cause != t {
			panic(cause)
		}
	}()
	f(t)
}

func TestNetwork_CallsWork(t *testing.T) {
	test := func(t *testing.T) {
		for _, config := range []fulmartest.Config{{}, {Seed: 1, Delay: time.Millisecond, DelayJitter: time.Millisecond, SplitPercent: 50, BufferBytes: 100}} {
			network := fulmartest.NewNetworkWith(t, config)
			server := network.Server(t, adds)
			api := testservice.NewEchoClient(network.Client(t, server))
			for range 10 {
				if err := add(api); err != nil {
					t.Error(err)
				}
			}
			if open := server.Stats().Network.Open; open != 1 {
				t.Errorf("%d connections", open)
			}
		}
	}
	t.Run("virtual time", func(t *testing.T) { synctest.Test(t, test) })
	t.Run("real time", test)
}

func TestNetwork_DelaysTakeVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := fulmartest.NewNetworkWith(t, fulmartest.Config{Delay: 100 * time.Millisecond})
		api := testservice.NewEchoClient(network.Client(t, network.Server(t, adds)))
		start := time.Now()
		if err := add(api); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 400*time.Millisecond {
			t.Errorf("connecting and a call took %v, want two round trips", took)
		}
	})
}

// TestNetwork_Faults: what a call comes to while each fault lasts, and that the next one
// succeeds when it is over.
func TestNetwork_Faults(t *testing.T) {
	const lasts = time.Second
	cases := map[string]struct {
		begin func(n *fulmartest.Network, s *fulmartest.Server, d time.Duration)
		// warm: with a connection that is there. want: of a call with 500 ms.
		warm bool
		want fulmar.Code
	}{
		"cut":                    {(*fulmartest.Network).Cut, true, fulmar.Unavailable},
		"refuse":                 {(*fulmartest.Network).Refuse, false, fulmar.Unavailable},
		"refuse, with one open":  {(*fulmartest.Network).Refuse, true, 0},
		"stall":                  {(*fulmartest.Network).Stall, true, fulmar.DeadlineExceeded},
		"stall, none open":       {(*fulmartest.Network).Stall, false, fulmar.DeadlineExceeded},
		"partition":              {(*fulmartest.Network).Partition, true, fulmar.DeadlineExceeded},
		"partition, none open":   {(*fulmartest.Network).Partition, false, fulmar.DeadlineExceeded},
		"half close, which ends": {func(n *fulmartest.Network, s *fulmartest.Server, _ time.Duration) { n.HalfClose(s) }, true, 0},
	}
	for name, test := range cases {
		for _, forever := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", forever=", forever), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					network := fulmartest.NewNetwork(t)
					server := network.Server(t, adds)
					api := testservice.NewEchoClient(network.ClientWith(t, fulmar.ClientConfig{ConnectTimeout: time.Minute}, server))
					if test.warm {
						if err := add(api); err != nil {
							t.Fatal(err)
						}
					}
					duration := lasts
					if forever {
						duration = fulmartest.Forever
					}
					test.begin(network, server, duration)
					synctest.Wait()
					if err := add(api, fulmar.Timeout(lasts/2)); fulmar.CodeOf(err) != test.want {
						t.Errorf("meanwhile: %v, want %v", err, test.want)
					}
					time.Sleep(lasts)
					if forever {
						network.Heal(server)
					}
					if err := add(api); err != nil {
						t.Errorf("afterwards: %v", err)
					}
				})
			})
		}
	}
}

// TestNetwork_FaultsReplaceEachOther: the end of the first does not end the second.
func TestNetwork_FaultsReplaceEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := fulmartest.NewNetwork(t)
		server := network.Server(t, adds)
		api := testservice.NewEchoClient(network.Client(t, server))
		network.Refuse(server, time.Second)
		network.Refuse(server, 3*time.Second)
		time.Sleep(2 * time.Second)
		if err := add(api); fulmar.CodeOf(err) != fulmar.Unavailable {
			t.Errorf("after the first: %v", err)
		}
		network.Refuse(server, 0)
		if err := add(api); err != nil {
			t.Errorf("ended: %v", err)
		}
		network.Cut(server, 0)
		synctest.Wait()
		if err := add(api); err != nil {
			t.Errorf("after a cut of no time: %v", err)
		}
	})
}

func TestNetwork_SeveralServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := fulmartest.NewNetwork(t)
		var calls [3]atomic.Int64
		var servers []*fulmartest.Server
		for i := range calls {
			servers = append(servers, network.Server(t, func(s *fulmar.Server) {
				testservice.RegisterEchoServer(s, &testservice.Stub{OnNothing: func(context.Context) error { calls[i].Add(1); return nil }})
			}))
		}
		api := testservice.NewEchoClient(network.Client(t, servers...))
		for range 300 {
			if err := api.Nothing(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		servers[0].Kill()
		// The client has to know: what it sends on a connection that breaks just then may be
		// executed, and is not tried again.
		synctest.Wait()
		before := calls[0].Load()
		for range 100 {
			if err := api.Nothing(t.Context()); err != nil {
				t.Errorf("with one server less: %v", err)
			}
		}
		if calls[0].Load() != before {
			t.Error("a server that is dead was called")
		}
		for i := range calls {
			if calls[i].Load() == 0 {
				t.Errorf("server %d got no call", i)
			}
		}
	})
}

func TestServer_Restarts(t *testing.T) {
	for name, stop := range map[string]func(*fulmartest.Server){"stop": (*fulmartest.Server).Stop, "kill": (*fulmartest.Server).Kill} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := fulmartest.NewNetwork(t)
				server := network.Server(t, adds)
				api := testservice.NewEchoClient(network.Client(t, server))
				for range 3 {
					if err := add(api); err != nil {
						t.Fatal(err)
					}
					stop(server)
					stop(server)
					synctest.Wait()
					if err := add(api); fulmar.CodeOf(err) != fulmar.Unavailable {
						t.Errorf("stopped: %v", err)
					}
					if stats := server.Stats(); !reflect.DeepEqual(stats, fulmar.ServerStats{}) {
						t.Errorf("stopped: %+v", stats)
					}
					server.Start()
					server.Start()
				}
				if err := add(api); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A server that ends before it came to serve has failed at nothing.
func TestServer_EndsRightAfterItsStart(t *testing.T) {
	network := fulmartest.NewNetwork(t)
	server := network.Server(t, func(*fulmar.Server) {})
	for range 100 {
		server.Kill()
		server.Start()
		server.Stop()
		server.Start()
	}
}

// TestServer_StopLetsCallsEnd, and Kill does not.
func TestServer_StopLetsCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := fulmartest.NewNetwork(t)
		server := network.Server(t, func(s *fulmar.Server) {
			testservice.RegisterEchoServer(s, &testservice.Stub{OnNothing: func(ctx context.Context) error {
				select {
				case <-time.After(time.Second):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}})
		})
		api := testservice.NewEchoClient(network.Client(t, server))
		result := make(chan error, 1)
		call := func() {
			go func() { result <- api.Nothing(context.Background()) }()
			synctest.Wait()
		}
		call()
		server.Stop()
		if err := <-result; err != nil {
			t.Errorf("stopped: %v", err)
		}
		server.Start()
		call()
		server.Kill()
		if err := <-result; fulmar.CodeOf(err) != fulmar.Unavailable {
			t.Errorf("killed: %v", err)
		}
	})
}

func TestServer_ObeysRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := fulmartest.NewNetwork(t)
		var handled, seen int
		config := fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{
			func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
				seen++
				return next(ctx, call)
			},
		}}
		server := network.ServerWith(t, config, func(s *fulmar.Server) {
			testservice.RegisterEchoServer(s, &testservice.Stub{
				OnAdd:     func(_ context.Context, left, right int32) (int32, error) { handled++; return left + right, nil },
				OnNothing: func(context.Context) error { return nil },
			})
		})
		api := testservice.NewEchoClient(network.Client(t, server))
		busy := fulmar.NewError(fulmar.ResourceExhausted, "busy")
		rule := server.Inject(fulmartest.Rule{Method: "Echo.add", Calls: 2, Err: busy})
		wantCode := func(what string, err error, code fulmar.Code, executed fulmar.Executed) {
			t.Helper()
			var e *fulmar.Error
			if !errors.As(err, &e) || e.Code() != code || e.Executed() != executed {
				t.Errorf("%s: %v, want %v, %v", what, err, code, executed)
			}
		}
		if err := api.Nothing(t.Context()); err != nil {
			t.Errorf("another method: %v", err)
		}
		wantCode("first", add(api), fulmar.ResourceExhausted, fulmar.ExecutedNo)
		server.Stop()
		server.Start()
		wantCode("second, after a restart", add(api), fulmar.ResourceExhausted, fulmar.ExecutedNo)
		if err := add(api); err != nil || rule.Hits() != 2 || handled != 1 {
			t.Errorf("third: %v, %d hits, %d handled", err, rule.Hits(), handled)
		}
		lost := server.Inject(fulmartest.Rule{Method: "Echo", Err: busy, After: true})
		wantCode("lost", add(api), fulmar.ResourceExhausted, fulmar.ExecutedYes)
		if handled != 2 || seen != 5 {
			t.Errorf("%d handled, %d seen", handled, seen)
		}
		server.Inject(fulmartest.Rule{Calls: 1, Err: fulmar.NewBusinessError(7, "closed", nil)})
		var business *fulmar.BusinessError
		if err := add(api); !errors.As(err, &business) || business.Status() != 7 {
			t.Errorf("the last rule comes first: %v", err)
		}
		lost.Remove()
		slow := server.Inject(fulmartest.Rule{Delay: time.Second})
		start := time.Now()
		if err := add(api); err != nil || time.Since(start) != time.Second {
			t.Errorf("delayed: %v after %v", err, time.Since(start))
		}
		// Both sides give up in the same instant; who says so is chance.
		if err := add(api, fulmar.Timeout(100*time.Millisecond)); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
			t.Errorf("delayed for too long: %v", err)
		}
		slow.Remove()
		if err := add(api); err != nil {
			t.Errorf("without rules: %v", err)
		}
	})
}

// TestNetwork_ConfigurationsOfTheUser are used, the network's and those of one.
func TestNetwork_ConfigurationsOfTheUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := fulmartest.NewNetworkWith(t, fulmartest.Config{
			Server: fulmar.ServerConfig{MaxMessageBytes: 1000},
			Client: fulmar.ClientConfig{Protocol: fulmar.Framed},
		})
		server := network.Server(t, func(s *fulmar.Server) { testservice.RegisterEchoServer(s, &testservice.Stub{}) })
		wide := network.ServerWith(t, fulmar.ServerConfig{Protocols: []fulmar.Protocol{fulmar.TTHeader}}, adds)
		long := &testservice.Message{Text: strings.Repeat("x", 2000)}
		_, err := testservice.NewEchoClient(network.Client(t, server)).Echo(t.Context(), long)
		if fulmar.CodeOf(err) != fulmar.InvalidArgument {
			t.Errorf("too long: %v", err)
		}
		if err := add(testservice.NewEchoClient(network.Client(t, wide))); fulmar.CodeOf(err) != fulmar.Unavailable {
			t.Errorf("framed, which is not allowed: %v", err)
		}
		if err := add(testservice.NewEchoClient(network.ClientWith(t, fulmar.ClientConfig{}, wide))); err != nil {
			t.Error(err)
		}
	})
}

func TestNetwork_TellsTheSeedOfTestsThatFail(t *testing.T) {
	for _, failed := range []bool{false, true} {
		fake := &fakeT{failed: failed}
		fake.do(func(t testing.TB) { fulmartest.NewNetworkWith(t, fulmartest.Config{Seed: 42}) })
		if told := strings.Contains(strings.Join(fake.log, "\n"), "the seed was 42"); told != failed {
			t.Errorf("failed %v: %q", failed, fake.log)
		}
	}
	if a, b := fulmartest.NewNetwork(t).Seed(), fulmartest.NewNetwork(t).Seed(); a == b || a == 0 {
		t.Errorf("seeds %d and %d", a, b)
	}
}

// TestServer_HandlersThatHangFailTheTest, instead of hanging it.
func TestServer_HandlersThatHangFailTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, release := &fakeT{}, make(chan struct{})
		fake.do(func(t testing.TB) {
			network := fulmartest.NewNetwork(t)
			server := network.Server(t, func(s *fulmar.Server) {
				testservice.RegisterEchoServer(s, &testservice.Stub{OnNothing: func(context.Context) error { <-release; return nil }})
			})
			_ = testservice.NewEchoClient(network.Client(t, server)).Nothing(context.Background(), fulmar.Timeout(time.Second))
		})
		if log := strings.Join(fake.log, "\n"); !fake.failed || !strings.Contains(log, "1 calls were still running") {
			t.Errorf("failed %v: %s", fake.failed, log)
		}
		close(release)
	})
}

func TestNetwork_MistakesEndTheTest(t *testing.T) {
	for want, mistake := range map[string]func(t testing.TB, n *fulmartest.Network, s *fulmartest.Server){
		"a client of no server": func(t testing.TB, n *fulmartest.Network, _ *fulmartest.Server) { n.Client(t) },
		"Target, Local and Dial of a client": func(t testing.TB, n *fulmartest.Network, s *fulmartest.Server) {
			n.ClientWith(t, fulmar.ClientConfig{Target: "a:1"}, s)
		},
		"Listener, Address and LocalOnly": func(t testing.TB, n *fulmartest.Network, _ *fulmartest.Server) {
			n.ServerWith(t, fulmar.ServerConfig{LocalOnly: true}, adds)
		},
		"not in 0 to 100": func(t testing.TB, _ *fulmartest.Network, _ *fulmartest.Server) {
			fulmartest.NewNetworkWith(t, fulmartest.Config{SplitPercent: 101})
		},
		"must not be negative: 0s, 0s, -1": func(t testing.TB, _ *fulmartest.Network, _ *fulmartest.Server) {
			fulmartest.NewNetworkWith(t, fulmartest.Config{BufferBytes: -1})
		},
		"must not be negative: -1ns": func(t testing.TB, _ *fulmartest.Network, _ *fulmartest.Server) {
			fulmartest.NewNetworkWith(t, fulmartest.Config{Delay: -1})
		},
		"on another network": func(t testing.TB, _ *fulmartest.Network, s *fulmartest.Server) {
			fulmartest.NewNetwork(t).Client(t, s)
		},
		"After needs an Err": func(_ testing.TB, _ *fulmartest.Network, s *fulmartest.Server) {
			s.Inject(fulmartest.Rule{After: true})
		},
		"a rule with Messages needs an Err": func(_ testing.TB, _ *fulmartest.Network, s *fulmartest.Server) {
			s.Inject(fulmartest.Rule{Messages: 1})
		},
		"for -1 calls": func(_ testing.TB, _ *fulmartest.Network, s *fulmartest.Server) { s.Inject(fulmartest.Rule{Calls: -1}) },
	} {
		fake := &fakeT{}
		fake.do(func(t testing.TB) {
			network := fulmartest.NewNetwork(t)
			mistake(t, network, network.Server(t, adds))
		})
		if log := strings.Join(fake.log, "\n"); !strings.Contains(log, want) {
			t.Errorf("%q, want %q", log, want)
		}
	}
}
