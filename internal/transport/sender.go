package transport

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

const (
	// sendRounds is how many batches a caller writes before it leaves what has
	// come meanwhile to a goroutine: it has a call of its own to go on with.
	sendRounds = 4

	// crowdedCalls is from how many calls in flight on a connection others are
	// likely to write at once. With 8 callers that yielded, Kitex's client made
	// more calls (we 0.86 of them).
	crowdedCalls = 16

	// sendKept is how long a list of pieces a sender keeps, 24 KiB.
	sendKept = 1 << 10
)

// sender writes messages to a connection for goroutines that must not wait for
// the network. Whoever finds nobody writing writes, for others as well: what
// they add meanwhile goes out together. What the socket does not take at once
// is left to a goroutine, which ends when nothing is left.
//
//	idle -- send --> writing -- all written --> idle
//	writing -- socket full, or too many rounds --> writing, on a goroutine
//	writing -- socket fails --> failed
type sender struct {
	conn *eventloop.Conn
	// crowded reports whether other messages are likely to follow at once; then
	// the writer lets their goroutines run first. Measured in the design: at 100
	// callers one yield gives 4 times the calls.
	crowded func() bool
	// failed is called once, when nothing more can be sent and the sender is done
	// with all messages.
	failed func(error)
	// sent, if set, is called for each message that leaves the sender, for
	// whatever reason.
	sent func(*outgoing)

	// arrived is how many messages the last read has brought that are likely to be followed
	// by one each, less those that were.
	arrived atomic.Int32

	mu    sync.Mutex
	queue []*outgoing
	// withdrawn counts messages of the queue that were withdrawn.
	withdrawn int
	writing   bool
	err       error
	// ended is the end of the writing.
	ended ending

	// Only the goroutine that writes uses these: the messages in work, their
	// pieces, and those of the pieces that are not written yet.
	batch  []*outgoing
	pieces [][]byte
	rest   [][]byte
	// written is how many bytes of the batch are written.
	written int64
}

// send queues a finished message and, if nobody does, writes the queue. The
// sender shares the message's bytes until it is done with them. The error is
// why the connection can send nothing any more; the message was not sent then.
func (s *sender) send(o *outgoing) error {
	o.state.Store(stateQueued)
	o.owners.Add(1)
	s.mu.Lock()
	if err := s.err; err != nil {
		s.mu.Unlock()
		o.state.Store(stateDropped)
		s.done(o)
		return err
	}
	s.queue = append(s.queue, o)
	if s.writing {
		s.mu.Unlock()
		return nil
	}
	s.writing = true
	s.mu.Unlock()
	for range sendRounds {
		if written, again := s.write(s.conn.TryWriteBuffers); !again {
			return nil
		} else if !written {
			break
		}
	}
	go s.writeWaiting()
	return nil
}

// writeWaiting writes until nothing is queued, waiting for the peer if it must.
func (s *sender) writeWaiting() {
	for again := true; again; {
		_, again = s.write(func(rest [][]byte) (int64, error) { return s.conn.WriteRest(rest, s.written) })
	}
}

// write writes the batch, or the next one. It reports whether everything of it
// is written, and whether it has to be called again: then the caller is still
// the one that writes.
func (s *sender) write(write func([][]byte) (int64, error)) (all, again bool) {
	if len(s.batch) == 0 {
		if s.crowded() {
			s.gather()
		}
		if !s.take() {
			return true, false
		}
	}
	n, err := write(s.rest)
	s.written += n
	if err != nil {
		s.fail(err)
		return false, false
	}
	if s.rest = linkbuf.Advance(s.rest, n); len(s.rest) > 0 {
		return false, true
	}
	for _, o := range s.batch {
		if o.teller != nil {
			o.written.Store(int64(o.elapsed()))
		}
		o.state.Store(stateSent)
		s.done(o)
	}
	s.reset()
	return true, true
}

// gather lets others add to the queue, twice if answers are missing: see gatheringYields. With
// once, a fifth of the writes of mux-1k-c100 were of 5 requests or fewer, now two of a hundred.
func (s *sender) gather() {
	for range gatheringYields {
		runtime.Gosched()
		s.mu.Lock()
		queued := len(s.queue)
		s.mu.Unlock()
		if queued >= int(s.arrived.Load()) {
			return
		}
	}
}

