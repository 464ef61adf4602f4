package fulmar

import (
	"context"
	"reflect"
	"strconv"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/policy"
)

// destination is where an attempt goes.
type destination struct {
	peer    *transport.Peer
	address string
	choice  cluster.Choice
}

// triedFew is how many instances are remembered without memory of their own.
const triedFew = 4

// pick chooses where the next attempt of a call goes.
func (c *Client) pick(ctx context.Context, tried []*cluster.Member, now time.Time) (to destination, err error) {
	if c.instances == nil {
		return destination{peer: c.peer, address: c.address}, nil
	}
	return c.instances.pick(ctx, tried, now)
}

// governedCall is what policies make of a call, or of a stream until it is open.
type governedCall struct {
	governed *governedMethod
	// held is what held for the method when the call began.
	held   *heldMethod
	passes passes
	// start is when it began.
	start time.Time
	// explained is the explanation that somebody wants of it, nil if nobody does; sampled
	// says that it is one in so many.
	explained *policy.Explanation
	sampled   bool
	// number is that of the attempt, before the error of the one before.
	number int
	before *Error
	// policyTimeout is that of the policy, negative if there is none; 0 for calls that bring
	// a time of their own, and for streams.
	policyTimeout time.Duration
}

// attempted is a call, or a stream that is to be opened, while attempts of it are made.
type attempted interface {
	// try makes an attempt.
	try(ctx context.Context, c *Client, to destination, now time.Time) error
	// consider says whether another one follows what ended in err.
	consider(ctx context.Context, c *Client, err error, attempt int, now time.Time) policy.Decision
	// again makes it ready for the attempt behind one that ended in err.
	again(err error)
}

// failedAttempt is one that others follow; member is the instance, if there are several.
type failedAttempt struct {
	err    *Error
	member *cluster.Member
}

var (
	_ attempted = (*unaryState)(nil)
	_ attempted = (*clientStream)(nil)
)

// enter asks the breakers, and returns why the call is refused if it is.
func (c *Client) enter(call *governedCall, now time.Time) error {
	passes, refused := c.governor.enter(call.governed, now, call.explained)
	if refused != nil {
		return refused
	}
	call.passes = passes
	c.governor.budget.Call()
	return nil
}

// clock returns what time it is. An attempt that follows the beginning of its call at
// once does not look again: looking takes 50 ns of a call's 4 us.
func (u *unaryState) clock() time.Time {
	if u.fresh {
		u.fresh = false
		return u.start
	}
	return time.Now()
}

// plain reports whether the attempts of a call are made one after the other, and none of
// them waits for a connection.
func (u *unaryState) plain(ctx context.Context) bool { return !u.waits && !u.hedges(ctx) }

// hedges reports whether attempts of a call may run beside each other.
func (u *unaryState) hedges(ctx context.Context) bool {
	p := &u.held.Method
	return p.Hedge.AttemptsBeside() > 1 && p.Retry.Idempotent && !u.method.Oneway && (p.Retry.IgnoreChain || !inChain(ctx))
}

// attempts makes the attempts of a call that is not plain, and returns the address of the
// last one.
func (c *Client) attempts(ctx context.Context, state *unaryState, now time.Time) (address string, err error) {
	hedges := state.hedges(ctx)
	err = whenReady(ctx, state.waits, &state.governedCall, state.limit, now, func(now time.Time) (err error) {
		if hedges {
			address, err = c.hedged(ctx, state, now)
		} else {
			address, err = c.inTurn(ctx, state, &state.governedCall, nil, now)
		}
		return withAddress(err, address)
	})
	return address, err
}

// leave tells the breakers how a call has ended that they let pass.
func (c *Client) leave(state *unaryState, err error) {
	if state.passes.none() {
		return
	}
	if state.endedAt.IsZero() {
		state.endedAt = time.Now()
	}
	c.governor.leave(&state.governedCall, state.endedAt, err)
}

// inTurn makes attempts one after the other, until one succeeds or policies say that it is
// enough. call is part of it. after is an attempt that failed before, if there is one.
func (c *Client) inTurn(ctx context.Context, it attempted, call *governedCall, after *failedAttempt, now time.Time) (address string, err error) {
	var few [triedFew]*cluster.Member
	tried, first := few[:0], 1
	call.before = nil
	if after != nil {
		call.before, first = after.err, call.number+1
		if after.member != nil && !call.held.Retry.SameInstance {
			tried = append(tried, after.member)
		}
	}
	for number := first; ; number++ {
		to, nobody := c.pick(ctx, tried, now)
		switch {
		case nobody != nil && number == first:
			return c.target, nobody
		case nobody != nil:
			return address, err // it says more than that nobody is left for another one
		case number > first:
			it.again(err)
		}
		record := call.begins(to, now, number, false)
		address, err = to.address, it.try(ctx, c, to, now)
		e, failed := err.(*Error)
		if !failed && record < 0 && c.config.RetryIf == nil {
			return address, err
		}
		now = time.Now()
		if failed {
			e.address, e.before = to.address, call.before
		}
		decision := it.consider(ctx, c, err, number, now)
		explainOutcome(call.explained, record, err, decision, now.Sub(call.start))
		if !decision.Again || !pause(ctx, decision.Delay) {
			return address, err
		}
		call.before = e
		if !call.held.Retry.SameInstance && to.choice.Member != nil {
			tried = append(tried, to.choice.Member)
		}
		if decision.Delay > 0 {
			now = time.Now()
		}
	}
}

// begins notes that an attempt begins, and returns its place in the explanation.
func (g *governedCall) begins(to destination, now time.Time, number int, hedged bool) (record int) {
	g.number = number
	return explainAttempt(g.explained, to, now.Sub(g.start), hedged)
}

