package fulmar

import (
	"fmt"
	"strconv"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/policy"
)

// refusedByBreaker is the error for a call that a breaker of the client refuses.
func refusedByBreaker(what string, state policy.CircuitState) *Error {
	return &Error{
		code: Unavailable, origin: OriginLocal, phase: PhaseAcquire, executed: ExecutedNo,
		message: fmt.Sprintf("the breaker of %s is %v", what, state),
	}
}

// overLimit is the error for a call that a limit of the server refuses. wait is how long until
// a rate lets one begin, which the caller is told: who comes back sooner is refused again.
func overLimit(of string, limit policy.Limit, refusal policy.Refusal, wait time.Duration) *Error {
	e := &Error{code: ResourceExhausted, executed: ExecutedNo, pushBack: wait, refused: refusal}
	switch refusal {
	case policy.RefusedByRate:
		e.message = fmt.Sprintf("limit of %s: %d calls in a second (the next one in %v)", of, limit.PerSecond, inMilliseconds(wait))
	default:
		e.message = fmt.Sprintf("limit of %s: %v (limit %d)", of, refusal, limit.Running)
	}
	return e
}

// refusalHead is what the answer to a call that is refused says besides why.
func refusalHead(err error) transport.ReplyHead {
	head := transport.ReplyHead{Executed: executedNo}
	e, ok := err.(*Error)
	if !ok || e.refused == policy.NotRefused {
		return head
	}
	head.Trailing = append(make([]transport.Pair, 0, 2), transport.Pair{Key: wire.Refused, Value: refusalWord(e.refused)})
	if e.pushBack > 0 {
		head.Trailing = append(head.Trailing, transport.Pair{Key: wire.PushBack, Value: strconv.FormatInt(inMilliseconds(e.pushBack).Milliseconds(), 10)})
	}
	return head
}

// refusalWord returns the word for which a refusal stands in wire.Refused.
func refusalWord(refusal policy.Refusal) string {
	switch refusal {
	case policy.RefusedByRate:
		return "rate"
	case policy.RefusedByRunning:
		return "running"
	case policy.RefusedByAdaptive:
		return "adaptive"
	}
	return "load"
}

// refusalOf is refusalWord the other way round.
func refusalOf(word string) policy.Refusal {
	for _, refusal := range [...]policy.Refusal{policy.RefusedByRate, policy.RefusedByRunning, policy.RefusedByAdaptive, policy.RefusedByLoad} {
		if refusalWord(refusal) == word {
			return refusal
		}
	}
	return policy.NotRefused
}

// inMilliseconds returns a wait in whole milliseconds, as callers are told of it. It is
// rounded up, because a call that comes too early by less is refused as well.
func inMilliseconds(wait time.Duration) time.Duration {
	return (wait + time.Millisecond - 1).Truncate(time.Millisecond)
}

// withWishes notes what the answer of a failed call says about trying again, and about why
// it was refused.
func withWishes(e *Error, head transport.ReplyHead) *Error {
	for _, pairs := range [...][]transport.Pair{head.Metadata, head.Trailing} {
		for i := range pairs {
			switch pairs[i].Key {
			case wire.Refused:
				e.refused = refusalOf(pairs[i].Value)
			case wire.PushBack:
				milliseconds, err := strconv.ParseInt(pairs[i].Value, 10, 32)
				if e.pushBack = time.Duration(milliseconds) * time.Millisecond; err != nil || milliseconds < 0 {
					e.pushBack = -1
				}
			}
		}
	}
	return e
}
