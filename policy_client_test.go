package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// failingCalls is a stub whose first calls fail with a code; negative: all. It counts them.
func failingCalls(code fulmar.Code, calls int64) (stub *testservice.Stub, count *atomic.Int64) {
	count = new(atomic.Int64)
	return &testservice.Stub{OnAdd: func(_ context.Context, left, right int32) (int32, error) {
		if n := count.Add(1); calls < 0 || n <= calls {
			return 0, fulmar.NewError(code, fmt.Sprintf("call %d", n))
		}
		return left + right, nil
	}}, count
}

// retries returns a policy for calls that may run more than once.
func retries(retry policy.Retry) fulmar.ClientConfig {
	retry.Idempotent = true
	return fulmar.ClientConfig{Policy: policy.Client{Method: policy.Method{Retry: retry}}}
}

func TestPolicy_Retries(t *testing.T) {
	wrong := fulmar.ClientConfig{Policy: policy.Client{Method: policy.Method{Retry: policy.Retry{Attempts: 5}}}}
	byMethod := fulmar.ClientConfig{Policy: policy.Client{Methods: map[string]policy.Method{
		"Echo": {Retry: policy.Retry{Attempts: 2}}, "Echo.add": {Retry: policy.Retry{Attempts: 4, Idempotent: true}},
	}}}
	for name, test := range map[string]struct {
		config fulmar.ClientConfig
		code   fulmar.Code
		fail   int64
		// attempts is how many there are, ok whether the call succeeds.
		attempts int64
		ok       bool
	}{
		"succeeds at the second attempt":          {retries(policy.Retry{}), fulmar.Unavailable, 1, 2, true},
		"two attempts by default":                 {retries(policy.Retry{}), fulmar.Unavailable, -1, 2, false},
		"as many as allowed":                      {retries(policy.Retry{Attempts: 5}), fulmar.Unavailable, -1, 5, false},
		"off":                                     {retries(policy.Retry{Attempts: -1}), fulmar.Unavailable, -1, 1, false},
		"not idempotent":                          {wrong, fulmar.Unavailable, -1, 1, false},
		"other codes":                             {retries(policy.Retry{Attempts: 5}), fulmar.Internal, -1, 1, false},
		"chosen codes":                            {retries(policy.Retry{Attempts: 5, Codes: policy.CodesOf(observe.Code(fulmar.Internal))}), fulmar.Internal, 2, 3, true},
		"the caller's fault":                      {retries(policy.Retry{Attempts: 5}), fulmar.InvalidArgument, -1, 1, false},
		"what is set for the method":              {byMethod, fulmar.Unavailable, 3, 4, true},
		"what is set for the method, and no more": {byMethod, fulmar.Unavailable, -1, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			withSeveral(t, 3, test.config, func(s *several) {
				stub, count := failingCalls(test.code, test.fail)
				s.serve(stub, s.addresses...)
				sum, err := s.api.Add(context.Background(), 1, 2)
				if (err == nil) != test.ok || test.ok && sum != 3 {
					t.Errorf("%d, %v", sum, err)
				}
				if n := count.Load(); n != test.attempts {
					t.Errorf("%d attempts, want %d", n, test.attempts)
				}
				if err != nil {
					if e := asError(t, err); e.Code() != test.code || e.Executed() != fulmar.ExecutedYes {
						t.Errorf("%v", err)
					}
				}
			})
		})
	}
}

// TestPolicy_RetriesGoElsewhere: to each instance once, as long as there are others.
func TestPolicy_RetriesGoElsewhere(t *testing.T) {
	for _, same := range []bool{false, true} {
		config := retries(policy.Retry{Attempts: 3, SameInstance: same, BackoffMin: -1})
		config.Policy.Ejection.FailurePercent = -1
		withSeveral(t, 3, config, func(s *several) {
			served := map[string]int{}
			s.serve(&testservice.Stub{OnAdd: func(ctx context.Context, _, _ int32) (int32, error) {
				call, _ := fulmar.CallFrom(ctx)
				served[call.Local()]++
				return 0, fulmar.NewError(fulmar.Unavailable, "not now")
			}}, s.addresses...)
			const calls = 30 // by chance they are even once in 10^19
			uneven := false
			for n := range calls {
				_, _ = s.api.Add(context.Background(), 1, 2)
				for _, address := range s.addresses {
					uneven = uneven || served[address] != n+1
				}
			}
			if uneven != same {
				t.Errorf("same instance %v: calls at each: %v", same, served)
			}
		})
	}
}

