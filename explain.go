package fulmar

import (
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// Explain has a call write down why it went as it did: which instances it was sent to and
// why, what became of each attempt, and what breakers and budgets said. into is complete
// when the call has returned.
func Explain(into *policy.Explanation) CallOption { return CallOption{explained: into} }

// explainBegin begins the explanation of a call that has one, or is the one in so many.
func (c *Client) explainBegin(state *unaryState) {
	e := state.chosen.explained
	if e == nil {
		if c.explainEvery == 0 || c.explains.Add(1)%c.explainEvery != 0 {
			return
		}
		e, state.sampled = new(policy.Explanation), true
	}
	state.explained = e
	c.explainFrom(e, state.method, state.start)
}

// explainFrom begins an explanation; e may be nil, here and below.
func (c *Client) explainFrom(e *policy.Explanation, method *MethodDesc, start time.Time) {
	if e == nil {
		return
	}
	held := c.governor.current.Load()
	e.Reset()
	e.Service, e.Method, e.Target = method.Service, method.Name, c.target
	e.Version, e.Source, e.Start = held.version, held.source, start
}

// explainEnd completes the explanation of a call.
func (c *Client) explainEnd(state *unaryState, err error) {
	explainResult(state.explained, state.start, err)
	if state.sampled {
		c.config.OnExplanation(state.explained)
	}
}

// explainResult completes an explanation.
func explainResult(e *policy.Explanation, start time.Time, err error) {
	if e == nil {
		return
	}
	e.Duration, e.Code = time.Since(start), observe.Code(CodeOf(err))
}

// explainRefusal notes that a call was refused before its first attempt.
func explainRefusal(e *policy.Explanation, by policy.Refusal) {
	if e != nil {
		e.Refused = by
	}
}

// explainAttempt notes that an attempt begins so long after its call, and returns its place
// in the explanation.
func explainAttempt(e *policy.Explanation, to destination, start time.Duration, hedged bool) (record int) {
	if e == nil {
		return -1
	}
	e.Add(policy.Attempt{Instance: to.address, Picked: pickedBecause(to.choice), Start: start, Hedged: hedged})
	return e.Len() - 1
}

// explainOutcome notes what became of an attempt that ended so long after its call began.
func explainOutcome(e *policy.Explanation, record int, err error, decision policy.Decision, end time.Duration) {
	if e == nil {
		return
	}
	attempt := e.At(record)
	attempt.Duration, attempt.Decision = end-attempt.Start, decision
	if failed, ok := err.(*Error); ok {
		attempt.Code, attempt.Executed = observe.Code(failed.code), policy.Executed(failed.executed)
	}
}

// pickedBecause says in an explanation why an instance was chosen.
func pickedBecause(choice cluster.Choice) policy.Picked {
	if choice.Member == nil {
		return policy.PickedOnly
	}
	return policy.Picked(choice.Reason.String())
}