// take makes what is queued the batch. It returns false, and ends the writing,
// if there is nothing.
func (s *sender) take() bool {
	for {
		s.mu.Lock()
		if s.err != nil || len(s.queue) == 0 {
			var queue []*outgoing
			if len(s.queue) > 0 {
				queue, s.queue = s.queue, nil
			}
			s.withdrawn = 0
			s.endLocked()
			s.mu.Unlock()
			s.drop(queue)
			return false
		}
		s.batch, s.queue, s.withdrawn = s.queue, s.batch, 0
		s.mu.Unlock()
		kept := s.batch[:0]
		for _, o := range s.batch {
			if !o.state.CompareAndSwap(stateQueued, stateTaken) {
				s.doneUnlessWithdrawn(o)
				continue
			}
			kept = append(kept, o)
			s.pieces = o.slices(s.pieces)
		}
		clear(s.batch[len(kept):])
		s.batch = kept
		if len(kept) > 0 {
			s.arrived.Store(max(s.arrived.Load()-int32(len(kept)), 0))
			s.rest = s.pieces
			return true
		}
	}
}

// withdraw takes back a message that nobody has begun to write, if that is so,
// and is done with it. While a peer reads nothing, messages whose callers gave
// up would fill the memory otherwise. It must not be sent again.
func (s *sender) withdraw(o *outgoing) bool {
	if !o.state.CompareAndSwap(stateQueued, stateWithdrawn) {
		return false
	}
	s.done(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	// Looked through when half of them are such, so each costs two looks.
	if s.withdrawn++; 2*s.withdrawn > len(s.queue) {
		s.queue = slices.DeleteFunc(s.queue, func(o *outgoing) bool { return o.state.Load() == stateWithdrawn })
		s.withdrawn = 0
	}
	return true
}

// drop ends messages that nobody has begun to write.
func (s *sender) drop(queue []*outgoing) {
	for _, o := range queue {
		o.state.CompareAndSwap(stateQueued, stateDropped)
		s.doneUnlessWithdrawn(o)
	}
}

// reset ends a batch.
func (s *sender) reset() {
	clear(s.batch)
	s.batch = s.batch[:0]
	clear(s.pieces)
	s.pieces, s.rest, s.written = s.pieces[:0], nil, 0
	if cap(s.pieces) > sendKept {
		s.pieces = nil
	}
}

// fail ends everything, after a write that did.
func (s *sender) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	queue := s.queue
	s.queue, s.withdrawn = nil, 0
	s.mu.Unlock()
	for _, o := range s.batch {
		s.written -= int64(o.length())
		if s.written >= 0 {
			o.state.Store(stateSent)
		} else {
			o.state.Store(stateDropped)
		}
	}
	for _, o := range queue {
		o.state.CompareAndSwap(stateQueued, stateDropped)
	}
	for _, o := range s.batch {
		s.done(o)
	}
	s.drop(queue)
	s.reset()
	s.mu.Lock()
	s.endLocked()
	s.mu.Unlock()
	// Last, because who learns of it may send a message again elsewhere.
	s.failed(err)
}

func (s *sender) endLocked() {
	s.writing = false
	s.ended.comesLocked()
}

// letGo waits until a sender that can send nothing any more has let go of all messages,
// or ctx ends. A message that it holds cannot go over another connection, although it
// was dropped.
func (s *sender) letGo(ctx context.Context) {
	s.mu.Lock()
	if !s.writing {
		s.mu.Unlock()
		return
	}
	ended := s.ended.awaitedLocked()
	s.mu.Unlock()
	within(ctx, ended)
}

// close makes all messages fail that nobody has begun to write.
func (s *sender) close(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	queue := s.queue
	s.queue, s.withdrawn = nil, 0
	s.mu.Unlock()
	s.drop(queue)
}

func (s *sender) doneUnlessWithdrawn(o *outgoing) {
	if o.state.Load() != stateWithdrawn {
		s.done(o)
	}
}

func (s *sender) done(o *outgoing) {
	if s.sent != nil {
		s.sent(o)
	}
	if o.after != nil {
		o.after()
	}
	o.release()
}