// TestPolicy_Backoff: the waits are drawn from 0 to the bound, which doubles.
func TestPolicy_Backoff(t *testing.T) {
	const least, most = 100 * time.Millisecond, 300 * time.Millisecond
	config := retries(policy.Retry{Attempts: 6, BackoffMin: least, BackoffMax: most})
	config.Timeout = time.Hour
	config.Policy.RetryBudget.PerSecond = 100_000
	var longest [6]time.Duration
	withSeveral(t, 1, config, func(s *several) {
		var last time.Time
		attempt := 0
		s.serve(&testservice.Stub{OnAdd: func(context.Context, int32, int32) (int32, error) {
			now := time.Now()
			if attempt > 0 {
				longest[attempt] = max(longest[attempt], now.Sub(last))
			}
			last = now
			attempt++
			return 0, fulmar.NewError(fulmar.Unavailable, "no")
		}}, s.addresses...)
		for range 60 {
			attempt = 0
			_, _ = s.api.Add(context.Background(), 1, 2)
			if attempt != 6 {
				t.Fatalf("%d attempts", attempt)
			}
		}
	})
	for i, bound := range []time.Duration{0, least, 2 * least, most, most, most} {
		if longest[i] > bound || longest[i] < bound*8/10 {
			t.Errorf("longest wait before attempt %d: %v, bound %v", i+1, longest[i], bound)
		}
	}
}

// TestPolicy_BudgetBoundsRetries: a target of which every call fails gets a tenth more
// calls, ten a second, and what a quiet time has saved.
func TestPolicy_BudgetBoundsRetries(t *testing.T) {
	config := retries(policy.Retry{Attempts: 3, BackoffMin: -1})
	config.Policy.Ejection.FailurePercent = -1
	withSeveral(t, 3, config, func(s *several) {
		stub, count := failingCalls(fulmar.Unavailable, -1)
		s.serve(stub, s.addresses...)
		const calls, seconds = 2000, 20
		for range calls {
			_, _ = s.api.Add(context.Background(), 1, 2)
			elapse(seconds * time.Second / calls)
		}
		if n := count.Load(); n > calls*11/10+10*seconds+100 || n < calls*11/10 {
			t.Errorf("%d attempts of %d calls in %d s", n, calls, seconds)
		}
	})
}

// elapse lets virtual time pass.
func elapse(d time.Duration) { <-time.After(d) }

func TestPolicy_BreakerOpensAndCloses(t *testing.T) {
	config := fulmar.ClientConfig{Policy: policy.Client{Method: policy.Method{
		Retry:   policy.Retry{Attempts: -1},
		Breaker: policy.Breaker{FailurePercent: 50, MinCalls: 20, Pause: 5 * time.Second},
	}}}
	withSeveral(t, 1, config, func(s *several) {
		stub, count := failingCalls(fulmar.Internal, 20)
		s.serve(stub, s.addresses...)
		for range 20 {
			if _, err := s.api.Add(context.Background(), 1, 2); fulmar.CodeOf(err) != fulmar.Internal {
				t.Fatal(err)
			}
		}
		for range 100 {
			_, err := s.api.Add(context.Background(), 1, 2)
			if e := asError(t, err); e.Code() != fulmar.Unavailable || e.Executed() != fulmar.ExecutedNo || e.Origin() != fulmar.OriginLocal ||
				!strings.Contains(err.Error(), "the breaker of Echo.add is open") {
				t.Fatal(err)
			}
		}
		if err := s.api.Nothing(context.Background()); fulmar.CodeOf(err) != fulmar.Unknown {
			t.Errorf("another method: %v", err)
		}
		if n := count.Load(); n != 20 {
			t.Errorf("%d calls came through", n)
		}
		elapse(5 * time.Second)
		for range 3 {
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				t.Fatalf("behind the pause: %v", err)
			}
		}
	})
}

