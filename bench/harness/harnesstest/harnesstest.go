//go:build linux

// Package harnesstest runs suites of benchmarks in tests, where what they measure
// does not count, but that they do.
package harnesstest

import (
	"os"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/machine"
)

// Measure builds what a suite needs and measures all of its cases once, each for
// window, contestants and clients in processes of their own, as `make bench` does it.
// root is the root of the repository. It returns one result for each case, in their
// order.
func Measure(t *testing.T, root string, suite harness.Suite, window time.Duration) []harness.CaseResult {
	t.Helper()
	options := harness.Options{
		Settings:  harness.Settings{Rounds: 1, WarmUp: window / 8, Duration: window, LoadShare: 0.1},
		Placement: harness.Free,
		Binaries:  t.TempDir(),
		Network:   machine.Plain("a test"),
		Progress:  os.Stderr, Log: os.Stderr,
	}
	if err := harness.Build(t.Context(), root, suite, options.Binaries, os.Stderr); err != nil {
		t.Fatal(err)
	}
	results, err := harness.Run(t.Context(), suite, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(results.Cases) != len(suite.Cases) {
		t.Fatalf("%d cases were measured, want %d", len(results.Cases), len(suite.Cases))
	}
	return results.Cases
}

// ProcessorTimes wants that the kernel accounted processor time to the servers and to the
// clients of each contestant, over all cases. In the short window of one case a server may
// not run: on a busy machine the clients read what it has answered before.
func ProcessorTimes(t *testing.T, results []harness.CaseResult) {
	t.Helper()
	servers, clients := map[string]int64{}, map[string]int64{}
	for _, result := range results {
		for _, run := range result.Runs {
			servers[run.Contestant] += run.ServerCPU
			clients[run.Contestant] += run.ClientCPU
		}
	}
	for name := range servers {
		if servers[name] <= 0 || clients[name] <= 0 {
			t.Errorf("%s: the servers took %d ns of processor time, the clients %d", name, servers[name], clients[name])
		}
	}
}
