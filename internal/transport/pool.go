package transport

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/peerlog"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/observe"
)

// PoolConfig configures a Pool. Every field must be set; limits.Or has been
// applied to what a user gave.
type PoolConfig struct {
	// Local, if set, is a server of this process that calls go to, without
	// connections: Dial and what is about connections have no meaning.
	Local    *Server
	Dial     func(ctx context.Context) (*eventloop.Conn, error)
	Protocol wire.Protocol
	Limits   limits.Message
	// Connections bounds how many are open, Waiting how many calls queue for
	// one of them.
	Connections int
	Waiting     int
	IdleTimeout time.Duration
	// Encodings and SendTimeout are those of ServerConfig.
	Encodings      []Encoding
	SendTimeout    time.Duration
	ConnectTimeout time.Duration
	// Age is for how long a connection is used for new calls, give or take a tenth; 0
	// for ever. Short: each is used for one call, and not shared.
	Age   time.Duration
	Short bool
	// Ping is how long nothing may arrive on a shared connection on which calls wait
	// before the server is asked for a sign of life, and again until the connection
	// fails; 0 for ever.
	Ping time.Duration
	// Elsewhere says that a call which gets no connection can go to another
	// address, so that connecting must not take all of its time.
	Elsewhere bool
	// Multiplexed says that the peer is known to match replies by sequence id,
	// although it does not say so itself. TTHeader only.
	Multiplexed bool
	// Log, if set, is for what operators should know.
	Log *peerlog.Log
	// Connection, if set, is told of connections, without Side and Peer.
	Connection func(observe.Connection)
	// Authority is what a server is called in gRPC.
	Authority string
	// Share, if set, is offered each connection whose peer can multiplex. If it
	// returns true it has taken over the connection, with its slot, and calls
	// discard in the end; otherwise the connection is closed.
	Share func(*ClientConn) bool
	// Buffers and Requests are pools that several peers share; nil for one of its own.
	Buffers  *linkbuf.Pool
	Requests *sync.Pool
}

// Pool holds the exclusive connections of a client to one address: each carries
// one call at a time. Idle ones are reused last in, first out, so that those
// not needed grow old and are closed. Safe for concurrent use.
type Pool struct {
	config  PoolConfig
	buffers *linkbuf.Pool

	mu sync.Mutex
	// idle is ordered by age, the longest idle first.
	idle []*ClientConn
	// all holds every connection that is open, idle or not.
	all map[*ClientConn]struct{}
	// open counts all and connections being dialled.
	open int
	// sharing is how many of all Share has taken over, leaving how many of these take no more
	// calls, though streams on them may go on for long.
	sharing, leaving int
	// dials are those that go on, the oldest first.
	dials []*dialling
	// waiters holds *waiter, the longest waiting first; came counts those that ever were.
	waiters list.List
	came    uint64
	reaper  *time.Timer
	closed  bool
	// retired: connections are closed behind their call.
	retired bool

	// closing ends when Close is called, and dials in progress with it.
	closing context.Context
	closeIt context.CancelFunc
}

// grant is a connection, or why there is none.
type grant struct {
	conn *ClientConn
	err  error
}

// errShared is the error of calls that need no connection of their own any
// more.
var errShared = errors.New("there is a shared connection")

// closedError is the error of a call that waited for a connection when Close was called.
func closedError() *CallError { return &CallError{Phase: PhaseConnect, Err: ErrClosed} }

// ErrClosed is the error of calls on a closed Pool.
var ErrClosed = errors.New("client is closed")

// NewPool returns an empty Pool. Close must be called in the end.
func NewPool(config PoolConfig) *Pool {
	p := &Pool{config: config, buffers: config.Buffers, all: map[*ClientConn]struct{}{}}
	if p.buffers == nil {
		p.buffers = linkbuf.NewPool()
	}
	p.closing, p.closeIt = context.WithCancel(context.Background())
	return p
}

// Acquire returns a connection for one call: an idle one, or a new one, or the
// first that another call gives back, whichever comes first to those that wait in
// their order. An idle one may have been closed by its peer: carry looks. It fails
// with a *CallError.
func (p *Pool) Acquire(ctx context.Context) (*ClientConn, error) {
	return p.acquire(ctx, time.Time{})
}

