package registries

import (
	"log/slog"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Notices writes to a log what may happen often: of the same message and subject one line
// in 10 s (RegistryLogPause). Its Logger is set before it is used. Safe for concurrent use.
type Notices struct {
	Logger *slog.Logger

	mu   sync.Mutex
	last map[string]notice
}

// notice is when a line was written, and how many were not since then.
type notice struct {
	at   time.Time
	more int
}

// Warn writes a line, with subject as "of" and arguments as slog.Logger.Warn takes them,
// unless one of the same message and subject was written shortly before now; the next one
// says as "not_logged" how many there would have been.
func (n *Notices) Warn(now time.Time, message, subject string, arguments ...any) {
	key := message + "\x00" + subject
	n.mu.Lock()
	last, known := n.last[key]
	if known && now.Sub(last.at) < limits.RegistryLogPause {
		last.more++
		n.last[key] = last
		n.mu.Unlock()
		return
	}
	if n.last == nil || len(n.last) >= limits.RegistryLogSubjects {
		n.last = map[string]notice{}
	}
	n.last[key] = notice{at: now}
	n.mu.Unlock()
	if last.more > 0 {
		arguments = append(arguments, "not_logged", last.more)
	}
	n.Logger.Warn(message, append([]any{"of", subject}, arguments...)...)
}
