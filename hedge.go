package fulmar

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/policy"
)

// race is a call of which several attempts may run beside each other. Each attempt has a
// goroutine and a state of its own; the goroutine of the call starts them, waits for all of
// them, and does everything else.
type race struct {
	client *Client
	call   *unaryState
	ctx    context.Context
	ended  chan *runner
	tried  []*cluster.Member
	// started is how many attempts have begun, running how many go on.
	started, running int
	// turns are when further attempts begin that were granted and wait, the first one first. They
	// count as attempts, and no hedge begins meanwhile.
	turns []time.Time
	// outrun is the cause with which the others end when one has answered.
	outrun error
	// last is the attempt that ended last. alone: no further one begins, because a
	// server has said that there shall be none.
	last  *runner
	alone bool
}

// runner is one attempt of a race.
type runner struct {
	state  *unaryState
	to     destination
	record int
	err    error
	// panicked is what encoding panicked with, in code of the user.
	panicked any
	returned bool
}

// hedged makes the attempts of a call of which another one begins beside it if one takes
// long. The first answer counts.
func (c *Client) hedged(ctx context.Context, state *unaryState, now time.Time) (address string, err error) {
	within, cancel := context.WithCancelCause(ctx)
	r := &race{client: c, call: state, ctx: within, ended: make(chan *runner)}
	defer func() {
		// Encoding reads the request, which is the caller's again when this returns.
		cancel(r.outrun)
		for ; r.running > 0; r.running-- {
			it := <-r.ended
			explainOutcome(state.explained, it.record, it.err, policy.Decision{}, time.Since(state.start))
		}
	}()
	if err := r.start(now, false); err != nil {
		return c.target, err
	}
	timer := time.NewTimer(r.next())
	defer timer.Stop()
	for {
		select {
		case runner := <-r.ended:
			r.running--
			if runner.panicked != nil {
				panic(runner.panicked)
			}
			decision := r.judge(runner)
			switch {
			case !decision.Again && (runner.won() || r.left() == 0 || decision.Reason == policy.RetryAtFault):
				return r.finish(runner)
			case !decision.Again:
				// Another one may still win.
			case decision.Delay <= 0:
				if err := r.start(time.Now(), false); err != nil && r.left() == 0 {
					return r.finish(runner) // it says more than that nobody is left for another one
				}
			default:
				r.turns = append(r.turns, time.Now().Add(decision.Delay))
				slices.SortFunc(r.turns, time.Time.Compare)
			}
			if decision.Again {
				timer.Reset(r.next())
			}
		case <-timer.C:
			if ctx.Err() != nil {
				continue // nothing begins any more
			}
			if err := r.further(time.Now()); err != nil && r.left() == 0 {
				return r.finish(r.last)
			}
			timer.Reset(r.next())
		case <-within.Done():
			if r.running == 0 {
				return r.finish(r.last) // it waited to be tried again
			}
			r.turns = nil
			within = context.WithoutCancel(within) // what runs ends by itself
		}
	}
}

// left is how many attempts are still to end.
func (r *race) left() int { return r.running + len(r.turns) }

// next is how long it takes until another attempt may begin.
func (r *race) next() time.Duration {
	if len(r.turns) > 0 {
		return time.Until(r.turns[0])
	}
	return r.call.held.Hedge.After
}

// further begins the attempt whose turn it is, or one beside those that run, if there may be one.
func (r *race) further(now time.Time) error {
	p := &r.call.held.Method
	switch {
	case len(r.turns) > 0:
		r.turns = r.turns[1:]
		return r.start(now, false)
	case r.running == 0 || r.alone || r.started >= p.AttemptsInAll() || r.running >= p.Hedge.AttemptsBeside():
		return nil
	}
	// Looked at first, because a pick that comes to nothing puts off the trial of an instance.
	if left, _ := r.client.governor.budget.Show(now); left < 1 {
		return nil
	}
	return r.start(now, true)
}

