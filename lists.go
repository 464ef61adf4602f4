package fulmar

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/peerlog"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// lists are those of the instances of a target, as a resolver delivers them: one behind
// the other, with a pause in between, and an empty one only if it lasts. Safe for
// concurrent use.
type lists struct {
	owner    *instances
	resolver cluster.Resolver
	log      *peerlog.Log
	cancel   context.CancelFunc
	// first is closed when there is a list, closing when the client is closed, and done
	// when the goroutine of the resolver has ended.
	first, closing, done chan struct{}

	applied, keptOut, failures atomic.Uint64

	// What may be wrong with the source: it cannot be asked, it has instances that cannot be
	// called, it has none.
	lookup, leftOut, empty trouble

	mu     sync.Mutex
	closed bool
	// left is what the log says of instances that were left out of the last list.
	left []any
	// next is a list that waits until it may be used, waiting if there is one.
	next    []cluster.Instance
	waiting bool
	// notBefore is when the next list may be used, emptySince since when the source has
	// said that there are no instances, and has not failed; zero if it does not.
	notBefore, emptySince time.Time
	// timer looks again at what was not due yet.
	timer *time.Timer
	// problem is what last went wrong, nil if a list has come since.
	problem error
}

// startLists begins to ask a resolver for the instances. close must be called in the end.
func startLists(owner *instances, resolver cluster.Resolver, log *peerlog.Log) *lists {
	ctx, cancel := context.WithCancel(context.Background())
	l := &lists{
		owner: owner, resolver: resolver, log: log, cancel: cancel,
		first: make(chan struct{}), closing: make(chan struct{}), done: make(chan struct{}),
		leftOut: trouble{holds: true}, empty: trouble{holds: true},
	}
	go l.run(cluster.WithReport(ctx, l.report))
	return l
}

// run asks the resolver until ctx ends, again and again if it fails: until there is
// another list, the last one is used.
func (l *lists) run(ctx context.Context) {
	defer close(l.done)
	pauses := registries.Pauses{Min: limits.ResolvePauseMin, Max: limits.ResolvePauseMax}
	for {
		applied := l.applied.Load()
		err := l.resolve(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if l.hasList() {
				return
			}
			err = errors.New("the resolver ended without a list")
		}
		l.contradict(err)
		if l.applied.Load() != applied {
			pauses.Reset() // It worked for a while.
		}
		if registries.Wait(ctx, pauses.Next()) != nil {
			return
		}
	}
}

// resolve runs code of the user: a panic there is an error.
func (l *lists) resolve(ctx context.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the resolver panicked: %v", value)
		}
	}()
	return l.resolver.Resolve(ctx, l.deliver)
}

// report notes that the source of the lists fails. It may have failed for longer, and does
// not know then that there are still no instances: its empty list waits anew.
func (l *lists) report(err error) {
	if err == nil {
		return
	}
	l.failures.Add(1)
	if _, say := l.lookup.note(err); say {
		l.sayLookup(err.Error())
	}
	l.mu.Lock()
	l.problem = err
	if l.keepsEmptyOutLocked() {
		l.emptySince = time.Now()
	}
	l.mu.Unlock()
	l.settle()
}

// contradict is report for what ends an empty list that waits: the source says something
// else, or will say again what there is.
func (l *lists) contradict(err error) {
	l.mu.Lock()
	if l.keepsEmptyOutLocked() {
		l.next, l.waiting, l.emptySince = nil, false, time.Time{}
	}
	l.mu.Unlock()
	l.report(err)
}

// keepsEmptyOutLocked reports whether an empty list waits until it has lasted.
func (l *lists) keepsEmptyOutLocked() bool { return l.waiting && len(l.next) == 0 && l.hasList() }

func (l *lists) sayLookup(problem string) {
	l.log.Warn("instances cannot be looked up", "target", l.owner.target, "error", problem)
}

// noteLeftOutLocked notes what was left out of a list.
func (l *lists) noteLeftOutLocked(left []any) {
	if l.left = left; left == nil {
		if l.leftOut.end() {
			l.log.Info("all instances of the list are used again", "target", l.owner.target)
		}
		return
	}
	// The first two say how many were kept, which makes no other trouble of it.
	if _, say := l.leftOut.note(fmt.Errorf("%v", left[2:])); say {
		l.sayLeftOutLocked()
	}
}

