package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/observe"
)

// muxConn is a connection that calls share: each has a sequence id, and the
// reply that carries it is the call's.
//
//	open -- crrst, silence, or nothing to do for long --> leaving -- last call ended --> closed
//	open, leaving -- the socket fails, or bytes that are no messages --> closed
type muxConn struct {
	peer   *Peer
	lent   *ClientConn
	conn   *eventloop.Conn
	sender sender
	// waiting is len(calls), for those that only compare.
	waiting atomic.Int32
	// crowd is the most that waiting has been lately.
	crowd atomic.Int32
	// oneway: it has carried a call that nobody answers.
	oneway atomic.Bool
	// base is a nanosecond before the connection was shared. Times count from it and not from
	// 1970, because the clock of the day can be set: back by an hour, and a connection that
	// carries nothing any more would be trusted for so long.
	base time.Time
	// heard is when bytes last arrived, since base; never 0.
	heard atomic.Int64
	// answered is when a reply last found its call, silent how many calls have
	// timed out since.
	answered atomic.Int64
	silent   atomic.Int32
	// began is when the first bytes of the reply in progress arrived, as heard, if
	// it needs more than one read; 0 otherwise. Only read uses it.
	began int64
	// reads is the call whose reply is read, which is in calls no more. Only read uses it.
	reads *muxCall

	mu       sync.Mutex
	calls    map[int32]*muxCall
	sequence int32
	// claiming is closed when the call that tells the peer what this side can do
	// is on its way; nil before there is one and afterwards.
	claiming chan struct{}
	// leaving: no call is added any more.
	leaving bool
	// writeErr is why nothing can be written any more.
	writeErr error
	// err is why the connection is closed.
	err error
	// usedAt is when the last call ended, busySince when the first began of those that
	// there are.
	usedAt    time.Time
	busySince time.Time
	// pause is how long nothing may arrive before the server is pinged, 0 for ever;
	// pinging: it is asked now.
	pause   time.Duration
	pinging bool
	// pinged is when the last ping was sent, as heard; 0 if it is not.
	pinged atomic.Int64
	// timer ends the calls whose deadlines have passed, at wakeAt; that is zero if no
	// call has one. There is one for all calls: most end before.
	timer  *time.Timer
	wakeAt time.Time
	// rests is until when expire does not run again.
	rests time.Time
}

// muxCall is a call that waits for its reply.
type muxCall struct {
	request *Request
	began   time.Time
	// deadline is when the connection gives up the call; zero for never.
	deadline time.Time
	// claim: it tells the peer what this side can do. behind is closed when the
	// call that does is on its way; nil if it need not be waited for.
	claim bool
	// first: the connection was opened for it.
	first  bool
	behind <-chan struct{}
	// ping: it is one, and not of a user.
	ping bool
	// messages is what a call of a streaming method sends and receives.
	messages *clientMessages
	// outcome gets the reply or the failure, once. taken: its caller has it.
	outcome chan muxOutcome
	taken   bool
}

// muxOutcome is what a call ended in. expired: its deadline has passed; its caller may
// be on the way to the sender still, so what that means for the message is left to it.
type muxOutcome struct {
	response *Response
	err      error
	expired  bool
}

// expireSpacing times the number of calls is how long the next look at their deadlines
// waits at least: looking at a call takes about a twentieth of that, so calls that end
// one after the other cost little, and 10,000 of them end up to 10 ms late.
const expireSpacing = time.Microsecond

// errLeaving is the error of calls that come to a connection too late.
var errLeaving = errors.New("the connection takes no more calls")

func newMuxConn(peer *Peer, lent *ClientConn) *muxConn {
	now := time.Now()
	c := &muxConn{peer: peer, lent: lent, conn: lent.conn, calls: map[int32]*muxCall{}, sequence: lent.sequence, usedAt: now, base: now.Add(-1)}
	c.heard.Store(c.since(now))
	c.sender.conn = lent.conn
	c.sender.crowded = c.crowded
	c.sender.failed = c.writeFailed
	if lent.mux { // a server of ours
		c.pause = peer.config.Ping
	}
	return c
}

