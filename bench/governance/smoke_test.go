//go:build linux

package governance_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/governance"
	"github.com/fulmar-rpc/fulmar/bench/governance/governancetest"
	"github.com/fulmar-rpc/fulmar/bench/rpc/rpctest"
)

func TestSuite_OursIsMeasured(t *testing.T) { governancetest.Smoke(t, "../..", "bench") }

func TestSuite_OursPlaysOverload(t *testing.T) {
	rpctest.SmokeSuite(t, governance.Suite(), "../..", "bench", "overload-2x", "overload-10x")
}
