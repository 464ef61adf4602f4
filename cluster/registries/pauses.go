package registries

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses says how long to pause before something that failed is tried again. One
// goroutine may use it at a time.
type Pauses struct {
	// Min is about the first pause, Max about the longest: Common has BackoffMin and
	// BackoffMax for them.
	Min, Max time.Duration

	next time.Duration
}

// Next returns the next pause: about twice the last one, of which a part is drawn by
// chance, so that those who failed together do not come back together. It is between half
// of Min and Max.
func (p *Pauses) Next() time.Duration {
	p.next = min(max(p.next, p.Min), p.Max)
	pause := p.next/2 + rand.N(p.next/2+1)
	p.next *= 2
	return pause
}

// Reset is for something that succeeded: the next pause is the first one again.
func (p *Pauses) Reset() { p.next = 0 }

// Jitter returns a time around d, up to a tenth less or more, so that what a thousand
// processes do regularly they do not do at once.
func Jitter(d time.Duration) time.Duration { return d - d/10 + rand.N(d/5+1) }

// Wait returns nil when d has passed, or the error of ctx when that ends before.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