// call makes one call.
func (c *muxConn) call(ctx context.Context, request *Request) (*Response, error) {
	parent, deadline := source(ctx)
	call := &request.call
	call.began, call.deadline, call.taken = request.now(), deadline, false
	sequence, err := c.add(call)
	if err != nil {
		return nil, &CallError{Phase: PhaseAcquire, Err: err}
	}
	returned := false
	defer func() {
		if !returned {
			c.abandon(sequence, call)
		}
	}()
	if call.first {
		request.begun(observe.UseDialled)
	} else {
		request.begun(observe.UseShared)
	}
	request.hurry(ctx, call.began)
	request.address(sequence, wire.FlagOutOfOrder, call.claim)
	request.after = nil
	if request.oneway {
		request.after = func() { c.handedOver(sequence, request) }
	} else if call.ping {
		request.after = func() { c.pingSent(request) }
	}
	if call.behind != nil {
		// Only what comes after the claim is answered in the light of it. The call
		// that makes it waits for nobody.
		<-call.behind
	}
	err = c.sender.send(&request.outgoing)
	if call.claim {
		call.claim = false
		c.claimed()
	}
	request.tellWritten()
	ended := parent.Done()
	var outcome muxOutcome
	if err != nil || ended == nil {
		// If nothing can be sent the connection has failed, and the call with it.
		outcome = <-call.outcome
	} else {
		select {
		case outcome = <-call.outcome:
		case <-ended:
			if c.remove(sequence) != nil {
				call.taken = true // there will be no outcome
				request.tellWritten()
				returned = true
				return nil, c.givenUp(call, ctx.Err())
			}
			outcome = <-call.outcome // it was decided first
		}
	}
	response, err := c.end(ctx, call, outcome)
	returned = true
	return response, err
}

// abandon ends a call whose goroutine an observer has ended. Its memory is about to be
// another call's, which must not get its outcome; nor may others wait for its claim.
func (c *muxConn) abandon(sequence int32, call *muxCall) {
	if call.claim {
		c.claimed()
	}
	if c.remove(sequence) == nil && !call.taken {
		<-call.outcome
	}
	call.request.response.Release()
}

// end returns what a call ended in to its caller.
func (c *muxConn) end(ctx context.Context, call *muxCall, outcome muxOutcome) (*Response, error) {
	call.taken = true
	call.request.tellReply()
	switch {
	case outcome.expired:
		return nil, c.givenUp(call, context.DeadlineExceeded)
	case outcome.err != nil && !sent(outcome.err) && call.request.shared():
		// The connection is closed, so this is soon; and the call may go on elsewhere.
		c.sender.letGo(ctx)
	}
	return outcome.response, outcome.err
}

// callFirst makes the call for which the connection was opened. A connection that
// is gone by then counts as one that was used before: the call may try another,
// but not one after the other while the peer closes each at once.
func (c *muxConn) callFirst(ctx context.Context, request *Request) (response *Response, used bool, err error) {
	request.call.first = true
	response, err = c.call(ctx, request)
	request.call.first = false
	if errors.Is(err, errLeaving) {
		return nil, true, errBroke()
	}
	return response, false, err
}

// handedOver ends a oneway call, which nobody answers.
func (c *muxConn) handedOver(sequence int32, request *Request) {
	if request.state.Load() != stateSent {
		return
	}
	c.oneway.Store(true)
	if call := c.remove(sequence); call != nil {
		request.response = Response{}
		call.outcome <- muxOutcome{response: &request.response}
	}
}

// add gives a call its sequence id.
func (c *muxConn) add(call *muxCall) (sequence int32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.leaving && !(call.ping && c.err == nil):
		// Whatever for: pick does not know it any more, so this happens once with
		// each connection.
		return 0, errLeaving
	case len(c.calls) >= c.lent.pool.config.Waiting && !call.ping:
		return 0, fmt.Errorf("%d calls already wait on a shared connection: %w", len(c.calls), ErrExhausted)
	}
	for {
		c.sequence++
		_, taken := c.calls[c.sequence]
		if c.sequence != wire.ControlSequence && !taken {
			break
		}
	}
	if call.claim = !c.lent.claimed; call.claim {
		c.lent.claimed = true
		c.claiming, call.behind = make(chan struct{}), nil
	} else {
		call.behind = c.claiming
	}
	if len(c.calls) == 0 {
		c.busySince = call.began
	}
	c.calls[c.sequence] = call
	waiting := int32(len(c.calls))
	c.waiting.Store(waiting)
	if waiting > c.crowd.Load() {
		c.crowd.Store(waiting)
	}
	c.wakeLocked(call.deadline)
	if c.pause > 0 && waiting == 1 {
		c.wakeLocked(call.began.Add(c.pause))
	}
	return c.sequence, nil
}

// crowded tells the sender whether more requests are likely to come at once. Callers
// that got their replies together are about to send together: the first of them
// would write alone if it looked at what waits now. Each time that it is asked, before a
// batch and behind it, it forgets an eighth of the crowd: after one of 10,000 calls a
// single caller yields 48 times for nothing, and then no more.
func (c *muxConn) crowded() bool {
	crowd := c.crowd.Load()
	c.crowd.Store(max(crowd-crowd/8, c.waiting.Load()))
	return crowd >= crowdedCalls
}

