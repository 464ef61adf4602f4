package transport

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
)

// streamPeer makes the calls of a Peer whose connections carry streams: all of gRPC, and
// those of streaming methods over TTHeader. Calls share connections, which are opened by
// goroutines of their own: what a call waits for is room for a stream, wherever that comes
// from.
//
// Lock order: mu, then that of a connection.
type streamPeer struct {
	peer *Peer
	pool *Pool
	// start makes a connection one that calls share.
	start func(*streamPeer, *ClientConn) streamConn
	// most is how many streams the server takes on a connection over TTHeader, 0 if it has not
	// said so.
	most atomic.Int32
	// pingAfter is after how long servers of gRPC are pinged that have complained, 0 if none has.
	pingAfter atomic.Int64

	mu sync.Mutex
	// conns are those that take calls.
	conns []streamConn
	// waiters holds *streamWaiter, the longest waiting first; came counts those that ever
	// were. waiting is how many there are, for those that only compare.
	waiters list.List
	came    uint64
	waiting atomic.Int32
	// opening: a connection is being opened.
	opening bool
	// barren is how many of conns took no calls, although they had none, when somebody last
	// looked. Without any other connection none is opened before openAfter; again is what opens
	// the next one for those who wait, at againAt.
	barren    int
	openAfter time.Time
	again     *time.Timer
	againAt   time.Time
	reaper    *time.Timer
	closed    bool
}

// streamWaiter is a call that waits for room for its stream.
type streamWaiter struct {
	// ready gets nil when there was room, or why there will be none.
	ready   chan error
	element *list.Element
	number  uint64
}

// streamConn is a connection that carries streams.
type streamConn interface {
	sharing
	// load returns how many more calls it takes, and how many there are.
	load() (room, waiting int32)
	// call makes a unary call.
	call(ctx context.Context, request *Request) (*Response, error)
	// settled is closed when the connection takes calls, or failure says why it does not;
	// unsettled says what that lacks.
	settled() <-chan struct{}
	unsettled() string
	// barren reports whether the server has said that it takes no calls, and there are none.
	barren() bool
	failure() error
	// leave makes it close when its last call has ended, leaveIfDue if it has been idle for
	// so long, or is too old.
	leave()
	leaveIfDue(now time.Time, idle time.Duration)
	// fail closes it, and ends its calls.
	fail(err error)
}

// opener is a stream of messages that is to be opened.
type opener interface {
	// openOn begins it. errFull and errLeaving say that another connection has to be found.
	openOn(ctx context.Context, conn streamConn) error
}

