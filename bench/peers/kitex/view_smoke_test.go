//go:build linux

package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec/codectest"
	"github.com/fulmar-rpc/fulmar/bench/rpc/rpctest"
	"github.com/fulmar-rpc/fulmar/bench/viewsuite"
)

// Echoes of texts and of structs, and a gateway of binary generic calls: the client compares
// each reply with its request.
func TestViewSuite_KitexPlaysCalls(t *testing.T) {
	rpctest.SmokeSuite(t, viewsuite.Suite(), "../../..", "bench/peers", "echo-1k", "echo-items-1k", "hop-1k")
}

// The contestants of the article's tables, who have other names there.
func TestPaperViewSuite_PeersAreMeasured(t *testing.T) {
	codectest.SmokeSuite(t, viewsuite.PaperSuite(), "../../..", "bench/peers", "read-write-1m")
	rpctest.SmokeSuite(t, viewsuite.PaperSuite(), "../../..", "bench/peers", "echo-1k")
}
