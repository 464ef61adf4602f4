package transport

import (
	"context"
	"sync"
	"time"
)

// localContext is what a call on a connection of its own has for a context: it ends
// with the server, and when the caller stops waiting. A context that package context can
// watch is made only for somebody who watches.
type localContext struct {
	server context.Context

	mu      sync.Mutex
	err     error
	watched context.Context
	cancel  context.CancelFunc
}

var _ context.Context = (*localContext)(nil)

// Deadline implements context.Context: who serves the call knows when it is.
func (c *localContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Value implements context.Context.
func (c *localContext) Value(any) any { return nil }

// Err implements context.Context.
func (c *localContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = c.server.Err()
	}
	return c.err
}

// Done implements context.Context.
func (c *localContext) Done() <-chan struct{} { return c.watch().Done() }

// AfterFunc is what package context looks for, so that it needs no goroutine to wait
// for the end.
func (c *localContext) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.watch(), f) }

func (c *localContext) watch() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched == nil {
		c.watched, c.cancel = context.WithCancel(c.server)
		if c.err != nil {
			c.cancel()
		}
	}
	return c.watched
}

// end ends the context, unless it has ended.
func (c *localContext) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	if c.cancel != nil {
		c.cancel()
	}
}
