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
	e := &Error{code: ResourceExhausted, executed: ExecutedNo, pushBack: wait}
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
	if e, ok := err.(*Error); ok && e.pushBack > 0 {
		head.Trailing = []transport.Pair{{Key: wire.PushBack, Value: strconv.FormatInt(inMilliseconds(e.pushBack).Milliseconds(), 10)}}
	}
	return head
}

// inMilliseconds returns a wait in whole milliseconds, as callers are told of it. It is
// rounded up, because a call that comes too early by less is refused as well.
func inMilliseconds(wait time.Duration) time.Duration {
	return (wait + time.Millisecond - 1).Truncate(time.Millisecond)
}

// withPushBack notes what the answer of a failed call says about trying again.
func withPushBack(e *Error, head transport.ReplyHead) *Error {
	for _, pairs := range [...][]transport.Pair{head.Metadata, head.Trailing} {
		for i := range pairs {
			if pairs[i].Key != wire.PushBack {
				continue
			}
			milliseconds, err := strconv.ParseInt(pairs[i].Value, 10, 32)
			if e.pushBack = time.Duration(milliseconds) * time.Millisecond; err != nil || milliseconds < 0 {
				e.pushBack = -1
			}
		}
	}
	return e
}
