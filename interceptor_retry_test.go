package fulmar_test

import (
	"context"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// TestInterceptors_LaterAttemptsDoNotForgetEarlierOnes: an attempt that was
// certainly not executed says so of itself only. If one before it may have been,
// by whatever it ended in, the call as a whole may have been as well.
func TestInterceptors_LaterAttemptsDoNotForgetEarlierOnes(t *testing.T) {
	outcomes := map[string]error{
		"success":          nil,
		"an error":         fulmar.NewError(fulmar.NotFound, "no"),
		"a declared error": &testservice.Refused{Reason: "no"},
		"a business error": fulmar.NewBusinessError(7, "no", nil),
		"refused":          fulmar.NewError(fulmar.PermissionDenied, "not you"),
	}
	refuse := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		if request, err := call.Request(); err == nil && request.(*testservice.EchoEchoArgs).Message.Text == "refused" {
			return outcomes["refused"]
		}
		return next(ctx, call)
	}
	server := serve(t, fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{refuse}}, &testservice.Stub{
		OnEcho: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
			return message, outcomes[message.Text]
		},
	})
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, outcome := range outcomes {
		var first, second error
		again := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
			first = next(ctx, call)
			second = next(ended, call) // which certainly is not executed
			return next(ended, call)
		}
		api := dial(t, fulmar.ClientConfig{Target: server.address, Interceptors: []fulmar.UnaryInterceptor{again}})
		_, third := api.Echo(context.Background(), &testservice.Message{Text: name})
		if (first == nil) != (outcome == nil) {
			t.Errorf("%s: the first attempt ended in %v", name, first)
		}
		want := fulmar.ExecutedMaybe
		if name == "refused" {
			want = fulmar.ExecutedNo
		}
		for _, err := range []error{second, third} {
			if e := asError(t, err); e.Code() != fulmar.Canceled || e.Executed() != want {
				t.Errorf("%s: a later attempt: %v: code %v, %v; want %v", name, e, e.Code(), e.Executed(), want)
			}
		}
	}
}

// TestInterceptors_EveryCallBeginsAnew: what an earlier call ended in says
// nothing about the next one.
func TestInterceptors_EveryCallBeginsAnew(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, adder())
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	if _, err := api.Add(context.Background(), 1, 2); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := api.Add(ended, 1, 2); asError(t, err).Executed() != fulmar.ExecutedNo {
		t.Errorf("a call that never began: %v", err)
	}
}

// TestInterceptors_LaterAttemptsAreJudgedWhenTheyEnd: to a breaker each time that an interceptor
// goes on is a call with an end of its own, behind which it rests for all of its pause. What
// refused the call the first time does not stand in its explanation beside attempts.
func TestInterceptors_LaterAttemptsAreJudgedWhenTheyEnd(t *testing.T) {
	const pause, later = 5 * time.Second, 6 * time.Second
	config := retries(policy.Retry{Attempts: -1})
	config.Timeout, config.Policy.Breaker = -1, policy.Breaker{FailurePercent: 50, MinCalls: 1, Pause: pause}
	config.Interceptors = []fulmar.UnaryInterceptor{func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		_ = next(ctx, call)
		elapse(later)
		return next(ctx, call)
	}}
	for _, instances := range []int{1, 2} {
		withSeveral(t, instances, config, func(s *several) {
			stub, count := failingCalls(fulmar.Unavailable, -1)
			s.serve(stub, s.addresses...)
			for want := range int64(2) {
				var e policy.Explanation
				_, err := s.api.Add(context.Background(), 1, 2, fulmar.Explain(&e))
				b := s.client.Stats().Policy.Methods["Echo.add"]
				if rests := time.Until(b.Until); err == nil || b.Position != policy.CircuitOpen || rests != pause || count.Load() != 2+want {
					t.Errorf("%v: the breaker is %v, rests for %v of %v; %d attempts", err, b.Position, rests, pause, count.Load())
				}
				if e.Refused != policy.NotRefused || int64(e.Len()) != 2-want {
					t.Errorf("%v", &e)
				}
			}
		})
	}
}
