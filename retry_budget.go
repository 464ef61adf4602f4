package fulmar

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// retryBudget says how many calls may be tried again although that makes more work for
// servers that have too much. The zero value has what a quiet time leaves. Safe for
// concurrent use.
type retryBudget struct {
	// calls counts all of them; nothing else is done for one that is not tried again.
	calls atomic.Uint64

	mu sync.Mutex
	// left is what there was at the last look, at a time and after so many calls.
	left float64
	at   time.Time
	seen uint64
}

// take reports whether one more may be tried again.
func (b *retryBudget) take(now time.Time) bool {
	calls := b.calls.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() {
		b.left = limits.RetriesSaved
	} else {
		b.left += max(now.Sub(b.at).Seconds(), 0) * limits.RetriesPerSecond
		if calls > b.seen {
			b.left += float64(calls-b.seen) * limits.RetryPercent / 100
		}
		b.left = min(b.left, limits.RetriesSaved)
	}
	b.at, b.seen = now, max(calls, b.seen)
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