// waited notes that the attempts before found no connection, and that the call has waited
// for one.
func (g *governedCall) waited() {
	g.passes.told = true
	if g.explained != nil {
		g.explained.Waited()
	}
}

// inChain returns the context of an attempt, which says in its metadata if it is not the
// first one.
func (g *governedCall) inChain(ctx context.Context) context.Context {
	if g.number > 1 {
		return WithPersistent(ctx, chainKey, strconv.Itoa(g.number-1))
	}
	return ctx
}

// consider implements attempted.
func (u *unaryState) consider(ctx context.Context, c *Client, err error, attempt int, now time.Time) policy.Decision {
	e, failed := err.(*Error)
	wish := policy.WishNone
	if wanted := c.config.RetryIf; wanted != nil && u.held.Retry.Idempotent && (!failed || e.executed != ExecutedNo) {
		if wish = policy.WishNot; wanted(Unary{u}, err) {
			wish = policy.WishAgain
		}
		if !failed && wish == policy.WishAgain {
			// What a handler answers on purpose has no code of its own.
			e, failed = &Error{code: Unknown, origin: OriginRemote, executed: ExecutedYes}, true
		}
	}
	if !failed {
		return policy.Decision{Reason: policy.RetrySucceeded}
	}
	return c.governor.decide(ctx, &u.governedCall, e, wish, attempt, c.others(), now)
}

// others reports whether the target has more than one instance.
func (c *Client) others() bool { return c.instances != nil && c.instances.balancer.Len() > 1 }

// pause waits, and reports whether the call goes on then.
func pause(ctx context.Context, delay time.Duration) bool {
	if delay <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// try implements attempted: it makes one attempt, and tells the balancer what it has shown.
func (u *unaryState) try(ctx context.Context, c *Client, to destination, now time.Time) (err error) {
	u.picked(to.address)
	if to.choice.Member == nil && u.held.Retry.AttemptTimeout <= 0 && u.number == 1 {
		return c.attempt(ctx, to.peer, u, now, u.limit) // as attemptAt would, a frame less deep
	}
	return c.attemptAt(ctx, u, to, now)
}

// attemptAt makes one attempt, and tells the balancer what it has shown.
func (c *Client) attemptAt(ctx context.Context, state *unaryState, to destination, now time.Time) (err error) {
	limit, call := state.limit, ctx
	if timeout := state.held.Retry.AttemptTimeout; timeout > 0 && (limit <= 0 || timeout < limit) {
		within := attemptContext(ctx, now.Add(timeout))
		defer within.finish()
		ctx, limit = within, timeout
	}
	ctx = state.inChain(ctx)
	if to.choice.Member == nil {
		return c.attempt(ctx, to.peer, state, now, limit)
	}
	outcome := cluster.Unknown
	// Deferred, because encoding runs code of the user, which can panic.
	defer func() {
		ended, took := time.Now(), time.Duration(0)
		state.endedAt = ended
		if !state.method.Oneway {
			took = ended.Sub(now)
		}
		c.instances.balancer.Done(to.choice, outcome, took, ended)
	}()
	err = c.attempt(ctx, to.peer, state, now, limit)
	outcome = outcomeOf(err)
	if outcome == cluster.Unknown && outran(call, state.number) || saysTooLate(ctx, err, now, limit) {
		outcome = cluster.Failed
	}
	if err == nil && state.method.Oneway && !to.choice.Trial() {
		// It was written, which servers take that fail. In a trial it is what is asked.
		outcome = cluster.Unknown
	}
	return err
}

// saysTooLate reports whether the server has said that the time of an attempt is over, which
// began so long ago and could take so long, when it was for the caller too: both know when, and
// who says it first is chance, 4 to 12 % of the time the server. That some time is over earlier
// says that a server behind it is slow.
func saysTooLate(ctx context.Context, err error, began time.Time, limit time.Duration) bool {
	e, ok := err.(*Error)
	if !ok || e.origin != OriginRemote || e.code != DeadlineExceeded {
		return false
	}
	if deadline, ok := ctx.Deadline(); ok && (limit <= 0 || deadline.Sub(began) < limit) {
		limit = deadline.Sub(began)
	}
	return limit > 0 && time.Since(began) >= limit-limit/8
}

// attemptContext returns the context of an attempt that has a deadline of its own, unless the
// call's comes first. One of package context would take 19 allocations of 1.6 KB in place of
// one.
func attemptContext(ctx context.Context, deadline time.Time) *callContext {
	within := &callContext{parent: ctx, deadline: deadline}
	if outer, ok := ctx.Deadline(); ok && outer.Before(deadline) {
		within.deadline = outer
	}
	if call, ok := ctx.(*callContext); ok && call.served == nil {
		// That of the call ends with its parent and its deadline. To wait for it would make
		// what it saves.
		within.parent = call.parent
	}
	return within
}

// again implements attempted.
func (u *unaryState) again(err error) {
	e, failed := err.(*Error)
	u.mayHaveRun = u.mayHaveRun || !failed || e.executed != ExecutedNo
	if u.observed != nil {
		u.observed.err = err
	}
	u.forgetReply()
}

// beginAgain forgets of the call what it has come to so far, when an interceptor goes on with
// it once more.
func (u *unaryState) beginAgain() {
	u.forgetReply()
	u.endedAt = time.Time{}
	explainRefusal(u.explained, policy.NotRefused)
}

// forgetReply empties what an attempt may have filled in: it would be taken for the next one's.
func (u *unaryState) forgetReply() {
	if u.reply != nil {
		reflect.ValueOf(u.reply).Elem().SetZero()
	}
	if u.chosen.receive != nil {
		*u.chosen.receive = nil
	}
	u.chosen.reply.fill(nil, nil)
}
