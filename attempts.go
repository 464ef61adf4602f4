package fulmar

import (
	"context"
	"reflect"
	"strconv"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/observe"
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

// attempts makes the attempts of a call, and returns the address of the last one.
func (c *Client) attempts(ctx context.Context, state *unaryState) (address string, err error) {
	g, m := c.governor, state.governed
	now := state.clock()
	explained := state.explained.into
	passes, refused := g.enter(m, now, explained)
	if refused != nil {
		return c.target, refused
	}
	state.passes = passes
	g.budget.Call()
	p := m.policy.Load()
	if p.Hedge.AttemptsBeside() > 1 && p.Retry.Idempotent && !state.method.Oneway {
		address, err = c.hedged(ctx, state, p, now)
	} else {
		address, err = c.inTurn(ctx, state, p, now)
	}
	if passes.none() {
		return address, err
	}
	if state.endedAt.IsZero() {
		state.endedAt = time.Now()
	}
	g.leave(m, &passes, state.endedAt, err)
	return address, err
}

// inTurn makes attempts one after the other, until one succeeds or policies say that it is
// enough.
func (c *Client) inTurn(ctx context.Context, state *unaryState, p *policy.Method, now time.Time) (address string, err error) {
	var few [triedFew]*cluster.Member
	tried := few[:0]
	for number := 1; ; number++ {
		to, err := c.pick(ctx, tried, now)
		if err != nil {
			return c.target, err
		}
		record := state.begins(to, now, number, false)
		err = c.attemptAt(ctx, state, p, to, now)
		e, failed := err.(*Error)
		if !failed && record < 0 && c.config.RetryIf == nil {
			return to.address, err
		}
		now = time.Now()
		if failed {
			e.address, e.before = to.address, state.before
		}
		decision := c.consider(ctx, state, p, err, number, now)
		explainOutcome(state.explained.into, record, err, decision, now.Sub(state.start))
		if !decision.Again {
			return to.address, err
		}
		if !pause(ctx, decision.Delay) {
			return to.address, err
		}
		state.again(err)
		if !p.Retry.SameInstance && to.choice.Member != nil {
			tried = append(tried, to.choice.Member)
		}
		if decision.Delay > 0 {
			now = time.Now()
		}
	}
}

// consider says whether a call is tried again after an attempt that ended in err.
func (c *Client) consider(ctx context.Context, state *unaryState, p *policy.Method, err error, attempt int, now time.Time) policy.Decision {
	retry := p.Retry
	e, failed := err.(*Error)
	if wanted := c.config.RetryIf; wanted != nil && retry.Idempotent && (!failed || e.executed != ExecutedNo) {
		if !wanted(Unary{state}, err) {
			if !failed {
				return policy.Decision{Reason: policy.RetrySucceeded}
			}
			return policy.Decision{Reason: policy.RetryOtherCode}
		}
		if !failed {
			// What a handler answers on purpose has no code of its own.
			e, failed = &Error{code: Unknown, origin: OriginRemote, executed: ExecutedYes}, true
		}
		retry.Codes = policy.CodesOf(observe.Code(e.code))
	}
	if !failed {
		return policy.Decision{Reason: policy.RetrySucceeded}
	}
	return c.governor.decide(ctx, retry, &state.passes, e, attempt, c.others(), now)
}

// others reports whether the target has more than one instance.
func (c *Client) others() bool { return c.instances != nil && len(c.instances.balancer.Members()) > 1 }

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

// attemptAt makes one attempt, and tells the balancer what it has shown.
func (c *Client) attemptAt(ctx context.Context, state *unaryState, p *policy.Method, to destination, now time.Time) (err error) {
	limit := state.limit
	if timeout := p.Retry.AttemptTimeout; timeout > 0 && (limit <= 0 || timeout < limit) {
		within, cancel := context.WithDeadline(ctx, now.Add(timeout))
		defer cancel()
		ctx, limit = within, timeout
	}
	if state.number > 1 {
		ctx = WithPersistent(ctx, chainKey, strconv.Itoa(state.number-1))
	}
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
	return err
}

// begins notes that an attempt begins, and returns its place in the explanation.
func (u *unaryState) begins(to destination, now time.Time, number int, hedged bool) (record int) {
	u.number = number
	u.picked(to.address)
	return explainAttempt(u.explained.into, to, now.Sub(u.start), hedged)
}

// again makes a call ready for the attempt behind one that ended in err.
func (u *unaryState) again(err error) {
	e, failed := err.(*Error)
	u.mayHaveRun = u.mayHaveRun || !failed || e.executed != ExecutedNo
	u.before = e
	if u.observed != nil {
		u.observed.err = err
	}
	u.forgetReply()
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
