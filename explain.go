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

// explanation is what is written down of a call: into is nil if nobody wants it, and sampled
// says that the call is the one in so many.
type explanation struct {
	into    *policy.Explanation
	sampled bool
}

// explain begins the explanation of a call that has one, or is the one in so many.
func (c *Client) explain(wanted *policy.Explanation, method *MethodDesc, start time.Time) explanation {
	e, sampled := wanted, false
	if e == nil {
		if c.explainEvery == 0 || c.explains.Add(1)%c.explainEvery != 0 {
			return explanation{}
		}
		e, sampled = new(policy.Explanation), true
	}
	held := c.governor.current.Load()
	e.Reset()
	e.Service, e.Method, e.Target = method.Service, method.Name, c.target
	e.Version, e.Source, e.Start = held.version, held.source, start
	return explanation{e, sampled}
}

// explained completes the explanation of a call, or of the opening of a stream.
func (c *Client) explained(e explanation, start time.Time, err error) {
	if e.into == nil {
		return
	}
	e.into.Duration, e.into.Code = time.Since(start), observe.Code(CodeOf(err))
	if e.sampled {
		c.config.OnExplanation(e.into)
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
	}
}

// pickedBecause says in an explanation why an instance was chosen.
func pickedBecause(choice cluster.Choice) policy.Picked {
	if choice.Member == nil {
		return policy.PickedOnly
	}
	return policy.Picked(choice.Reason.String())
}