func (l *lists) sayLeftOutLocked() {
	l.log.Warn("instances are left out: their addresses are none, or there are too many", append([]any{"target", l.owner.target}, l.left...)...)
}

// sayLateLocked says what could not be said when it came, because the same had come and
// gone too often, and is still so. It returns when to do so again, zero if there is nothing.
// That a list is empty is not said late: by then it is used, which the log says.
func (l *lists) sayLateLocked() (again time.Time) {
	problem, say, again := l.lookup.late()
	if say {
		l.sayLookup(problem)
	}
	_, say, due := l.leftOut.late()
	if say {
		l.sayLeftOutLocked()
	}
	return earlier(again, due)
}

// earlier returns the earlier of two times, of which one that is zero does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// deliver takes a list of the resolver.
func (l *lists) deliver(list []cluster.Instance) {
	var left []any
	if len(list) > 0 {
		var err error
		if list, left, err = l.usable(list); err != nil {
			l.contradict(err)
			return
		}
	}
	if l.lookup.end() {
		l.log.Info("there is a list of instances again", "target", l.owner.target)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.problem, l.next, l.waiting = nil, list, true
	switch {
	case len(list) > 0:
		l.emptySince = time.Time{}
		if l.empty.end() {
			l.log.Info("the list of instances is not empty any more", "target", l.owner.target)
		}
		l.noteLeftOutLocked(left)
	case l.emptySince.IsZero():
		if l.emptySince = time.Now(); !l.hasList() {
			break
		}
		l.keptOut.Add(1)
		if _, say := l.empty.note(errEmptyList); say {
			l.log.Warn("the list of instances is empty; the last one stays for a while", "target", l.owner.target, "for", limits.EmptyListPatience)
		}
	}
	l.settleLocked()
}

// errEmptyList is what is wrong with a source that has no instances.
var errEmptyList = errors.New("the list of instances is empty")

// usable returns a list without what cannot be called and what is there twice, and not
// longer than it may be. The first of those with one address counts, as for a balancer. Of
// what is left out the log has one line however much it is, with left, which is nil if there
// is nothing; if that is all, it is an error.
func (l *lists) usable(list []cluster.Instance) (kept []cluster.Instance, left []any, err error) {
	kept = list[:0]
	known := make(map[string]struct{}, min(len(list), limits.Instances))
	var none error
	wrong, tooMany := 0, 0
	for _, instance := range list {
		if _, twice := known[instance.Address]; twice {
			continue
		}
		if len(kept) == limits.Instances {
			tooMany++ // some of them may be there twice: who they are is not kept
			continue
		}
		if err := checkPeerAddress(instance.Address); err != nil {
			if wrong++; none == nil {
				none = err
			}
			continue
		}
		known[instance.Address] = struct{}{}
		kept = append(kept, instance)
	}
	l.failures.Add(uint64(wrong))
	if len(kept) == 0 {
		return nil, nil, fmt.Errorf("a list of %d instances has none that can be called: %w", len(list), none)
	}
	if tooMany > 0 {
		l.failures.Add(1)
	}
	if wrong+tooMany == 0 {
		return kept, nil, nil
	}
	left = []any{"instances", len(kept)}
	if wrong > 0 {
		left = append(left, "wrong", wrong, "error", none.Error())
	}
	if tooMany > 0 {
		left = append(left, "too_many", tooMany, "limit", limits.Instances)
	}
	return kept, left, nil
}

// hasList reports whether there is a list, be it empty.
func (l *lists) hasList() bool {
	select {
	case <-l.first:
		return true
	default:
		return false
	}
}

// settle does what is due.
func (l *lists) settle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.settleLocked()
	}
}

func (l *lists) settleLocked() {
	now := time.Now()
	var again time.Time // when to look again
	if l.waiting {
		at := l.notBefore
		if until := l.emptySince.Add(limits.EmptyListPatience); l.keepsEmptyOutLocked() && until.After(at) {
			at = until
		}
		if at.After(now) {
			again = at
		} else {
			l.applyLocked(now)
		}
	}
	again = earlier(earlier(again, l.owner.letGo(now)), l.sayLateLocked())
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if !again.IsZero() {
		l.timer = time.AfterFunc(again.Sub(now), l.settle)
	}
}

