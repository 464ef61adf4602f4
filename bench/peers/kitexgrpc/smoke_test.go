//go:build linux

package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/rpc"
	"github.com/fulmar-rpc/fulmar/bench/rpc/rpctest"
)

// All peers of suites grpc and stream, not this one alone: they are built and measured in one
// go. Clients compare all replies with their requests.
func TestGRPCAndStreamSuites_PeersPlayTheirCases(t *testing.T) {
	suite := rpc.GRPCSuite()
	suite.Cases = append(suite.Cases, rpc.StreamSuite().Cases...)
	rpctest.SmokeSuite(t, suite, "../../..", "bench/peers",
		"unary-1k-c1", "bidi-1k-c16", "server-stream-1k", "client-stream-1k", "tts-bidi-1k-c16")
}
