package policy

import (
	"fmt"
	"strings"
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

	calls, refused, refusedLive, failures, retries, retriesLive, timedOut, timedOutLive, differs atomic.Uint64

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
	// Start is when it began, and Timeout is that of the policy that holds, negative if there
	// is none. They are looked at when it ends. 0: no policy limits it, as of streams, and of
	// calls that bring a time of their own; then timeouts are not compared.
	Start   time.Time
	Timeout time.Duration

	method       *trialMethod
	target, own  Pass
	refusedTrial bool
}

// Begin tells that a call begins, and whether the policy that holds refuses it. End must
// follow.
func (t *Trial) Begin(service, method string, now time.Time, refused bool) TrialCall {
	call := TrialCall{method: t.method(service, method, now)}
	t.calls.Add(1)
	var ok bool
	if call.target, ok = t.target.Allow(now); ok {
		if call.own, ok = call.method.circuit.Allow(now); !ok {
			t.target.Done(call.target, now, Silent)
		}
	}
	if ok {
		t.budget.Call()
	}
	call.refusedTrial = !ok
	t.differ(call.refusedTrial, refused, &t.refused, &t.refusedLive)
	return call
}

// Failed tells that an attempt has failed, and what the policy that holds decides.
func (t *Trial) Failed(call TrialCall, failure Failure, decision Decision, now time.Time) {
	t.failures.Add(1)
	// A call that it would have refused has no attempts under it.
	again := !call.refusedTrial && call.method.policy.Retry.Decide(failure, func(int64) int64 { return 0 }).Spend(t.budget, now).Again
	t.differ(again, decision.Again, &t.retries, &t.retriesLive)
}

// End tells what became of a call, or that the policy that holds has refused it. silent says
// that its code tells nothing about the target.
func (t *Trial) End(call TrialCall, code observe.Code, silent bool, now time.Time) {
	if call.refusedTrial {
		return
	}
	target, own := t.document.TargetBreaker.Judge(code), call.method.policy.Breaker.Judge(code)
	if silent {
		target, own = Silent, Silent
	} else {
		t.judgeTime(&call, now)
	}
	t.target.Done(call.target, now, target)
	call.method.circuit.Done(call.own, now, own)
}

// judgeTime compares how long a call took with how long it might have taken under either
// policy.
func (t *Trial) judgeTime(call *TrialCall, now time.Time) {
	took, timeout := now.Sub(call.Start), call.method.policy.Timeout
	if timeout != 0 && call.Timeout != 0 {
		t.differ(timeout > 0 && took >= timeout, call.Timeout > 0 && took >= call.Timeout, &t.timedOut, &t.timedOutLive)
	}
}

// differ counts a decision of both policies.
func (t *Trial) differ(would, did bool, on, live *atomic.Uint64) {
	if would {
		on.Add(1)
	}
	if did {
		live.Add(1)
	}
	if would != did {
		t.differs.Add(1)
	}
}

// TrialState is what a Trial has found so far, or a ServerTrial, which knows nothing of
// attempts and times.
type TrialState struct {
	// Calls is how many calls there were, Failures how many attempts of them failed.
	Calls, Failures uint64
	// Refused is how many of them the policy on trial would have refused, RefusedLive how
	// many the one that holds has.
	Refused, RefusedLive uint64
	// Retries is how many attempts the policy on trial would have tried again, RetriesLive
	// how many the one that holds has.
	Retries, RetriesLive uint64
	// TimedOut is how many calls took as long as the timeout on trial, TimedOutLive how many
	// took as long as that of the policy that holds. Methods for which the policy on trial
	// sets none count in neither.
	TimedOut, TimedOutLive uint64
	// Differs is how many decisions differ.
	Differs uint64
	// Limits are those of a ServerTrial, as Server.Stats has those that hold, and nil of a
	// Trial. Methods has names that a call was for.
	Limits *ServerState
}

// Show returns what it has found so far.
func (t *Trial) Show() TrialState {
	return TrialState{
		Calls: t.calls.Load(), Failures: t.failures.Load(), Differs: t.differs.Load(),
		Refused: t.refused.Load(), RefusedLive: t.refusedLive.Load(),
		Retries: t.retries.Load(), RetriesLive: t.retriesLive.Load(),
		TimedOut: t.timedOut.Load(), TimedOutLive: t.timedOutLive.Load(),
	}
}

// String says it in a line, of attempts and timeouts only where there were any.
func (s TrialState) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "of %d calls it would have refused %d (%d were)", s.Calls, s.Refused, s.RefusedLive)
	if s.Failures > 0 {
		fmt.Fprintf(&out, ", of %d failed attempts tried %d again (%d were)", s.Failures, s.Retries, s.RetriesLive)
	}
	if s.TimedOut+s.TimedOutLive > 0 {
		fmt.Fprintf(&out, ", ended %d calls at their timeout (%d were)", s.TimedOut, s.TimedOutLive)
	}
	fmt.Fprintf(&out, ": %d decisions differ", s.Differs)
	return out.String()
}
