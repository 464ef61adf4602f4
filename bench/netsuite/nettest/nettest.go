//go:build linux

// Package nettest tests contestants of suite net: that each serves every case.
package nettest

import (
	"slices"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/harness/harnesstest"
	"github.com/fulmar-rpc/fulmar/bench/netsuite"
)

// window is so long that some call of churn finishes in it also on a busy machine:
// with 40 ms none did for package net's server, twice in a row.
const window = 100 * time.Millisecond

// Smoke measures all contestants of the programs that are in these modules, for
// a moment: every case, in closed loops, and two of them in open loops too. The
// client compares all replies with their requests, and what it reports must be
// whole. root is the root of the repository.
func Smoke(t *testing.T, root, module string) {
	t.Helper()
	suite := netsuite.Suite()
	suite.Programs = slices.DeleteFunc(suite.Programs, func(p harness.Program) bool { return p.Module != module })
	var pairs []harness.Pair
	for _, program := range suite.Programs {
		for _, name := range program.Contestants {
			pairs = append(pairs, harness.Pair{Ours: name, Peer: name})
		}
	}
	suite.Cases = nil
	for _, c := range netsuite.Cases() {
		smaller := shrink(c)
		open := harness.OpenNever
		if c.Name == "pipeline-128-16x16" || c.Churn {
			open = harness.OpenAlways
		}
		suite.Cases = append(suite.Cases, harness.Case{Name: c.Name, Pairs: pairs, Open: open, Serve: c.Serve(), Load: append(smaller.Load(), "-settle", "20ms")})
	}
	results := harnesstest.Measure(t, root, suite, window)
	for i, c := range results {
		check(t, netsuite.Cases()[i], suite.Cases[i], c)
	}
	harnesstest.ProcessorTimes(t, results)
}

// shrink makes a case small enough for a test.
func shrink(c netsuite.Case) netsuite.Case {
	c.Connections = min(c.Connections, 100)
	c.Idle = min(c.Idle, 200)
	c.Bytes = min(c.Bytes, 300_000) // More than the client and the floor read at once.
	c.FirstBytes = min(c.FirstBytes, 1<<20)
	if c.SleepShare > 0 {
		c.SleepShare = 1000 // In so short a time nobody would sleep otherwise.
	}
	return c
}

func check(t *testing.T, c netsuite.Case, played harness.Case, result harness.CaseResult) {
	t.Helper()
	runs := len(played.Pairs)
	if played.Open == harness.OpenAlways {
		runs *= 3 // Each contestant stands on both sides of its comparison.
	}
	// On a busy machine a window may pass without a call; that is tried again.
	result.Runs = slices.DeleteFunc(result.Runs, func(run harness.Sample) bool { return run.Calls == 0 && run.Failed == 0 })
	if result.Name != c.Name || len(result.Runs) != runs {
		t.Errorf("%s: %d runs of %s, want %d", c.Name, len(result.Runs), result.Name, runs)
	}
	for _, run := range result.Runs {
		if run.Failed != 0 {
			t.Errorf("%s, %s: %d failed: %s", c.Name, run.Contestant, run.Failed, run.Failure)
		}
		if run.ServerPeak <= 0 || run.ClientPeak <= 0 || run.Latency.Count == 0 {
			t.Errorf("%s, %s: memory or latencies are missing: %+v", c.Name, run.Contestant, run.Report)
		}
		if run.Pair != nil && (run.Due == 0 || run.Latency.Count != run.Due) {
			t.Errorf("%s, %s: %d calls fell due, with %d latencies", c.Name, run.Contestant, run.Due, run.Latency.Count)
		}
		if (run.ConnectionBytes != nil) != (c.Idle > 0) || (run.HeapBytes != nil) != (c.FirstBytes > 0) || (run.CallBytes > 0) != c.Large {
			t.Errorf("%s, %s: figures for a connection, the heap and a call are %v, %v and %d",
				c.Name, run.Contestant, run.ConnectionBytes, run.HeapBytes, run.CallBytes)
		}
		if run.HeapBytes != nil && *run.HeapBytes == 0 {
			t.Errorf("%s, %s: no heap with requests in flight", c.Name, run.Contestant)
		}
	}
}
