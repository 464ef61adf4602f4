package transport

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/detect"
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
	Connections    int
	Waiting        int
	IdleTimeout    time.Duration
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
	// Connection, if set, is told of connections, without Side and Peer.
	Connection func(observe.Connection)
	// Share, if set, is offered each connection whose peer can multiplex. If it
	// returns true it has taken over the connection, with its slot, and calls
	// discard in the end; otherwise the connection is closed.
	Share func(*ClientConn) bool
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
	// waiters holds *waiter, the longest waiting first.
	waiters list.List
	reaper  *time.Timer
	closed  bool

	// closing ends when Close is called, and dials in progress with it.
	closing context.Context
	closeIt context.CancelFunc
}

// waiter is a call that waits for a connection.
type waiter struct {
	grant chan grant
	// element is its place in Pool.waiters; nil once it was granted something.
	element *list.Element
}

// grant is a connection, or a slot to dial one, or the advice to look for a
// shared connection instead.
type grant struct {
	conn   *ClientConn
	shared bool
}

// errShared is the error of calls that need no connection of their own any
// more.
var errShared = errors.New("there is a shared connection")

// ErrClosed is the error of calls on a closed Pool.
var ErrClosed = errors.New("client is closed")

// NewPool returns an empty Pool. Close must be called in the end.
func NewPool(config PoolConfig) *Pool {
	p := &Pool{config: config, buffers: linkbuf.NewPool(), all: map[*ClientConn]struct{}{}}
	p.closing, p.closeIt = context.WithCancel(context.Background())
	return p
}

// Acquire returns a connection for one call: an idle one, or a new one, or the
// first that another call gives back. An idle one may have been closed by its peer:
// Exchange looks. It fails with a *CallError.
func (p *Pool) Acquire(ctx context.Context) (*ClientConn, error) {
	conn, wait, err := p.take()
	if err != nil {
		return nil, &CallError{Phase: PhaseAcquire, Err: err}
	}
	if wait != nil {
		select {
		case granted := <-wait.grant:
			if granted.shared {
				return nil, &CallError{Phase: PhaseAcquire, Err: errShared}
			}
			conn = granted.conn
		case <-ctx.Done():
			p.abandon(wait)
			return nil, &CallError{Phase: PhaseAcquire, Err: fmt.Errorf(
				"waiting for one of %d connections: %w", p.config.Connections, ctx.Err())}
		}
	}
	if conn == nil {
		return p.dialObserved(ctx)
	}
	conn.waited = wait != nil
	if conn.waited && conn.conn.CheckIdle() != nil || conn.old(time.Now()) {
		// Closed by the peer since its last call, or grown old; its slot is ours.
		if !p.forget(conn) {
			return nil, &CallError{Phase: PhaseAcquire, Err: ErrClosed}
		}
		return p.dialObserved(ctx)
	}
	return conn, nil
}

// take returns an idle connection, or a waiter, or neither: then the caller
// dials.
func (p *Pool) take() (*ClientConn, *waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch last := len(p.idle) - 1; {
	case p.closed:
		return nil, nil, ErrClosed
	case last >= 0:
		conn := p.idle[last]
		p.idle[last] = nil
		p.idle = p.idle[:last]
		conn.reused = true
		return conn, nil, nil
	case p.open < p.config.Connections:
		p.open++
		return nil, nil, nil
	case p.waiters.Len() >= p.config.Waiting:
		return nil, nil, fmt.Errorf("%d calls already wait for one of %d connections: %w",
			p.waiters.Len(), p.config.Connections, ErrExhausted)
	}
	wait := &waiter{grant: make(chan grant, 1)}
	wait.element = p.waiters.PushBack(wait)
	return nil, wait, nil
}

// ErrExhausted is the error of calls that find the queue for a connection full.
var ErrExhausted = errors.New("limit reached")

// abandon withdraws a waiter, and passes on what it was granted meanwhile.
func (p *Pool) abandon(wait *waiter) {
	p.mu.Lock()
	waiting := wait.element != nil
	if waiting {
		p.waiters.Remove(wait.element)
		wait.element = nil
	}
	p.mu.Unlock()
	if waiting {
		return
	}
	switch granted := <-wait.grant; {
	case granted.shared:
	case granted.conn != nil:
		p.release(granted.conn)
	default:
		p.slotFree()
	}
}

// dial opens a connection for a caller that holds a slot for it.
func (p *Pool) dial(ctx context.Context) (*ClientConn, error) {
	dialCtx, cancel := context.WithCancel(ctx)
	patience, half := p.patience(ctx)
	if patience > 0 || half {
		dialCtx, cancel = withTimeout(dialCtx, cancel, patience)
	}
	defer cancel()
	if p.Closed() {
		p.slotFree()
		return nil, &CallError{Phase: PhaseConnect, Err: ErrClosed}
	}
	stop := context.AfterFunc(p.closing, cancel)
	defer stop()
	progress := &dialProgress{}
	raw, err := p.await(context.WithValue(dialCtx, progressKey{}, progress))
	if err != nil {
		late := dialCtx.Err() != nil || errors.Is(err, context.DeadlineExceeded) && earlier(dialCtx, ctx)
		failed := &CallError{Phase: progress.phase(), Err: err}
		switch {
		case p.Closed():
			failed.Err = ErrClosed
		case ctx.Err() != nil:
		case late && half:
			failed.Err = fmt.Errorf("no connection within %v, half of the time that was left: %v", patience.Round(time.Microsecond), err)
			failed.Refused = patience >= limits.DialPatience
		case late:
			// Not the call's deadline: let the caller see which limit it was.
			failed.Err = fmt.Errorf("no connection within the connect timeout of %v: %v", patience, err)
			failed.Refused = true
		default:
			failed.Refused = !ownFault(err) && !(half && isTimeout(err) && patience < limits.DialPatience)
		}
		return nil, failed
	}
	now := time.Now()
	conn := &ClientConn{
		pool:    p,
		conn:    raw,
		decoder: detect.NewDecoder(replies(p.config.Protocol), p.config.Limits),
		claimed: p.config.Short,
		opened:  now,
		expires: expiry(now, p.config.Age),
	}
	p.mu.Lock()
	if p.closed {
		p.open--
		p.mu.Unlock()
		_ = raw.Close()
		return nil, &CallError{Phase: PhaseConnect, Err: ErrClosed}
	}
	p.all[conn] = struct{}{}
	p.mu.Unlock()
	return conn, nil
}

