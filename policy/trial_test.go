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

// TestTrial_OfTimeouts goes by how long calls took under the policy that holds.
func TestTrial_OfTimeouts(t *testing.T) {
	for name, test := range map[string]struct {
		trial, holds, took time.Duration
		silent             bool
		want               policy.TrialState
	}{
		"in time":               {2 * time.Second, 3 * time.Second, time.Second, false, policy.TrialState{}},
		"late":                  {time.Second, 3 * time.Second, time.Second, false, policy.TrialState{TimedOut: 1, Differs: 1}},
		"both late":             {time.Second, 2 * time.Second, 2 * time.Second, false, policy.TrialState{TimedOut: 1, TimedOutLive: 1}},
		"late where it is live": {3 * time.Second, time.Second, time.Second, false, policy.TrialState{TimedOutLive: 1, Differs: 1}},
		"no timeout on trial":   {-1, time.Second, time.Hour, false, policy.TrialState{TimedOutLive: 1, Differs: 1}},
		"no timeout holds":      {time.Second, -1, time.Hour, false, policy.TrialState{TimedOut: 1, Differs: 1}},
		"the same":              {time.Second, time.Second, time.Hour, false, policy.TrialState{TimedOut: 1, TimedOutLive: 1}},
		"nothing on trial":      {0, time.Second, time.Hour, false, policy.TrialState{}},
		"a stream":              {time.Second, 0, time.Hour, false, policy.TrialState{}},
		"nothing to be learned": {time.Second, time.Second, time.Hour, true, policy.TrialState{}},
	} {
		t.Run(name, func(t *testing.T) {
			trial, err := policy.NewTrial(policy.Client{Method: policy.Method{Timeout: test.trial}}, epoch())
			if err != nil {
				t.Fatal(err)
			}
			call := trial.Begin("Orders", "place", epoch().Add(time.Minute), false) // behind interceptors
			call.Start, call.Timeout = epoch(), test.holds
			trial.End(call, 0, test.silent, epoch().Add(test.took))
			test.want.Calls = 1
			if got := trial.Show(); got != test.want {
				t.Errorf("it shows %+v, want %+v", got, test.want)
			}
		})
	}
	text := policy.TrialState{Calls: 5, TimedOut: 2, TimedOutLive: 1, Differs: 1}.String()
	if text != "of 5 calls it would have refused 0 (0 were), ended 2 calls at their timeout (1 were): 1 decisions differ" {
		t.Error(text)
	}
}

// TestTrial_RefusedCallsEarnNoRetries: the budget of the policy that holds does not count
// calls that are refused, so neither does that of the one on trial.
func TestTrial_RefusedCallsEarnNoRetries(t *testing.T) {
	trial, err := policy.NewTrial(policy.Client{
		Method:        policy.Method{Retry: policy.Retry{Idempotent: true, Attempts: 2}},
		TargetBreaker: policy.Breaker{FailurePercent: 1, MinCalls: 1, Pause: time.Second},
		RetryBudget:   policy.RetryBudget{Percent: 10, PerSecond: -1},
	}, epoch())
	if err != nil {
		t.Fatal(err)
	}
	failure := policy.Failure{Attempt: 1, Code: 14, Executed: policy.ExecutedYes, Sent: true, Left: -1}
	now := epoch()
	fail := func() {
		call := trial.Begin("Orders", "place", now, false)
		trial.Failed(call, failure, policy.Decision{}, now)
		trial.End(call, 14, false, now)
	}
	for range 100 { // what a quiet time leaves is used up
		fail()
		now = now.Add(time.Second)
	}
	before := trial.Show()
	for range 100 {
		now = now.Add(time.Millisecond)
		fail()
	}
	if got := trial.Show(); got.Refused-before.Refused < 99 {
		t.Fatalf("%+v", got)
	}
	for range 10 {
		now = now.Add(time.Second)
		fail()
	}
	if n := trial.Show().Retries - before.Retries; n > 2 {
		t.Errorf("%d attempts were tried again of 11 calls that were not refused, with a budget of one in ten", n)
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
