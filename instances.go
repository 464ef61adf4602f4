package fulmar

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/policy"
)

// instances are the servers of a target that has several, or whose list can change. Safe
// for concurrent use.
type instances struct {
	balancer *cluster.Balancer
	target   string
	newPeer  func(address string) *transport.Peer
	// lists is where they come from; nil if they stay as they are.
	lists *lists

	// mu guards closed, who makes a peer, and those that leave.
	mu      sync.Mutex
	closed  bool
	leaving []leavingPeer
	// late counts the late replies of peers that are gone.
	late uint64
}

func newInstances(target string, document policy.Client, newPeer func(address string) *transport.Peer) *instances {
	return &instances{
		balancer: cluster.NewBalancer(document.Balancing, document.Ejection, rand.Uint64(), nil),
		target:   target,
		newPeer:  newPeer,
	}
}

// peer returns the peer of an instance. It is made when the first call goes there, and is
// closed if the client is.
func (s *instances) peer(member *cluster.Member) *transport.Peer {
	if peer := peerOf(member); peer != nil {
		return peer
	}
	peer, late := s.makePeer(member)
	if late {
		s.lists.settle()
	}
	return peer
}

// makePeer makes the peer of an instance. late says that it has to be closed some time,
// because the instance has left since it was chosen.
func (s *instances) makePeer(member *cluster.Member) (peer *transport.Peer, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if peer := peerOf(member); peer != nil {
		return peer, false
	}
	peer = s.newPeer(member.Address())
	member.SetValue(peer)
	switch {
	case s.closed:
		peer.Close()
	case member.Gone():
		s.leaving = append(s.leaving, leavingPeer{address: member.Address(), peer: peer})
		late = true
	}
	return peer, late
}

// peerOf returns the peer of an instance that has one.
func peerOf(member *cluster.Member) *transport.Peer {
	peer, _ := member.Value().(*transport.Peer)
	return peer
}

func (s *instances) close() {
	if s.lists != nil {
		s.lists.close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, member := range s.balancer.Members() {
		if peer := peerOf(member); peer != nil {
			peer.Close()
		}
	}
	for _, leaving := range s.leaving {
		leaving.peer.Close()
	}
}

// stats adds up what the peers count.
func (s *instances) stats() (sum transport.PeerStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum.LateReplies = s.late
	add := func(peer *transport.Peer) {
		stats := peer.Stats()
		sum.Connections += stats.Connections
		sum.Shared += stats.Shared
		sum.LateReplies += stats.LateReplies
	}
	for _, member := range s.balancer.Members() {
		if peer := peerOf(member); peer != nil {
			add(peer)
		}
	}
	for _, leaving := range s.leaving {
		add(leaving.peer)
	}
	return sum
}

// pick chooses where an attempt goes: to none of those that were tried, as long as there is
// another one. It waits for a list if none has come yet.
func (s *instances) pick(ctx context.Context, tried []*cluster.Member, now time.Time) (to destination, err error) {
	key := s.key(ctx)
	choice, ok := cluster.Choice{}, false
	if len(tried) > 0 {
		choice, ok = s.balancer.PickOther(now, key, tried)
	}
	if !ok {
		choice, ok = s.balancer.Pick(now, key)
	}
	if !ok {
		if err := s.lists.wait(ctx); err != nil {
			return to, err
		}
		choice, ok = s.balancer.Pick(time.Now(), key)
	}
	if !ok {
		return to, &Error{code: Unavailable, phase: PhaseResolve, executed: ExecutedNo, message: "no instances: the list of them is empty"}
	}
	return destination{peer: s.peer(choice.Member), address: choice.Member.Address(), choice: choice}, nil
}

// key returns what chooses the instance of a call if that is chosen by metadata; else 0.
func (s *instances) key(ctx context.Context) uint64 {
	name := s.balancer.HashKey()
	if name == "" {
		return 0
	}
	sent := OutgoingMetadata(ctx)
	value, ok := sent.Transient(name)
	if !ok {
		value, ok = sent.Persistent(name)
	}
	if !ok {
		return 0
	}
	return cluster.Hash(value)
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

// outcomeOf returns what an attempt has shown of its instance. A server fails that stops,
// does not answer in time, or loses the connection. Whose fault it is that something went
// wrong within it only a comparison with other instances tells. All else that a server says
// about the call is an answer: if it has too much to do, leaving it alone would give its
// calls to others, which have as much. An attempt that was given up on this side, by its caller
// or because another one had won, shows nothing: as an answer it acquitted an instance that
// hangs, which with hedging, or callers that cancel, then never was ejected.
func outcomeOf(err error) cluster.Outcome {
	e, ok := err.(*Error)
	switch failed := transportFailure(err); {
	case !ok:
		return cluster.Reached
	case e.origin == OriginRemote:
		switch e.code {
		case Unavailable:
			return cluster.Failed
		case Internal, Unknown, DataLoss, DeadlineExceeded:
			return cluster.Erred
		case ResourceExhausted:
			return cluster.Busy
		case Canceled:
			return cluster.Unknown // whoever says it first
		}
		return cluster.Reached
	case failed == nil:
		if e.phase == PhaseReply {
			return cluster.Reached
		}
		return cluster.Unknown
	case failed.Refused:
		return cluster.Refused
	case failed.Phase >= transport.PhaseWrite && e.code != Canceled:
		return cluster.Failed
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
