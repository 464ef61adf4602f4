package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// ttstreamConn is a connection that streams over TTHeader share. Unary calls have others
// (ADR-0060).
//
//	open -- the server stops, idle, too old --> leaving -- last stream ended --> closed
//	any -- the socket fails, or bytes that are no frames --> closed
type ttstreamConn struct {
	peer *streamPeer
	lent *ClientConn
	conn *eventloop.Conn
	// room is how many more streams there may be, waiting how many there are.
	room, waiting atomic.Int32
	// ready is closed: the connection takes streams as soon as it is there.
	ready chan struct{}
	// resumes has room for one: what kept the connection from being read has ended.
	resumes chan struct{}

	mu    sync.Mutex
	flow  ttstreamFlow
	calls map[int32]*ttstreamMade
	// leaving: no stream is added any more. err is why the connection is closed.
	leaving bool
	err     error
	// full: the server has refused the last stream that ended, because it has as many as it takes.
	full bool
	// writeErr is why nothing can be written any more.
	writeErr error
	usedAt   time.Time
	writer   batchWriter
}

// startTTStream is streamPeer.start.
func startTTStream(peer *streamPeer, lent *ClientConn) streamConn {
	now := time.Now()
	c := &ttstreamConn{
		peer: peer, lent: lent, conn: lent.conn, usedAt: now, calls: map[int32]*ttstreamMade{},
		ready: make(chan struct{}), resumes: make(chan struct{}, 1),
	}
	close(c.ready)
	c.flow.base = now
	c.flow.frames = ttstream.NewConn(ttstream.Config{
		Client: true, MessageBytes: peer.peer.config.Limits.Bytes, PeerStreams: int(peer.most.Load()),
	}, lent.pool.buffers, 0)
	c.room.Store(int32(c.flow.frames.Room()))
	c.writer.init(lent.conn, c, lent.pool.buffers)
	peer.pool.toShared(lent, c)
	go c.read()
	return c
}

func (c *ttstreamConn) waitedFor() bool { return c.waiting.Load() > 0 }

func (c *ttstreamConn) load() (room, waiting int32) { return c.room.Load(), c.waiting.Load() }

func (c *ttstreamConn) settled() <-chan struct{} { return c.ready }

func (c *ttstreamConn) unsettled() string { return "no answer from the server" }

func (c *ttstreamConn) barren() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && !c.leaving && !c.full && len(c.calls) == 0 && c.flow.frames.PeerStreams() == 0
}

// errNoUnary is why a unary call cannot be made on a connection for streams.
var errNoUnary = errors.New("the connection is for streams")

func (c *ttstreamConn) call(context.Context, *Request) (*Response, error) {
	return nil, &CallError{Phase: PhaseAcquire, Err: errNoUnary}
}

// failure returns why the connection takes no streams, nil if it does.
func (c *ttstreamConn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmp.Or(c.err, c.writeErr); err != nil || !c.leaving {
		return err
	}
	return errors.New("the server takes no streams")
}

// leave implements streamConn.
func (c *ttstreamConn) leave() {
	c.mu.Lock()
	c.leaving = true
	c.room.Store(0)
	c.mu.Unlock()
	c.lent.pool.leaves(c.lent)
	c.peer.drop(c)
	c.finishIfOver()
}

// leaveIfDue implements streamConn.
func (c *ttstreamConn) leaveIfDue(now time.Time, timeout time.Duration) {
	c.mu.Lock()
	idle := timeout > 0 && len(c.calls) == 0 && now.Sub(c.usedAt) >= timeout
	c.mu.Unlock()
	if idle || c.lent.old(now) {
		c.leave()
	}
}

// finishIfOver closes a connection that takes no streams, when there are none and nothing
// is left to be written.
func (c *ttstreamConn) finishIfOver() {
	c.mu.Lock()
	over := c.leaving && c.err == nil && len(c.calls) == 0 && !c.writer.writing && c.flow.frames.Unsent() == 0
	c.mu.Unlock()
	if over {
		c.fail(errLeaving)
	}
}

