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
	suite := codec.Suite()
	suite.Programs = slices.DeleteFunc(suite.Programs, func(p harness.Program) bool { return p.Module != module })
	var here []string
	for _, program := range suite.Programs {
		here = append(here, program.Contestants...)
	}
	var want []int
	var cases []harness.Case
	for _, c := range suite.Cases {
		if !slices.Contains([]string{"tiny-74b-decode", "list-i64-1k-encode", codec.MyTest}, c.Name) {
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
