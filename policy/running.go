package policy

import "sync/atomic"

// running bounds how many calls run at once. Its zero value lets any number. Safe for
// concurrent use, without a lock.
type running struct {
	calls atomic.Int64
	// limit is 0 if there is none.
	limit atomic.Int64
}

// configure changes how many may run, 0 or less for any number. More than that may run
// until they end.
func (r *running) configure(most int) { r.limit.Store(int64(max(most, 0))) }

// allow reports whether one more call may run, and counts it. done must follow if it may.
func (r *running) allow() bool {
	limit := r.limit.Load()
	if limit == 0 {
		// They are counted all the same, for a limit that may come.
		r.calls.Add(1)
		return true
	}
	// To add first and look then would take fewer steps, but calls that are refused would
	// count for a moment, and keep others out for which there is room.
	for {
		calls := r.calls.Load()
		if calls >= limit {
			return false
		}
		if r.calls.CompareAndSwap(calls, calls+1) {
			return true
		}
	}
}

// done ends a call that was allowed.
func (r *running) done() { r.calls.Add(-1) }