// earlier reports whether one context has an earlier deadline than another. A dialer
// that gives up by a clock of its own may do so before either has ended.
func earlier(one, than context.Context) bool {
	first, ok := one.Deadline()
	other, both := than.Deadline()
	return ok && (!both || first.Before(other))
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

// patience returns how long connecting may take for a call, not above 0 for as
// long as the call; half says that it is half of the time that the call has left.
func (p *Pool) patience(ctx context.Context) (patience time.Duration, half bool) {
	patience = p.config.ConnectTimeout
	if deadline, ok := ctx.Deadline(); ok && p.config.Elsewhere {
		if left := time.Until(deadline) / 2; patience <= 0 || left < patience {
			return left, true
		}
	}
	return patience, false
}

// ownFault reports whether connecting failed because this process has run out
// of something, which is the same for every address.
func ownFault(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// isTimeout reports whether a dialer has given up by a clock of its own, which
// may be ahead of the context's.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// withTimeout adds a timeout to a context that cancel ends.
func withTimeout(ctx context.Context, cancel context.CancelFunc, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithTimeout(ctx, timeout)
	return ctx, func() { end(); cancel() }
}

// await dials, but does not wait longer than ctx lasts, although Dial, which
// may be a user's, might. The caller's slot is taken until Dial has returned,
// so no more of them run at a time than there may be connections.
func (p *Pool) await(ctx context.Context) (*eventloop.Conn, error) {
	dialled := make(chan dialResult)
	go func() {
		// A panic on this goroutine would end the process, and one that Dial
		// ends would leave the call waiting.
		result := dialResult{err: errors.New("dial ended its goroutine")}
		defer func() {
			if value := recover(); value != nil {
				result.err = fmt.Errorf("dial panicked: %v", value)
			}
			p.dialled(ctx, result, dialled)
		}()
		result.conn, result.err = p.config.Dial(ctx)
	}()
	select {
	case result := <-dialled:
		return result.conn, result.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type dialResult struct {
	conn *eventloop.Conn
	err  error
}

// dialled hands over what Dial returned, unless its caller has stopped waiting.
func (p *Pool) dialled(ctx context.Context, result dialResult, to chan<- dialResult) {
	if result.err != nil {
		p.slotFree()
	}
	select {
	case to <- result:
	case <-ctx.Done():
		if result.err == nil {
			_ = result.conn.Close()
			p.slotFree()
		}
	}
}

// release takes a usable connection back.
func (p *Pool) release(conn *ClientConn) {
	now := time.Now()
	if p.config.Short || conn.old(now) {
		p.discard(conn)
		return
	}
	p.mu.Lock()
	switch {
	case p.closed:
		p.mu.Unlock()
		p.discard(conn)
		return
	case p.waiters.Len() > 0:
		conn.reused = true
		p.grantLocked(grant{conn: conn})
	default:
		conn.idleSince = now
		p.idle = append(p.idle, conn)
		p.scheduleReaperLocked()
	}
	p.mu.Unlock()
}

func (p *Pool) grantLocked(granted grant) {
	wait := p.waiters.Remove(p.waiters.Front()).(*waiter)
	wait.element = nil
	wait.grant <- granted
}

// toShared sends all waiters away: there is a connection that they can share.
func (p *Pool) toShared() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.waiters.Len() > 0 {
		p.grantLocked(grant{shared: true})
	}
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
	p.mu.Unlock()
	if known {
		p.tellClosed(conn, conn.broke)
	}
	return known
}

// slotFree lets the next waiter dial, now that one connection fewer is open.
func (p *Pool) slotFree() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiters.Len() > 0 {
		p.grantLocked(grant{})
		return
	}
	p.open--
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

// Close closes all connections. Calls that are using one fail; later calls
// fail with ErrClosed.
func (p *Pool) Close() {
	p.closeIt()
	p.mu.Lock()
	p.closed = true
	if p.reaper != nil {
		p.reaper.Stop()
		p.reaper = nil
	}
	p.idle = nil
	// A waiter that is allowed to dial finds the pool closed.
	for p.waiters.Len() > 0 {
		p.grantLocked(grant{})
	}
	all := p.all
	p.all = map[*ClientConn]struct{}{}
	p.open -= len(all)
	p.mu.Unlock()
	for conn := range all {
		_ = conn.conn.Close()
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
	return len(p.idle) > 0 || p.open < p.config.Connections
}
