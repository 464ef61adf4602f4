package policy_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/policy"
)

func TestExplanation_SaysWhatHappened(t *testing.T) {
	e := policy.Explanation{
		Service: "Orders", Method: "place", Target: "orders", Version: 7, Source: "file policy.json", Start: epoch(),
		MethodBreaker: policy.CircuitClosed, TargetBreaker: policy.CircuitProbing, Duration: 35 * time.Millisecond,
	}
	first := e.Add(policy.Attempt{Instance: "10.0.0.1:80", Picked: "least loaded of two"})
	first.Code, first.Duration, first.Executed = 14, 5*time.Millisecond, policy.ExecutedNo
	first.Decision = policy.Decision{Again: true, Delay: 10 * time.Millisecond, Reason: policy.RetryNotExecuted}
	e.Add(policy.Attempt{Instance: "10.0.0.2:80", Picked: "in turn", Start: 15 * time.Millisecond, Code: 13, Duration: 10 * time.Millisecond, Decision: policy.Decision{Reason: policy.RetryMayHaveRun}})
	e.Add(policy.Attempt{Start: 15 * time.Millisecond, Hedged: true, Decision: policy.Decision{Reason: policy.RetrySucceeded}})
	const want = `Orders.place at orders: ok in 35ms, breaker of the target probing, policy 7 from file policy.json
  1: after 0s to 10.0.0.1:80 (least loaded of two): unavailable in 5ms, executed no; again after 10ms: not executed
  2: after 15ms to 10.0.0.2:80 (in turn): internal in 10ms, executed maybe; not again: may have run
  3: after 15ms to no instance beside another: ok in 0s`
	if got := e.String(); got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	encoded, err := json.Marshal(&e)
	if err != nil {
		t.Fatal(err)
	}
	var decoded struct {
		Service  string
		Version  uint64
		Attempts []policy.Attempt
	}
	if err := json.Unmarshal(encoded, &decoded); err != nil || decoded.Service != "Orders" || decoded.Version != 7 || len(decoded.Attempts) != 3 || decoded.Attempts[0] != *e.At(0) || decoded.Attempts[2] != *e.At(2) {
		t.Errorf("%v: %s", err, encoded)
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
