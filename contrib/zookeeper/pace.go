package zookeeper

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// backoff says how long to pause before something that failed is tried again.
type backoff struct {
	min, max, next time.Duration
}

// pause returns the next pause: twice the last one, and a part of it drawn by chance, so
// that those who failed together do not come back together.
func (b *backoff) pause() time.Duration {
	b.next = min(max(b.next, b.min), b.max)
	pause := b.next/2 + rand.N(b.next/2+1)
	b.next *= 2
	return pause
}

// reset is for something that succeeded.
func (b *backoff) reset() { b.next = 0 }

// jitter returns a time around d, up to a tenth less or more.
func jitter(d time.Duration) time.Duration { return d - d/10 + rand.N(d/5+1) }

// wait returns when d has passed, or with an error when ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// noticeInterval is how far apart two lines of a log are at least that say the same of
// the same thing, and noticesMax how many things are kept in mind for that.
const (
	noticeInterval = 10 * time.Second
	noticesMax     = 1000
)

// notices writes to a log what may happen often. Safe for concurrent use.
type notices struct {
	logger *slog.Logger

	mu   sync.Mutex
	last map[string]notice
}

type notice struct {
	at   time.Time
	more int
}

func newNotices(logger *slog.Logger) *notices {
	return &notices{logger: logger, last: map[string]notice{}}
}

// warn writes a line, unless one of the same message and subject was written shortly
// before; the next one says how many there would have been.
func (n *notices) warn(now time.Time, message, subject string, arguments ...any) {
	key := message + "\x00" + subject
	n.mu.Lock()
	last, known := n.last[key]
	if known && now.Sub(last.at) < noticeInterval {
		last.more++
		n.last[key] = last
		n.mu.Unlock()
		return
	}
	if len(n.last) >= noticesMax {
		clear(n.last)
	}
	n.last[key] = notice{at: now}
	n.mu.Unlock()
	if last.more > 0 {
		arguments = append(arguments, "not_logged", last.more)
	}
	n.logger.Warn(message, append([]any{"of", subject}, arguments...)...)
}