// fail closes the connection and ends its streams.
func (c *ttstreamConn) fail(err error) {
	err = c.peer.whyFailed(err)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err, c.leaving = err, true
	c.room.Store(0)
	c.waiting.Store(0)
	written := c.writer.writtenLocked()
	for _, call := range c.calls {
		call.settleLocked(lossOf(err, call.begun <= written))
	}
	c.calls = nil
	c.flow.frames.Close()
	c.writer.closeLocked()
	c.mu.Unlock()
	wake(c.resumes)
	c.peer.drop(c)
	c.lent.broke = err
	c.lent.pool.discard(c.lent)
}

// removeLocked ends a stream's part in the connection.
func (c *ttstreamConn) removeLocked(call *ttstreamMade) {
	id := int32(call.id)
	if c.calls[id] != call {
		return
	}
	delete(c.calls, id)
	c.flow.frames.Release(id)
	c.full = call.refused
	c.countLocked()
}

func (c *ttstreamConn) countLocked() {
	n := int32(len(c.calls))
	c.waiting.Store(n)
	if n == 0 {
		c.usedAt = time.Now()
	}
	c.roomLocked()
}

// roomLocked counts how many more streams there may be, and keeps for other connections what
// the server has said of that.
func (c *ttstreamConn) roomLocked() {
	room := int32(c.flow.frames.Room())
	if c.leaving || c.full {
		room = 0
	}
	c.room.Store(room)
	if most := int32(c.flow.frames.PeerStreams()); c.peer.most.Load() != most {
		c.peer.most.Store(most)
	}
}

// --- reading ---

// read takes what servers send off the connection until it fails.
func (c *ttstreamConn) read() {
	defer failOnPanic(c.peer.peer.config.Log, c.fail)
	c.conn.SpinReads()
	reader := c.conn.Reader()
	discard := 0
	for {
		arrived := reader.Buffered()
		did, err := ttstreamGot{used: min(discard, len(arrived))}, error(nil)
		if discard == 0 {
			did, err = c.receive(arrived)
			discard = did.used
		}
		used := min(did.used, len(arrived))
		discard -= used
		if skipErr := reader.Skip(used); err == nil {
			err = skipErr
		}
		if did.left {
			c.leave()
		}
		if did.ended {
			c.peer.roomFree()
			c.finishIfOver()
		}
		if err != nil {
			c.broken(err)
			return
		}
		c.flushNow()
		if did.congested {
			if err := c.rest(); err != nil {
				c.fail(err)
				return
			}
			continue
		}
		if reader.Len() == 0 {
			reader.Shrink()
		}
		if _, err := reader.Peek(max(did.need, reader.Len()+1)); err != nil {
			c.readFailed(readError(err))
			return
		}
	}
}

// ttstreamGot is what came of bytes that a client has read.
type ttstreamGot struct {
	// used may be more than there were, need is how many there have to be for the next step.
	used, need int
	// left: the server takes no more streams. ended: one has.
	congested, left, ended bool
}

// receive obeys all whole frames of b.
func (c *ttstreamConn) receive(b []byte) (did ttstreamGot, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.flow.at(time.Now())
	c.writer.gathering.arrived = 0
	for did.used <= len(b) {
		if err = c.err; err != nil {
			break
		}
		event, used, need, failed := c.flow.frames.Next(b[did.used:], now)
		if err = failed; err != nil {
			break
		}
		did.used += used
		switch event.Kind {
		case ttstream.EventCongested:
			did.congested, c.flow.congested = true, true
		case ttstream.EventGoAway:
			did.left = true
			continue
		case ttstream.EventNone:
			if did.need = need; used > 0 {
				continue
			}
		default:
			did.ended = c.obeyLocked(&event) || did.ended
			continue
		}
		break
	}
	if c.err == nil {
		c.flow.pumpWaiting()
		c.roomLocked() // The server may have said how many it takes.
		// Its handlers run for streams that have ended here, and nobody will tell of their end.
		did.left = did.left || c.full && len(c.calls) == 0
	}
	return did, err
}

// obeyLocked takes what has come for a stream. It reports whether that was the last.
func (c *ttstreamConn) obeyLocked(event *ttstream.Event) (ended bool) {
	call := c.calls[event.Stream]
	if call == nil {
		if event.Kind == ttstream.EventData {
			c.flow.frames.Consume(event.Stream, len(event.Data))
		}
		return false
	}
	switch event.Kind {
	case ttstream.EventHeader:
		head, _, _, _ := readReplyHead(event.Info)
		call.sayLocked(head.Metadata)
		return false
	case ttstream.EventData:
		c.writer.gathering.arrived++
		err := call.messageLocked(event.Data)
		if err == nil {
			return false
		}
		call.settleLocked(&CallError{Phase: PhaseReply, Sent: true, Err: err})
	case ttstream.EventEnd:
		call.endLocked(event)
	default:
		call.refused = event.Full
		call.settleLocked(call.resetError(event))
	}
	c.removeLocked(call)
	return true
}

