package testkit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.uber.org/goleak"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// Baseline is what the process held at one moment.
type Baseline struct {
	goroutines  goleak.Option
	descriptors map[string]int
	buffers     int64
}

// NewBaseline records the goroutines, file descriptors and pooled buffers that
// exist now.
func NewBaseline() *Baseline {
	// The runtime opens the descriptors of its network poller when it is first
	// used and keeps them; they are not the tests'.
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
	return &Baseline{
		goroutines:  goleak.IgnoreCurrent(),
		descriptors: openDescriptors(),
		buffers:     linkbuf.Outstanding(),
	}
}

// Check returns an error that names everything that came up since the Baseline
// and is still there. Closing may be asynchronous, so it looks again until
// patience has passed.
func (b *Baseline) Check(patience time.Duration) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		err := b.leaks()
		if err == nil {
			return nil
		}
		select {
		case <-deadline.C:
			// Once more: this process may have been stopped since it looked.
			return b.leaks()
		case <-again.C:
		}
	}
}

func (b *Baseline) leaks() error {
	var found []error
	if err := goleak.Find(b.goroutines); err != nil {
		found = append(found, fmt.Errorf("goroutines: %w", err))
	}
	if left := newDescriptors(b.descriptors, openDescriptors()); len(left) > 0 {
		found = append(found, fmt.Errorf("file descriptors: %d still open: %s", len(left), strings.Join(left, ", ")))
	}
	if n := linkbuf.Outstanding() - b.buffers; n != 0 {
		found = append(found, fmt.Errorf("linkbuf: %d slices not put back", n))
	}
	return errors.Join(found...)
}

// openDescriptors counts the open files by what they refer to. Only Linux can
// tell; elsewhere the result is empty, and nothing is found.
func openDescriptors() map[string]int {
	open := make(map[string]int)
	if runtime.GOOS != "linux" {
		return open
	}
	const directory = "/proc/self/fd"
	entries, err := os.ReadDir(directory)
	if err != nil {
		return open
	}
	for _, entry := range entries {
		// The descriptor that ReadDir used is closed by now and has no target.
		if target, err := os.Readlink(filepath.Join(directory, entry.Name())); err == nil {
			open[target]++
		}
	}
	return open
}

// newDescriptors returns the targets that are open more often than before.
func newDescriptors(before, now map[string]int) []string {
	var left []string
	for target, count := range now {
		for range count - before[target] {
			left = append(left, target)
		}
	}
	slices.Sort(left)
	return left
}
