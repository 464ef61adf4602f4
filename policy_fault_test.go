package fulmar_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// TestPolicy_CallersWithoutTimeSayNothing of a target that nobody has asked: its breaker
// stays closed.
func TestPolicy_CallersWithoutTimeSayNothing(t *testing.T) {
	config := fulmar.ClientConfig{}
	config.Policy.TargetBreaker = policy.Breaker{FailurePercent: 50, MinCalls: 10}
	config.Policy.Breaker = policy.Breaker{FailurePercent: 50, MinCalls: 10}
	for _, servers := range []int{1, 2} {
		withSeveral(t, servers, config, func(s *several) {
			stub, _ := whoServes()
			s.serve(stub, s.addresses...)
			over, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
			defer cancel()
			for range 40 {
				_, first := s.api.Add(over, 1, 2)
				_, second := s.api.Add(context.Background(), 1, 2, fulmar.Timeout(0))
				for _, err := range []error{first, second} {
					if fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
						t.Fatal(err)
					}
				}
			}
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPolicy_CallsWithoutAListSayNothing to breakers, nor do streams, whether no list has come
// within their time or one that is empty: they have asked nobody.
func TestPolicy_CallsWithoutAListSayNothing(t *testing.T) {
	for name, set := range map[string]func(document *policy.Client, breaker policy.Breaker){
		"target": func(document *policy.Client, breaker policy.Breaker) { document.TargetBreaker = breaker },
		"method": func(document *policy.Client, breaker policy.Breaker) { document.Breaker = breaker },
	} {
		t.Run(name, func(t *testing.T) {
			config := fulmar.ClientConfig{WaitForReady: true}
			set(&config.Policy, policy.Breaker{FailurePercent: 50, MinCalls: 10})
			withLists(t, 2, config, func(s *several, p *pushes) {
				stub, _ := whoServes()
				s.serveAny(func(registrar fulmar.Registrar) {
					testservice.RegisterEchoServer(registrar, stub)
					testservice.RegisterFeedServer(registrar, &feed{})
				}, s.addresses...)
				feeds := testservice.NewFeedClient(s.client)
				fail := func(want fulmar.Code) {
					t.Helper()
					for range 20 {
						_, call := s.api.Add(context.Background(), 1, 2, fulmar.Timeout(50*time.Millisecond))
						_, stream := feeds.List(context.Background(), &testservice.Item{}, fulmar.Timeout(50*time.Millisecond))
						for _, err := range []error{call, stream} {
							if e := asError(t, err); e.Code() != want || e.Phase() != fulmar.PhaseResolve {
								t.Errorf("%v, want the code %v", err, want)
								return
							}
						}
					}
				}
				fail(fulmar.Unavailable)
				p.push()
				fail(fulmar.DeadlineExceeded)
				p.push(s.addresses...)
				if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
					t.Error(err)
				}
				if _, err := feeds.List(context.Background(), &testservice.Item{}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestPolicy_CallsWithoutAnAnswerInTimeCount for the breaker, other than those.
func TestPolicy_CallsWithoutAnAnswerInTimeCount(t *testing.T) {
	config := fulmar.ClientConfig{Timeout: 10 * time.Millisecond}
	config.Policy.TargetBreaker = policy.Breaker{FailurePercent: 50, MinCalls: 10}
	withSeveral(t, 1, config, func(s *several) {
		stub, _ := slowAt(s.addresses[0], time.Second)
		s.serve(stub, s.addresses...)
		for range 10 {
			if _, err := s.api.Add(context.Background(), 1, 2); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
				t.Fatal(err)
			}
		}
		if _, err := s.api.Add(context.Background(), 1, 2); fulmar.CodeOf(err) != fulmar.Unavailable {
			t.Error(err)
		}
	})
}

// TestPolicy_WaitingForReadyIsOneCall for breakers, trials and explanations, however often it
// looks for a connection.
func TestPolicy_WaitingForReadyIsOneCall(t *testing.T) {
	config := fulmar.ClientConfig{WaitForReady: true, Timeout: 10 * time.Minute}
	config.Policy.TargetBreaker = policy.Breaker{FailurePercent: 50, MinCalls: 10}
	withSeveral(t, 2, config, func(s *several) {
		trial, err := policy.NewTrial(policy.Client{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.client.Try(trial)
		var unary, stream policy.Explanation
		opened := make(chan error, 2)
		go func() {
			_, err := testservice.NewFeedClient(s.client).List(s.t.Context(), &testservice.Item{}, fulmar.Explain(&stream))
			opened <- err
		}()
		go func() {
			_, err := s.api.Add(context.Background(), 1, 2, fulmar.Explain(&unary))
			opened <- err
		}()
		time.Sleep(3 * time.Minute)
		stub, _ := whoServes()
		s.serveAny(func(registrar fulmar.Registrar) {
			testservice.RegisterEchoServer(registrar, stub)
			testservice.RegisterFeedServer(registrar, &feed{})
		}, s.addresses...)
		for range 2 {
			if err := <-opened; err != nil {
				t.Error(err)
			}
		}
		for name, e := range map[string]*policy.Explanation{"call": &unary, "stream": &stream} {
			if e.Len() < 1 || e.Len() > 2 || e.Waits < 100 || e.At(e.Len()-1).Code != 0 {
				t.Errorf("%s: %v", name, e)
			}
		}
		if told := trial.Show(); told.Calls != 2 || told.Failures > 4 {
			t.Errorf("the trial was told of %+v", told)
		}
	})
}

// TestInstances_WhatIsNotAnsweredHidesNothing: calls that nobody answers, and streams that
// open, do not keep a server that fails from being left alone. Streams that fail eject it.
func TestInstances_WhatIsNotAnsweredHidesNothing(t *testing.T) {
	broken := fulmar.NewError(fulmar.Unavailable, "broken")
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.GRPC} {
		for _, beside := range []string{"nothing", "oneway", "streams", "only streams"} {
			if protocol == fulmar.GRPC && beside == "oneway" {
				continue // there they are answered
			}
			t.Run(fmt.Sprintf("%v %s", protocol, beside), func(t *testing.T) {
				config := fulmar.ClientConfig{Protocol: protocol}
				config.Policy.Balancing.Method = "round_robin"
				withSeveral(t, 3, config, func(s *several) {
					for i, address := range s.addresses {
						stub := &testservice.Stub{
							OnNotify: func(context.Context, string) error { return nil },
							OnAdd:    func(context.Context, int32, int32) (int32, error) { return 3, nil },
						}
						service := &feed{swap: func(fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error { return nil }}
						if i == 0 {
							stub.OnAdd = func(context.Context, int32, int32) (int32, error) { return 0, broken }
							service.swap = func(fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error { return broken }
						}
						s.serveAny(func(registrar fulmar.Registrar) {
							testservice.RegisterEchoServer(registrar, stub)
							testservice.RegisterFeedServer(registrar, service)
						}, address)
					}
					failed := 0
					for range 60 {
						if beside != "only streams" {
							if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
								failed++
							}
						}
						for range 3 {
							switch beside {
							case "oneway":
								if err := s.api.Notify(context.Background(), "x"); err != nil {
									t.Fatal(err)
								}
							case "streams", "only streams":
								swap, err := testservice.NewFeedClient(s.client).Swap(context.Background())
								if err == nil {
									_, err = swap.Recv()
								}
								if err != io.EOF {
									failed++
								}
							}
						}
					}
					if failed > 20 || s.client.Stats().Ejected != 1 {
						t.Errorf("%d failed, %d are ejected", failed, s.client.Stats().Ejected)
					}
				})
			})
		}
	}
}

// TestInstances_StreamsThatAreOpenCount as calls in flight, and those that their callers or
// their deadlines end are no fault of the server.
func TestInstances_StreamsThatAreOpenCount(t *testing.T) {
	config := fulmar.ClientConfig{}
	config.Policy.Balancing.Method = "least_requests"
	withSeveral(t, 2, config, func(s *several) {
		stub, count := whoServes()
		s.serveAny(func(registrar fulmar.Registrar) {
			testservice.RegisterEchoServer(registrar, stub)
			testservice.RegisterFeedServer(registrar, lasting())
		}, s.addresses...)
		api := testservice.NewFeedClient(s.client)
		var where policy.Explanation
		list, err := api.List(s.t.Context(), &testservice.Item{}, fulmar.Explain(&where))
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				t.Fatal(err)
			}
		}
		if calls := count(); len(calls) != 1 || calls[where.At(0).Instance] != 0 {
			t.Errorf("calls went to %v, the stream to %s", calls, where.At(0).Instance)
		}
		list.Cancel()
		for range 40 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			list, err := api.List(ctx, &testservice.Item{})
			for err == nil {
				_, err = list.Recv()
			}
			cancel()
			if fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
				t.Fatal(err)
			}
		}
		if n := s.client.Stats().Ejected; n != 0 {
			t.Errorf("%d are ejected", n)
		}
		s.add(160)
		if calls := count(); calls[s.addresses[0]] == 0 || calls[s.addresses[1]] == 0 {
			t.Errorf("%v", calls)
		}
	})
}

// TestPolicy_BehindAnAttemptThatRan an error does not say that nothing was executed, whatever
// the last attempt says.
func TestPolicy_BehindAnAttemptThatRan(t *testing.T) {
	for name, config := range map[string]fulmar.ClientConfig{
		"in turn": retries(policy.Retry{Attempts: 2, BackoffMin: -1}), "hedged": hedges(policy.Retry{Attempts: 2, BackoffMin: -1}, 2),
	} {
		t.Run(name, func(t *testing.T) {
			withSeveral(t, 2, config, func(s *several) {
				var count atomic.Int64
				s.serve(&testservice.Stub{OnAdd: func(context.Context, int32, int32) (int32, error) {
					count.Add(1)
					return 0, fulmar.NewError(fulmar.Unavailable, "it ran")
				}}, s.addresses[0])
				last := 0
				for range 40 {
					count.Store(0)
					_, err := s.api.Add(context.Background(), 1, 2)
					e := asError(t, err)
					if ran := count.Load() > 0; ran && e.Executed() == fulmar.ExecutedNo {
						t.Errorf("it ran, and %v", err)
					}
					if e.Address() == s.addresses[1] && count.Load() > 0 {
						last++
					}
				}
				if last == 0 {
					t.Error("no call ended at the server that refuses")
				}
			})
		})
	}
}

// TestPolicy_RetryIfNeedsIdempotent: code of the user cannot make a call run twice that must
// not.
func TestPolicy_RetryIfNeedsIdempotent(t *testing.T) {
	asked := 0
	config := fulmar.ClientConfig{RetryIf: func(fulmar.Unary, error) bool { asked++; return true }}
	config.Policy.Retry = policy.Retry{Attempts: 3, BackoffMin: -1}
	withSeveral(t, 2, config, func(s *several) {
		stub, count := failingCalls(fulmar.Internal, 1)
		s.serve(stub, s.addresses...)
		for range 2 {
			_, _ = s.api.Add(context.Background(), 1, 2)
		}
		if count.Load() != 2 || asked != 0 {
			t.Errorf("%d attempts of 2 calls, asked %d times", count.Load(), asked)
		}
	})
}

// TestPolicy_EachBreakerHasCodes of its own, and one that refuses takes no place of the other.
func TestPolicy_EachBreakerHasCodes(t *testing.T) {
	counts := func(code fulmar.Code) policy.Breaker {
		return policy.Breaker{FailurePercent: 50, MinCalls: 5, Pause: time.Second, Codes: policy.CodesOf(observe.Code(code))}
	}
	config := fulmar.ClientConfig{}
	config.Policy.TargetBreaker, config.Policy.Breaker = counts(fulmar.Internal), counts(fulmar.NotFound)
	withSeveral(t, 1, config, func(s *several) {
		code := fulmar.NotFound
		s.serve(&testservice.Stub{
			OnAdd:     func(context.Context, int32, int32) (int32, error) { return 0, fulmar.NewError(code, "no") },
			OnNothing: func(context.Context) error { return nil },
		}, s.addresses...)
		fail := func(calls int) (e policy.Explanation) {
			for range calls {
				_, _ = s.api.Add(context.Background(), 1, 2, fulmar.Explain(&e))
			}
			return e
		}
		if e := fail(6); e.Refused != policy.RefusedByMethodBreaker {
			t.Errorf("%v", &e)
		}
		if err := s.api.Nothing(context.Background()); err != nil {
			t.Errorf("another method: %v", err)
		}
		time.Sleep(time.Second)
		code = fulmar.Internal
		if e := fail(12); e.Refused != policy.RefusedByTargetBreaker {
			t.Errorf("%v", &e)
		}
		// The target is tried with one call at a time: one that the method's breaker refuses
		// must not be taken for it.
		time.Sleep(time.Second)
		code = fulmar.NotFound
		fail(1) // closes that of the target
		fail(12)
		if err := s.api.Nothing(context.Background()); err != nil {
			t.Errorf("another method: %v", err)
		}
	})
}

// TestPolicy_OwnFaultsCountForNoBreaker: requests that cannot be encoded, and calls that
// their callers cancel.
func TestPolicy_OwnFaultsCountForNoBreaker(t *testing.T) {
	config := fulmar.ClientConfig{MaxMessageBytes: 100}
	config.Policy.TargetBreaker = policy.Breaker{FailurePercent: 50, MinCalls: 5, Codes: policy.CodesOf(1, 2, 3, 4, 8, 13, 14)}
	withSeveral(t, 1, config, func(s *several) {
		s.serve(&testservice.Stub{OnNothing: func(context.Context) error { return nil }}, s.addresses...)
		for range 20 {
			if _, err := s.api.Echo(context.Background(), &testservice.Message{Text: strings.Repeat("x", 1000)}); fulmar.CodeOf(err) != fulmar.ResourceExhausted {
				t.Fatal(err)
			}
		}
		if err := s.api.Nothing(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// TestInstances_CanceledCallsEjectNobody, however many in a row.
func TestInstances_CanceledCallsEjectNobody(t *testing.T) {
	withSeveral(t, 2, fulmar.ClientConfig{}, func(s *several) {
		s.serve(&testservice.Stub{OnAdd: func(ctx context.Context, _, _ int32) (int32, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}}, s.addresses...)
		for range 60 {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Millisecond, cancel)
			if _, err := s.api.Add(ctx, 1, 2); fulmar.CodeOf(err) != fulmar.Canceled {
				t.Fatal(err)
			}
		}
		if n := s.client.Stats().Ejected; n != 0 {
			t.Errorf("%d are ejected", n)
		}
	})
}

// TestInstances_KeysArePersistentToo: metadata that goes on from call to call chooses the
// instance as that of one call does.
func TestInstances_KeysArePersistentToo(t *testing.T) {
	config := fulmar.ClientConfig{}
	config.Policy.Balancing.Method, config.Policy.Balancing.HashKey = "consistent_hash", "user"
	withSeveral(t, 5, config, func(s *several) {
		stub, count := whoServes()
		s.serve(stub, s.addresses...)
		transient := func(ctx context.Context, key, value string) context.Context {
			return fulmar.WithTransient(ctx, key, value)
		}
		for _, with := range []func(ctx context.Context, key, value string) context.Context{fulmar.WithPersistent, transient} {
			where := map[string]bool{}
			for user := range 20 {
				ctx := with(context.Background(), "user", fmt.Sprint(user))
				for range 5 {
					if _, err := s.api.Add(ctx, 1, 2); err != nil {
						t.Fatal(err)
					}
				}
				served := count()
				if len(served) != 1 {
					t.Errorf("user %d: %v", user, served)
				}
				for address := range served {
					where[address] = true
				}
			}
			if len(where) < 2 {
				t.Errorf("all users are at %v", where)
			}
		}
	})
}

// TestPolicy_AttemptsEndWithTheirCall: one that has a timeout of its own ends when the caller
// gives up, in turn and hedged.
func TestPolicy_AttemptsEndWithTheirCall(t *testing.T) {
	for _, config := range []fulmar.ClientConfig{retries(policy.Retry{AttemptTimeout: time.Minute}), hedges(policy.Retry{AttemptTimeout: time.Minute}, 2)} {
		config.Timeout = time.Hour
		withSeveral(t, 2, config, func(s *several) {
			s.serve(&testservice.Stub{OnAdd: func(ctx context.Context, _, _ int32) (int32, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			}}, s.addresses...)
			canceled, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Second, cancel)
			late, stop := context.WithTimeout(context.Background(), time.Second)
			defer stop()
			for _, ctx := range []context.Context{canceled, late} {
				began := time.Now()
				_, err := s.api.Add(ctx, 1, 2)
				if code := fulmar.CodeOf(err); time.Since(began) > time.Second || code != fulmar.Canceled && code != fulmar.DeadlineExceeded {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			}
		})
	}
}
