//go:build linux

package papernet_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/machine"
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
	options := harness.Options{
		Settings:  harness.Settings{Rounds: 1, WarmUp: 5 * time.Millisecond, Duration: 40 * time.Millisecond, LoadShare: 0.1},
		Placement: harness.Free,
		Binaries:  t.TempDir(),
		Network:   machine.Plain("a test"),
		Progress:  os.Stderr, Log: os.Stderr,
	}
	if err := harness.Build(t.Context(), "../..", suite, options.Binaries, os.Stderr); err != nil {
		t.Fatal(err)
	}
	results, err := harness.Run(t.Context(), suite, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(results.Cases) != len(suite.Cases) {
		t.Fatalf("%d cases were measured, want %d", len(results.Cases), len(suite.Cases))
	}
	for i, c := range results.Cases {
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
