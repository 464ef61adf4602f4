package transport

import "context"

// ending is the end of something that goes on at times, for those who wait for it. The
// zero value is ready. Whoever has what goes on guards it by the lock of that.
type ending struct {
	// told is closed at the end; nil while nobody waits.
	told chan struct{}
}

// awaitedLocked returns what is closed at the end.
func (e *ending) awaitedLocked() <-chan struct{} {
	if e.told == nil {
		e.told = make(chan struct{})
	}
	return e.told
}

// comesLocked tells all who wait. What goes on may begin anew.
func (e *ending) comesLocked() {
	if e.told != nil {
		close(e.told)
		e.told = nil
	}
}

// within waits for an end, and reports whether it came before ctx did.
func within(ctx context.Context, end <-chan struct{}) bool {
	select {
	case <-end:
		return true
	case <-ctx.Done():
		return false
	}
}
