//go:build linux

package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec/codectest"
)

// All peers of suite codec, not this one alone: they are built and measured in one
// go.
func TestSuite_PeersAreMeasured(t *testing.T) { codectest.Smoke(t, "../../../..", "bench/peers") }
