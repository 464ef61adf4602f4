package fulmar_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// firstHangs is a stub whose first call answers when it is canceled, and the others as
// answer says. count is how many calls it has had.
func firstHangs(answer func(ctx context.Context, left, right int32) (int32, error)) (stub *testservice.Stub, count *atomic.Int64) {
	count = new(atomic.Int64)
	return &testservice.Stub{OnAdd: func(ctx context.Context, left, right int32) (int32, error) {
		if count.Add(1) == 1 {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return answer(ctx, left, right)
	}}, count
}

// hedges is a configuration for calls of which another attempt begins each 10 ms.
func hedges(retry policy.Retry, beside int) fulmar.ClientConfig {
	config := retries(retry)
	config.Timeout = 5 * time.Second
	config.Policy.Hedge = policy.Hedge{After: 10 * time.Millisecond, Attempts: beside}
	return config
}

// TestPolicy_HedgesAreBounded: however long an attempt hangs, there are as many others as
// policies say.
func TestPolicy_HedgesAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		retry         policy.Retry
		beside        int
		without       bool // room in the budget
		answer        error
		pushBack      string
		most          int64
		code          fulmar.Code
		least, atMost time.Duration
	}{
		"as many as attempts":     {retry: policy.Retry{Attempts: 4, BackoffMin: -1}, beside: 2, answer: fulmar.NewError(fulmar.Unavailable, "no"), most: 4, code: fulmar.DeadlineExceeded, least: 5 * time.Second},
		"as many as beside":       {retry: policy.Retry{Attempts: 2, BackoffMin: -1}, beside: 3, answer: fulmar.NewError(fulmar.Unavailable, "no"), most: 3, code: fulmar.DeadlineExceeded, least: 5 * time.Second},
		"an answer that is final": {retry: policy.Retry{Attempts: 4}, beside: 2, answer: fulmar.NewError(fulmar.NotFound, "no"), most: 2, code: fulmar.NotFound, atMost: 20 * time.Millisecond},
		"the server says no":      {retry: policy.Retry{Attempts: 9, BackoffMin: -1}, beside: 3, answer: fulmar.NewError(fulmar.Unavailable, "no"), pushBack: "-1", most: 2, code: fulmar.DeadlineExceeded, least: 5 * time.Second},
		"the budget is empty":     {retry: policy.Retry{Attempts: 9}, beside: 3, without: true, most: 1, code: fulmar.DeadlineExceeded, least: 5 * time.Second},
		"the first answer counts": {retry: policy.Retry{Attempts: 9}, beside: 3, most: 2, atMost: 20 * time.Millisecond},
		"what runs is waited for": {retry: policy.Retry{Attempts: 2, BackoffMin: -1}, beside: 2, answer: fulmar.NewError(fulmar.Internal, "no"), most: 2, code: fulmar.DeadlineExceeded, least: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			config := hedges(test.retry, test.beside)
			if test.without {
				config.Policy.RetryBudget = policy.RetryBudget{Percent: -1, PerSecond: -1}
			}
			withSeveral(t, 3, config, func(s *several) {
				stub, count := firstHangs(func(ctx context.Context, left, right int32) (int32, error) {
					if test.pushBack != "" {
						if err := fulmar.SetReplyMetadata(ctx, "grpc-retry-pushback-ms", test.pushBack); err != nil {
							return 0, err
						}
					}
					return left + right, test.answer
				})
				s.serve(stub, s.addresses...)
				began := time.Now()
				_, err := s.api.Add(context.Background(), 1, 2)
				took := time.Since(began)
				if fulmar.CodeOf(err) != test.code || count.Load() != test.most || took < test.least || test.atMost > 0 && took > test.atMost {
					t.Errorf("%v after %v and %d attempts, want %v and %d", err, took, count.Load(), test.code, test.most)
				}
			})
		})
	}
}