// do is Peer.Do, or begins a stream of messages.
func (g *streamPeer) do(ctx context.Context, request *Request, messages opener) (*Response, error) {
	waited := false
	for retries := 0; ; {
		conn, err := g.pick(ctx, waited)
		if err == nil && conn == nil {
			err = g.wait(ctx, waited)
			waited, request.at = true, time.Time{}
			if err == nil {
				continue
			}
			if early := new(earlyError); errors.As(err, &early) && retries == 0 && ctx.Err() == nil {
				// A server that stops closes what it has not looked at yet, and another one may
				// listen there by now.
				retries++
				request.tellRetried(err)
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		var response *Response
		if messages != nil {
			err = messages.openOn(ctx, conn)
		} else {
			response, err = conn.call(ctx, request)
		}
		if g.peer.config.Short {
			conn.leave() // Nobody else knows it.
		}
		switch {
		case err == nil:
			return response, nil
		case !g.peer.config.Short && (errors.Is(err, errFull) || errors.Is(err, errLeaving)):
			continue // The call has not begun, and pick does not return this one again.
		}
		if g.pool.Closed() && !errors.Is(err, ErrClosed) {
			err = &CallError{Phase: phaseOf(err), Sent: sent(err), Err: fmt.Errorf("%w (%w)", err, ErrClosed)}
		}
		if sent(err) || errors.Is(err, ErrClosed) || errors.Is(err, ErrExhausted) || retries >= limits.GRPCRetries || ctx.Err() != nil {
			return nil, err
		}
		retries++
		request.tellRetried(err)
	}
}

// pick returns a connection with room for a call; nil if there is none, or others wait
// for it already and the call did not.
func (g *streamPeer) pick(ctx context.Context, waited bool) (streamConn, error) {
	if g.peer.config.Short {
		return g.dial(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, &CallError{Phase: PhaseAcquire, Err: ErrClosed}
	}
	if !waited && g.waiters.Len() > 0 {
		return nil, nil
	}
	var best streamConn
	waiting := int32(0)
	for _, c := range g.conns {
		if room, n := c.load(); room > 0 && (best == nil || n < waiting) {
			best, waiting = c, n
		}
	}
	if best != nil && waiting >= limits.MultiplexedGrow && len(g.conns) < limits.MultiplexedConnections {
		g.openLocked()
	}
	return best, nil
}

// wait waits for room. A call that has waited already goes in front of the others.
func (g *streamPeer) wait(ctx context.Context, waited bool) error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return &CallError{Phase: PhaseAcquire, Err: ErrClosed}
	}
	if g.waiters.Len() >= g.peer.config.Waiting {
		g.mu.Unlock()
		return &CallError{Phase: PhaseAcquire, Err: fmt.Errorf("%d calls already wait for room on a connection: %w", g.peer.config.Waiting, ErrExhausted)}
	}
	g.came++
	w := &streamWaiter{ready: make(chan error, 1), number: g.came}
	if waited {
		w.element = g.waiters.PushFront(w)
	} else {
		w.element = g.waiters.PushBack(w)
	}
	g.waiting.Add(1)
	// There may have been room since pick looked.
	g.serveLocked()
	g.mu.Unlock()

	// Where there are other instances, connecting must not take all of the time.
	var patience <-chan time.Time
	limit, half := time.Duration(0), false
	if deadline, ok := ctx.Deadline(); ok {
		if limit, half = g.pool.patience(deadline); half {
			timer := time.NewTimer(limit)
			defer timer.Stop()
			patience = timer.C
		}
	}
	select {
	case err := <-w.ready:
		return err
	case <-ctx.Done():
		return g.giveUp(w, ctx.Err(), false)
	case <-patience:
		return g.giveUp(w, fmt.Errorf("no connection within %v, half of the time that was left", limit.Round(time.Microsecond)), limit >= limits.DialPatience)
	}
}

// giveUp ends the waiting of a call, and passes on what it was given meanwhile.
func (g *streamPeer) giveUp(w *streamWaiter, cause error, refused bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.removeLocked(w) {
		g.serveLocked()
	}
	barren := g.barrenLocked()
	switch {
	case len(g.conns) > 0 && barren == 0:
		return &CallError{Phase: PhaseAcquire, Err: fmt.Errorf("waiting for room for a call on one of %d connections: %w", len(g.conns), cause)}
	case len(g.conns) > 0:
		// One that takes nothing anywhere is to be left alone, as one that cannot be connected to.
		return &CallError{Phase: PhaseAcquire, Refused: refused && barren == len(g.conns), Err: fmt.Errorf(
			"waiting for room for a call on one of %d connections, on %d of which the server takes no streams now (limit 0): %w", len(g.conns), barren, cause)}
	case time.Now().Before(g.openAfter):
		cause = fmt.Errorf("the server took no streams on the last connection (limit 0): %w", cause)
	}
	return &CallError{Phase: PhaseConnect, Refused: refused, Err: cause}
}

// removeLocked takes a call out of those that wait, and returns false if it is not there.
func (g *streamPeer) removeLocked(w *streamWaiter) bool {
	if w.element == nil {
		return false
	}
	g.waiters.Remove(w.element)
	w.element = nil
	g.waiting.Add(-1)
	return true
}

// grantLocked ends the waiting of a call.
func (g *streamPeer) grantLocked(w *streamWaiter, err error) {
	g.removeLocked(w)
	w.ready <- err
}

// roomFree lets calls go on that wait, if there may be room for them.
func (g *streamPeer) roomFree() {
	if g.waiting.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.serveLocked()
}

// serveLocked lets as many calls go on as there is room for, and opens a connection if
// some are left. One that finds the room taken waits again, in front.
func (g *streamPeer) serveLocked() {
	room := 0
	for _, c := range g.conns {
		free, _ := c.load()
		room += int(min(free, 1<<16))
	}
	for ; room > 0 && g.waiters.Len() > 0; room-- {
		g.grantLocked(g.waiters.Front().Value.(*streamWaiter), nil)
	}
	if g.waiters.Len() > 0 {
		g.openLocked()
	}
}

// openLocked opens a connection, unless one is being opened or there is a reason not to.
func (g *streamPeer) openLocked() {
	barren := g.barrenLocked()
	if barren > g.barren {
		// Opened in vain. The server has said that it takes nothing, so more connections are what
		// it needs least; when it takes calls again it says so on those that there are.
		g.peer.grew(false)
		g.openAfter = time.Now().Add(limits.GrowPauseMin)
	}
	g.barren = barren
	if g.opening || g.closed || len(g.conns) > 0 && !g.pool.hasRoom() {
		return
	}
	pause := time.Until(g.openAfter)
	if len(g.conns) > 0 {
		pause = g.peer.growsIn()
	}
	if pause > 0 {
		if g.waiters.Len() > 0 {
			g.openAgainLocked(pause)
		}
		return
	}
	g.opening = true
	go g.open(g.came)
}

// openAgainLocked has a connection opened in a while, if that is sooner than one is.
func (g *streamPeer) openAgainLocked(pause time.Duration) {
	at := time.Now().Add(pause)
	switch {
	case g.again == nil:
		g.again = time.AfterFunc(pause, g.openAgain)
	case at.Before(g.againAt):
		g.again.Reset(pause)
	default:
		return
	}
	g.againAt = at
}

// openAgain opens a connection for calls that wait, behind one that took none: behind a balancer
// it may be another server's.
func (g *streamPeer) openAgain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.again = nil
	g.serveLocked()
}

