//go:build linux

package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/rpc/rpctest"
)

// All peers of suite rpc, not this one alone: they are built and measured in one
// go.
func TestSuite_PeersPlayTheirCases(t *testing.T) {
	rpctest.Smoke(t, "../../..", "bench/peers", "pingpong-128-c100", "mux-128-c64", "oneway-1k-c100", "unix-1k-c100", "idle-10k", "overload-2x", "tls-1k-c100")
}
