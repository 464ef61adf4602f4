// Package peerlog writes log lines that peers can cause, and only so many of
// them that nobody can fill a disk from outside.
package peerlog

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Log writes at most so many lines of each kind in a second, as a rule
// limits.PeerLogsPerSecond. Safe for concurrent use.
type Log struct {
	logger *slog.Logger
	most   int

	mu sync.Mutex
	// windows has one entry for each kind, so kinds must be constants.
	windows map[string]*window
}

// window counts the lines of one kind within one second.
type window struct {
	start      time.Time
	lines      int
	suppressed int
}

// New returns a Log that writes to logger.
func New(logger *slog.Logger) *Log { return NewLimited(logger, limits.PeerLogsPerSecond) }

// NewLimited returns a Log that writes at most so many lines of each kind in a
// second.
func NewLimited(logger *slog.Logger, perSecond int) *Log {
	return &Log{logger: logger, most: perSecond, windows: map[string]*window{}}
}

// Warn logs message, which is also the kind and must be a constant, with
// attributes as slog.Logger.Warn takes them. If lines of the kind were left out
// since the last one, it says how many.
func (l *Log) Warn(message string, attributes ...any) {
	if suppressed, ok := l.allow(message); ok {
		l.write(slog.LevelWarn, message, attributes, suppressed)
	}
}

// Info is Warn at the level of information.
func (l *Log) Info(message string, attributes ...any) {
	if suppressed, ok := l.allow(message); ok {
		l.write(slog.LevelInfo, message, attributes, suppressed)
	}
}

// WarnFunc is Warn for attributes that cost something: they are asked for only if
// the line is written.
func (l *Log) WarnFunc(message string, attributes func() []any) {
	if suppressed, ok := l.allow(message); ok {
		l.write(slog.LevelWarn, message, attributes(), suppressed)
	}
}

// Error is Warn at the level of errors.
func (l *Log) Error(message string, attributes ...any) {
	if suppressed, ok := l.allow(message); ok {
		l.write(slog.LevelError, message, attributes, suppressed)
	}
}

// ErrorWithStack is Error, and adds the stack of its goroutine. The stack is
// taken only for lines that are written: 12 frames deep that takes 25 µs.
func (l *Log) ErrorWithStack(message string, attributes ...any) {
	if suppressed, ok := l.allow(message); ok {
		l.write(slog.LevelError, message, append(attributes, "stack", string(debug.Stack())), suppressed)
	}
}

// allow reports whether a line of a kind may be written, and how many were not
// since the last one.
func (l *Log) allow(kind string) (suppressed int, ok bool) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[kind]
	if w == nil {
		w = &window{}
		l.windows[kind] = w
	}
	if now.Sub(w.start) >= time.Second {
		w.start, w.lines = now, 0
	}
	if w.lines >= l.most {
		w.suppressed++
		return 0, false
	}
	w.lines++
	suppressed, w.suppressed = w.suppressed, 0
	return suppressed, true
}

func (l *Log) write(level slog.Level, message string, attributes []any, suppressed int) {
	if suppressed > 0 {
		attributes = append(attributes, "suppressed", suppressed)
	}
	// A handler of a user that panics would end a call, a connection or, on a goroutine
	// of ours, the process, at the time that a peer chooses. There is nobody to tell.
	defer func() { _ = recover() }()
	l.logger.Log(context.Background(), level, message, attributes...)
}
