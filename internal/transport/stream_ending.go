package transport

import (
	"context"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// streamEnding is the context that a call is served with which is one of several on its
// connection: how it learns that nobody waits for it any more. What is kept of it is a
// user's, so it is never used again.
type streamEnding struct {
	parent context.Context
	mu     sync.Mutex
	err    error
	done   chan struct{}
	after  map[*func()]struct{}
	// path is through which services of streams over TTHeader a cancellation came.
	path string
}

var _ context.Context = (*streamEnding)(nil)

// Deadline implements context.Context. That of the call is not here.
func (e *streamEnding) Deadline() (time.Time, bool) { return e.parent.Deadline() }

// Value implements context.Context.
func (e *streamEnding) Value(key any) any {
	if key == (endingKey{}) {
		return e
	}
	return e.parent.Value(key)
}

// endingKey is the key of the streamEnding in a context.
type endingKey struct{}

// cancelPath returns the path of the cancellation of a call that service made with ctx.
func cancelPath(ctx context.Context, service string) string {
	path := ""
	if e, ok := ctx.Value(endingKey{}).(*streamEnding); ok {
		e.mu.Lock()
		if path = e.path; e.err != nil && path == "" {
			path = ttstream.ForeignPath
		}
		e.mu.Unlock()
	}
	if service == "" {
		return path
	}
	return ttstream.AppendPath(path, service)
}

// Err implements context.Context.
func (e *streamEnding) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	return e.parent.Err()
}

// Done implements context.Context. The end of the connection cancels its streams.
func (e *streamEnding) Done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == nil {
		e.done = make(chan struct{})
		if e.err != nil {
			close(e.done)
		}
	}
	return e.done
}

// AfterFunc is what package context looks for, so that a context made from this one needs
// no goroutine.
func (e *streamEnding) AfterFunc(f func()) (stop func() bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		go f()
		return func() bool { return false }
	}
	if e.after == nil {
		e.after = map[*func()]struct{}{}
	}
	key := &f
	e.after[key] = struct{}{}
	return func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		_, waiting := e.after[key]
		delete(e.after, key)
		return waiting
	}
}

func (e *streamEnding) cancel() { e.cancelFrom("") }

// cancelFrom ends the context. path is how that came here.
func (e *streamEnding) cancelFrom(path string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return
	}
	e.path = path
	e.err = context.Canceled
	if e.done != nil {
		close(e.done)
	}
	for f := range e.after {
		go (*f)()
	}
	e.after = nil
}
