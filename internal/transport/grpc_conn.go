package transport

import (
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
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
	"github.com/fulmar-rpc/fulmar/observe"
)

// grpcConn is a connection in HTTP/2 that calls share: each is a stream.
//
//	new -- the server's settings --> open -- GOAWAY, silence, nothing to do --> leaving -- last call ended --> closed
//	any -- the socket fails, or bytes that are no HTTP/2 --> closed
type grpcConn struct {
	peer *streamPeer
	lent *ClientConn
	conn *eventloop.Conn
	// base is when the clock of http2 began.
	base   time.Time
	scheme string
	// pings is after how long without a byte the server is pinged, 0 for never.
	pings time.Duration
	// room is how many more streams the server takes, waiting how many calls there are.
	room    atomic.Int32
	waiting atomic.Int32
	// crowd is the most that waiting has been lately.
	crowd atomic.Int32
	// heard is when bytes last arrived, answered when a reply found its call, since base;
	// silent is how many calls have timed out since.
	heard    atomic.Int64
	answered atomic.Int64
	silent   atomic.Int32

	mu sync.Mutex
	// suspectedAt is when the server was last asked whether it lives, since base; 0 is never.
	suspectedAt int64
	http2       *http2.Conn
	flow        http2Flow
	calls       map[uint32]*muxCall
	// settles is closed when the server's settings have come, which hasSettings says, or the
	// connection failed before. One that is for a single call waits for settings with room.
	settles     chan struct{}
	isSettled   bool
	hasSettings bool
	// leaving: no call is added any more. why is what the server said about that. closing:
	// there are no calls either, and the server is being told.
	leaving, closing bool
	why              error
	// writeErr is why nothing can be written any more, err why the connection is closed.
	writeErr, err error
	usedAt        time.Time
	timer         *time.Timer
	wakeAt        time.Time
	rests         time.Time
	grpcWriter
}

func newGRPCConn(peer *streamPeer, lent *ClientConn) *grpcConn {
	now, pings := time.Now(), peer.pings()
	config := http2.Config{Client: true, PingAfter: http2.Nanoseconds(pings)}
	c := &grpcConn{
		peer: peer, lent: lent, pings: pings, conn: lent.conn, base: now, scheme: "http", usedAt: now,
		calls: map[uint32]*muxCall{}, settles: make(chan struct{}),
	}
	if lent.conn.TLS() != nil {
		c.scheme = "https"
	}
	c.http2 = http2.NewConn(config, lent.pool.buffers, 0)
	c.flow = http2Flow{c.http2, now}
	c.spare = linkbuf.New(lent.pool.buffers)
	c.swapped.L = &c.mu
	c.mu.Lock()
	c.tickLocked(now)
	c.mu.Unlock()
	return c
}

// startGRPC is streamPeer.start.
func startGRPC(peer *streamPeer, lent *ClientConn) streamConn {
	conn := newGRPCConn(peer, lent)
	peer.pool.toShared(lent, conn)
	go conn.read()
	conn.flush()
	return conn
}

func (c *grpcConn) load() (room, waiting int32) { return c.room.Load(), c.waiting.Load() }

func (c *grpcConn) settled() <-chan struct{} { return c.settles }

func (c *grpcConn) unsettled() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasSettings {
		return "the server takes no streams (limit 0)"
	}
	return "no settings of HTTP/2 from the server"
}

func (c *grpcConn) barren() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && !c.leaving && c.hasSettings && len(c.calls) == 0 && c.http2.PeerStreams() == 0
}

// at returns a time as http2 wants it.
func (c *grpcConn) at(now time.Time) http2.Nanoseconds { return http2.Nanoseconds(now.Sub(c.base)) }

// since returns how long the connection has been there at a time, and 1 at least.
func (c *grpcConn) since(now time.Time) int64 { return max(int64(now.Sub(c.base)), 1) }

// waitedFor reports whether calls wait on the connection.
func (c *grpcConn) waitedFor() bool { return c.waiting.Load() > 0 }

// errFull is the error of a call that comes when the server takes no more streams.
var errFull = errors.New("the server takes no more streams on this connection")