// acquire is Acquire for who knows what time it is; now is zero otherwise.
func (p *Pool) acquire(ctx context.Context, now time.Time) (*ClientConn, error) {
	conn, wait, err := p.take(ctx)
	if err != nil {
		return nil, &CallError{Phase: PhaseAcquire, Err: err}
	}
	for {
		if wait != nil {
			select {
			case granted := <-wait.grant:
				if granted.err != nil {
					return nil, granted.err
				}
				conn, now = granted.conn, time.Now()
				if !wait.deadline.IsZero() && !now.Before(wait.deadline) {
					// It could not be used, and not be used again behind a call that failed.
					p.giveBack(conn, now)
					return nil, p.waited(context.DeadlineExceeded)
				}
			case <-ctx.Done():
				return nil, p.abandon(wait, ctx.Err())
			}
		}
		if conn.waited = wait != nil && conn.reused; !conn.reused {
			return conn, nil
		}
		if now.IsZero() {
			now = time.Now()
		}
		if !(conn.waited && conn.conn.CheckIdle() != nil) && !conn.old(now) {
			return conn, nil
		}
		// Closed by the peer since its last call, or grown old; its slot is free.
		if !p.forget(conn) {
			return nil, &CallError{Phase: PhaseAcquire, Err: ErrClosed}
		}
		wait = p.waitAgain(ctx, wait)
	}
}

// take returns an idle connection, or a waiter.
func (p *Pool) take(ctx context.Context) (*ClientConn, *waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	// As many calls as there is room for connections would not wait for another call.
	room := p.placesLocked() - p.open + len(p.dials)
	switch {
	case p.closed:
		return nil, nil, ErrClosed
	case last >= 0:
		conn := p.idle[last]
		p.idle[last] = nil
		p.idle = p.idle[:last]
		conn.reused = true
		return conn, nil, nil
	case p.waiters.Len()-room >= p.config.Waiting:
		return nil, nil, fmt.Errorf("%d calls already wait for one of %d connections: %w",
			p.waiters.Len()-room, p.config.Connections, ErrExhausted)
	}
	wait := p.newWaiterLocked(ctx)
	wait.element = p.waiters.PushBack(wait)
	hurry := p.waiters.Len() <= room
	p.dialLocked()
	if hurry {
		p.hurryLocked(wait)
	}
	return nil, wait, nil
}

// waitAgain lets a call whose connection was of no use wait in front of the others: it
// was its turn. It has the slot of that connection, so it waits no longer than connecting
// may take, also where as many are being opened for others as may.
func (p *Pool) waitAgain(ctx context.Context, before *waiter) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	// Not the old one, whose timer may be just about to look at it.
	wait := p.newWaiterLocked(ctx)
	if before != nil {
		wait.number = before.number
	}
	if p.closed {
		wait.grant <- grant{err: closedError()}
		return wait
	}
	wait.element = p.waiters.PushFront(wait)
	p.dialLocked()
	p.hurryLocked(wait)
	return wait
}

// ErrExhausted is the error of calls that find the queue for a connection full.
var ErrExhausted = errors.New("limit reached")

// abandon withdraws a waiter that waits no longer because of cause, and passes on what
// it was granted meanwhile. It returns the error of its call.
func (p *Pool) abandon(wait *waiter, cause error) error {
	p.mu.Lock()
	if wait.element != nil {
		defer p.mu.Unlock()
		failed := p.waitedLocked(wait, cause)
		p.unqueueLocked(wait)
		p.dialLocked()
		return failed
	}
	p.mu.Unlock()
	if granted := <-wait.grant; granted.conn != nil {
		p.giveBack(granted.conn, time.Now())
	}
	return p.waited(cause)
}

// expiry returns when a connection that is opened now is too old for new calls; zero
// for never.
func expiry(now time.Time, age time.Duration) time.Time {
	if age <= 0 {
		return time.Time{}
	}
	jitter := age / 100 * limits.ConnectionAgeJitterPercent
	return now.Add(age - jitter + rand.N(2*jitter+1))
}

// release takes a usable connection back.
func (p *Pool) release(conn *ClientConn) {
	conn.reused = true
	now := time.Now()
	if p.config.Short || conn.old(now) {
		p.discard(conn)
		return
	}
	p.giveBack(conn, now)
}

// giveBack gives a connection to the first that waits for one, or keeps it for later.
func (p *Pool) giveBack(conn *ClientConn, now time.Time) {
	p.mu.Lock()
	if p.closed || p.uselessLocked() {
		p.mu.Unlock()
		p.discard(conn)
		return
	}
	p.giveLocked(conn, now)
	p.mu.Unlock()
}

// uselessLocked reports whether nobody would come for an idle connection: calls go over
// those that they share, or to others.
func (p *Pool) uselessLocked() bool {
	return (p.sharing > 0 || p.retired) && p.waiters.Len() == 0
}

// retire closes what is idle now, and the others when their calls have ended. Calls that
// come all the same are made.
func (p *Pool) retire() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.retired = nil, true
	p.mu.Unlock()
	for _, conn := range idle {
		p.discard(conn)
	}
}

func (p *Pool) giveLocked(conn *ClientConn, now time.Time) {
	if first := p.waiters.Front(); first != nil {
		p.grantLocked(first.Value.(*waiter), grant{conn: conn})
		return
	}
	conn.idleSince = now
	p.idle = append(p.idle, conn)
	p.scheduleReaperLocked()
}

// grantLocked ends the waiting of a call.
func (p *Pool) grantLocked(wait *waiter, granted grant) {
	p.unqueueLocked(wait)
	wait.grant <- granted
	p.dialLocked()
}

