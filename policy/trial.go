package policy

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/observe"
)

// Trial finds out what another policy would have decided about calls that are made under
// the one that holds: it is told of the same calls and failures, has breakers and a budget
// of its own, and changes nothing. What it cannot know is what became of attempts that only
// one of the two makes, so it says how often they differ, and not what would have come of
// it. Safe for concurrent use.
type Trial struct {
	document Client
	budget   *Budget
	target   *Circuit

	calls, refused, refusedLive, failures, retries, retriesLive, differs atomic.Uint64

	mu      sync.Mutex
	methods map[string]*trialMethod
}

// trialMethod is a method under the policy on trial.
type trialMethod struct {
	policy  Method
	circuit *Circuit
}

// NewTrial returns a Trial of a policy, or all that is wrong with that.
func NewTrial(policy Client, now time.Time) (*Trial, error) {
	policy = policy.Clone() // the caller may go on to change his
	document := Document{Client: policy}
	if err := document.Validate(); err != nil {
		return nil, err
	}
	return &Trial{
		document: policy, budget: NewBudget(policy.RetryBudget, now), target: NewCircuit(policy.TargetBreaker, now),
		methods: map[string]*trialMethod{},
	}, nil
}

// method returns a method under the policy on trial; beyond PolicyMethods those share one
// that it does not name, or one for the service if it names that.
func (t *Trial) method(service, method string, now time.Time) *trialMethod {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := service + "." + method
	if len(t.methods) >= limits.PolicyMethods && t.methods[name] == nil {
		service, method = t.document.Named(service, method)
		name = service + "." + method
	}
	m := t.methods[name]
	if m == nil {
		merged := t.document.For(service, method)
		m = &trialMethod{policy: merged, circuit: NewCircuit(merged.Breaker, now)}
		t.methods[name] = m
	}
	return m
}

// TrialCall is a call that a Trial was told of.
type TrialCall struct {
	method       *trialMethod
	target, own  Pass
	refusedTrial bool
}

// Begin tells that a call begins, and whether the policy that holds refuses it. End must
// follow.
func (t *Trial) Begin(service, method string, now time.Time, refused bool) TrialCall {
	call := TrialCall{method: t.method(service, method, now)}
	t.calls.Add(1)
	t.budget.Call()
	var ok bool
	if call.target, ok = t.target.Allow(now); ok {
		if call.own, ok = call.method.circuit.Allow(now); !ok {
			t.target.Done(call.target, now, Silent)
		}
	}
	call.refusedTrial = !ok
	if call.refusedTrial {
		t.refused.Add(1)
	}
	if refused {
		t.refusedLive.Add(1)
	}
	if call.refusedTrial != refused {
		t.differs.Add(1)
	}
	return call
}

// Failed tells that an attempt has failed, and what the policy that holds decides.
func (t *Trial) Failed(call TrialCall, failure Failure, decision Decision, now time.Time) {
	t.failures.Add(1)
	// A call that it would have refused has no attempts under it.
	again := !call.refusedTrial && call.method.policy.Retry.Decide(failure, func(int64) int64 { return 0 }).Spend(t.budget, now).Again
	if again {
		t.retries.Add(1)
	}
	if decision.Again {
		t.retriesLive.Add(1)
	}
	if again != decision.Again {
		t.differs.Add(1)
	}
}

// End tells what became of a call. silent says that its code tells nothing about the target.
func (t *Trial) End(call TrialCall, code observe.Code, silent bool, now time.Time) {
	if call.refusedTrial {
		return
	}
	target, own := t.document.TargetBreaker.Judge(code), call.method.policy.Breaker.Judge(code)
	if silent {
		target, own = Silent, Silent
	}
	t.target.Done(call.target, now, target)
	call.method.circuit.Done(call.own, now, own)
}

// TrialState is what a Trial has found so far.
type TrialState struct {
	// Calls is how many calls there were, Failures how many attempts of them failed.
	Calls, Failures uint64
	// Refused is how many of them the policy on trial would have refused, RefusedLive how
	// many the one that holds has.
	Refused, RefusedLive uint64
	// Retries is how many attempts the policy on trial would have tried again, RetriesLive
	// how many the one that holds has.
	Retries, RetriesLive uint64
	// Differs is how many decisions differ.
	Differs uint64
}

// Show returns what it has found so far.
func (t *Trial) Show() TrialState {
	return TrialState{
		Calls: t.calls.Load(), Failures: t.failures.Load(), Differs: t.differs.Load(),
		Refused: t.refused.Load(), RefusedLive: t.refusedLive.Load(),
		Retries: t.retries.Load(), RetriesLive: t.retriesLive.Load(),
	}
}

// String says it in a line.
func (s TrialState) String() string {
	return fmt.Sprintf("of %d calls it would have refused %d (%d were), of %d failed attempts tried %d again (%d were): %d decisions differ",
		s.Calls, s.Refused, s.RefusedLive, s.Failures, s.Retries, s.RetriesLive, s.Differs)
}