// start begins an attempt. For one beside others it takes from the budget, when there is an
// instance for it; what is tried again has paid when that was decided.
func (r *race) start(now time.Time, hedged bool) error {
	to, err := r.client.pick(r.ctx, r.tried, now)
	if err != nil {
		return err
	}
	if hedged && !r.client.governor.budget.Take(now) {
		if to.choice.Member != nil {
			r.client.instances.balancer.Done(to.choice, cluster.Unknown, 0, now)
		}
		return nil
	}
	r.started++
	r.running++
	record := r.call.begins(to, now, r.started, hedged)
	r.call.picked(to.address)
	if to.choice.Member != nil {
		r.tried = append(r.tried, to.choice.Member)
	}
	it := &runner{state: r.call.alone(), to: to, record: record}
	go func() {
		defer func() {
			if !it.returned {
				it.panicked = recover()
				if it.panicked == nil {
					it.panicked = goexit
				}
			}
			r.ended <- it
		}()
		it.err = r.client.attemptAt(r.ctx, it.state, it.to, now)
		it.returned = true
	}()
	return nil
}

// outrun ends attempts of a race: that of a number has answered.
type outrun struct{ by int }

// Error says it in words.
func (outrun) Error() string { return "another attempt has answered" }

// outran reports whether an attempt has ended because one that began later has answered: it
// had all of Hedge.After more. One in twenty is outrun if After is what it should be, so a
// few in a row say what timeouts would say, which hedged calls hardly have.
func outran(ctx context.Context, number int) bool {
	won, ok := context.Cause(ctx).(outrun)
	return ok && number < won.by
}

// won reports whether an attempt ended in an answer that counts.
func (it *runner) won() bool {
	_, failed := it.err.(*Error)
	return !failed
}

// judge decides what follows an attempt that has ended.
func (r *race) judge(it *runner) policy.Decision {
	now := time.Now()
	r.last = it
	if e, failed := it.err.(*Error); failed {
		e.address = it.to.address
		r.call.mayHaveRun = r.call.mayHaveRun || e.executed != ExecutedNo
		if r.alone = r.alone || e.pushBack < 0; r.alone {
			e.pushBack, r.turns = -1, nil // what one server has said holds for all
		}
		if r.call.observed != nil {
			r.call.observed.err = e
		}
	}
	decision := it.state.consider(r.ctx, r.client, it.err, r.started+len(r.turns), now)
	explainOutcome(r.call.explained, it.record, it.err, decision, now.Sub(r.call.start))
	return decision
}

// finish makes the outcome of an attempt that of the call.
func (r *race) finish(it *runner) (address string, err error) {
	if it.err == nil || it.won() {
		r.outrun = outrun{it.state.number}
		if r.call.reply != nil {
			reflect.ValueOf(r.call.reply).Elem().Set(reflect.ValueOf(it.state.reply).Elem())
		}
	}
	r.call.chosen.take(it.state.chosen)
	return it.to.address, it.err
}

// alone returns a copy of the state for an attempt that others run beside: with a reply of
// its own, and without observers, who are told one thing after the other.
func (u *unaryState) alone() *unaryState {
	it := *u
	it.observed, it.explained, it.fresh = nil, nil, false
	if u.reply != nil {
		it.reply = reflect.New(reflect.TypeOf(u.reply).Elem()).Interface()
	}
	it.chosen = u.chosen.alone()
	return &it
}

// alone returns the option with other places for what comes with a reply.
func (o CallOption) alone() CallOption {
	if o.receive != nil {
		o.receive = new(map[string]string)
	}
	if o.reply != nil {
		o.reply = &receivedReply{header: new(Metadata), trailer: new(Metadata)}
	}
	return o
}

// take fills in what came with the reply of an attempt that ran alone.
func (o CallOption) take(alone CallOption) {
	if o.receive != nil {
		*o.receive = *alone.receive
	}
	if o.reply != nil {
		o.reply.fill(alone.reply.header.pairs, alone.reply.trailer.pairs)
	}
}