// claimed lets the calls go that wait for the one with the claim.
func (c *muxConn) claimed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.claiming)
	c.claiming = nil
}

// remove takes a call out, and returns nil if it is not there any more. The
// last call of a connection that is leaving closes it.
func (c *muxConn) remove(sequence int32) *muxCall {
	c.mu.Lock()
	call := c.calls[sequence]
	delete(c.calls, sequence)
	c.waiting.Store(int32(len(c.calls)))
	last := call != nil && len(c.calls) == 0
	if last {
		c.usedAt = time.Now()
	}
	done := last && c.leaving && c.err == nil
	c.mu.Unlock()
	if done {
		c.fail(errLeaving)
	}
	return call
}

// givenUp returns the error of a call that has been removed because it may not wait any
// longer. Only its caller may ask, who has sent the message: what nobody has sent yet
// would be taken for what is queued, and given back while the caller sends it.
func (c *muxConn) givenUp(call *muxCall, cause error) error {
	failed := &CallError{Phase: PhaseWait, Sent: true, Err: cause}
	if c.sender.withdraw(&call.request.outgoing) || call.request.state.Load() == stateDropped {
		failed.Phase, failed.Sent = PhaseWrite, false
	}
	if errors.Is(cause, context.DeadlineExceeded) && c.isSilent(call) {
		c.leave()
	}
	return failed
}

// wakeLocked makes sure that expire runs at a time, or before; a zero time is never. While
// it rests it runs afterwards.
func (c *muxConn) wakeLocked(at time.Time) {
	if !at.IsZero() && at.Before(c.rests) {
		at = c.rests
	}
	switch {
	case at.IsZero() || !c.wakeAt.IsZero() && !at.Before(c.wakeAt):
		return
	case c.timer == nil:
		c.timer = time.AfterFunc(time.Until(at), c.expire)
	default:
		c.timer.Reset(time.Until(at))
	}
	c.wakeAt = at
}

// expire ends the calls whose deadlines have passed.
func (c *muxConn) expire() {
	now := time.Now()
	var next time.Time
	var late []int32
	c.mu.Lock()
	for sequence, call := range c.calls {
		switch deadline := call.deadline; {
		case deadline.IsZero():
		case !deadline.After(now):
			late = append(late, sequence)
		case next.IsZero() || deadline.Before(next):
			next = deadline
		}
	}
	c.rests, c.wakeAt = now.Add(time.Duration(len(c.calls))*expireSpacing), time.Time{}
	if c.err == nil {
		c.wakeLocked(next)
		c.wakeLocked(c.pingLocked(now))
	}
	c.mu.Unlock()
	for _, sequence := range late {
		if call := c.remove(sequence); call != nil {
			call.outcome <- muxOutcome{expired: true}
		}
	}
}

// since returns when something happened, counted from base; at least 1, for 0 is never.
func (c *muxConn) since(at time.Time) int64 { return max(int64(at.Sub(c.base)), 1) }

// isSilent reports whether a call that timed out says that later ones are better
// off with another connection: not a byte came in a long time, so perhaps the
// peer is gone and nobody said so; or nothing that came was a reply to any of
// several calls.
func (c *muxConn) isSilent(call *muxCall) bool {
	began := c.since(call.began)
	if c.answered.Load() >= began {
		return false
	}
	silent := c.silent.Add(1)
	return silent >= limits.SilentCalls || c.heard.Load() < began && time.Since(call.began) >= limits.SilenceTimeout
}

// leave makes the connection close when its last call has ended.
func (c *muxConn) leave() {
	c.peer.leave(c)
	c.mu.Lock()
	c.leaving = true
	idle := len(c.calls) == 0 && c.err == nil
	c.mu.Unlock()
	if idle {
		c.fail(errLeaving)
	}
}

// leaveIfDue closes the connection if it has had no call for a time, and behind its
// last call if it is old.
func (c *muxConn) leaveIfDue(now time.Time, timeout time.Duration) {
	c.mu.Lock()
	idle := timeout > 0 && len(c.calls) == 0 && now.Sub(c.usedAt) >= timeout
	c.mu.Unlock()
	if idle || c.lent.old(now) {
		c.leave()
	}
}

// fail closes the connection and ends its calls.
func (c *muxConn) fail(err error) {
	c.peer.leave(c)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err, c.leaving = err, true
	calls := c.calls
	c.calls = nil
	c.waiting.Store(0)
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	c.sender.close(err)
	c.lent.broke = err
	c.lent.pool.discard(c.lent)
	for _, call := range calls {
		failed := waitFailed(PhaseWait, err)
		state := &call.request.state
		if state.CompareAndSwap(stateQueued, stateDropped) || state.Load() == stateDropped {
			failed.Phase, failed.Sent = PhaseWrite, false
		}
		call.outcome <- muxOutcome{err: failed}
	}
}

