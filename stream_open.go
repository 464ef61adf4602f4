package fulmar

import (
	"context"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// openStream is the end of the chain of interceptors: it opens the stream.
func (c *Client) openStream(ctx context.Context, call Stream) error {
	s := call.state.client
	if s.current() != nil {
		return &Error{code: Internal, message: "an interceptor opened the stream twice", executed: ExecutedNo}
	}
	s.address, s.replay.ctx = c.address, ctx
	err := c.openGoverned(ctx, s)
	if e, ok := err.(*Error); ok {
		e.method, e.address, e.elapsed = s.state.method.fullName(), s.address, time.Since(s.start)
	}
	return err
}

// openGoverned opens a stream as policies say, which are those of a call until it is open.
// Afterwards it is tried again only if nobody has seen it: see reopened.
func (c *Client) openGoverned(ctx context.Context, s *clientStream) error {
	now := time.Now()
	if err := c.enter(&s.governedCall, now); err != nil {
		return err
	}
	err := c.openInTurn(ctx, s, nil, now)
	if err != nil {
		c.governor.leave(&s.governedCall, time.Now(), err)
	}
	return err
}

// openInTurn opens a stream where it can be opened, behind an attempt that failed, if there
// was one.
func (c *Client) openInTurn(ctx context.Context, s *clientStream, after *failedAttempt, now time.Time) error {
	return whenReady(ctx, s.chosen.ready.waits(c.config.WaitForReady), &s.governedCall, s.limit, now, func(now time.Time) (err error) {
		s.address, err = c.inTurn(ctx, s, &s.governedCall, after, now)
		return withAddress(err, s.address)
	})
}

// try implements attempted: it opens the stream at one address.
func (s *clientStream) try(ctx context.Context, c *Client, to destination, _ time.Time) error {
	s.address = to.address
	err := s.open(ctx, to.peer)
	if to.choice.Member == nil {
		return err
	}
	if err == nil && !to.choice.Trial() {
		// What it says of its server is known at its end. Until then it is in progress there.
		s.choice = to.choice
		return nil
	}
	// How long it took to open says nothing.
	c.instances.balancer.Done(to.choice, outcomeOf(err), 0, time.Now())
	return err
}

// outcome returns what a stream that has ended says of its instance. One that was open until
// its caller or its deadline ended it says nothing, whichever side says first that it is over.
func (s *clientStream) outcome(err error) cluster.Outcome {
	if saysTooLate(&s.ctx, err, s.start, 0) {
		return cluster.Unknown
	}
	if e, ok := err.(*Error); ok && e.origin != OriginRemote && (e.code == Canceled || e.code == DeadlineExceeded && s.ctx.Err() != nil) {
		return cluster.Unknown
	}
	return outcomeOf(err)
}

// leave tells who is to know how the stream ended, once it was open.
func (s *clientStream) leave(err error) {
	now := time.Now()
	if s.choice.Member != nil {
		s.client.instances.balancer.Done(s.choice, s.outcome(err), 0, now)
		s.choice = cluster.Choice{}
	}
	if !s.passes.none() {
		s.client.governor.leave(&s.governedCall, now, err)
	}
}

// consider implements attempted. RetryIf is not asked, because it decides about what may
// have run, and a stream that could not be opened has not.
func (s *clientStream) consider(ctx context.Context, c *Client, err error, attempt int, now time.Time) policy.Decision {
	e, failed := err.(*Error)
	if !failed {
		return policy.Decision{Reason: policy.RetrySucceeded}
	}
	return c.governor.decide(ctx, &s.governedCall, e, policy.WishNone, attempt, c.others(), now)
}

// again implements attempted. Nothing has come of an attempt that did not open the stream.
func (s *clientStream) again(error) {}

// open opens the stream at one address.
func (s *clientStream) open(ctx context.Context, peer *transport.Peer) error {
	c, method := s.client, s.state.method
	now := time.Now()
	if err := errAt(ctx, now); err != nil {
		return callFailure(err, s.limit)
	}
	request, err := peer.NewRequest(transport.Method{
		Name: method.Name, Qualified: c.nameOf(method), Path: c.pathOf(method), Payload: wire.Payload(method.payload()), Streams: true,
	}, c.requestHead(s.inChain(ctx), method, now, s.chosen.compression))
	if err != nil {
		return &Error{code: encodeCode(err), message: err.Error(), phase: PhaseEncode, executed: ExecutedNo, cause: err}
	}
	s.picked()
	carrier, err := peer.OpenStream(ctx, request)
	if err != nil {
		failed := callFailure(err, s.limit)
		if s.observed != nil {
			s.observed.err = failed
		}
		return failed
	}
	s.opened.Store(&openedStream{carrier, s.address})
	if o := s.observed; o != nil {
		use := observe.UseShared
		if c.config.Local != nil {
			use = observe.UseLocal
		}
		o.tell(observe.Event{Phase: observe.PhaseConnected, Connection: use})
	}
	return nil
}

// picked tells that an attempt goes to an address, and of the one before.
func (s *clientStream) picked() {
	o := s.observed
	if o == nil {
		return
	}
	if o.err != o.observers.notReturned {
		o.tell(observe.Event{Phase: observe.PhaseRetried, Err: o.err})
	}
	o.tell(observe.Event{Phase: observe.PhasePicked, Address: s.address})
}
