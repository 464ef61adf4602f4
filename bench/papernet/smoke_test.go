//go:build linux

package papernet_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/harness/harnesstest"
	"github.com/fulmar-rpc/fulmar/bench/papernet"
)

// Every variant of every case is measured for a moment, as `make bench` does it.
// The client compares all replies of the servers with their requests.
func TestSuite_EveryVariantIsMeasured(t *testing.T) {
	suite := papernet.Suite()
	for i := range suite.Cases {
		if suite.Cases[i].Name != papernet.MsecSwitching {
			suite.Cases[i].Open = harness.OpenNever
		}
	}
	for i, c := range harnesstest.Measure(t, "../..", suite, 40*time.Millisecond) {
		check(t, suite.Cases[i], c)
	}
}

func check(t *testing.T, c harness.Case, result harness.CaseResult) {
	t.Helper()
	var want, measured []string
	for _, pair := range c.Pairs {
		want = append(want, pair.Ours, pair.Peer)
	}
	for _, run := range result.Runs {
		// On a busy machine a window may pass without a call; that is tried again.
		if run.Pair != nil || run.Calls == 0 && run.Operation == nil {
			continue
		}
		measured = append(measured, run.Contestant)
		if run.Failed != 0 {
			t.Errorf("%s, %s: %d failed: %s", c.Name, run.Contestant, run.Failed, run.Failure)
		}
		if c.Repeats && (run.Operation.Nanoseconds <= 0 || run.Operation.Nanoseconds > 1e9 || run.ServerPeak <= 0) {
			t.Errorf("%s, %s: %+v with a peak of %d bytes, want figures that are positive and finite", c.Name, run.Contestant, *run.Operation, run.ServerPeak)
		}
		if (run.HeapBytes != nil) != (c.Name == papernet.Pools) || run.HeapBytes != nil && *run.HeapBytes <= 0 {
			t.Errorf("%s, %s: a heap of %v", c.Name, run.Contestant, run.HeapBytes)
		}
		if !c.Repeats && (run.ServerCPU <= 0 || run.Latency.Count == 0) {
			t.Errorf("%s, %s: processor time or latencies are missing: %+v", c.Name, run.Contestant, run.Report)
		}
	}
	slices.Sort(want)
	slices.Sort(measured)
	if want = slices.Compact(want); !slices.Equal(measured, want) {
		t.Errorf("%s: %q were measured, want %q", c.Name, measured, want)
	}
	if open := len(result.Runs) > len(measured); c.Name == papernet.MsecSwitching && !open {
		t.Errorf("%s: no open loops", c.Name)
	}
}
