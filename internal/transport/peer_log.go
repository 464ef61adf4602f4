package transport

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// PeerLog writes log lines that peers can cause, at most PeerLogsPerSecond of
// each kind, so that nobody can fill a disk from outside. Safe for concurrent
// use.
type PeerLog struct {
	logger *slog.Logger

	mu      sync.Mutex
	windows map[string]*logWindow
}

// logWindow counts the lines of one kind within one second.
type logWindow struct {
	start      time.Time
	lines      int
	suppressed int
}

// NewPeerLog returns a PeerLog that writes to logger.
func NewPeerLog(logger *slog.Logger) *PeerLog {
	return &PeerLog{logger: logger, windows: map[string]*logWindow{}}
}

// Warn logs message, which is also the kind and must be a constant. If lines
// were left out since the last one, it says how many.
func (l *PeerLog) Warn(message string, attributes ...any) {
	l.log(slog.LevelWarn, message, attributes)
}

// Error is Warn at the level of errors.
func (l *PeerLog) Error(message string, attributes ...any) {
	l.log(slog.LevelError, message, attributes)
}

func (l *PeerLog) log(level slog.Level, message string, attributes []any) {
	l.mu.Lock()
	window := l.windows[message]
	if window == nil {
		window = &logWindow{}
		l.windows[message] = window
	}
	if now := time.Now(); now.Sub(window.start) >= time.Second {
		window.start, window.lines = now, 0
	}
	if window.lines >= limits.PeerLogsPerSecond {
		window.suppressed++
		l.mu.Unlock()
		return
	}
	window.lines++
	suppressed := window.suppressed
	window.suppressed = 0
	l.mu.Unlock()
	if suppressed > 0 {
		attributes = append(attributes, "suppressed", suppressed)
	}
	l.logger.Log(context.Background(), level, message, attributes...)
}