// toShared sends all waiters away, and closes what is idle: there is a connection that
// calls can share. Connections that are for one call each have nothing to share but the way
// in which they are read.
func (p *Pool) toShared(conn *ClientConn, shared sharing) {
	for _, useless := range p.takeOver(conn, shared) {
		p.discard(useless)
	}
}

// takeOver is what toShared does under the lock. It returns what was idle.
func (p *Pool) takeOver(conn *ClientConn, shared sharing) (idle []*ClientConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.all[conn]; known {
		conn.shared = shared
		p.sharing++
	}
	if p.config.Short {
		return nil
	}
	idle, p.idle = p.idle, nil
	for first := p.waiters.Front(); first != nil; first = p.waiters.Front() {
		wait := first.Value.(*waiter)
		p.unqueueLocked(wait)
		wait.grant <- grant{err: &CallError{Phase: PhaseAcquire, Err: errShared}}
	}
	p.dialLocked()
	return idle
}

// leaves is told that a shared connection takes no more calls. Another one may be opened in its
// place at once: with one for all calls, calls would wait for the end of the longest stream.
func (p *Pool) leaves(conn *ClientConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.all[conn]; known && !conn.replaceable {
		conn.replaceable = true
		p.leaving++
		p.dialLocked()
	}
}

// placesLocked returns how many connections may be open: as many again if none takes calls.
func (p *Pool) placesLocked() int {
	return p.config.Connections + min(p.leaving, p.config.Connections)
}

// discard closes a connection that cannot be used again.
func (p *Pool) discard(conn *ClientConn) {
	if p.forget(conn) {
		p.slotFree()
	}
}

// forget closes a connection whose slot the caller has. It reports whether the
// pool still knew it.
func (p *Pool) forget(conn *ClientConn) bool {
	_ = conn.conn.Close()
	p.mu.Lock()
	_, known := p.all[conn]
	delete(p.all, conn)
	if known && conn.shared != nil {
		p.sharing--
	}
	if known && conn.replaceable {
		p.leaving--
	}
	p.mu.Unlock()
	if !known {
		return false
	}
	told := false
	defer func() {
		if !told {
			p.slotFree() // an observer has ended the goroutine of the caller
		}
	}()
	p.tellClosed(conn, conn.broke)
	told = true
	return true
}

// slotFree lets the next waiter have a connection dialled, now that one fewer is open.
func (p *Pool) slotFree() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	p.dialLocked()
}

// scheduleReaperLocked makes sure that the oldest idle connection is looked at
// when it is due. There is no timer while nothing is idle.
func (p *Pool) scheduleReaperLocked() {
	if p.reaper != nil || len(p.idle) == 0 || p.config.IdleTimeout <= 0 {
		return
	}
	p.reaper = time.AfterFunc(time.Until(p.idle[0].idleSince.Add(p.config.IdleTimeout)), p.reap)
}

func (p *Pool) reap() {
	p.mu.Lock()
	due := 0
	for due < len(p.idle) && time.Since(p.idle[due].idleSince) >= p.config.IdleTimeout {
		due++
	}
	old := append([]*ClientConn(nil), p.idle[:due]...)
	p.idle = append(p.idle[:0], p.idle[due:]...)
	p.reaper = nil
	if !p.closed {
		p.scheduleReaperLocked()
	}
	p.mu.Unlock()
	for _, conn := range old {
		p.discard(conn)
	}
}

// Close closes all connections. Calls that are using one fail, and their servers
// learn of it at once; later calls fail with ErrClosed.
func (p *Pool) Close() {
	p.closeIt()
	p.mu.Lock()
	p.closed = true
	if p.reaper != nil {
		p.reaper.Stop()
		p.reaper = nil
	}
	idle := p.idle
	p.idle = nil
	for first := p.waiters.Front(); first != nil; first = p.waiters.Front() {
		p.grantLocked(first.Value.(*waiter), grant{err: closedError()})
	}
	all := p.all
	p.all = map[*ClientConn]struct{}{}
	p.open -= len(all)
	p.leaving = 0
	var waitedFor []*ClientConn
	for conn := range all {
		if conn.isWaitedFor() && !slices.Contains(idle, conn) {
			waitedFor = append(waitedFor, conn)
		}
	}
	p.mu.Unlock()
	for _, conn := range waitedFor {
		_ = conn.conn.Abort()
	}
	for conn := range all {
		_ = conn.conn.Close()
	}
	for conn := range all { // last, because an observer may end the goroutine
		p.tellClosed(conn, nil)
	}
}

// Closed reports whether Close was called.
func (p *Pool) Closed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Open returns how many connections are open or being opened.
func (p *Pool) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// hasRoom reports whether Acquire would not wait for another call.
func (p *Pool) hasRoom() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle) > 0 || p.open < p.placesLocked()
}