// TestPolicy_AnswersDoNotOpenBreakers: declared exceptions and business errors are answers.
func TestPolicy_AnswersDoNotOpenBreakers(t *testing.T) {
	config := fulmar.ClientConfig{Policy: policy.Client{
		Method:        policy.Method{Breaker: policy.Breaker{FailurePercent: 1, MinCalls: 2}},
		TargetBreaker: policy.Breaker{FailurePercent: 1, MinCalls: 2},
	}}
	withSeveral(t, 1, config, func(s *several) {
		s.serve(&testservice.Stub{
			OnEcho: func(context.Context, *testservice.Message) (*testservice.Message, error) {
				return nil, &testservice.Refused{Reason: "sold out"}
			},
			OnAdd: func(context.Context, int32, int32) (int32, error) {
				return 0, fulmar.NewBusinessError(7, "no", nil)
			},
		}, s.addresses...)
		var refused *testservice.Refused
		var business *fulmar.BusinessError
		for range 50 {
			if _, err := s.api.Echo(context.Background(), &testservice.Message{}); !errors.As(err, &refused) {
				t.Fatal(err)
			}
			if _, err := s.api.Add(context.Background(), 1, 2); !errors.As(err, &business) {
				t.Fatal(err)
			}
		}
	})
}

// TestPolicy_TargetBreaker counts all methods together.
func TestPolicy_TargetBreaker(t *testing.T) {
	config := fulmar.ClientConfig{Policy: policy.Client{TargetBreaker: policy.Breaker{FailurePercent: 50, MinCalls: 10}}}
	withSeveral(t, 1, config, func(s *several) {
		stub, _ := failingCalls(fulmar.Internal, -1)
		s.serve(stub, s.addresses...)
		for range 10 {
			_, _ = s.api.Add(context.Background(), 1, 2)
		}
		if err := s.api.Nothing(context.Background()); err == nil || !strings.Contains(err.Error(), "the breaker of the target is open") {
			t.Errorf("another method: %v", err)
		}
	})
}

// slowAt is a stub that takes a time at one address.
func slowAt(address string, took time.Duration) (stub *testservice.Stub, canceled *atomic.Int64) {
	canceled = new(atomic.Int64)
	return &testservice.Stub{OnAdd: func(ctx context.Context, left, right int32) (int32, error) {
		if call, _ := fulmar.CallFrom(ctx); call.Local() == address {
			select {
			case <-time.After(took):
			case <-ctx.Done():
				canceled.Add(1)
				return 0, ctx.Err()
			}
		}
		return left + right, nil
	}}, canceled
}

func TestPolicy_Hedges(t *testing.T) {
	config := retries(policy.Retry{})
	config.Timeout = time.Minute
	config.Policy.Hedge = policy.Hedge{After: 20 * time.Millisecond}
	config.Policy.Balancing.Method = "round_robin"
	config.Policy.RetryBudget.PerSecond = 100_000
	withSeveral(t, 2, config, func(s *several) {
		stub, _ := slowAt(s.addresses[0], 10*time.Second)
		s.serve(stub, s.addresses...)
		var metadata map[string]string
		for range 40 {
			began := time.Now()
			sum, err := s.api.Add(context.Background(), 1, 2, fulmar.ReceiveMetadata(&metadata))
			if took := time.Since(began); err != nil || sum != 3 || took > 25*time.Millisecond {
				t.Fatalf("%d, %v after %v", sum, err, took)
			}
		}
	})
}

// TestPolicy_HedgesOfCallsThatFail: an attempt that fails is followed by another one at
// once, and all that fail together say so.
func TestPolicy_HedgesOfCallsThatFail(t *testing.T) {
	config := retries(policy.Retry{Attempts: 3, BackoffMin: -1})
	config.Policy.Hedge = policy.Hedge{After: time.Second, Attempts: 3}
	withSeveral(t, 3, config, func(s *several) {
		stub, count := failingCalls(fulmar.Unavailable, 2)
		s.serve(stub, s.addresses...)
		began := time.Now()
		if sum, err := s.api.Add(context.Background(), 1, 2); sum != 3 || err != nil || time.Since(began) > 100*time.Millisecond {
			t.Errorf("%d, %v after %v", sum, err, time.Since(began))
		}
		count.Store(-100) // all fail from now on
		if _, err := s.api.Add(context.Background(), 1, 2); fulmar.CodeOf(err) != fulmar.Unavailable || count.Load() != -97 {
			t.Errorf("%v after %d attempts", err, count.Load()+100)
		}
	})
}

