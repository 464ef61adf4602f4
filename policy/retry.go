package policy

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/observe"
)

// Executed says whether the handler of a failed attempt ran. The numbers are those of
// fulmar.Executed.
type Executed uint8

// What may be known.
const (
	ExecutedMaybe Executed = iota
	ExecutedNo
	ExecutedYes
)

// String returns "maybe", "no" or "yes".
func (e Executed) String() string {
	switch e {
	case ExecutedNo:
		return "no"
	case ExecutedYes:
		return "yes"
	}
	return "maybe"
}

// Failure is what is known of an attempt that has failed, and of its call.
type Failure struct {
	// Attempt is its number; the first one is 1.
	Attempt int
	// Code of its error; 0 is success.
	Code observe.Code
	// Executed says whether the handler ran.
	Executed Executed
	// Sent says that something of the request may have left. What was not sent is no load
	// for anybody: the budget is not asked, and the chain does not count.
	Sent bool
	// Answered says that the caller has something of this attempt already, as a message
	// of a stream: another one would bring it again.
	Answered bool
	// PushBack is how long the server asks to wait; negative says not to try again.
	PushBack time.Duration
	// ChainRetries says that the caller of the handler that makes this call tries again
	// itself.
	ChainRetries bool
	// Others says that there is another instance to go to.
	Others bool
	// Wish is what code of the user says of the outcome, in place of the codes.
	Wish Wish
	// Left is how much of the call's time is left, 0 if it is over or the caller gave up.
	// Negative: there is no end.
	Left time.Duration
}

// Wish is whether code of the user wants a call to be tried again.
type Wish uint8

// The wishes.
const (
	// WishNone: it was not asked, so codes decide.
	WishNone Wish = iota
	// WishAgain: the outcome is as good as a failure, whatever its code is.
	WishAgain
	// WishNot: it is not, whatever its code is.
	WishNot
)

// Decision says what becomes of a call after an attempt that has failed.
type Decision struct {
	// Again: the call is tried again.
	Again bool
	// Delay is how long it waits before.
	Delay time.Duration
	// Budget: the attempt needs room in the RetryBudget.
	Budget bool
	// Reason is why it is tried again or not.
	Reason Reason
}

// Reason is why a call was tried again or not.
type Reason uint8

// The reasons. From RetryNotExecuted on a call is tried again.
const (
	// RetryUndecided: nobody has asked.
	RetryUndecided Reason = iota
	// RetrySucceeded: there is nothing to try again.
	RetrySucceeded
	// RetryAnswered: the caller has part of an answer.
	RetryAnswered
	// RetryAtFault: the code says that the call itself is wrong.
	RetryAtFault
	// RetryOtherCode: the code is not among Codes.
	RetryOtherCode
	// RetryMayHaveRun: the handler ran or may have, and the method is not Idempotent.
	RetryMayHaveRun
	// RetryNoAttempts: there were as many Attempts as there may be.
	RetryNoAttempts
	// RetryPushedBack: the server said not to try again.
	RetryPushedBack
	// RetryInChain: the caller of the handler tries again itself.
	RetryInChain
	// RetryNoTime: the call's time would be over before.
	RetryNoTime
	// RetryNoBudget: there is no room in the RetryBudget.
	RetryNoBudget
	// RetryNotExecuted: the handler certainly did not run.
	RetryNotExecuted
	// RetryIdempotent: the handler may run twice, and the code is among Codes.
	RetryIdempotent
)

