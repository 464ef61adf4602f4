//go:build linux

package rpc_test

import (
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/harness/harnesstest"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

// Fulmar's contestant is built and measured, server and client in processes of
// their own, for a moment: closed loop and open loop, small message and large
// struct. Replies are checked by the contestant's client; what it would report
// otherwise is the subject of other tests.
func TestSuite_FulmarRuns(t *testing.T) {
	suite := rpc.Suite()
	suite.Programs = suite.Programs[:1]
	suite.Cases = []harness.Case{
		{Name: "pingpong-128-c100", Pairs: harness.Against("fulmar", "fulmar")},
		{Name: "complex-c100", Pairs: harness.Against("fulmar", "fulmar")},
	}
	for _, c := range harnesstest.Measure(t, "../..", suite, 200*time.Millisecond) {
		open := 0
		for _, run := range c.Runs {
			if run.Calls == 0 || run.Failed != 0 {
				t.Errorf("%s: %d calls, %d failed: %s", c.Name, run.Calls, run.Failed, run.Failure)
			}
			if run.ServerCPU <= 0 || run.ClientCPU <= 0 || run.ServerPeak <= 0 || run.ClientPeak <= 0 || run.Latency.Count == 0 {
				t.Errorf("%s: processor times, memory or latencies are missing: %+v", c.Name, run.Report)
			}
			if run.Pair != nil {
				open++
			}
		}
		// The contestant stands on both sides of its comparison.
		if len(c.Runs) != 3 || open != 2 {
			t.Errorf("%s: %d runs, %d of them open loops, want 3 and 2", c.Name, len(c.Runs), open)
		}
	}
}
