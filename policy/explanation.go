package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/observe"
)

// Explanation is what became of one call, and why. It is plain data: whoever fills it does
// so on one goroutine at a time, and a copy of it is to be read only.
type Explanation struct {
	// Service and Method are names in the IDL, Target is what the client calls.
	Service, Method, Target string
	// Version and Source are of the document that held, 0 and "" if there was none.
	Version uint64
	Source  string
	// Start and Duration are of the call with all its attempts, Code is its outcome.
	Start    time.Time
	Duration time.Duration
	Code     observe.Code
	// MethodBreaker and TargetBreaker are what was asked before the first attempt.
	MethodBreaker, TargetBreaker CircuitPosition
	// Refused says what refused the call: then there were no attempts, or an interceptor made
	// them and tried once more.
	Refused Refusal
	// Waits is how often the call has waited for a connection, as it may with WaitForReady.
	// The attempts are those behind the last time.
	Waits int

	few   [limits.ExplainedAttempts]Attempt
	more  []Attempt
	count int
}

// Attempt is one attempt of a call.
type Attempt struct {
	// Instance is where it went, "" if none was chosen.
	Instance string
	// Picked is why it went there.
	Picked Picked
	// Start is how long after that of the call it began.
	Start    time.Duration
	Duration time.Duration
	// Hedged: another attempt ran when it began.
	Hedged bool
	// Code is its outcome, and Executed whether the handler ran.
	Code     observe.Code
	Executed Executed
	// Refused is what of a server has refused it, as it says with gRPC and TTHeader.
	Refused Refusal
	// Detail is what its error says besides, which may be a peer's text: which limit of a
	// server has refused it, say.
	Detail string
	// Decision is whether there was another attempt behind it.
	Decision Decision
}

// Picked is why an instance was chosen: PickedOnly, or the text of a cluster.Reason.
type Picked string

// PickedOnly: there was no other.
const PickedOnly Picked = "only one"

// Add adds an attempt and returns it, to be completed before the next one is added.
func (e *Explanation) Add(attempt Attempt) *Attempt {
	e.count++
	if e.count <= len(e.few) {
		e.few[e.count-1] = attempt
		return &e.few[e.count-1]
	}
	e.more = append(e.more, attempt)
	return &e.more[len(e.more)-1]
}

// Len returns how many attempts there were.
func (e *Explanation) Len() int { return e.count }

// At returns an attempt; the first one is that of index 0. It must be below Len.
func (e *Explanation) At(index int) *Attempt {
	if index < len(e.few) {
		return &e.few[index]
	}
	return &e.more[index-len(e.few)]
}

// Waited counts that the attempts so far found no connection, and forgets them.
func (e *Explanation) Waited() { e.Waits, e.count, e.more = e.Waits+1, 0, e.more[:0] }

// Reset makes it empty, and keeps its memory.
func (e *Explanation) Reset() { *e = Explanation{more: e.more[:0]} }

// MarshalJSON has the fields as they are called here, and Attempts.
func (e *Explanation) MarshalJSON() ([]byte, error) {
	type fields Explanation
	all := struct {
		*fields
		Attempts []Attempt
	}{(*fields)(e), make([]Attempt, e.count)}
	for i := range all.Attempts {
		all.Attempts[i] = *e.At(i)
	}
	return json.Marshal(all)
}

// String says it in a line for the call, and one for each attempt.
func (e *Explanation) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s.%s at %s: %v in %v", e.Service, e.Method, e.Target, e.Code, e.Duration)
	if e.Refused != NotRefused {
		fmt.Fprintf(&out, ", refused: %v", e.Refused)
	}
	for _, breaker := range []struct {
		name     string
		position CircuitPosition
	}{{"method", e.MethodBreaker}, {"target", e.TargetBreaker}} {
		if breaker.position > CircuitClosed {
			fmt.Fprintf(&out, ", breaker of the %s %v", breaker.name, breaker.position)
		}
	}
	if e.Waits > 0 {
		fmt.Fprintf(&out, ", behind %d waits for a connection", e.Waits)
	}
	if e.Version != 0 || e.Source != "" {
		fmt.Fprintf(&out, ", policy %d from %s", e.Version, e.Source)
	}
	for i := range e.count {
		fmt.Fprintf(&out, "\n  %d: %s", i+1, e.At(i))
	}
	return out.String()
}

// String says it in a line.
func (a *Attempt) String() string {
	var out strings.Builder
	instance := a.Instance
	if instance == "" {
		instance = "no instance"
	}
	fmt.Fprintf(&out, "after %v to %s", a.Start, instance)
	if a.Picked != "" {
		fmt.Fprintf(&out, " (%s)", a.Picked)
	}
	if a.Hedged {
		out.WriteString(" beside another")
	}
	fmt.Fprintf(&out, ": %v in %v", a.Code, a.Duration)
	if a.Code != 0 {
		fmt.Fprintf(&out, ", executed %v", a.Executed)
	}
	if a.Refused != NotRefused {
		fmt.Fprintf(&out, ", refused: %v", a.Refused)
	}
	if a.Detail != "" {
		out.WriteString(": " + quoted(a.Detail))
	}
	switch d := a.Decision; {
	case d.Again:
		fmt.Fprintf(&out, "; again after %v: %v", d.Delay, d.Reason)
	case d.Reason > RetrySucceeded:
		fmt.Fprintf(&out, "; not again: %v", d.Reason)
	}
	return out.String()
}
