package fulmar

import (
	"context"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// callContext is the context of one call. It does what context.WithDeadline of
// its parent does, but makes a channel, a timer and an entry in its parent only
// for somebody who waits for its end: most calls end before anybody does, and
// making these takes a tenth of a short call's time on either side.
type callContext struct {
	parent context.Context
	// deadline is zero if there is none; it is not later than the parent's.
	deadline time.Time
	// served is what a handler finds in its context, nil on the client.
	served *servedCall
	// detached is how the event loop knows the call; nothing on the client.
	detached eventloop.Detached

	mu   sync.Mutex
	err  error
	done chan struct{}
	// after are the functions that AfterFunc was given.
	after map[*func()]struct{}
	// unwatch ends what watches parent and deadline; nil if nothing does.
	unwatch func()
}

var _ context.Context = (*callContext)(nil)

// Deadline implements context.Context.
func (c *callContext) Deadline() (deadline time.Time, ok bool) {
	return c.deadline, !c.deadline.IsZero()
}

// Done implements context.Context.
func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		} else if c.errLocked() == nil {
			c.watchLocked()
		}
	}
	return c.done
}

// Err implements context.Context.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.errLocked()
}

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	switch key.(type) {
	case callKey:
		if c.served != nil {
			return c.served
		}
	case outgoingKey:
		if c.served != nil {
			if onward := c.served.metadata.onward(); len(onward.pairs) > 0 {
				return onward
			}
		}
	case transport.WaiterKey:
		if c.served != nil {
			return c
		}
	}
	return c.parent.Value(key)
}

// WillWait tells the event loop that a call of the handler is going to wait for its
// answer, as transport.Waiter says. Only while the handler runs: a goroutine that it
// has left behind holds up nobody.
func (c *callContext) WillWait() {
	c.mu.Lock()
	over := c.err != nil
	c.mu.Unlock()
	if !over {
		c.detached.WillWait()
	}
}

// AfterFunc runs f on a goroutine of its own when the context ends, unless stop
// is called first, which reports whether it came in time. Package context looks
// for this method, so that a context made from this one needs no goroutine to
// wait for it.
func (c *callContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.errLocked() != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = map[*func()]struct{}{}
	}
	key := &f
	c.after[key] = struct{}{}
	c.watchLocked()
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waiting := c.after[key]
		delete(c.after, key)
		return waiting
	}
}

// Source returns what makes the context end: its parent, and its own deadline,
// zero for none. Who waits for both by other means need not ask for Done.
func (c *callContext) Source() (parent context.Context, deadline time.Time) {
	return c.parent, c.deadline
}

// finish ends the context with its call.
func (c *callContext) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(context.Canceled)
}

// shared reports whether somebody waits for the end of the context, or has made
// another one of it.
func (c *callContext) shared() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done != nil || c.unwatch != nil
}

// errAt is ctx.Err() for who knows what time it is.
func errAt(ctx context.Context, now time.Time) error {
	call, ok := ctx.(*callContext)
	if !ok {
		return ctx.Err()
	}
	call.mu.Lock()
	defer call.mu.Unlock()
	return call.errAtLocked(now)
}

// errLocked looks whether the context has ended, which nobody may have noticed.
func (c *callContext) errLocked() error {
	if c.deadline.IsZero() {
		return c.errAtLocked(time.Time{})
	}
	return c.errAtLocked(time.Now())
}

func (c *callContext) errAtLocked(now time.Time) error {
	if c.err != nil {
		return c.err
	}
	if err := c.parent.Err(); err != nil {
		c.endLocked(err)
	} else if !c.deadline.IsZero() && !now.Before(c.deadline) {
		c.endLocked(context.DeadlineExceeded)
	}
	return c.err
}

func (c *callContext) endLocked(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
	}
	for f := range c.after {
		go (*f)()
	}
	c.after = nil
	if c.unwatch != nil {
		c.unwatch()
	}
}

// watchLocked makes the context end by itself.
func (c *callContext) watchLocked() {
	if c.unwatch != nil {
		return
	}
	stop := context.AfterFunc(c.parent, func() { c.end(c.parent.Err()) })
	if c.deadline.IsZero() {
		c.unwatch = func() { stop() }
		return
	}
	timer := time.AfterFunc(time.Until(c.deadline), func() { c.end(context.DeadlineExceeded) })
	c.unwatch = func() {
		stop()
		timer.Stop()
	}
}

func (c *callContext) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(err)
}
