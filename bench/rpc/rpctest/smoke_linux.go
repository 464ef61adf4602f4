package rpctest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/harness/harnesstest"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

// window is long enough that some call finishes in it on a busy machine, overloadWindow where
// one of the cases offers ten times as many as can be served: with three processes for each
// processor none of Kitex's did within 400 ms.
const (
	window         = 400 * time.Millisecond
	overloadWindow = 2 * time.Second
)

// Smoke plays the named cases with all contestants of the programs that are in a module, for a moment: in closed loops, and in open
// loops too where the case has them. Clients compare all replies with their
// requests, and what they report must be whole. root is the root of the
// repository.
func Smoke(t *testing.T, root, module string, cases ...string) {
	t.Helper()
	SmokeSuite(t, rpc.Suite(), root, module, cases...)
}

// SmokeSuite is Smoke for the cases with calls of another suite.
func SmokeSuite(t *testing.T, suite harness.Suite, root, module string, cases ...string) {
	t.Helper()
	suite.Programs = slices.DeleteFunc(suite.Programs, func(p harness.Program) bool {
		return p.Module != module || p.Plays == harness.PlaysOperations
	})
	present := map[string]bool{}
	for _, program := range suite.Programs {
		for _, name := range program.Contestants {
			present[name] = true
		}
	}
	var played []harness.Case
	for _, c := range suite.Cases {
		if !slices.Contains(cases, c.Name) {
			continue
		}
		if strings.HasPrefix(c.Name, "idle-") {
			c.Load = append(c.Load, "-idle", "100")
		}
		if c.Open != harness.OpenNever && len(played) > 0 && c.Kind != harness.Overload {
			c.Open = harness.OpenNever // The first case shows it, and that of overload.
		}
		if c.Pairs = alone(c.Pairs, present); len(c.Pairs) > 0 {
			played = append(played, c)
		}
	}
	if len(played) != len(cases) {
		t.Fatalf("%d of the %d cases %v are there for contestants of %s", len(played), len(cases), cases, module)
	}
	suite.Cases = played
	length := window
	if slices.ContainsFunc(played, func(c harness.Case) bool { return c.Share >= 10 }) {
		length = overloadWindow
	}
	var apart []harness.CaseResult
	for i, c := range harnesstest.Measure(t, root, suite, length) {
		check(t, played[i], c)
		if !played[i].Local {
			apart = append(apart, c)
		}
	}
	harnesstest.ProcessorTimes(t, apart)
}

// alone lets everybody who is present in some of the pairs be compared with itself.
func alone(pairs []harness.Pair, present map[string]bool) (left []harness.Pair) {
	for _, pair := range pairs {
		for _, name := range []string{pair.Ours, pair.Peer} {
			self := harness.Pair{Ours: name, Peer: name}
			if present[name] && !slices.Contains(left, self) {
				left = append(left, self)
			}
		}
	}
	return left
}

// answered counts latencies, also those of calls that were refused.
func answered(run harness.Sample) uint64 {
	if run.RefusedLatency == nil {
		return run.Latency.Count
	}
	return run.Latency.Count + run.RefusedLatency.Count
}

func check(t *testing.T, played harness.Case, result harness.CaseResult) {
	t.Helper()
	runs := len(played.Pairs)
	if played.Open != harness.OpenNever {
		runs *= 3 // Each contestant stands on both sides of its comparison.
	}
	// On a busy machine a window may pass without a call; that is tried again.
	result.Runs = slices.DeleteFunc(slices.Clone(result.Runs), func(run harness.Sample) bool { return run.Calls == 0 && run.Failed == 0 && run.Refused == 0 })
	if result.Name != played.Name+"@"+string(harness.Free) || len(result.Runs) != runs {
		t.Errorf("%s: %d runs of %s, want %d", played.Name, len(result.Runs), result.Name, runs)
	}
	for _, run := range result.Runs {
		if run.Failed != 0 {
			t.Errorf("%s, %s: %d failed: %s", played.Name, run.Contestant, run.Failed, run.Failure)
		}
		if run.ServerPeak <= 0 || run.ClientPeak <= 0 || answered(run) == 0 {
			t.Errorf("%s, %s: memory or latencies are missing: %+v", played.Name, run.Contestant, run.Report)
		}
		if played.Local && (run.ServerCPU <= 0 || run.ClientCPU != 0) {
			t.Errorf("%s, %s: processor times of %d and %d, want that of the one process as the server's", played.Name, run.Contestant, run.ServerCPU, run.ClientCPU)
		}
		if run.Pair != nil && (run.Due == 0 || answered(run) != run.Due) {
			t.Errorf("%s, %s: %d calls fell due, with %d latencies", played.Name, run.Contestant, run.Due, answered(run))
		}
		memory := strings.HasPrefix(played.Name, "idle-")
		if (run.ConnectionBytes != nil && run.HeapBytes != nil && *run.HeapBytes > 0) != memory {
			t.Errorf("%s, %s: figures for a connection and the heap are %v, %v", played.Name, run.Contestant, run.ConnectionBytes, run.HeapBytes)
		}
		if run.Pair == nil && !memory && (run.ServerAllocations == nil || (run.ClientAllocations == nil) != played.Local) {
			t.Errorf("%s, %s: allocations are missing", played.Name, run.Contestant)
		}
	}
}
