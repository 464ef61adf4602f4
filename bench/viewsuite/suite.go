// Package viewsuite is the suites view and paper-view: views beside structs, in memory
// and in whole calls. What is done with messages is in package codec, and calls are in
// package rpc; a contestant's program for the one is another than that for the other.
package viewsuite

import (
	"slices"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

// The contestants.
const (
	view    = "fulmar-view"
	structs = "fulmar-struct"
	kitex   = "kitex"
	capnp   = "capnp"
)

// quickWindow keeps a quick run within five minutes: ten comparisons of two contestants
// and five rounds, each with half a second of warm-up and the start of its programs.
const quickWindow = 1500 * time.Millisecond

// Suite describes the suite view to the runner.
func Suite() harness.Suite {
	return harness.Suite{
		Name:        "view",
		Deciding:    harness.Pinned,
		QuickWindow: quickWindow,
		Programs: []harness.Program{
			{Module: "bench", Package: "codec/view", Contestants: []string{view, structs}, Plays: harness.PlaysOperations},
			{Module: "bench", Package: "fulmar", Contestants: []string{view, structs}, Plays: harness.PlaysCalls},
			{Module: "bench/peers", Package: "codec/kitex", Contestants: []string{kitex}, Plays: harness.PlaysOperations},
			{Module: "bench/peers", Package: "kitex", Contestants: []string{kitex}, Plays: harness.PlaysCalls},
			{Module: "bench/peers", Package: "codec/capnp", Contestants: []string{capnp}, Plays: harness.PlaysOperations},
		},
		Cases: slices.Concat(codec.ViewOperations(), rpc.ViewCalls()),
		// In other suites ours is called that.
		AlsoAs: map[string]string{view: "fulmar"},
	}
}
