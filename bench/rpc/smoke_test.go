//go:build linux

package rpc_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/rpc/rpctest"
)

// What clients would report if replies were wrong is the subject of other tests.
func TestSuite_OursPlaysItsCases(t *testing.T) {
	rpctest.Smoke(t, "../..", "bench", "pingpong-128-c100", "mux-128-c64", "complex-c100", "oneway-1k-c100", "unix-1k-c100", "tls-1k-c100", "local", "idle-10k", "overload-2x")
}