// call makes one call.
func (c *grpcConn) call(ctx context.Context, request *Request) (*Response, error) {
	parent, deadline := source(ctx)
	request.grpc.pack(request)
	call := &request.call
	call.began, call.deadline, call.taken = request.now(), deadline, false
	fields := request.grpc.address(ctx, c.scheme, c.peer.peer.config.Authority, call.began)
	if request.teller != nil {
		use := observe.UseShared
		if call.first {
			use = observe.UseDialled
		}
		request.begun(use)
	}
	if err := c.add(call, fields); err != nil {
		return nil, err
	}
	returned := false
	defer func() {
		if !returned { // an observer has ended the goroutine
			c.abandon(call, nil)
		}
	}()
	response, err := c.carry(ctx, parent, call)
	returned = true
	return response, err
}

// carry makes a call that has its stream.
func (c *grpcConn) carry(ctx, parent context.Context, call *muxCall) (*Response, error) {
	request := call.request
	if !request.grpc.others {
		c.flush()
	}
	request.tellWritten()
	ended := parent.Done()
	if ended == nil {
		return c.end(call, <-call.outcome)
	}
	select {
	case outcome := <-call.outcome:
		return c.end(call, outcome)
	case <-ended:
		if !c.abandon(call, ctx.Err()) {
			return c.end(call, <-call.outcome) // It was decided first.
		}
		request.tellWritten()
		return nil, c.givenUp(call, ctx.Err())
	}
}

// end returns what a call ended in to its caller.
func (c *grpcConn) end(call *muxCall, outcome muxOutcome) (*Response, error) {
	call.taken = true
	request := call.request
	request.tellReply()
	switch {
	case outcome.expired:
		return nil, c.givenUp(call, context.DeadlineExceeded)
	case outcome.err != nil:
		return nil, outcome.err
	}
	response, err := request.grpc.reply.finish(request, c.peer.peer.config.Limits.Bytes)
	if err != nil {
		return nil, &CallError{Phase: PhaseReply, Sent: true, Err: err}
	}
	return response, nil
}

// add begins the stream of a call, and sends as much of it as the server takes.
func (c *grpcConn) add(call *muxCall, fields []http2.Field) error {
	if call.messages == nil {
		grpc.PutPrefix(call.request.room, call.request.Len()-grpc.PrefixSize, false)
	}
	spent, err := c.begin(call, fields)
	if spent {
		c.leave() // Calls would wait for room on it.
	}
	return err
}

// begin is what of add needs the lock. spent says that it was the last stream which the
// connection can have, or behind that.
func (c *grpcConn) begin(call *muxCall, fields []http2.Field) (spent bool, err error) {
	request, g := call.request, call.request.grpc
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.leaving:
		return false, &CallError{Phase: PhaseAcquire, Err: errLeaving}
	case len(c.calls) >= c.lent.pool.config.Waiting:
		return false, &CallError{Phase: PhaseAcquire, Err: fmt.Errorf("%d calls already wait on a shared connection: %w", len(c.calls), ErrExhausted)}
	}
	id, err := c.http2.Open(fields, false, c.at(call.began))
	c.room.Store(int32(c.http2.Room()))
	switch {
	case errors.Is(err, http2.ErrStreams):
		return false, &CallError{Phase: PhaseAcquire, Err: errFull}
	case errors.Is(err, http2.ErrHeadersTooLarge):
		return false, &CallError{Phase: PhaseWrite, Err: fmt.Errorf("%w: %w", ErrExhausted, err)}
	case err != nil:
		c.leaving = true
		return c.http2.Spent(), &CallError{Phase: PhaseAcquire, Err: errLeaving}
	}
	g.id, g.end = id, 0
	g.reply.reset()
	c.calls[id] = call
	if call.messages == nil {
		c.gathering.messages++
		g.rest = append(request.parts[:0], g.packed)
		if g.packed == nil {
			g.rest = request.slices(request.parts[:0])
		}
		c.sendLocked(call)
		g.others = c.gathering.othersLocked()
	} else {
		call.messages.id = id
		g.end = c.taken + int64(c.http2.Unsent()) // the server looks at it as soon as it has begun
	}
	waiting := int32(len(c.calls))
	c.waiting.Store(waiting)
	if waiting > c.crowd.Load() {
		c.crowd.Store(waiting)
	}
	c.wakeLocked(call.deadline)
	if waiting == 1 && c.pings > 0 {
		c.tickLocked(call.began)
	}
	return c.http2.Spent(), nil
}

