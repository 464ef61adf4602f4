package fulmar_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// TestStats_ShowLimits: each limit shows what runs, what is left, and what it has refused.
func TestStats_ShowLimits(t *testing.T) {
	one := policy.Limit{Running: 1}
	document := policy.Server{
		Limit: policy.Limit{PerSecond: 1, Burst: 100}, CallerLimit: policy.Limit{Running: 50},
		Methods:  map[string]policy.Limit{"Echo.echo": one, "Echo": {Running: 3}, "Other.thing": one},
		Adaptive: policy.Adaptive{Enabled: true, MinRunning: 7, MaxRunning: 7},
	}
	r, api, release := limited(t, document, fulmar.TTHeader)
	held := hold(t, r, api, 1)
	const refused = 5
	for range refused {
		_, err := api.Echo(context.Background(), &testservice.Message{})
		wantOverLimit(t, err, "limit of Echo.echo")
	}
	state := r.server.Stats().Policy
	if state.Refused != refused || state.Limit.Running != 1 || state.Limit.Refused != 0 || state.Limit.Left < 99 || state.Limit.Left > 100 {
		t.Errorf("%+v", state)
	}
	if m := state.Methods; len(m) != 3 || m["Echo.echo"].Running != 1 || m["Echo.echo"].Refused != refused || m["Echo"].Running != 1 || m["Echo"].Refused != 0 || m["Other.thing"] != (policy.LimiterState{Left: -1}) {
		t.Errorf("%+v", m)
	}
	if c := state.Callers; c.Known != 1 || len(c.Callers) != 1 || c.Callers[0].Caller != "127.0.0.1" || c.Callers[0].Running != 1 {
		t.Errorf("%+v", c)
	}
	if a := state.Adaptive; a.Running != 1 || a.Limit != 7 || a.Refused != 0 {
		t.Errorf("%+v", a)
	}
	letGo(t, r, release, held)
	// What was refused stays when the document does not name it any more.
	if err := r.server.SetPolicy(policy.Server{CallerLimit: one}); err != nil {
		t.Fatal(err)
	}
	held = hold(t, r, api, 1)
	_, err := api.Echo(context.Background(), &testservice.Message{})
	wantOverLimit(t, err, "limit of the caller")
	if state := r.server.Stats().Policy; state.Refused != refused+1 || len(state.Methods) != 0 || state.Callers.Refused != 1 || state.Callers.Callers[0].Refused != 1 {
		t.Errorf("%+v", state)
	}
	letGo(t, r, release, held)
}

// TestStats_CountDocumentsThatAreWrong of a source of the server.
func TestStats_CountDocumentsThatAreWrong(t *testing.T) {
	r := serve(t, fulmar.ServerConfig{PolicySource: func(ctx context.Context, deliver func([]byte, string)) error {
		for i := range 3 {
			deliver([]byte(`{"server": {"limit": {"per_second": "many"}}}`), fmt.Sprint(i))
		}
		<-ctx.Done()
		return ctx.Err()
	}}, adder())
	eventually(t, func() bool { return r.server.Stats().PoliciesRefused == 3 })
}

// TestStats_ShowBreakersAndBudget of a client.
func TestStats_ShowBreakersAndBudget(t *testing.T) {
	config := fulmar.ClientConfig{Policy: policy.Client{
		TargetBreaker: policy.Breaker{FailurePercent: 50, MinCalls: 1000},
		Methods:       map[string]policy.Method{"Echo.add": {Breaker: policy.Breaker{FailurePercent: 50, MinCalls: 10}}},
		RetryBudget:   policy.RetryBudget{Percent: -1, PerSecond: 100},
	}}
	withSeveral(t, 1, config, func(s *several) {
		stub, _ := failingCalls(fulmar.Unavailable, -1)
		s.serve(stub, s.addresses...)
		state := s.client.Stats().Policy
		if state.Refused != 0 || len(state.Methods) != 0 || state.TargetBreaker.Position != policy.CircuitClosed || state.RetriesLeft != 100 || state.RetriesSaved != 100 {
			t.Errorf("before the first call: %+v", state)
		}
		for range 15 {
			_, _ = s.api.Add(context.Background(), 1, 2)
		}
		_ = s.api.Nothing(context.Background())
		state = s.client.Stats().Policy
		add, ok := state.Methods["Echo.add"]
		if !ok || len(state.Methods) != 1 || add.Position != policy.CircuitOpen || add.Refused != 5 || state.Refused != 5 || state.TargetBreaker.Refused != 0 {
			t.Errorf("%+v", state)
		}
		if err := s.client.SetPolicy(policy.Client{TargetBreaker: policy.Breaker{FailurePercent: 1, MinCalls: 1}}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, _ = s.api.Add(context.Background(), 1, 2)
		}
		state = s.client.Stats().Policy
		if len(state.Methods) != 0 || state.Refused != 7 || state.TargetBreaker.Refused != 2 || state.TargetBreaker.Position != policy.CircuitOpen {
			t.Errorf("%+v", state)
		}
	})
}

// TestStats_ShowBreakersOfInventedNames: methods beyond those that have a breaker of their own.
func TestStats_ShowBreakersOfInventedNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreamingOf(t, "ttheader", func(*fulmar.Server) {}, takesAll(policy.Server{}, nil), fulmar.ClientConfig{
			Policy: policy.Client{Method: policy.Method{Breaker: policy.Breaker{FailurePercent: 50}}},
		})
		for i := range limits.PolicyMethods + 5 {
			if err := callNamed(t, s.client, "S", fmt.Sprintf("m%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		state := s.client.Stats().Policy
		if len(state.Methods) != limits.PolicyMethods+1 || state.Methods[""].Calls != 5 || state.Methods["S.m0"].Calls != 1 {
			t.Errorf("%d breakers, that of the others has %+v", len(state.Methods), state.Methods[""])
		}
	})
}

// TestServerPolicy_AdaptiveDoesNotLearnFromStreams: how long they take is up to their callers.
func TestServerPolicy_AdaptiveDoesNotLearnFromStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreaming(t, "ttheader", &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
			_, err := stream.Recv()
			if err == io.EOF {
				return nil
			}
			return err
		}}, fulmar.ServerConfig{Policy: policy.Server{Adaptive: policy.Adaptive{Enabled: true}}}, fulmar.ClientConfig{})
		for range 3 * limits.AdaptiveCalls {
			swap, err := s.api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if err := swap.CloseSend(); err != nil {
				t.Fatal(err)
			}
			if _, err := swap.Recv(); err != io.EOF {
				t.Fatal(err)
			}
		}
		if state := s.server.Stats().Policy.Adaptive; state.Undisturbed != 0 || state.Lately != 0 || state.Limit != limits.AdaptiveCalls {
			t.Errorf("%+v", state)
		}
	})
}