// barrenLocked returns on how many connections the server takes no calls, although there are
// none: what it takes may change (RFC 9113, 6.5.2), and be nothing for a while.
func (g *streamPeer) barrenLocked() (n int) {
	for _, c := range g.conns {
		if c.barren() {
			n++
		}
	}
	return n
}

// open opens a connection for calls that wait. A failure is told to those that waited
// when it began, if there is no other connection to wait for.
func (g *streamPeer) open(came uint64) {
	err := errors.New("dial ended its goroutine")
	var conn streamConn
	defer func() {
		var useless streamConn
		defer func() {
			if useless != nil {
				useless.fail(err)
			}
		}()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.opening = false
		if err == nil {
			if err = g.addLocked(conn); err != nil {
				useless = conn
			}
		}
		if err != nil || !conn.barren() {
			g.peer.grew(err == nil)
		}
		if err != nil && len(g.conns) == 0 {
			for e := g.waiters.Front(); e != nil; {
				w := e.Value.(*streamWaiter)
				if e = e.Next(); w.number <= came {
					g.grantLocked(w, err)
				}
			}
		}
		g.serveLocked()
	}()
	conn, err = g.dial(context.Background())
}

// addLocked takes a connection that was opened, unless it is of no use by now.
func (g *streamPeer) addLocked(conn streamConn) error {
	err := conn.failure()
	if g.closed {
		err = ErrClosed
	}
	if err != nil {
		return &CallError{Phase: PhaseConnect, Refused: !g.closed, Err: opened(err)}
	}
	g.conns = append(g.conns, conn)
	g.scheduleReaperLocked()
	return nil
}

// dial opens a connection and waits until it takes calls: in HTTP/2 until the server has
// answered with its settings, because before that nobody knows how many calls it takes, nor
// whether it speaks HTTP/2. One that is for a single call is of no use before there is room
// for that.
func (g *streamPeer) dial(ctx context.Context) (streamConn, error) {
	began := time.Now()
	lent, err := g.pool.Acquire(ctx)
	for err == nil && lent.stale() {
		g.pool.discard(lent)
		lent, err = g.pool.Acquire(ctx)
	}
	if err != nil {
		return nil, err
	}
	_ = lent.conn.SetDeadline(time.Time{})
	conn := g.start(g, lent)
	var late <-chan time.Time
	limit := g.peer.config.ConnectTimeout
	if limit > 0 {
		timer := time.NewTimer(max(time.Until(began.Add(limit)), limit/10))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-conn.settled():
		if err = conn.failure(); err == nil {
			return conn, nil
		}
		return nil, &CallError{Phase: PhaseConnect, Refused: !errors.Is(err, ErrClosed), Err: opened(err)}
	case <-late:
		err = &CallError{Phase: PhaseConnect, Refused: true, Err: fmt.Errorf("%s within the connect timeout of %v", conn.unsettled(), limit)}
	case <-ctx.Done():
		err = &CallError{Phase: PhaseConnect, Err: fmt.Errorf("%s: %w", conn.unsettled(), ctx.Err())}
	}
	conn.fail(err)
	return nil, err
}

