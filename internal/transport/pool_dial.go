package transport

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/detect"
)

// waiter is a call that waits for a connection.
type waiter struct {
	grant chan grant
	// element is its place in Pool.waiters; nil once it was granted something.
	element *list.Element
	// number counts waiters as they come.
	number uint64
	// deadline is the call's; zero for none.
	deadline time.Time
	// dial opens a connection for it, unless another one comes before; nil if as many
	// are being opened as may be.
	dial *dialling
	// patience ends its waiting before the deadline, timer does so; half is as
	// Pool.patience says.
	patience time.Duration
	half     bool
	timer    *time.Timer
}

// dialling is a connection that is being opened. It goes to the call that waits longest
// when it is open, or into the pool if none does: a call that gives up early must not
// cost others what was done for it.
type dialling struct {
	// owner would open it by itself if calls did that; it gets the error. nil if
	// it has a connection by now, or has given up, and nobody else waits without.
	owner *waiter
	// came is the number of the last waiter that came before it began. Later ones learn
	// nothing from its failure that a dial of their own would show.
	came     uint64
	began    time.Time
	progress dialProgress
	cancel   context.CancelFunc
	// told: it is known what comes of it.
	told bool
}

func (p *Pool) newWaiterLocked(ctx context.Context) *waiter {
	p.came++
	wait := &waiter{grant: make(chan grant, 1), number: p.came}
	wait.deadline, _ = ctx.Deadline()
	return wait
}

// dialLocked opens connections for those that wait, a few at a time: each costs both
// sides time, which calls with short deadlines would not have if all connected at once.
// It follows every change of who waits, of what is being opened and of the slots.
func (p *Pool) dialLocked() {
	for !p.closed && len(p.dials) < min(limits.DialsAtOnce, p.waiters.Len()) && p.open < p.placesLocked() {
		p.open++
		d := &dialling{came: p.came, began: time.Now()}
		ctx := context.WithValue(p.closing, progressKey{}, &d.progress)
		if p.config.ConnectTimeout > 0 {
			ctx, d.cancel = context.WithTimeout(ctx, p.config.ConnectTimeout)
		} else {
			ctx, d.cancel = context.WithCancel(ctx)
		}
		p.dials = append(p.dials, d)
		go p.dial(ctx, d)
	}
	next := p.waiters.Front()
	for _, d := range p.dials {
		if d.owner != nil {
			continue
		}
		for next != nil && next.Value.(*waiter).dial != nil {
			next = next.Next()
		}
		if next != nil {
			d.owner = next.Value.(*waiter)
			d.owner.dial = d
			p.hurryLocked(d.owner)
		} else if p.config.ConnectTimeout <= 0 {
			// Nothing else ends it.
			d.cancel()
		}
	}
}

// unqueueLocked ends the waiting of a call. dialLocked must follow.
func (p *Pool) unqueueLocked(wait *waiter) {
	p.waiters.Remove(wait.element)
	wait.element = nil
	if wait.timer != nil {
		wait.timer.Stop()
		wait.timer = nil
	}
	if wait.dial != nil {
		wait.dial.owner = nil
		wait.dial = nil
	}
}

// hurryLocked makes sure that a call does not wait longer than connecting may take. A
// call does so from when there is room for a connection for it; others wait for calls
// to end, and that may take as long as they have.
func (p *Pool) hurryLocked(wait *waiter) {
	if wait.timer != nil {
		return
	}
	wait.patience, wait.half = p.patience(wait.deadline)
	if !wait.half && (wait.patience <= 0 || !wait.deadline.IsZero() && time.Until(wait.deadline) <= wait.patience) {
		return
	}
	wait.timer = time.AfterFunc(max(wait.patience, 0), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if wait.element != nil {
			p.grantLocked(wait, grant{err: p.impatientLocked(wait)})
		}
	})
}

// patience returns how long connecting may take for a call, not above 0 for as
// long as the call; half says that it is half of the time that the call has left.
func (p *Pool) patience(deadline time.Time) (patience time.Duration, half bool) {
	patience = p.config.ConnectTimeout
	if !deadline.IsZero() && p.config.Elsewhere {
		if left := time.Until(deadline) / 2; patience <= 0 || left < patience {
			return left, true
		}
	}
	return patience, false
}

// impatientLocked returns the error of a call that waits no longer although it has time.
// What refuses is the address only if it was asked for long enough.
func (p *Pool) impatientLocked(wait *waiter) *CallError {
	failed := p.waitedLocked(wait, context.DeadlineExceeded)
	long := time.Duration(limits.DialPatience)
	if p.config.ConnectTimeout > 0 {
		long = min(long, p.config.ConnectTimeout)
	}
	asked := wait.dial != nil && time.Since(wait.dial.began) >= long
	if wait.half {
		failed.Err = fmt.Errorf("no connection within %v, half of the time that was left: %v", wait.patience.Round(time.Microsecond), failed.Err)
		failed.Refused = asked && wait.patience >= limits.DialPatience
		return failed
	}
	// Not the call's deadline: let the caller see which limit it was.
	failed.Err = fmt.Errorf("no connection within the connect timeout of %v: %v", wait.patience, failed.Err)
	failed.Refused = asked
	return failed
}

