package fulmar

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/policy"
)

// openedStream is where a stream is open. It is replaced when the stream is opened again.
type openedStream struct {
	transport.ClientStream
	address string
}

// replay is what it takes to open a stream again whose server says that it has not looked
// at it, which happens to those that meet a server as it stops: the messages that were sent
// until something came of it.
//
// A stream is opened with mu held, and ends with it. Encoding a message that is kept happens
// with it as well, so each message goes either where the stream was open before, and again
// where it is now, or only there.
type replay struct {
	mu streamLock
	// off: nothing is kept, and the stream is not opened again: something came of it, it
	// has sent too much, it was opened again before, or it has ended.
	off atomic.Bool
	// ending: the stream ends, so it is not opened again. Who sees off needs no lock to
	// encode, which is why that is set with mu, when nobody replays any more.
	ending atomic.Bool
	// ctx is the context that interceptors went on with; stop, which the lock of the stream
	// guards, ends that of a stream that was opened again.
	ctx  context.Context
	stop context.CancelFunc
	// messages are encoded; closed: none follows.
	messages [][]byte
	bytes    int
	closed   bool
}

// current returns where the stream is open.
func (s *clientStream) current() *openedStream { return s.opened.Load() }

// encode encodes a message for where the stream is open, and keeps it while that may change.
func (s *clientStream) encode(message any, last bool) (opened *openedStream, length int, err error) {
	if s.replay.off.Load() {
		opened = s.current()
		length, err = s.state.method.encodeStreamed(opened, message, s.client.sends)
		return opened, length, err
	}
	s.replay.mu.Lock()
	defer s.replay.mu.Unlock()
	opened = s.current()
	room := opened.Room()
	before := room.Len()
	if length, err = s.state.method.encodeStreamed(opened, message, s.client.sends); err == nil {
		s.replay.keepLocked(room.Slices(nil), before, length)
		s.replay.closed = s.replay.closed || last
	}
	return opened, length, err
}

// replayedBytes is what a message takes that is kept, beside its bytes: a slice, and what an
// allocation is rounded up by.
const replayedBytes = 32

// keepLocked keeps a message of so many bytes, which begins with the skip-th byte of pieces.
func (r *replay) keepLocked(pieces [][]byte, skip, length int) {
	if r.off.Load() {
		return
	}
	if r.bytes += length + replayedBytes; r.bytes > limits.StreamReplayBytes {
		r.dropLocked()
		return
	}
	message := make([]byte, 0, length)
	for _, piece := range pieces {
		if skip >= len(piece) {
			skip -= len(piece)
			continue
		}
		message, skip = append(message, piece[skip:]...), 0
	}
	r.messages = append(r.messages, message)
}

// drop forgets what was kept: something has come of the stream.
func (r *replay) drop() {
	if r.off.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked()
}

func (r *replay) dropLocked() {
	r.off.Store(true)
	r.messages = nil
}

// closing notes that no message follows, and returns where the stream is open.
func (s *clientStream) closing() *openedStream {
	s.replay.mu.Lock()
	defer s.replay.mu.Unlock()
	s.replay.closed = true
	return s.current()
}

// reopened opens a stream again that has ended with err where it was open, if its server says
// that it has not executed it, nothing has come of it, and policies allow. io.EOF, and nil, say
// that it may have ended. It reports whether the stream is open elsewhere now, with all that was
// sent; a stream that could not be opened again has ended.
func (s *clientStream) reopened(opened *openedStream, err error) bool {
	if s.current() != opened {
		return true // who sends and who receives learn of it one after the other
	}
	if s.replay.off.Load() {
		return false
	}
	again, failed := s.reopen(opened, err)
	if failed != nil {
		s.end(failed, context.Canceled)
	}
	return again
}