// earlyError is why a connection ended that was open, before a call could use it.
type earlyError struct{ err error }

func (e *earlyError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *earlyError) Unwrap() error { return e.err }

// opened marks err as one of those, unless another connection would not be better.
func opened(err error) error {
	problem := new(grpc.Error)
	if errors.Is(err, ErrClosed) || errors.As(err, &problem) {
		return err
	}
	return &earlyError{err}
}

// pings returns after how long without a byte a server of gRPC is pinged, 0 for never.
func (g *streamPeer) pings() time.Duration {
	if g.peer.config.Ping <= 0 {
		return 0
	}
	return max(g.peer.config.Ping, time.Duration(g.pingAfter.Load()))
}

// pingsLess follows a server's complaint of pings on a connection that sent them so often. Of
// several that complain together each is of the same.
func (g *streamPeer) pingsLess(after time.Duration) {
	slower := int64(min(2*min(after, limits.HTTP2PingAfterMost), limits.HTTP2PingAfterMost))
	for before := g.pingAfter.Load(); slower > before && !g.pingAfter.CompareAndSwap(before, slower); {
		before = g.pingAfter.Load()
	}
}

// drop takes a connection out of those that calls go to.
func (g *streamPeer) drop(conn streamConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.conns, conn); i >= 0 {
		g.conns = slices.Delete(g.conns, i, i+1)
		g.serveLocked()
	}
}

// scheduleReaperLocked is that of Peer.
func (g *streamPeer) scheduleReaperLocked() {
	pause := g.peer.config.reaperPause()
	if g.reaper == nil && len(g.conns) > 0 && pause > 0 && !g.closed {
		g.reaper = time.AfterFunc(pause, g.reap)
	}
}

func (g *streamPeer) reap() {
	g.mu.Lock()
	conns := slices.Clone(g.conns)
	g.mu.Unlock()
	now := time.Now()
	for _, conn := range conns {
		conn.leaveIfDue(now, g.peer.config.IdleTimeout)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reaper = nil
	g.scheduleReaperLocked()
}

// warmUp opens a connection unless there is one.
func (g *streamPeer) warmUp(ctx context.Context) error {
	g.mu.Lock()
	there := len(g.conns) > 0
	g.mu.Unlock()
	if there {
		return nil
	}
	return g.wait(ctx, false)
}

// close ends all calls. The connections are closed by the pool as well.
func (g *streamPeer) close() {
	g.mu.Lock()
	g.closed = true
	if g.reaper != nil {
		g.reaper.Stop()
	}
	if g.again != nil {
		g.again.Stop()
	}
	for g.waiters.Len() > 0 {
		g.grantLocked(g.waiters.Front().Value.(*streamWaiter), &CallError{Phase: PhaseAcquire, Err: ErrClosed})
	}
	conns := slices.Clone(g.conns)
	g.mu.Unlock()
	for _, conn := range conns {
		conn.fail(ErrClosed)
	}
}

// retire is that of Peer.
func (g *streamPeer) retire() {
	g.pool.retire()
	g.mu.Lock()
	conns := slices.Clone(g.conns)
	g.mu.Unlock()
	for _, conn := range conns {
		conn.leave()
	}
}

// whyFailed returns why a connection failed: the end of the client, if that closed it.
func (g *streamPeer) whyFailed(err error) error {
	if g.pool.Closed() && !errors.Is(err, ErrClosed) {
		return fmt.Errorf("%w (%w)", ErrClosed, err)
	}
	return err
}

// shared returns how many connections take calls.
func (g *streamPeer) shared() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns)
}
