//go:build linux

package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/governance"
	"github.com/fulmar-rpc/fulmar/bench/governance/governancetest"
	"github.com/fulmar-rpc/fulmar/bench/rpc/rpctest"
)

func TestSuite_KitexIsMeasured(t *testing.T) { governancetest.Smoke(t, "../../..", "bench/peers") }

func TestSuite_KitexPlaysOverload(t *testing.T) {
	rpctest.SmokeSuite(t, governance.Suite(), "../../..", "bench/peers", "overload-2x", "overload-10x")
}