// applyLocked goes on with the next list.
func (l *lists) applyLocked(now time.Time) {
	added, removed := l.owner.update(l.next, now)
	if added+removed > 0 || !l.hasList() {
		l.log.Info("instances have changed", "target", l.owner.target, "instances", len(l.next), "added", added, "removed", removed)
	}
	l.next, l.waiting = nil, false
	// With jitter, so that clients which heard of one change do not act as one.
	l.notBefore = now.Add(limits.ListPause/2 + rand.N(limits.ListPause/2))
	l.applied.Add(1)
	if !l.hasList() {
		close(l.first)
	}
}

// wait waits until there is a list. Its error is the one of a call. On a nil receiver it
// returns at once.
func (l *lists) wait(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case <-l.first:
		return nil
	default:
	}
	start := time.Now()
	select {
	case <-l.first:
		return nil
	case <-l.closing:
		return callFailure(&transport.CallError{Phase: transport.PhaseAcquire, Err: transport.ErrClosed}, 0)
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		failed := callFailure(ctx.Err(), 0)
		failed.phase = PhaseResolve
		return failed
	}
	l.mu.Lock()
	problem := l.problem
	l.mu.Unlock()
	failed := &Error{code: Unavailable, phase: PhaseResolve, executed: ExecutedNo, cause: problem}
	failed.message = fmt.Sprintf("no list of instances has come within %v", rounded(time.Since(start)))
	if problem != nil {
		failed.message += ": " + problem.Error()
	}
	return failed
}

// close ends the resolver and waits for it.
func (l *lists) close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.closing)
	}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.mu.Unlock()
	l.cancel()
	<-l.done
}

// leavingPeer is that of an instance which is no more in the list.
type leavingPeer struct {
	address string
	peer    *transport.Peer
	// at is when its connections end behind the calls that they have, and behind that when
	// to look again whether they have; retired says that they were told.
	at      time.Time
	retired bool
}

// update goes on with another list.
func (s *instances) update(list []cluster.Instance, now time.Time) (added, removed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	came, gone := s.balancer.Update(list, now)
	// Not at once, so that a list which flaps costs no connections, nor all at a time, if all
	// of them are others: each has a part of the time of its own, and within that any moment,
	// so that clients which heard of one change do not act as one.
	rand.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
	part := limits.LeavePause / time.Duration(max(len(gone), 1))
	for i, member := range gone {
		if peer := peerOf(member); peer != nil {
			at := now.Add(limits.LeavePause + time.Duration(i)*part + rand.N(part))
			s.leaving = append(s.leaving, leavingPeer{address: member.Address(), peer: peer, at: at})
		}
	}
	s.reviveLocked(came)
	return len(came), len(gone)
}

// reviveLocked gives members that have come the peers of their addresses, as far as these
// leave and are not retired yet: of two of them the first. It looks at each once, because
// there may be thousands of both.
func (s *instances) reviveLocked(came []*cluster.Member) {
	back := make(map[string]*cluster.Member, len(came))
	for _, member := range came {
		back[member.Address()] = member
	}
	s.leaving = slices.DeleteFunc(s.leaving, func(l leavingPeer) bool {
		member := back[l.address]
		if l.retired || member == nil {
			return false
		}
		member.SetValue(l.peer)
		delete(back, l.address)
		return true
	})
}

// letGo ends connections of instances that have left, and returns when to do so again;
// zero if there are none.
func (s *instances) letGo(now time.Time) (again time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = slices.DeleteFunc(s.leaving, func(l leavingPeer) bool {
		if !l.retired || l.at.After(now) {
			return false
		}
		stats := l.peer.Stats()
		if stats.Connections > 0 {
			return false
		}
		s.late += stats.LateReplies
		l.peer.Close()
		return true
	})
	for i := range s.leaving {
		l := &s.leaving[i]
		if !l.at.After(now) {
			l.peer.Retire() // again, for what a late call has opened
			l.retired, l.at = true, now.Add(limits.LeavePause)
		}
		if again.IsZero() || l.at.Before(again) {
			again = l.at
		}
	}
	return again
}