// TestPolicy_HedgesShareNothing: attempts that run beside each other, with -race.
func TestPolicy_HedgesShareNothing(t *testing.T) {
	config := retries(policy.Retry{})
	config.Policy.Hedge = policy.Hedge{After: time.Millisecond, Attempts: 3}
	config.Policy.RetryBudget = policy.RetryBudget{PerSecond: 100_000}
	servers := make([]string, 3)
	for i := range servers {
		servers[i] = serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnEcho: func(ctx context.Context, m *testservice.Message) (*testservice.Message, error) {
			for range len(m.Text) % 4 * 5000 { // a millisecond or so for each
				if ctx.Err() != nil {
					break
				}
				runtime.Gosched()
			}
			return m, fulmar.SetReplyMetadata(ctx, "LENGTH", fmt.Sprint(len(m.Text)))
		}}).address
	}
	config.Target = "static:///" + strings.Join(servers, ",")
	api := dial(t, config)
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 60 {
				message := &testservice.Message{Text: strings.Repeat("x", caller*100+i)}
				var metadata map[string]string
				answer, err := api.Echo(context.Background(), message, fulmar.ReceiveMetadata(&metadata))
				if err != nil || answer.Text != message.Text || metadata["LENGTH"] != fmt.Sprint(len(message.Text)) {
					t.Errorf("%v, %v, %v", answer, metadata, err)
				}
				message.Text = "somebody else's now"
			}
		})
	}
	callers.Wait()
}

func TestPolicy_AttemptTimeout(t *testing.T) {
	config := retries(policy.Retry{AttemptTimeout: 50 * time.Millisecond})
	config.Timeout = 10 * time.Second
	config.Policy.Balancing.Method = "round_robin"
	withSeveral(t, 2, config, func(s *several) {
		stub, _ := slowAt(s.addresses[0], 5*time.Second)
		s.serve(stub, s.addresses...)
		for range 6 {
			began := time.Now()
			if sum, err := s.api.Add(context.Background(), 1, 2); err != nil || sum != 3 || time.Since(began) > 200*time.Millisecond {
				t.Fatalf("%d, %v after %v", sum, err, time.Since(began))
			}
		}
	})
}

// TestPolicy_TimeoutOfAMethod is in place of the client's, and an option in place of it.
func TestPolicy_TimeoutOfAMethod(t *testing.T) {
	config := fulmar.ClientConfig{Timeout: time.Hour, Policy: policy.Client{Methods: map[string]policy.Method{"Echo.add": {Timeout: 70 * time.Millisecond}}}}
	withSeveral(t, 1, config, func(s *several) {
		stub, _ := slowAt(s.addresses[0], time.Hour)
		s.serve(stub, s.addresses...)
		for limit, options := range map[time.Duration][]fulmar.CallOption{70 * time.Millisecond: nil, time.Second: {fulmar.Timeout(time.Second)}} {
			began := time.Now()
			if _, err := s.api.Add(context.Background(), 1, 2, options...); fulmar.CodeOf(err) != fulmar.DeadlineExceeded || time.Since(began) != limit {
				t.Errorf("%v after %v, want %v", err, time.Since(began), limit)
			}
		}
	})
}

// TestPolicy_OnlyTheFirstOfAChainRetries: who serves an attempt that is not the first one
// does not try again himself, unless his policy says so.
func TestPolicy_OnlyTheFirstOfAChainRetries(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		t.Run(fmt.Sprintf("ignore %v", ignore), func(t *testing.T) {
			for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.GRPC} {
				stub, count := failingCalls(fulmar.Unavailable, -1)
				last := serve(t, fulmar.ServerConfig{}, stub)
				inner := retries(policy.Retry{Attempts: 2, BackoffMin: -1, IgnoreChain: ignore})
				inner.Target, inner.Protocol = last.address, protocol
				behind := dial(t, inner)
				middle := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnAdd: func(ctx context.Context, left, right int32) (int32, error) {
					_, err := behind.Add(ctx, left, right)
					return 0, fulmar.Errorf(fulmar.Unavailable, "behind: %w", err)
				}})
				outer := retries(policy.Retry{Attempts: 2, BackoffMin: -1})
				outer.Target, outer.Protocol = middle.address, protocol
				if _, err := dial(t, outer).Add(context.Background(), 1, 2); fulmar.CodeOf(err) != fulmar.Unavailable {
					t.Fatal(err)
				}
				want := int64(3) // two behind the first attempt, one behind the second
				if ignore {
					want = 4
				}
				if n := count.Load(); n != want {
					t.Errorf("%v: %d calls at the end of the chain, want %d", protocol, n, want)
				}
			}
		})
	}
}

