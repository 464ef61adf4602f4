package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// troubleLines returns what a log says of trouble: all lines but those of lists that differ.
func troubleLines(log *logRecorder) (lines []string) {
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, "instances have changed") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestLists_FlappingTroubleIsSaidNowAndThen: for ten minutes a source delivers ten lists in
// a second. What stays wrong is one line, and what comes and goes, or is wrong in another
// way each time, the first few and then one pair in a minute. When it is over that is the
// last line. The counters count all of it.
func TestLists_FlappingTroubleIsSaidNowAndThen(t *testing.T) {
	const pause = 100 * time.Millisecond
	const lists = int(10 * time.Minute / pause)
	few := limits.TroubleLogs + int(10*time.Minute/limits.TroubleLogPause)
	for name, c := range map[string]struct {
		list func(i int) []string
		// most lines, with that of the end
		most              int
		failures, keptOut int
		begins, ends      string
	}{
		"the same bad address": {
			func(int) []string { return []string{"a:1", "nowhere"} }, 2, lists, 0,
			"instances are left out", "all instances of the list are used again",
		},
		"a bad address in changing lists": {
			func(i int) []string { return []string{fmt.Sprintf("a:%d", 1+i%9), "nowhere"} }, 2, lists, 0,
			"instances are left out", "all instances of the list are used again",
		},
		"another bad address each time": {
			func(i int) []string { return []string{"a:1", fmt.Sprint("nowhere", i)} }, few + 1, lists, 0,
			"instances are left out", "all instances of the list are used again",
		},
		"a bad address that comes and goes": {
			func(i int) []string { return []string{"a:1", "nowhere"}[:2-i%2] }, 2 * few, lists / 2, 0,
			"instances are left out", "all instances of the list are used again",
		},
		"empty and back": {
			func(i int) []string { return []string{"a:1"}[:i%2] }, 2 * few, 0, lists / 2,
			"the list of instances is empty", "the list of instances is not empty any more",
		},
		"only bad addresses, others each time": {
			func(i int) []string { return []string{fmt.Sprint("nowhere", i)} }, few + 1, 2 * lists, 0,
			"instances cannot be looked up", "there is a list of instances again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logRecorder{}
			withLists(t, 1, fulmar.ClientConfig{Logger: slog.New(slog.NewTextHandler(log, nil))}, func(s *several, p *pushes) {
				p.push("a:1")
				for i := range lists {
					time.Sleep(pause)
					p.push(c.list(i)...)
				}
				time.Sleep(limits.TroubleLogPause)
				p.push("a:1")
				if stats := s.client.Stats(); stats.LookupFailures != uint64(c.failures) || stats.KeptOut != uint64(c.keptOut) {
					t.Errorf("%+v", stats)
				}
			})
			lines := troubleLines(log)
			if len(lines) < 2 || len(lines) > c.most {
				t.Fatalf("%d lines, at most %d should be:\n%.2000s", len(lines), c.most, strings.Join(lines, ""))
			}
			if first, last := lines[0], lines[len(lines)-1]; !strings.Contains(first, c.begins) || !strings.Contains(last, c.ends) {
				t.Errorf("first %s last %s", first, last)
			}
		})
	}
}

// TestLists_WhatRarelyChangesIsSaidOnce: a list that has a bad address for hours has no
// line each time that something else of it changes.
func TestLists_WhatRarelyChangesIsSaidOnce(t *testing.T) {
	log := &logRecorder{}
	withLists(t, 1, fulmar.ClientConfig{Logger: slog.New(slog.NewTextHandler(log, nil))}, func(_ *several, p *pushes) {
		for i := range 20 {
			p.push(fmt.Sprintf("a:%d", 1+i), "nowhere")
			time.Sleep(5 * limits.TroubleLogPause)
		}
	})
	if lines := troubleLines(log); len(lines) != 1 {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, ""))
	}
}

// TestLists_TroubleThatStaysIsSaid although it was kept back when it came, because the same
// had come and gone too often: a source that says a thing once would leave it unsaid.
func TestLists_TroubleThatStaysIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		cause func(p *pushes)
	}{
		"left out": {"instances are left out", func(p *pushes) { p.push("a:1", "nowhere") }},
		"reported": {"instances cannot be looked up", func(p *pushes) {
			p.next <- func(ctx context.Context, _ func([]cluster.Instance)) error {
				cluster.Report(ctx, errors.New("the registry is away"))
				return nil
			}
			synctest.Wait()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logRecorder{}
			withLists(t, 1, fulmar.ClientConfig{Logger: slog.New(slog.NewTextHandler(log, nil))}, func(_ *several, p *pushes) {
				for range limits.TroubleLogs + 1 {
					p.push("a:1")
					c.cause(p)
				}
				if lines := strings.Count(log.String(), c.text); lines != limits.TroubleLogs {
					t.Errorf("%d lines at once, want %d", lines, limits.TroubleLogs)
				}
				time.Sleep(limits.TroubleLogPause)
				synctest.Wait()
				lines := troubleLines(log)
				if count := strings.Count(log.String(), c.text); count != limits.TroubleLogs+1 || !strings.Contains(lines[len(lines)-1], c.text) {
					t.Errorf("the log ends with %s", lines[len(lines)-1])
				}
			})
		})
	}
}
