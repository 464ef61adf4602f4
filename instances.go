package fulmar

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// instances are the servers of a target that has several. Safe for concurrent
// use.
type instances struct {
	balancer *cluster.Balancer
	all      []instance
	newPeer  func(address string) *transport.Peer
	retries  retryBudget

	// mu guards closed, and who makes a peer.
	mu     sync.Mutex
	closed bool
}

// instance is one of them. Its peer is made when the first call goes there.
type instance struct {
	address string
	peer    atomic.Pointer[transport.Peer]
}

func newInstances(list []cluster.Instance, newPeer func(address string) *transport.Peer) *instances {
	s := &instances{
		balancer: cluster.NewBalancer(len(list), nil),
		all:      make([]instance, len(list)),
		newPeer:  newPeer,
	}
	for i := range list {
		s.all[i].address = list[i].Address
	}
	return s
}

// peer returns the peer of an instance. It is closed if the client is.
func (s *instances) peer(index int) *transport.Peer {
	if peer := s.all[index].peer.Load(); peer != nil {
		return peer
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if peer := s.all[index].peer.Load(); peer != nil {
		return peer
	}
	peer := s.newPeer(s.all[index].address)
	if s.closed {
		peer.Close()
	}
	s.all[index].peer.Store(peer)
	return peer
}

func (s *instances) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for i := range s.all {
		if peer := s.all[i].peer.Load(); peer != nil {
			peer.Close()
		}
	}
}

// stats adds up what the peers count.
func (s *instances) stats() (sum transport.PeerStats) {
	for i := range s.all {
		if peer := s.all[i].peer.Load(); peer != nil {
			stats := peer.Stats()
			sum.Connections += stats.Connections
			sum.Shared += stats.Shared
			sum.LateReplies += stats.LateReplies
		}
	}
	return sum
}

// attemptAtOne makes a call at one of several instances, and once more at
// another one if the first certainly got nothing of it, or has refused it because it
// stops; or because it is overloaded, and few calls have met with that. It returns the
// address of the last one.
func (c *Client) attemptAtOne(ctx context.Context, state *unaryState) (address string, err error) {
	c.instances.retries.calls.Add(1)
	choice := c.instances.balancer.Pick(time.Now())
	address, err = c.attemptAt(ctx, state, choice)
	refused := refusedWith(err)
	if !certainlyUnsent(err) && refused == 0 || ctx.Err() != nil {
		return address, err
	}
	other, ok := c.instances.balancer.PickOther(choice)
	if !ok {
		return address, err
	}
	if refused == ResourceExhausted && !c.instances.retries.take(time.Now()) {
		c.instances.balancer.Done(other, cluster.Unknown, time.Now())
		return address, err
	}
	first := err.(*Error)
	first.address = address
	if state.observed != nil {
		state.observed.err = err
	}
	address, err = c.attemptAt(ctx, state, other)
	if e, ok := err.(*Error); ok {
		e.before = first
	}
	return address, err
}

// attemptAt makes a call at a chosen instance, and tells the balancer what it
// has shown.
func (c *Client) attemptAt(ctx context.Context, state *unaryState, choice cluster.Choice) (address string, err error) {
	outcome := cluster.Unknown
	// Deferred, because encoding runs code of the user, which can panic.
	defer func() { c.instances.balancer.Done(choice, outcome, time.Now()) }()
	state.picked(c.instances.all[choice.Index].address)
	err = c.attempt(ctx, c.instances.peer(choice.Index), state)
	outcome = outcomeOf(err)
	return c.instances.all[choice.Index].address, err
}

// certainlyUnsent reports whether a call failed without the peer having got all
// of its request, so that another one may get it.
func certainlyUnsent(err error) bool {
	failed := transportFailure(err)
	return failed != nil && !failed.Sent && !errors.Is(failed, transport.ErrClosed)
}

// refusedWith returns the code with which a server has refused a call that it did not
// execute and that another one may; 0 if it has not.
func refusedWith(err error) Code {
	e, ok := err.(*Error)
	if ok && e.origin == OriginRemote && e.executed == ExecutedNo && (e.code == Unavailable || e.code == ResourceExhausted) {
		return e.code
	}
	return 0
}

// outcomeOf returns what an attempt has shown of its instance.
func outcomeOf(err error) cluster.Outcome {
	e, ok := err.(*Error)
	switch failed := transportFailure(err); {
	case !ok || e.origin == OriginRemote:
		return cluster.Reached
	case failed == nil:
		if e.phase == PhaseReply {
			return cluster.Reached
		}
		return cluster.Unknown
	case failed.Refused:
		return cluster.Refused
	case failed.Phase >= transport.PhaseWrite:
		return cluster.Reached
	}
	return cluster.Unknown
}

// transportFailure returns what the transport said of an attempt that failed
// there, or nil.
func transportFailure(err error) *transport.CallError {
	e, ok := err.(*Error)
	if !ok || e.cause == nil {
		return nil
	}
	failed, _ := e.cause.(*transport.CallError)
	return failed
}
