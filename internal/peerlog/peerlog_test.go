package peerlog_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/peerlog"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// logTo returns a Log and what it writes, line by line.
func logTo() (log *peerlog.Log, lines func() []string) {
	var text bytes.Buffer
	lines = func() []string { return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") }
	return peerlog.New(slog.New(slog.NewTextHandler(&text, nil))), lines
}

func expectParts(t *testing.T, line string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(line, part) {
			t.Errorf("the line has no %q: %s", part, line)
		}
	}
}

func TestLog_BoundsLinesOfOneKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := logTo()
		for range limits.PeerLogsPerSecond + 7 {
			log.Warn("kind", "peer", "here")
		}
		written := lines()
		if len(written) != limits.PeerLogsPerSecond {
			t.Fatalf("%d lines, want %d", len(written), limits.PeerLogsPerSecond)
		}
		for _, line := range written {
			expectParts(t, line, "level=WARN", "msg=kind", "peer=here")
			if strings.Contains(line, "suppressed") {
				t.Errorf("nothing was left out before: %s", line)
			}
		}

		// Almost a second later the window is still full.
		time.Sleep(time.Second - 1)
		log.Warn("kind")
		if got := len(lines()); got != limits.PeerLogsPerSecond {
			t.Errorf("%d lines within a second", got)
		}
		time.Sleep(time.Nanosecond)
		log.Warn("kind")
		log.Warn("kind")
		written = lines()[limits.PeerLogsPerSecond:]
		if len(written) != 2 {
			t.Fatalf("%d lines in the next second, want 2", len(written))
		}
		expectParts(t, written[0], "suppressed=8")
		if strings.Contains(written[1], "suppressed") {
			t.Errorf("told twice: %s", written[1])
		}
	})
}

func TestLog_KindsDoNotShareTheirBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := logTo()
		for range 3 * limits.PeerLogsPerSecond {
			log.Warn("loud")
		}
		log.Error("quiet", "reason", "x")
		written := lines()
		if len(written) != limits.PeerLogsPerSecond+1 {
			t.Fatalf("%d lines, want %d", len(written), limits.PeerLogsPerSecond+1)
		}
		expectParts(t, written[limits.PeerLogsPerSecond], "level=ERROR", "msg=quiet", "reason=x")
	})
}

func TestLog_ErrorWithStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := logTo()
		log.ErrorWithStack("kind", "peer", "here")
		expectParts(t, lines()[0], "level=ERROR", "msg=kind", "peer=here", "stack=", "TestLog_ErrorWithStack")
	})
}

// TestLog_SuppressedLinesAreCheap: an attack must not cost what its log lines
// would have cost.
func TestLog_SuppressedLinesAreCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _ := logTo()
		for range limits.PeerLogsPerSecond {
			log.ErrorWithStack("kind")
		}
		if got := testing.AllocsPerRun(100, func() { log.ErrorWithStack("kind") }); got != 0 {
			t.Errorf("%v allocations a suppressed line", got)
		}
	})
}

// TestLog_ConcurrentLines counts lines of many goroutines: each is written or
// counted as left out.
func TestLog_ConcurrentLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := logTo()
		const goroutines, each = 8, 100
		var group sync.WaitGroup
		for range goroutines {
			group.Go(func() {
				for range each {
					log.Warn("kind")
				}
			})
		}
		group.Wait()
		time.Sleep(time.Second)
		log.Warn("kind")
		written := lines()
		if len(written) != limits.PeerLogsPerSecond+1 {
			t.Fatalf("%d lines, want %d", len(written), limits.PeerLogsPerSecond+1)
		}
		expectParts(t, written[limits.PeerLogsPerSecond], "suppressed=790")
	})
}

// TestLog_AsksOnlyForWhatItWrites: attributes of lines that are left out are not made.
func TestLog_AsksOnlyForWhatItWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := peerlog.NewLimited(slog.New(slog.NewTextHandler(&text, nil)), 2)
		asked := 0
		for range 5 {
			log.WarnFunc("kind", func() []any { asked++; return []any{"n", asked} })
		}
		if lines := strings.Count(text.String(), "\n"); lines != 2 || asked != 2 {
			t.Errorf("%d lines, asked %d times; want 2 of each", lines, asked)
		}
		time.Sleep(time.Second)
		log.WarnFunc("kind", func() []any { return nil })
		expectParts(t, text.String(), "suppressed=3")
	})
}