// rest waits until the connection may be read again. It fails if it never will be.
func (c *ttstreamConn) rest() error {
	timer := time.NewTimer(limits.StreamPause / 4)
	defer timer.Stop()
	late := false
	select {
	case <-c.resumes:
	case <-timer.C:
		late = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if late && c.err == nil {
		c.flow.frames.Tick(c.flow.at(time.Now()))
	}
	return cmp.Or(c.err, c.writeErr)
}

// readFailed is muxConn.readFailed.
func (c *ttstreamConn) readFailed(err error) {
	c.mu.Lock()
	if handshake := new(eventloop.HandshakeError); c.writeErr != nil && !errors.As(err, &handshake) {
		err = c.writeErr
	}
	c.mu.Unlock()
	c.fail(err)
}

// broken ends the connection for what was wrong on it.
func (c *ttstreamConn) broken(err error) {
	var problem *ttstream.Error
	if errors.As(err, &problem) {
		err = &grpc.Error{Code: grpc.Internal, Detail: err.Error()}
	}
	c.fail(err)
}

// --- writing ---

// Lock implements messageCarrier and batchSource.
func (c *ttstreamConn) Lock() { c.mu.Lock() }

// Unlock implements messageCarrier and batchSource.
func (c *ttstreamConn) Unlock() { c.mu.Unlock() }

// othersLocked implements messageCarrier.
func (c *ttstreamConn) othersLocked() bool { return c.writer.gathering.othersLocked() }

// flushNow implements messageCarrier.
func (c *ttstreamConn) flushNow() {
	c.swapped()
	c.writer.flush()
}

// flushSoon implements messageCarrier.
func (c *ttstreamConn) flushSoon() { c.writer.flushSoon() }

func (c *ttstreamConn) waitsLocked() bool { return c.err == nil && c.flow.frames.Unsent() > 0 }

func (c *ttstreamConn) swapLocked(empty *linkbuf.Buffer) *linkbuf.Buffer {
	full := c.flow.frames.Swap(empty)
	c.flow.pumpWaiting()
	return full
}

// swapped reads on if that has waited for something that has happened.
func (c *ttstreamConn) swapped() {
	c.mu.Lock()
	again := c.err == nil && c.flow.uncongested()
	c.mu.Unlock()
	if again {
		wake(c.resumes)
	}
}

func (c *ttstreamConn) writesLocked() {}

func (c *ttstreamConn) rests(err error) {
	if err != nil {
		c.mu.Lock()
		c.writeErr, c.leaving = err, true
		c.room.Store(0)
		c.mu.Unlock()
		c.peer.drop(c)
		wake(c.resumes)
		// A moment for what the server has sent before it closed. read notices the end.
		_ = c.conn.SetReadDeadline(time.Now().Add(limits.LastWordsTimeout))
	}
	c.finishIfOver()
}

func (c *ttstreamConn) crowding() int { return int(c.waiting.Load()) }

// add begins a stream.
func (c *ttstreamConn) add(call *ttstreamMade, request *ttstream.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving {
		return &CallError{Phase: PhaseAcquire, Err: errLeaving}
	}
	id, err := c.flow.frames.Open(*request)
	switch {
	case errors.Is(err, ttstream.ErrStreams):
		return &CallError{Phase: PhaseAcquire, Err: errFull}
	case errors.Is(err, ttstream.ErrGoingAway):
		return &CallError{Phase: PhaseAcquire, Err: errLeaving}
	case err != nil:
		return &CallError{Phase: PhaseEncode, Err: fmt.Errorf("the header of the stream: %w", err)}
	}
	c.flow.frames.Attach(id, call)
	call.id, call.begun = uint32(id), c.writer.taken+int64(c.flow.frames.Unsent())
	c.calls[id] = call
	c.countLocked()
	return nil
}
