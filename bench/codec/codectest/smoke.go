//go:build linux

package codectest

import (
	"slices"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/harness/harnesstest"
)

// Smoke builds the contestants whose programs are in a module, and measures each
// of them for a moment in some of the cases, as `make bench` does it. All cases
// of a contestant are the subject of CheckRepeats. root is the root of the
// repository.
func Smoke(t *testing.T, root, module string) {
	t.Helper()
	SmokeSuite(t, codec.Suite(), root, module, "tiny-74b-decode", "list-i64-1k-encode", codec.MyTest)
}

// SmokeSuite is Smoke for cases of another suite that repeat an operation.
func SmokeSuite(t *testing.T, suite harness.Suite, root, module string, names ...string) {
	t.Helper()
	suite.Programs = slices.DeleteFunc(suite.Programs, func(p harness.Program) bool {
		return p.Module != module || p.Plays == harness.PlaysCalls
	})
	var here []string
	for _, program := range suite.Programs {
		here = append(here, program.Contestants...)
	}
	var want []int
	var cases []harness.Case
	for _, c := range suite.Cases {
		if !slices.Contains(names, c.Name) {
			continue
		}
		var members []harness.Pair
		for _, name := range here {
			if slices.ContainsFunc(c.Pairs, func(p harness.Pair) bool { return p.Ours == name || p.Peer == name }) {
				members = append(members, harness.Pair{Ours: name, Peer: name})
			}
		}
		c.Pairs = members
		cases, want = append(cases, c), append(want, len(members))
	}
	if len(cases) != len(names) {
		t.Fatalf("%d of the cases %v are in suite %s", len(cases), names, suite.Name)
	}
	suite.Cases = cases
	for i, result := range harnesstest.Measure(t, root, suite, 20*time.Millisecond) {
		if len(result.Runs) != want[i] || want[i] == 0 {
			t.Errorf("%s: %d runs, want %d", result.Name, len(result.Runs), want[i])
		}
		for _, run := range result.Runs {
			if run.Operation == nil || run.Operation.Nanoseconds <= 0 || run.CallBytes <= 0 || run.ServerPeak <= 0 {
				t.Errorf("%s, %s: figures are missing: %+v", result.Name, run.Contestant, run.Report)
			}
		}
	}
}