// writeFailed lets no more calls come when nothing can be written any more, and
// leaves the peer a moment for the replies that it has sent before it closed.
func (c *muxConn) writeFailed(err error) {
	c.peer.leave(c)
	c.mu.Lock()
	c.leaving, c.writeErr = true, err
	c.mu.Unlock()
	// An error means that the connection is closed, which read will notice.
	_ = c.conn.SetReadDeadline(time.Now().Add(limits.LastWordsTimeout))
}

// readFailed ends the connection when nothing can be read any more.
func (c *muxConn) readFailed(err error) {
	c.mu.Lock()
	if handshake := new(eventloop.HandshakeError); c.writeErr != nil && !errors.As(err, &handshake) {
		err = c.writeErr
	}
	c.mu.Unlock()
	c.fail(err)
}

// read takes replies off the connection until it fails.
func (c *muxConn) read() {
	defer failOnPanic(c.peer.config.Log, c.readPanicked)
	c.conn.SpinReads()
	reader := c.conn.Reader()
	discard, arrived := 0, int32(0)
	for {
		n := min(discard, reader.Len())
		_ = reader.Skip(n)
		discard -= n
		need := 1
		if discard == 0 {
			message, used, more, err := c.lent.nextReply(reader.Buffered())
			if err != nil {
				c.fail(err)
				return
			}
			if used > 0 {
				discard = used
				if last := c.deliver(&message, used); last {
					return
				}
				arrived++
				continue
			}
			need = max(more, reader.Len()+1)
			if c.began == 0 && reader.Len() > 0 {
				c.began = c.heard.Load()
			}
		}
		if reader.Len() == 0 {
			reader.Shrink()
		}
		c.sender.arrived.Store(arrived)
		arrived = 0
		if _, err := reader.Peek(need); err != nil {
			c.readFailed(readError(err))
			return
		}
		c.heard.Store(c.since(time.Now()))
	}
}

// readPanicked ends the connection, and the call whose reply was being read: nothing else
// would, not even its deadline.
func (c *muxConn) readPanicked(err error) {
	if c.reads != nil {
		c.reads.outcome <- muxOutcome{err: &CallError{Phase: PhaseReply, Sent: true, Err: err}}
	}
	c.fail(err)
}

// readError names the end of a connection that calls wait on.
func readError(err error) error {
	switch {
	case errors.Is(err, eventloop.ErrTruncated):
		return fmt.Errorf("the connection to the server ended without the notice that TLS has for it: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the server closed the connection: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the server closed the connection in the middle of a reply: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// deliver gives a message to the call that waits for it. It reports whether the
// connection has come to its end. Replies that nobody waits for are dropped and
// counted: their calls have given up.
func (c *muxConn) deliver(message *wire.Message, size int) (last bool) {
	head, _, closing, err := readReplyHead(message.Info)
	if closing {
		c.leave()
	}
	if call := c.remove(message.HeaderSequence); call != nil {
		c.reads = call
		c.answered.Store(c.heard.Load())
		c.silent.Store(0)
		if call.request.teller != nil {
			began := c.began
			if began == 0 {
				began = c.heard.Load()
			}
			call.request.heard(size, time.Duration(c.since(time.Now())-began))
		}
		call.outcome <- c.outcome(call, message, head, err)
		c.reads = nil
	} else if !isControl(message) && !isSign(message) {
		c.peer.late.Add(1)
	}
	c.began = 0
	if message.Last {
		c.fail(fmt.Errorf("nothing can be understood after a reply: %w", message.Invalid))
	}
	return message.Last
}

// outcome copies a reply out of the connection's buffer, which the next one
// needs.
func (c *muxConn) outcome(call *muxCall, message *wire.Message, head ReplyHead, err error) muxOutcome {
	// What address changes may be changing still: a peer that guesses the
	// sequence id may answer before it was asked.
	if wrong := checkReply(call.request.name, message.HeaderSequence, call.request.payload, message); wrong != nil {
		err = wrong
	}
	if err != nil {
		return muxOutcome{err: &CallError{Phase: PhaseReply, Sent: true, Err: err}}
	}
	body, buffers := call.request.take(message.Body, c.lent.pool.buffers)
	response := &call.request.response
	*response = Response{Type: message.Type, Payload: message.Payload, Body: body, Head: head, buffers: buffers}
	return muxOutcome{response: response}
}