// TestPolicy_PushBack: a server says when to try again, or not to. A wait that is longer
// than the call may take is none.
func TestPolicy_PushBack(t *testing.T) {
	for _, test := range []struct {
		value    string
		protocol fulmar.Protocol
		attempts int64
		took     time.Duration
	}{
		{"300", fulmar.TTHeader, 2, 300 * time.Millisecond},
		{"300", fulmar.GRPC, 2, 300 * time.Millisecond},
		{"9000", fulmar.TTHeader, 1, 0},
		{"9000", fulmar.GRPC, 1, 0},
		{"-1", fulmar.TTHeader, 1, 0},
		{"-1", fulmar.GRPC, 1, 0},
		{"never", fulmar.TTHeader, 1, 0},
		{"never", fulmar.GRPC, 1, 0},
	} {
		config := retries(policy.Retry{BackoffMin: -1})
		config.Protocol, config.Timeout = test.protocol, 5*time.Second
		withSeveral(t, 2, config, func(s *several) {
			var count atomic.Int64
			s.serve(&testservice.Stub{OnAdd: func(ctx context.Context, left, right int32) (int32, error) {
				if count.Add(1) > 1 {
					return left + right, nil
				}
				return 0, errors.Join(fulmar.NewError(fulmar.Unavailable, "later"), fulmar.SetReplyMetadata(ctx, "grpc-retry-pushback-ms", test.value))
			}}, s.addresses...)
			began := time.Now()
			_, err := s.api.Add(context.Background(), 1, 2)
			took := time.Since(began).Round(10 * time.Millisecond) // the network takes some
			if (err == nil) != (test.attempts == 2) || count.Load() != test.attempts || took != test.took {
				t.Errorf("%v %s: %v, %d attempts in %v", test.protocol, test.value, err, count.Load(), took)
			}
		})
	}
}

// TestPolicy_RetryIf decides by what came back.
func TestPolicy_RetryIf(t *testing.T) {
	config := retries(policy.Retry{Attempts: 4, BackoffMin: -1})
	var asked []string
	config.RetryIf = func(call fulmar.Unary, err error) bool {
		asked = append(asked, fmt.Sprint(fulmar.CodeOf(err)))
		if err == nil {
			result, ok := call.Reply().(*testservice.EchoAddResult)
			return ok && result.Success.Or(0) < 0
		}
		return fulmar.CodeOf(err) == fulmar.Internal
	}
	withSeveral(t, 1, config, func(s *several) {
		var count atomic.Int64
		s.serve(&testservice.Stub{OnAdd: func(_ context.Context, left, right int32) (int32, error) {
			switch count.Add(1) {
			case 1:
				return 0, fulmar.NewError(fulmar.Internal, "no")
			case 2:
				return -1, nil
			}
			return left + right, nil
		}}, s.addresses...)
		if sum, err := s.api.Add(context.Background(), 1, 2); sum != 3 || err != nil || count.Load() != 3 {
			t.Errorf("%d, %v after %d attempts, asked about %v", sum, err, count.Load(), asked)
		}
	})
}

func TestExplain(t *testing.T) {
	config := retries(policy.Retry{Attempts: 3, BackoffMin: -1})
	withSeveral(t, 2, config, func(s *several) {
		stub, _ := failingCalls(fulmar.Unavailable, 1)
		s.serve(stub, s.addresses...)
		var e policy.Explanation
		if _, err := s.api.Add(context.Background(), 1, 2, fulmar.Explain(&e)); err != nil {
			t.Fatal(err)
		}
		if e.Service != "Echo" || e.Method != "add" || e.Code != 0 || e.Source != "configuration" || e.Len() != 2 {
			t.Fatalf("%v", &e)
		}
		first, second := e.At(0), e.At(1)
		if first.Code != observe.Code(fulmar.Unavailable) || first.Executed != policy.ExecutedYes || !first.Decision.Again || first.Decision.Reason != policy.RetryIdempotent ||
			first.Instance == second.Instance || first.Picked == "" || second.Decision.Reason != policy.RetrySucceeded {
			t.Errorf("%v", &e)
		}
	})
}