// waitedLocked returns the error of a call that waits for a connection no longer, for a
// reason of its own.
func (p *Pool) waitedLocked(wait *waiter, cause error) *CallError {
	switch {
	case wait.dial != nil:
		return &CallError{Phase: wait.dial.progress.phase(), Err: cause}
	case len(p.dials) > 0:
		return &CallError{Phase: PhaseAcquire, Err: fmt.Errorf(
			"waiting for a connection, %d of which are being opened for others: %w", len(p.dials), cause)}
	}
	return p.waited(cause)
}

func (p *Pool) waited(cause error) *CallError {
	return &CallError{Phase: PhaseAcquire, Err: fmt.Errorf("waiting for one of %d connections: %w", p.config.Connections, cause)}
}

// dial opens a connection. Its slot is taken until Dial, which may be a user's, has
// returned, so no more of them run than there may be connections; nobody waits for it
// longer than its context lasts.
func (p *Pool) dial(ctx context.Context, d *dialling) {
	stop := context.AfterFunc(ctx, func() { p.dialFailed(ctx, d, ctx.Err()) })
	// A panic on this goroutine would end the process, and one that Dial ends would
	// leave calls waiting.
	var raw *eventloop.Conn
	err := errors.New("dial ended its goroutine")
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("dial panicked: %v", value)
		}
		defer d.cancel()
		stop()
		if err == nil {
			p.dialled(d, raw)
			return
		}
		defer p.slotFree()
		p.dialFailed(ctx, d, err)
	}()
	raw, err = p.config.Dial(ctx)
}

// dialled hands over a connection that has been opened.
func (p *Pool) dialled(d *dialling, raw *eventloop.Conn) {
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
	if p.closed || d.told {
		p.endDialLocked(d)
		p.open--
		p.dialLocked()
		p.mu.Unlock()
		_ = raw.Close()
		return
	}
	d.told = true
	p.all[conn] = struct{}{}
	p.mu.Unlock()
	defer p.handOver(d, conn) // also if an observer ends the goroutine
	p.tellDialled(d, nil)
}

func (p *Pool) handOver(d *dialling, conn *ClientConn) {
	p.mu.Lock()
	p.endDialLocked(d)
	if p.closed || p.uselessLocked() {
		p.mu.Unlock()
		p.discard(conn)
		return
	}
	p.giveLocked(conn, time.Now())
	p.mu.Unlock()
}

// dialFailed ends a dial of which nothing comes, for the first reason that it is told.
func (p *Pool) dialFailed(ctx context.Context, d *dialling, err error) {
	p.mu.Lock()
	told := d.told
	d.told = true
	p.mu.Unlock()
	if told {
		return
	}
	failed := p.dialError(ctx, d, err)
	defer func() { // also if an observer ends the goroutine
		p.mu.Lock()
		defer p.mu.Unlock()
		owner := p.endDialLocked(d)
		if owner != nil && owner.number <= d.came {
			p.grantLocked(owner, grant{err: failed})
			return
		}
		p.dialLocked()
	}()
	p.tellDialled(d, failed)
}

// endDialLocked gives back the place of a dial. It returns who had it; dialLocked must
// follow.
func (p *Pool) endDialLocked(d *dialling) (owner *waiter) {
	if i := slices.Index(p.dials, d); i >= 0 {
		p.dials = slices.Delete(p.dials, i, i+1)
	}
	if owner = d.owner; owner != nil {
		owner.dial, d.owner = nil, nil
	}
	return owner
}

// dialError returns the error of a call for which a connection could not be opened.
func (p *Pool) dialError(ctx context.Context, d *dialling, err error) *CallError {
	if ctx.Err() != nil {
		err = ctx.Err() // whoever notices first
	}
	failed := &CallError{Phase: d.progress.phase(), Err: err}
	switch late := ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded); {
	case p.closing.Err() != nil:
		failed.Err = ErrClosed
	case late && p.config.ConnectTimeout > 0:
		failed.Err = fmt.Errorf("no connection within the connect timeout of %v: %v", p.config.ConnectTimeout, err)
		failed.Refused = true
	default:
		failed.Refused = !ownFault(err)
	}
	return failed
}

// ownFault reports whether connecting failed because this process has run out
// of something, which is the same for every address.
func ownFault(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}
