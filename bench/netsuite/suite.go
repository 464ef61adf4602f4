package netsuite

import "github.com/fulmar-rpc/fulmar/bench/harness"

// Ours are the contestants of this project: the defaults, and what they can be
// changed to.
const (
	ours       = "fulmar"
	oursInline = "fulmar-inline"
	oursSpawn  = "fulmar-spawn"
	oursStd    = "fulmar-std"
)

// Suite describes the suite to the runner.
func Suite() harness.Suite {
	suite := harness.Suite{
		Name: "net",
		// Client and server share the processors, as they do in the field; pinned,
		// nobody ever has to wake a second processor, which is half of the work.
		Deciding: harness.Free,
		Programs: []harness.Program{
			{Module: "bench", Package: "netfulmar", Contestants: []string{ours, oursInline, oursSpawn, oursStd}},
			{Module: "bench", Package: "net/server.c", Contestants: []string{"c-epoll"}},
			{Module: "bench/peers", Package: "netpoll", Contestants: []string{"netpoll", "netpoll-2"}},
			{Module: "bench/peers", Package: "gnet", Contestants: []string{"gnet"}},
			{Module: "bench/peers", Package: "netstd", Contestants: []string{"std"}},
		},
		Client: harness.Program{Module: "bench", Package: "net/client.c"},
	}
	for _, c := range Cases() {
		suite.Cases = append(suite.Cases, harness.Case{
			Name: c.Name, Pairs: pairs(), Quick: quick(c.Name), Open: open(c.Name), Serve: c.Serve(), Load: c.Load(),
		})
	}
	return suite
}

// pairs are the same in all cases. Our variants are compared with one peer only:
// what they are to each other can be seen in their values.
func pairs() []harness.Pair {
	all := harness.Against(ours, "netpoll", "gnet", "std", "c-epoll", "netpoll-2")
	for _, variant := range []string{oursInline, oursSpawn, oursStd} {
		all = append(all, harness.Against(variant, "netpoll")...)
	}
	return all
}

// quick returns the comparisons that the project holds itself to.
func quick(name string) []harness.Pair {
	switch name {
	case "echo-128-c64":
		return harness.Against(ours, "netpoll", "gnet", "c-epoll")
	case "shared-128-64", "slowmix-c64", "idle-10k", "large-then-small-c100":
		return harness.Against(ours, "netpoll")
	}
	return nil
}

// open says where latencies are measured: of what a quick run compares, a floor
// names them in slowmix-c64 only.
func open(name string) harness.OpenLoops {
	switch name {
	case "large-then-small-c100":
		return harness.OpenNever // It is about memory, and otherwise as echo-128-c64.
	case "slowmix-c64":
		return harness.OpenAlways
	}
	return harness.OpenUnlessQuick
}
