//go:build linux

package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/rpc"
	"github.com/fulmar-rpc/fulmar/bench/rpc/rpctest"
)

// All peers of suite grpc, not this one alone: they are built and measured in one go. Clients
// compare all replies with their requests.
func TestGRPCSuite_PeersPlayTheirCases(t *testing.T) {
	rpctest.SmokeSuite(t, rpc.GRPCSuite(), "../../..", "bench/peers", "unary-1k-c1", "idle-10k")
}
