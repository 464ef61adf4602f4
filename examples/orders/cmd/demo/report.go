package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// report prints a line for each step and counts those that failed.
type report struct {
	out    io.Writer
	began  time.Time
	passed int
	failed int
}

func newReport(out io.Writer) *report { return &report{out: out, began: time.Now()} }

// step runs a step and prints what came of it.
func (r *report) step(caller, what, protocol string, run func() (string, error)) {
	start := time.Now()
	result, err := run()
	if err != nil {
		result = err.Error()
	}
	r.line(caller, what, protocol, result, err == nil, time.Since(start))
}

// header prints what the columns of the lines are.
func (r *report) header() {
	fmt.Fprintf(r.out, "%-4s  %-11s  %-15s  %-29s  %11s  %s\n", "", "caller", "over", "what", "took", "result")
}

// line prints one step: who called, what, over which protocol, the result and
// how long it took.
func (r *report) line(caller, what, protocol, result string, ok bool, took time.Duration) {
	mark := "ok  "
	if ok {
		r.passed++
	} else {
		r.failed++
		mark = "FAIL"
	}
	const longest = 90
	if runes := []rune(result); ok && len(runes) > longest {
		result = string(runes[:longest]) + "..."
	}
	fmt.Fprintf(r.out, "%s  %-11s  %-15s  %-29s  %8.1f ms  %s\n", mark, caller, protocol, what, float64(took.Microseconds())/1000, result)
}

// finish prints the summary and returns whether everything was as it should be.
func (r *report) finish() bool {
	fmt.Fprintf(r.out, "\n%d steps as expected, %d not, in %.1f s\n", r.passed, r.failed, time.Since(r.began).Seconds())
	return r.failed == 0 && r.passed > 0
}

// logText keeps what a server logs.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Write appends to the text. It is safe for concurrent use.
func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}
