package fulmar

import (
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// Explain has a call write down why it went as it did: which instances it was sent to and
// why, what became of each attempt, and what breakers and budgets said. into is complete
// when the call has returned; of a stream it tells how it was opened.
func Explain(into *policy.Explanation) CallOption { return CallOption{explained: into} }

// explainBegin begins the explanation of a call, if it wants one or is the one in so many.
func (c *Client) explainBegin(call *governedCall, method *MethodDesc, wanted *policy.Explanation) {
	if wanted == nil {
		if c.explainEvery == 0 || c.explains.Add(1)%c.explainEvery != 0 {
			return
		}
		wanted, call.sampled = new(policy.Explanation), true
	}
	call.explained = wanted
	held := call.held.document
	wanted.Reset()
	wanted.Service, wanted.Method, wanted.Target = method.Service, method.Name, c.target
	wanted.Version, wanted.Source, wanted.Start = held.version, held.source, call.start
}

// explainEnd completes the explanation of a call, if there is one.
func (c *Client) explainEnd(call *governedCall, err error) {
	e := call.explained
	if e == nil {
		return
	}
	e.Duration, e.Code = time.Since(call.start), observe.Code(CodeOf(err))
	if call.sampled {
		c.config.OnExplanation(e)
	}
}

// explainRefusal notes that a call was refused before its first attempt; e may be nil, here
// and below.
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
		attempt.Refused, attempt.Detail = failed.refused, failed.message
	}
}

// pickedBecause says in an explanation why an instance was chosen.
func pickedBecause(choice cluster.Choice) policy.Picked {
	if choice.Member == nil {
		return policy.PickedOnly
	}
	return policy.Picked(choice.Reason.String())
}
