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
