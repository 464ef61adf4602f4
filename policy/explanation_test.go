package policy_test

import (
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/policy"
)

func TestExplanation_SaysWhatHappened(t *testing.T) {
	e := policy.Explanation{
		Service: "Orders", Method: "place", Target: "orders", Version: 7, Source: "file policy.json", Start: epoch(),
		MethodBreaker: policy.CircuitClosed, TargetBreaker: policy.CircuitProbing, Duration: 35 * time.Millisecond,
	}
	first := e.Add(policy.Attempt{Instance: "10.0.0.1:80", Picked: policy.PickedBalanced})
	first.Code, first.Duration, first.Executed = 14, 5*time.Millisecond, policy.ExecutedNo
	first.Decision = policy.Decision{Again: true, Delay: 10 * time.Millisecond, Reason: policy.RetryNotExecuted}
	e.Add(policy.Attempt{Instance: "10.0.0.2:80", Picked: policy.PickedOther, Start: 15 * time.Millisecond, Code: 13, Duration: 10 * time.Millisecond, Decision: policy.Decision{Reason: policy.RetryMayHaveRun}})
	e.Add(policy.Attempt{Start: 15 * time.Millisecond, Hedged: true, Decision: policy.Decision{Reason: policy.RetrySucceeded}})
	const want = `Orders.place at orders: ok in 35ms, breaker of the target probing, policy 7 from file policy.json
  1: after 0s to 10.0.0.1:80 (balanced): unavailable in 5ms, executed no; again after 10ms: not executed
  2: after 15ms to 10.0.0.2:80 (other_instance): internal in 10ms, executed maybe; not again: may have run
  3: after 15ms to no instance beside another: ok in 0s`
	if got := e.String(); got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	refused := policy.Explanation{Service: "Orders", Method: "place", Target: "orders", Code: 14, Refused: policy.RefusedByMethodBreaker, MethodBreaker: policy.CircuitOpen}
	if got, want := refused.String(), "Orders.place at orders: unavailable in 0s, refused: too many of the method fail, breaker of the method open"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestExplanation_KeepsAllAttempts(t *testing.T) {
	var e policy.Explanation
	for round := range 2 {
		const attempts = 10
		for i := range attempts {
			e.Add(policy.Attempt{Start: time.Duration(i)}).Duration = time.Duration(100*round + i)
		}
		if e.Len() != attempts {
			t.Fatalf("there are %d attempts, want %d", e.Len(), attempts)
		}
		for i := range attempts {
			if got := e.At(i); got.Start != time.Duration(i) || got.Duration != time.Duration(100*round+i) {
				t.Errorf("attempt %d is %+v", i, got)
			}
		}
		e.Reset()
		if e.Len() != 0 || e.String() != ". at : ok in 0s" {
			t.Errorf("it was reset and says %q", e.String())
		}
	}
}
