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