// String says it in words.
func (r Reason) String() string {
	switch r {
	case RetryUndecided:
		return "undecided"
	case RetrySucceeded:
		return "succeeded"
	case RetryAnswered:
		return "answered in part"
	case RetryAtFault:
		return "call at fault"
	case RetryOtherCode:
		return "code not retried"
	case RetryMayHaveRun:
		return "may have run"
	case RetryNoAttempts:
		return "no attempts left"
	case RetryPushedBack:
		return "server said no"
	case RetryInChain:
		return "caller retries"
	case RetryNoTime:
		return "no time left"
	case RetryNoBudget:
		return "no budget left"
	case RetryNotExecuted:
		return "not executed"
	case RetryIdempotent:
		return "idempotent"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Codes by their numbers, which are those of gRPC.
const (
	codeCanceled           observe.Code = 1
	codeUnknown            observe.Code = 2
	codeInvalidArgument    observe.Code = 3
	codeDeadlineExceeded   observe.Code = 4
	codeNotFound           observe.Code = 5
	codeAlreadyExists      observe.Code = 6
	codePermissionDenied   observe.Code = 7
	codeResourceExhausted  observe.Code = 8
	codeFailedPrecondition observe.Code = 9
	codeOutOfRange         observe.Code = 11
	codeUnimplemented      observe.Code = 12
	codeInternal           observe.Code = 13
	codeUnavailable        observe.Code = 14
	codeDataLoss           observe.Code = 15
	codeUnauthenticated    observe.Code = 16
)

const (
	// atFault are the codes that say the same at every instance, whoever is asked.
	atFault = Codes(1<<codeCanceled | 1<<codeInvalidArgument | 1<<codeNotFound | 1<<codeAlreadyExists | 1<<codePermissionDenied |
		1<<codeFailedPrecondition | 1<<codeOutOfRange | 1<<codeUnimplemented | 1<<codeUnauthenticated)

	retryCodes           = Codes(1<<codeUnavailable | 1<<codeResourceExhausted)
	retryCodesIdempotent = retryCodes | 1<<codeDeadlineExceeded
)

// Decide says whether a call is tried again after an attempt. It does not ask the budget:
// Decision.Spend does. random returns a number from 0 to below its argument; nil means the
// generator of package math/rand/v2.
func (r Retry) Decide(failure Failure, random func(n int64) int64) Decision {
	reason := r.judge(failure)
	if reason < RetryNotExecuted {
		return Decision{Reason: reason}
	}
	delay := r.delay(failure, random)
	if failure.Left >= 0 && delay >= failure.Left {
		return Decision{Reason: RetryNoTime}
	}
	return Decision{Again: true, Delay: delay, Budget: failure.Sent, Reason: reason}
}

// Spend asks the budget, if the decision needs it, and returns what is decided then.
func (d Decision) Spend(budget *Budget, now time.Time) Decision {
	if d.Again && d.Budget && !budget.Take(now) {
		return Decision{Reason: RetryNoBudget}
	}
	return d
}

// judge goes from what is final to what is about the moment, so that the reason which it
// gives is the one that would hold another time too.
func (r Retry) judge(f Failure) Reason {
	reason := RetryNotExecuted
	if f.Executed != ExecutedNo {
		reason = RetryIdempotent
	}
	switch {
	case f.Code == 0:
		return RetrySucceeded
	case f.Answered:
		return RetryAnswered
	case atFault.Has(f.Code) && !r.Codes.Has(f.Code) && f.Wish != WishAgain:
		return RetryAtFault
	case reason == RetryIdempotent && !r.Idempotent:
		return RetryMayHaveRun
	case reason == RetryIdempotent && !r.wants(f):
		return RetryOtherCode
	case f.Attempt >= r.attempts(f.Others):
		return RetryNoAttempts
	case f.PushBack < 0:
		return RetryPushedBack
	case f.ChainRetries && f.Sent && !r.IgnoreChain:
		return RetryInChain
	case f.Left == 0:
		return RetryNoTime
	}
	return reason
}

// attempts returns how many a call has at most, where there are other instances or not.
func (r Retry) attempts(others bool) int {
	if r.Attempts == 0 && !others {
		return 1
	}
	return limits.Or(r.Attempts, limits.RetryAttempts, 1)
}

// wants reports whether an outcome is one with which a call that may have run is tried again.
func (r Retry) wants(f Failure) bool {
	switch f.Wish {
	case WishAgain:
		return true
	case WishNot:
		return false
	}
	return r.codes().Has(f.Code)
}

// codes returns those with which a call that may have run is tried again.
func (r Retry) codes() Codes {
	switch {
	case r.Codes != 0:
		return r.Codes
	case r.Idempotent:
		return retryCodesIdempotent
	}
	return retryCodes
}

// delay is how long a call waits before its next attempt. What a server asks for is the
// least, and callers that were all asked for the same do not come back at once. What one
// instance refuses without executing it another one may do at once: it has limits of its own.
func (r Retry) delay(f Failure, random func(n int64) int64) time.Duration {
	if f.Executed == ExecutedNo && f.Attempt <= 1 && f.Others && !r.SameInstance {
		return 0
	}
	return min(f.PushBack, limits.PolicyDurationMax) + r.Backoff(f.Attempt, random)
}

// Backoff draws how long to wait after so many attempts: between 0 and BackoffMin, which
// doubles for each further one, up to BackoffMax. Drawing from all of it spreads calls that
// failed at once better than adding a little to a fixed wait. random is as for Decide.
func (r Retry) Backoff(attempt int, random func(n int64) int64) time.Duration {
	least, most := r.backoff()
	for ; attempt > 1 && 0 < least && least < most; attempt-- {
		least *= 2
	}
	bound := min(least, most)
	if bound <= 0 {
		return 0
	}
	if random == nil {
		random = rand.Int64N
	}
	return time.Duration(random(int64(bound) + 1))
}

// backoff returns the bounds of the wait before the first further attempt, and of all.
func (r Retry) backoff() (least, most time.Duration) {
	most = limits.Or(r.BackoffMax, limits.RetryBackoffMax, limits.PolicyDurationMax)
	return limits.Or(r.BackoffMin, limits.RetryBackoffMin, 0), min(most, limits.PolicyDurationMax)
}

// AttemptsBeside returns how many attempts of a call may run beside each other: 1 if it is
// not hedged.
func (h Hedge) AttemptsBeside() int {
	if h.After <= 0 {
		return 1
	}
	return limits.Or(h.Attempts, limits.HedgeAttempts, 1)
}

// AttemptsInAll returns how many attempts a call that is hedged may have, those in turn and
// those beside each other together.
func (m *Method) AttemptsInAll() int {
	return max(m.Retry.attempts(true), m.Hedge.AttemptsBeside())
}
