package governance

import (
	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

// The contestants.
const (
	ours  = "fulmar"
	kitex = "kitex"
)

// Suite describes the suite to the runner.
func Suite() harness.Suite {
	pairs := harness.Against(ours, kitex)
	return harness.Suite{
		Name:     "governance",
		Deciding: harness.Pinned,
		Programs: []harness.Program{
			{Module: "bench", Package: "governance/fulmar", Contestants: []string{ours}, Plays: harness.PlaysOperations},
			{Module: "bench", Package: "fulmar", Contestants: []string{ours}, Plays: harness.PlaysCalls},
			{Module: "bench/peers", Package: "governance", Contestants: []string{kitex}, Plays: harness.PlaysOperations},
			{Module: "bench/peers", Package: "kitex", Contestants: []string{kitex}, Plays: harness.PlaysCalls},
		},
		Cases: append([]harness.Case{
			{Name: FullStack, Repeats: true, Pairs: pairs, Quick: pairs},
			// With one processor calls would only wait for updates to end. No floor names it.
			{Name: ResolverUpdate, Repeats: true, Pairs: pairs, Kind: harness.Meanwhile, Only: harness.Free},
		}, rpc.OverloadCalls(ours, kitex)...),
	}
}
