//go:build linux

package governancetest

import (
	"slices"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/governance"
	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/harness/harnesstest"
)

// Smoke builds the contestants whose programs are in a module, has each of them show that
// its stack is complete, and measures it for a moment in the cases with an operation, as
// `make bench` does it. root is the root of the repository.
func Smoke(t *testing.T, root, module string) {
	t.Helper()
	suite := governance.Suite()
	suite.Programs = slices.DeleteFunc(suite.Programs, func(p harness.Program) bool {
		return p.Module != module || p.Plays == harness.PlaysCalls
	})
	if len(suite.Programs) != 1 || len(suite.Programs[0].Contestants) != 1 {
		t.Fatalf("programs of %s: %+v, want one of one contestant", module, suite.Programs)
	}
	name := suite.Programs[0].Contestants[0]
	alone := harness.Against(name, name)
	suite.Cases = slices.DeleteFunc(suite.Cases, func(c harness.Case) bool { return !c.Repeats })
	for i := range suite.Cases {
		suite.Cases[i].Pairs = alone
	}
	suite.Cases = append(suite.Cases, harness.Case{Name: governance.StackCheck, Repeats: true, Pairs: alone})
	for _, result := range harnesstest.Measure(t, root, suite, 50*time.Millisecond) {
		if len(result.Runs) != 1 {
			t.Errorf("%s: %d runs, want 1", result.Name, len(result.Runs))
			continue
		}
		run := result.Runs[0]
		if run.Operation == nil || run.Operation.Nanoseconds <= 0 || run.ServerPeak <= 0 {
			t.Errorf("%s: figures are missing: %+v", result.Name, run.Report)
			continue
		}
		if meanwhile := result.Kind == harness.Meanwhile; meanwhile != (run.Latency.Count > 0) || meanwhile && run.Operation.Bytes <= 0 {
			t.Errorf("%s: %d latencies, %+v", result.Name, run.Latency.Count, run.Operation)
		}
		if without := run.Operation.Without > 0; without != (result.Name == governance.FullStack+"@"+string(harness.Free)) {
			t.Errorf("%s: it takes %v ns without what is measured", result.Name, run.Operation.Without)
		}
	}
}