// TestPolicy_HedgesWaitToTryAgain: a failed attempt is followed by one behind its back-off,
// and who gives up meanwhile gets what there is.
func TestPolicy_HedgesWaitToTryAgain(t *testing.T) {
	config := hedges(policy.Retry{Attempts: 3, BackoffMin: time.Second, BackoffMax: time.Second}, 2)
	config.Policy.Hedge.After = time.Minute
	config.Timeout = time.Hour
	withSeveral(t, 2, config, func(s *several) {
		s.serve(&testservice.Stub{OnAdd: func(context.Context, int32, int32) (int32, error) {
			return 0, fulmar.NewError(fulmar.Unavailable, "no")
		}}, s.addresses...)
		for range 20 {
			var e policy.Explanation
			began := time.Now()
			_, err := s.api.Add(context.Background(), 1, 2, fulmar.Explain(&e))
			waited := e.At(0).Decision.Delay + e.At(1).Decision.Delay
			if took := time.Since(began); fulmar.CodeOf(err) != fulmar.Unavailable || e.Len() != 3 || took < waited || took > waited+10*time.Millisecond {
				t.Errorf("%v after %v: %v", err, took, &e)
			}
		}
	})
	config.RetryIf = func(fulmar.Unary, error) bool { return true }
	config.Policy.Retry.BackoffMin, config.Policy.Retry.BackoffMax = 20*time.Second, 20*time.Second
	withSeveral(t, 2, config, func(s *several) {
		s.serve(&testservice.Stub{OnAdd: func(_ context.Context, left, right int32) (int32, error) { return left + right, nil }}, s.addresses...)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Millisecond, cancel)
		if sum, err := s.api.Add(ctx, 1, 2); sum != 3 || err != nil {
			t.Errorf("%d, %v", sum, err)
		}
	})
}

// TestPolicy_HedgesThatWaitAreAttempts: an attempt that a server has asked to come later counts
// from when it was granted, begins no earlier, and the last attempt of a call waits for it.
func TestPolicy_HedgesThatWaitAreAttempts(t *testing.T) {
	config := hedges(policy.Retry{Attempts: 3, BackoffMin: -1}, 2)
	withSeveral(t, 5, config, func(s *several) {
		var count atomic.Int64
		s.serve(&testservice.Stub{OnAdd: func(ctx context.Context, left, right int32) (int32, error) {
			switch count.Add(1) {
			case 1:
				time.Sleep(20 * time.Millisecond)
				if err := fulmar.SetReplyMetadata(ctx, "grpc-retry-pushback-ms", "50"); err != nil {
					t.Error(err)
				}
			case 2: // began after 10 ms
				time.Sleep(11 * time.Millisecond)
			case 3:
				return left + right, nil
			}
			return 0, fulmar.NewError(fulmar.Unavailable, "no")
		}}, s.addresses...)
		var e policy.Explanation
		began := time.Now()
		sum, err := s.api.Add(context.Background(), 1, 2, fulmar.Explain(&e))
		if took := time.Since(began); err != nil || sum != 3 || count.Load() != 3 || took != 70*time.Millisecond {
			t.Errorf("%d, %v after %v, %d attempts: %v", sum, err, took, count.Load(), &e)
		}
	})
}