// removeLocked ends a call's part in the connection, and its stream if the server has
// not ended that. It reports whether the connection is to be closed now.
func (c *grpcConn) removeLocked(call *muxCall, now time.Time) (last bool) {
	id := call.request.grpc.id
	delete(c.calls, id)
	c.http2.Release(id)
	c.room.Store(int32(c.http2.Room()))
	c.waiting.Store(int32(len(c.calls)))
	if len(c.calls) == 0 {
		c.usedAt = now
	}
	return c.leaving && len(c.calls) == 0 && c.err == nil
}

// abandon ends a call that waits no longer: its stream is reset. It returns false if the
// call has its outcome already. Without a cause, its caller is gone, and the memory of
// the call about to be another one's.
func (c *grpcConn) abandon(call *muxCall, cause error) bool {
	c.mu.Lock()
	found := c.calls[call.request.grpc.id] == call
	last := found && c.removeLocked(call, time.Now())
	c.mu.Unlock()
	if !found {
		if cause == nil && !call.taken {
			<-call.outcome
		}
		return false
	}
	c.flush()
	c.ended(last)
	return true
}

// ended follows the end of calls. last says that the connection is to be closed.
func (c *grpcConn) ended(last bool) {
	if last {
		c.finish()
	} else {
		c.peer.roomFree()
	}
}

// finish closes a connection without calls, once the server is told.
func (c *grpcConn) finish() {
	c.mu.Lock()
	if c.err == nil {
		c.http2.Shutdown(c.at(time.Now()))
		c.closing = true
	}
	c.mu.Unlock()
	c.flush()
	c.finishIfWritten()
}

// finishIfWritten closes a connection that finish has been called for when nothing is left
// to be written.
func (c *grpcConn) finishIfWritten() {
	c.mu.Lock()
	done := c.closing && (!c.writing && c.http2.Unsent() == 0 || c.writeErr != nil)
	c.mu.Unlock()
	if done {
		c.fail(errLeaving)
	}
}

// givenUp returns the error of a call that has been removed because it may not wait any
// longer.
func (c *grpcConn) givenUp(call *muxCall, cause error) error {
	// What the state machine has is written, in front of the reset.
	failed := &CallError{Phase: PhaseWait, Sent: true, Err: cause}
	if call.request.grpc.end == 0 {
		failed.Phase, failed.Sent = PhaseWrite, false
	}
	if errors.Is(cause, context.DeadlineExceeded) && c.isSilent(call) {
		c.suspect()
	}
	return failed
}

// isSilent reports whether a call that timed out asks whether the server is still there, as
// muxConn.isSilent. Any byte says that: streams may be long, so a connection is not left, as
// others are, because its server does not answer calls.
func (c *grpcConn) isSilent(call *muxCall) bool {
	began := c.since(call.began)
	if c.answered.Load() >= began {
		return false
	}
	silent := c.silent.Add(1)
	return c.heard.Load() < began && (silent >= limits.SilentCalls || time.Since(call.began) >= limits.SilenceTimeout)
}

// suspect asks the server whether it is still there, once in a SilenceTimeout. The connection is
// left if by then not a byte has come.
func (c *grpcConn) suspect() {
	now := time.Now()
	c.mu.Lock()
	suspects := !c.leaving && c.err == nil && (c.suspectedAt == 0 || c.since(now) > c.suspectedAt+int64(limits.SilenceTimeout))
	if suspects {
		c.suspectedAt = c.since(now)
		c.http2.Probe()
		c.wakeLocked(now.Add(limits.SilenceTimeout))
	}
	c.mu.Unlock()
	if suspects {
		c.flush()
	}
}

// isGoneLocked reports whether the server was asked, and has not answered in time. It makes sure
// that somebody looks when the time is over.
func (c *grpcConn) isGoneLocked(now time.Time) bool {
	if c.suspectedAt == 0 || c.leaving || c.heard.Load() >= c.suspectedAt {
		return false
	}
	over := c.base.Add(time.Duration(c.suspectedAt) + limits.SilenceTimeout)
	if now.Before(over) {
		c.wakeLocked(over)
		return false
	}
	return true
}

