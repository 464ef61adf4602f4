//go:build linux

package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/netsuite/nettest"
)

// All peers of suite net, not this one alone: they are built and measured in one
// go.
func TestSuite_PeersServeEveryCase(t *testing.T) { nettest.Smoke(t, "../../..", "bench/peers") }
