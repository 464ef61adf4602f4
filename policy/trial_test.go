package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// TestTrial_SaysWhatItWouldHaveDecided plays calls of which half fail to a policy with a
// breaker and retries, as one without either makes them.
func TestTrial_SaysWhatItWouldHaveDecided(t *testing.T) {
	now := epoch()
	trial, err := policy.NewTrial(policy.Client{
		Method: policy.Method{
			Retry:   policy.Retry{Idempotent: true, Attempts: 2},
			Breaker: policy.Breaker{FailurePercent: 50, MinCalls: 20, Pause: time.Hour},
		},
		RetryBudget: policy.RetryBudget{Percent: 100},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	const unavailable = observe.Code(14)
	for i := range 100 {
		call := trial.Begin("Orders", "place", now, false)
		code := observe.Code(0)
		if i%2 == 1 {
			code = unavailable
			trial.Failed(call, policy.Failure{Attempt: 1, Code: code, Executed: policy.ExecutedYes, Sent: true, Left: -1}, policy.Decision{}, now)
		}
		trial.End(call, code, false, now)
	}
	got := trial.Show()
	want := policy.TrialState{Calls: 100, Failures: 50, Refused: 80, Retries: 10, Differs: 90}
	if got != want {
		t.Errorf("it shows %+v, want %+v", got, want)
	}
	if text := got.String(); !strings.Contains(text, "of 100 calls it would have refused 80 (0 were), of 50 failed attempts tried 10 again (0 were): 90 decisions differ") {
		t.Error(text)
	}
}

// TestTrial_RefusedCallsSayNothing: what the breaker of the target gave to a call that the
// breaker of its method refuses goes back, and how that call ends tells it nothing.
func TestTrial_RefusedCallsSayNothing(t *testing.T) {
	const unavailable = observe.Code(14)
	now := epoch()
	trial, err := policy.NewTrial(policy.Client{
		TargetBreaker: policy.Breaker{FailurePercent: 50, MinCalls: 2, Pause: time.Second},
		Methods:       map[string]policy.Method{"Orders.place": {Breaker: policy.Breaker{FailurePercent: 50, MinCalls: 2, Pause: time.Hour}}},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(method string) (call policy.TrialCall, refused bool) {
		before := trial.Show().Refused
		call = trial.Begin("Orders", method, now, false)
		return call, trial.Show().Refused > before
	}
	for range 2 {
		call, _ := refused("place")
		trial.End(call, unavailable, false, now)
	}
	if _, refused := refused("list"); !refused {
		t.Fatal("the breaker of the target did not open")
	}
	now = now.Add(time.Second)
	// The target probes, and the method refuses; that the call succeeds, as it does under the
	// policy that holds, closes nothing.
	call, was := refused("place")
	if !was {
		t.Fatal("the breaker of the method did not open")
	}
	trial.End(call, 0, false, now)
	probe, was := refused("list")
	if was {
		t.Error("the probe that was not made is still waited for")
	}
	if _, was := refused("list"); !was {
		t.Error("a call that was refused has closed the breaker of the target")
	}
	trial.End(probe, 0, false, now)
	if _, was := refused("list"); was {
		t.Error("the probe has not closed the breaker")
	}
}

// TestTrial_OfThePolicyThatHolds differs in nothing.
func TestTrial_OfThePolicyThatHolds(t *testing.T) {
	now := epoch()
	trial, err := policy.NewTrial(policy.Client{}, now)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		call := trial.Begin("Orders", "place", now, false)
		failure := policy.Failure{Attempt: 1, Code: 14, Executed: policy.ExecutedNo, Others: true, Left: time.Second}
		trial.Failed(call, failure, policy.Retry{}.Decide(failure, nil), now)
		trial.End(call, 0, false, now)
	}
	if got := trial.Show(); got.Differs != 0 || got.Calls != 50 || got.Retries != 50 || got.RetriesLive != 50 {
		t.Errorf("it shows %+v", got)
	}
}

// TestTrial_OfTimeoutsAndHedges goes by how long calls took under the policy that holds.
func TestTrial_OfTimeoutsAndHedges(t *testing.T) {
	const deadlineExceeded = observe.Code(4)
	second := policy.Method{Timeout: time.Second}
	hedged := policy.Method{Retry: policy.Retry{Idempotent: true}, Hedge: policy.Hedge{After: 100 * time.Millisecond, Attempts: 3}}
	for name, test := range map[string]struct {
		policy policy.Method
		took   time.Duration
		code   observe.Code
		silent bool
		stream bool
		hedges int
		want   policy.TrialState
	}{
		"in time":                    {second, time.Second, 0, false, false, 0, policy.TrialState{}},
		"late":                       {second, time.Second + 1, 0, false, false, 0, policy.TrialState{TimedOut: 1, Differs: 1}},
		"both late":                  {second, 2 * time.Second, deadlineExceeded, false, false, 0, policy.TrialState{TimedOut: 1, TimedOutLive: 1}},
		"late only where it is live": {second, time.Millisecond, deadlineExceeded, false, false, 0, policy.TrialState{TimedOutLive: 1, Differs: 1}},
		"no timeout":                 {policy.Method{Timeout: -1}, time.Hour, deadlineExceeded, false, false, 0, policy.TrialState{TimedOutLive: 1, Differs: 1}},
		"nothing said":               {policy.Method{}, time.Hour, deadlineExceeded, false, false, 0, policy.TrialState{}},
		"a stream":                   {second, time.Hour, 0, false, true, 0, policy.TrialState{}},
		"nothing to be learned":      {second, time.Hour, 0, true, false, 0, policy.TrialState{}},
		"quick":                      {hedged, 100 * time.Millisecond, 0, false, false, 0, policy.TrialState{}},
		"slow":                       {hedged, 101 * time.Millisecond, 0, false, false, 0, policy.TrialState{Hedges: 1, Differs: 1}},
		"slower":                     {hedged, time.Second, 0, false, false, 1, policy.TrialState{Hedges: 2, HedgesLive: 1, Differs: 1}},
		"hedged only where live":     {policy.Method{}, time.Second, 0, false, false, 2, policy.TrialState{HedgesLive: 2, Differs: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			trial, err := policy.NewTrial(policy.Client{Method: test.policy}, epoch())
			if err != nil {
				t.Fatal(err)
			}
			call := trial.Begin("Orders", "place", epoch(), false)
			call.Stream, call.Hedges = test.stream, test.hedges
			trial.End(call, test.code, test.silent, epoch().Add(test.took))
			test.want.Calls = 1
			if got := trial.Show(); got != test.want {
				t.Errorf("it shows %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestTrial_HedgesWithinTheBudget of the policy on trial.
func TestTrial_HedgesWithinTheBudget(t *testing.T) {
	trial, err := policy.NewTrial(policy.Client{
		Method:      policy.Method{Retry: policy.Retry{Idempotent: true}, Hedge: policy.Hedge{After: time.Millisecond}},
		RetryBudget: policy.RetryBudget{Percent: 10, PerSecond: -1},
	}, epoch())
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		trial.End(trial.Begin("Orders", "place", epoch(), false), 0, false, epoch().Add(time.Second))
	}
	if got := trial.Show(); got.Hedges < 100 || got.Hedges > 100+64 {
		t.Errorf("%d attempts beside others of 1,000 calls with a budget of 10 in a hundred", got.Hedges)
	}
	if text := trial.Show().String(); !strings.Contains(text, "attempts beside others (0 were)") || strings.Contains(text, "timeout") {
		t.Error(text)
	}
}

func TestNewTrial_RefusesWhatADocumentMayNotHave(t *testing.T) {
	_, err := policy.NewTrial(policy.Client{RetryBudget: policy.RetryBudget{Percent: 1000}}, epoch())
	if err == nil || !strings.Contains(err.Error(), "retry_budget.percent") {
		t.Error(err)
	}
}

// TestTrial_IsBounded: names come from peers of a proxy.
func TestTrial_IsBounded(t *testing.T) {
	trial, err := policy.NewTrial(policy.Client{}, epoch())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		trial.End(trial.Begin("Made.Up", strings.Repeat("x", i%1000)+string(rune('a'+i/1000)), epoch(), false), 0, false, epoch())
	}
	if n := trial.Methods(); n > 1001 {
		t.Errorf("it knows %d methods", n)
	}
}