// wakeLocked is muxConn.wakeLocked.
func (c *grpcConn) wakeLocked(at time.Time) {
	if !at.IsZero() && at.Before(c.rests) {
		at = c.rests
	}
	switch {
	case at.IsZero() || c.err != nil || !c.wakeAt.IsZero() && !at.Before(c.wakeAt):
		return
	case c.timer == nil:
		c.timer = time.AfterFunc(time.Until(at), c.expire)
	default:
		c.timer.Reset(time.Until(at))
	}
	c.wakeAt = at
}

// tickLocked does what http2 has to do at a time, and makes sure that it is asked again.
func (c *grpcConn) tickLocked(now time.Time) error {
	next, err := c.http2.Tick(c.at(now))
	if err == nil && next != 0 {
		c.wakeLocked(c.base.Add(time.Duration(next)))
	}
	return err
}

// expire ends the calls whose deadlines have passed, and does what else is due.
func (c *grpcConn) expire() {
	now := time.Now()
	var next time.Time
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	last := false
	looked := len(c.calls)
	for _, call := range c.calls {
		switch deadline := call.deadline; {
		case deadline.IsZero():
		case !deadline.After(now):
			last = c.removeLocked(call, now)
			call.finish(muxOutcome{expired: true})
		case next.IsZero() || deadline.Before(next):
			next = deadline
		}
	}
	c.rests, c.wakeAt = now.Add(time.Duration(looked)*expireSpacing), time.Time{}
	c.wakeLocked(next)
	gone := c.isGoneLocked(now)
	err := c.tickLocked(now)
	c.mu.Unlock()
	if err != nil {
		c.broken(err)
		return
	}
	c.flush()
	if gone {
		c.leave()
	}
	c.ended(last)
}

// leave makes the connection close when its last call has ended.
func (c *grpcConn) leave() {
	c.mu.Lock()
	c.leaving = true
	c.room.Store(0)
	idle := len(c.calls) == 0 && c.err == nil
	c.mu.Unlock()
	c.lent.pool.leaves(c.lent)
	c.peer.drop(c)
	if idle {
		c.finish()
	}
}

// leaveIfDue is muxConn.leaveIfDue.
func (c *grpcConn) leaveIfDue(now time.Time, timeout time.Duration) {
	c.mu.Lock()
	idle := timeout > 0 && len(c.calls) == 0 && now.Sub(c.usedAt) >= timeout
	c.mu.Unlock()
	if idle || c.lent.old(now) {
		c.leave()
	}
}

// fail closes the connection and ends its calls.
func (c *grpcConn) fail(err error) {
	err = c.peer.whyFailed(err)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.lastWordsLocked()
	c.err, c.leaving = err, true
	c.room.Store(0)
	calls := c.calls
	c.calls = nil
	c.waiting.Store(0)
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.why != nil {
		err = fmt.Errorf("%w (%w)", err, c.why)
	}
	written := c.writtenLocked()
	c.http2.Close()
	c.settleLocked()
	c.swapped.Broadcast()
	c.mu.Unlock()
	c.peer.drop(c)
	c.lent.broke = c.err
	c.lent.pool.discard(c.lent)
	for _, call := range calls {
		end := call.request.grpc.end
		failed := lossOf(err, end != 0 && end <= written)
		if call.messages != nil {
			c.mu.Lock()
			call.finish(muxOutcome{err: failed})
			c.mu.Unlock()
			continue
		}
		call.finish(muxOutcome{err: failed})
	}
}

// settleLocked lets who opened the connection look at it.
func (c *grpcConn) settleLocked() {
	if !c.isSettled {
		c.isSettled = true
		close(c.settles)
	}
}

// failure returns why the connection takes no calls, nil if it does.
func (c *grpcConn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil && !errors.Is(c.err, errLeaving) || !c.leaving:
		return c.err
	case c.why != nil:
		return fmt.Errorf("the server takes no calls: %w", c.why)
	}
	return errors.New("the server takes no calls")
}

// HTTP2ReadBufferBytes is how much the buffer of a connection in HTTP/2 must hold: the
// longest frame that is allowed, and what may arrive behind it.
const HTTP2ReadBufferBytes = http2.FrameHeaderSize + http2.FrameBytesMin + limits.ReadAheadBytes