// TestPolicy_HedgesThatWaitAreGivenUp: when a server says that nothing shall be tried again, or the
// caller has gone, an attempt that waits for its turn does not begin, and the call does not wait.
func TestPolicy_HedgesThatWaitAreGivenUp(t *testing.T) {
	pushes := func(first, second string) *testservice.Stub {
		var count atomic.Int64
		return &testservice.Stub{OnAdd: func(ctx context.Context, _, _ int32) (int32, error) {
			n, push := count.Add(1), first
			if time.Sleep(20 * time.Millisecond); n == 2 {
				push = second
			}
			if err := fulmar.SetReplyMetadata(ctx, "grpc-retry-pushback-ms", push); err != nil {
				t.Error(err)
			}
			return 0, fulmar.NewError(fulmar.Unavailable, "no")
		}}
	}
	for name, c := range map[string]struct {
		first, second   string
		attempts        int
		timeout, longer time.Duration
	}{
		"a server says no":      {"3000", "-1", 4, 10 * time.Second, 30 * time.Millisecond},
		"the first says no":     {"-1", "50", 9, 10 * time.Second, 30 * time.Millisecond},
		"two wait":              {"3000", "1000", 4, 10 * time.Second, 3040 * time.Millisecond},
		"its time ends earlier": {"3000", "1000", 4, 500 * time.Millisecond, 60 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			config := hedges(policy.Retry{Attempts: c.attempts, BackoffMin: -1}, 2)
			config.Timeout = c.timeout
			withSeveral(t, 5, config, func(s *several) {
				s.serve(pushes(c.first, c.second), s.addresses...)
				began := time.Now()
				_, err := s.api.Add(context.Background(), 1, 2)
				if took := time.Since(began); fulmar.CodeOf(err) != fulmar.Unavailable || took != c.longer {
					t.Errorf("%v after %v, want %v", err, took, c.longer)
				}
			})
		})
	}
	config := hedges(policy.Retry{Attempts: 4, BackoffMin: -1}, 2)
	withSeveral(t, 5, config, func(s *several) {
		s.serve(pushes("3000", "1000"), s.addresses...)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(25*time.Millisecond, cancel) // one runs, another one waits
		began := time.Now()
		_, err := s.api.Add(ctx, 1, 2)
		if took := time.Since(began); err == nil || took > 30*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// TestPolicy_NoHedgesBehindTheEnd: when the time of a call is over just as another attempt would
// begin, none does.
func TestPolicy_NoHedgesBehindTheEnd(t *testing.T) {
	config := hedges(policy.Retry{}, 5)
	config.Timeout = 20 * time.Millisecond
	config.Policy.RetryBudget.Percent = 100
	withSeveral(t, 3, config, func(s *several) {
		s.serve(&testservice.Stub{OnAdd: func(ctx context.Context, _, _ int32) (int32, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}}, s.addresses...)
		for range 50 {
			var e policy.Explanation
			if _, err := s.api.Add(context.Background(), 1, 2, fulmar.Explain(&e)); fulmar.CodeOf(err) != fulmar.DeadlineExceeded || e.Len() != 2 {
				s.t.Errorf("%v: %v", err, &e)
				return
			}
		}
	})
}

// TestPolicy_NobodyIsLeftForAnotherAttempt: a call whose list of instances becomes empty
// meanwhile ends as its last attempt did, and pays for no attempt beside it.
func TestPolicy_NobodyIsLeftForAnotherAttempt(t *testing.T) {
	const saved = limits.RetriesSaved
	for name, test := range map[string]struct {
		after, backoff time.Duration
		answer         error
	}{
		"in turn":                     {after: -1, backoff: -1, answer: fulmar.NewError(fulmar.Unavailable, "the answer")},
		"in turn, an answer":          {after: -1, backoff: -1},
		"beside others":               {after: 2 * limits.EmptyListPatience, backoff: -1, answer: fulmar.NewError(fulmar.Unavailable, "the answer")},
		"beside others, behind pause": {after: 2 * limits.EmptyListPatience, backoff: time.Second, answer: fulmar.NewError(fulmar.Unavailable, "the answer")},
		"beside others, an answer":    {after: 2 * limits.EmptyListPatience, backoff: -1},
	} {
		t.Run(name, func(t *testing.T) {
			config := retries(policy.Retry{Attempts: 3, BackoffMin: test.backoff, BackoffMax: test.backoff})
			config.Timeout, config.RetryIf = time.Hour, func(fulmar.Unary, error) bool { return true }
			config.Policy.Hedge = policy.Hedge{After: test.after, Attempts: 2}
			config.Policy.RetryBudget = policy.RetryBudget{PerSecond: -1}
			withLists(t, 1, config, func(s *several, p *pushes) {
				left := -1
				s.serve(&testservice.Stub{OnAdd: func(context.Context, int32, int32) (int32, error) {
					time.Sleep(5 * limits.EmptyListPatience)
					left = s.client.Stats().Policy.RetriesLeft
					return 3, test.answer
				}}, s.addresses...)
				p.push(s.addresses...)
				p.push()
				var e policy.Explanation
				sum, err := s.api.Add(context.Background(), 1, 2, fulmar.Explain(&e))
				if left != saved || e.Len() != 1 || !e.At(0).Decision.Again {
					t.Errorf("%d of %d left in the budget before its first attempt had ended: %v", left, saved, &e)
				}
				if test.answer == nil {
					if err != nil || sum != 3 {
						t.Errorf("%d, %v", sum, err)
					}
					return
				}
				if e := asError(t, err); !strings.Contains(e.Error(), "the answer") || e.Address() != s.addresses[0] {
					t.Errorf("%v at %q", e, e.Address())
				}
			})
		})
	}
}

// TestPolicy_NoHedgesInAChain: a handler that serves an attempt which is not the first one
// does not multiply it.
func TestPolicy_NoHedgesInAChain(t *testing.T) {
	for _, ignores := range []bool{false, true} {
		inner := hedges(policy.Retry{IgnoreChain: ignores}, 2)
		withSeveral(t, 2, inner, func(s *several) {
			var count atomic.Int64
			s.serve(&testservice.Stub{OnAdd: func(ctx context.Context, left, right int32) (int32, error) {
				count.Add(1)
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
				return left + right, ctx.Err()
			}}, s.addresses...)
			middle, err := s.network.Listen("middle:1")
			if err != nil {
				t.Fatal(err)
			}
			server, err := fulmar.NewServer(fulmar.ServerConfig{Listener: middle})
			if err != nil {
				t.Fatal(err)
			}
			testservice.RegisterEchoServer(server, &testservice.Stub{OnAdd: func(ctx context.Context, left, right int32) (int32, error) { return s.api.Add(ctx, left, right) }})
			served := make(chan struct{})
			go func() { defer close(served); _ = server.Serve(context.Background()) }()
			outer, err := fulmar.NewClient(fulmar.ClientConfig{Target: "middle:1", Dial: s.network.Dial})
			if err != nil {
				t.Fatal(err)
			}
			api := testservice.NewEchoClient(outer)
			for attempt, want := range map[string]int64{"": 2, "1": map[bool]int64{false: 1, true: 2}[ignores]} {
				ctx := context.Background()
				if attempt != "" {
					ctx = fulmar.WithPersistent(ctx, "RetryReq", attempt)
				}
				count.Store(0)
				if _, err := api.Add(ctx, 1, 2); err != nil || count.Load() != want {
					t.Errorf("behind attempt %q, ignored: %v: %d calls, %v", attempt, ignores, count.Load(), err)
				}
			}
			if err := errors.Join(outer.Close(), server.Close()); err != nil {
				t.Error(err)
			}
			<-served
		})
	}
}

// TestExplain_HedgesThatLost are canceled, and not taken for answers.
func TestExplain_HedgesThatLost(t *testing.T) {
	withSeveral(t, 2, hedges(policy.Retry{}, 2), func(s *several) {
		stub, _ := firstHangs(func(_ context.Context, left, right int32) (int32, error) { return left + right, nil })
		s.serve(stub, s.addresses...)
		var e policy.Explanation
		if _, err := s.api.Add(context.Background(), 1, 2, fulmar.Explain(&e)); err != nil {
			t.Fatal(err)
		}
		if e.Len() != 2 || e.At(0).Code != observe.Code(fulmar.Canceled) || e.At(0).Duration < 10*time.Millisecond || e.At(1).Code != 0 || !e.At(1).Hedged {
			t.Errorf("%v", &e)
		}
	})
}

// TestPolicy_OnewayCallsAreNotHedged: nobody hears whether they arrived.
func TestPolicy_OnewayCallsAreNotHedged(t *testing.T) {
	config := hedges(policy.Retry{}, 2)
	config.Protocol = fulmar.TTHeader // gRPC has no such calls
	withSeveral(t, 2, config, func(s *several) {
		s.serve(&testservice.Stub{OnNotify: func(context.Context, string) error { return nil }}, s.addresses...)
		var e policy.Explanation
		if err := s.api.Notify(context.Background(), "x", fulmar.Explain(&e)); err != nil || e.Len() != 1 {
			t.Errorf("%v, %v", err, &e)
		}
	})
}