// TestExplain_OneInSoMany: some of the calls are explained to OnExplanation.
func TestExplain_OneInSoMany(t *testing.T) {
	var texts []string
	config := fulmar.ClientConfig{ExplainEvery: 10, OnExplanation: func(e *policy.Explanation) { texts = append(texts, e.String()) }}
	config.Policy.TargetBreaker = policy.Breaker{FailurePercent: 100, MinCalls: 25}
	withSeveral(t, 1, config, func(s *several) {
		texts = nil
		stub, _ := failingCalls(fulmar.Internal, -1)
		s.serve(stub, s.addresses...)
		for range 40 {
			_, _ = s.api.Add(context.Background(), 1, 2)
		}
		if len(texts) != 4 || !strings.Contains(texts[0], "internal") || !strings.Contains(texts[3], "refused: ") {
			t.Errorf("%q", texts)
		}
	})
}

// TestClient_SetPolicy changes what holds while calls are made.
func TestClient_SetPolicy(t *testing.T) {
	withSeveral(t, 2, fulmar.ClientConfig{}, func(s *several) {
		stub, count := failingCalls(fulmar.Unavailable, -1)
		s.serve(stub, s.addresses...)
		attempts := func() int64 {
			count.Store(0)
			_, _ = s.api.Add(context.Background(), 1, 2)
			return count.Load()
		}
		if n := attempts(); n != 1 {
			t.Errorf("%d attempts by default", n)
		}
		if err := s.client.SetPolicy(policy.Client{Method: policy.Method{Retry: policy.Retry{Attempts: 3, Idempotent: true}}}); err != nil {
			t.Fatal(err)
		}
		if n := attempts(); n != 3 {
			t.Errorf("%d attempts with a policy", n)
		}
		err := s.client.SetPolicy(policy.Client{
			Method:      policy.Method{Retry: policy.Retry{BackoffMin: time.Hour * 99}},
			RetryBudget: policy.RetryBudget{Percent: 2_000_000_000},
		})
		if err == nil || !strings.Contains(err.Error(), "backoff_min") || !strings.Contains(err.Error(), "retry_budget") {
			t.Errorf("a wrong policy: %v", err)
		}
		if n := attempts(); n != 3 {
			t.Errorf("%d attempts behind a wrong policy", n)
		}
		held, version, source := s.client.Policy()
		if held.Retry.Attempts != 3 || version != 1 || source != "SetPolicy" {
			t.Errorf("%v, %d, %q", held, version, source)
		}
	})
}

// TestClient_Try has another policy on trial: it is told of everything and changes nothing.
func TestClient_Try(t *testing.T) {
	config := fulmar.ClientConfig{Policy: policy.Client{Method: policy.Method{Retry: policy.Retry{Attempts: -1}}}}
	withSeveral(t, 2, config, func(s *several) {
		stub, count := failingCalls(fulmar.Unavailable, -1)
		s.serve(stub, s.addresses...)
		trial, err := policy.NewTrial(policy.Client{
			Method:        policy.Method{Retry: policy.Retry{Idempotent: true}},
			TargetBreaker: policy.Breaker{FailurePercent: 50, MinCalls: 10, Pause: time.Hour},
		}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.client.Try(trial)
		for range 30 {
			_, _ = s.api.Add(context.Background(), 1, 2)
		}
		s.client.Try(nil)
		_, _ = s.api.Add(context.Background(), 1, 2)
		if n := count.Load(); n != 31 {
			t.Errorf("%d attempts of 31 calls", n)
		}
		if got := trial.Show(); got.Calls != 30 || got.Failures != 30 || got.Refused != 20 || got.RefusedLive != 0 || got.Retries == 0 || got.RetriesLive != 0 {
			t.Errorf("%v", got)
		}
	})
}