// reopenedWithin is reopened for who waits no longer than a timeout, if that is not 0. late: it
// goes on.
func (s *clientStream) reopenedWithin(timeout time.Duration, opened *openedStream, err error) (again, late bool) {
	if timeout == 0 || s.replay.off.Load() {
		return s.reopened(opened, err), false
	}
	done, timer := make(chan bool, 1), time.NewTimer(timeout)
	defer timer.Stop()
	go func() {
		// An observer may end the goroutine.
		defer func() { done <- again }()
		again = s.reopened(opened, err)
	}()
	select {
	case again := <-done:
		return again, false
	case <-timer.C:
		return false, true
	}
}

func (s *clientStream) reopen(opened *openedStream, err error) (again bool, failed error) {
	// Observers are told meanwhile, and may end the goroutine.
	s.replay.mu.Lock()
	defer s.replay.mu.Unlock()
	if s.current() != opened {
		return true, nil
	}
	if s.replay.off.Load() || s.replay.ending.Load() {
		return false, nil
	}
	unseen := s.unseen(opened, err)
	if unseen == nil {
		return false, nil
	}
	c, now := s.client, time.Now()
	decision := c.governor.decide(s.replay.ctx, &s.governedCall, unseen, policy.WishNone, s.number, c.others(), now)
	// Policies are about other instances. Another connection to the only one is what calls get
	// below them, too (GRPCRetries).
	if !decision.Again && (c.others() || !certainlyUnsent(unseen)) {
		s.replay.dropLocked() // policies are asked once
		return false, nil
	}
	ctx, ok := s.resumes()
	if !ok || !pause(ctx, decision.Delay) {
		s.replay.dropLocked()
		return false, nil
	}
	after := &failedAttempt{unseen, s.choice.Member}
	if s.choice.Member != nil {
		c.instances.balancer.Done(s.choice, outcomeOf(unseen), 0, now)
		s.choice = cluster.Choice{}
	}
	if s.observed != nil {
		s.observed.err = unseen
	}
	if err := c.openInTurn(ctx, s, after, time.Now()); err != nil {
		if e, ok := err.(*Error); ok {
			e.method, e.elapsed = s.state.method.fullName(), time.Since(s.start)
		}
		return false, err
	}
	opened.Release()
	if err := s.replayLocked(); err != nil && err != io.EOF {
		return false, s.failure(err)
	}
	return true, nil
}

// unseen returns the error of a stream if its server says that it has not executed it.
func (s *clientStream) unseen(opened *openedStream, err error) *Error {
	if err == nil || err == io.EOF {
		// A header, or none for a reason. It does not wait: the stream has one, or has ended.
		if _, err = opened.Header(); err == nil {
			err = io.EOF
		}
	}
	failed, ok := s.failureAt(opened, err).(*Error)
	if !ok || failed.executed != ExecutedNo || !certainlyUnsent(failed) && refusedWith(failed) == 0 {
		return nil
	}
	return failed
}

// resumes returns a context for a stream that is opened again, unless it has ended.
func (s *clientStream) resumes() (ctx context.Context, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replay.ending.Load() || s.ended != nil {
		return nil, false
	}
	ctx, s.replay.stop = context.WithCancel(s.replay.ctx)
	return ctx, true
}

// replayLocked sends what was sent before. io.EOF says that the call has ended, and receiving how.
func (s *clientStream) replayLocked() error {
	r, to := &s.replay, s.current()
	defer r.dropLocked()
	for i, message := range r.messages {
		to.Room().Append(message)
		if err := to.Send(r.closed && i == len(r.messages)-1); err != nil {
			return err
		}
	}
	if r.closed && len(r.messages) == 0 {
		return to.CloseSend()
	}
	return nil
}

// stopReplay says that the stream ends: it is not opened again. It returns where it is open.
func (s *clientStream) stopReplay(cause error) *openedStream {
	s.mu.Lock()
	s.replay.ending.Store(true)
	stop := s.replay.stop
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	s.replay.mu.Lock()
	defer s.replay.mu.Unlock()
	s.replay.dropLocked()
	opened := s.current()
	opened.Cancel(cause)
	return opened
}
