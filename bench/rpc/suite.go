package rpc

import "github.com/fulmar-rpc/fulmar/bench/harness"

// The contestants.
const (
	ours    = "fulmar"     // a pool of connections, framed
	oursMux = "fulmar-mux" // a few connections that callers share
)

// Suite describes the suite to the runner.
func Suite() harness.Suite {
	suite := harness.Suite{
		Name:     "rpc",
		Deciding: harness.Pinned,
		Programs: []harness.Program{
			{Module: "bench", Package: "fulmar", Contestants: []string{ours, oursMux}},
			{Module: "bench/peers", Package: "kitex", Contestants: []string{"kitex", "kitex-mux"}},
			{Module: "bench/peers", Package: "grpcgo", Contestants: []string{"grpc-go"}},
			{Module: "bench/peers", Package: "apachethrift", Contestants: []string{"apache-thrift"}},
			{Module: "bench/peers", Package: "arpc", Contestants: []string{"arpc"}},
		},
	}
	for _, c := range Cases() {
		suite.Cases = append(suite.Cases, c.harness())
	}
	return suite
}

// harness describes the case to the runner.
func (c Case) harness() harness.Case {
	return harness.Case{
		Name: c.Name, Pairs: c.pairs(), Quick: quick(c.Name), Open: c.open(), Kind: c.kind(), Serve: c.serve(), Certificate: c.TLS,
		Local: c.Local, DecidingOnly: c.Idle > 0 || c.Overload > 0, Share: c.Overload,
	}
}

// pairs returns who is compared. Contestants that carry one call at a time have
// no place where a connection is shared.
func (c Case) pairs() []harness.Pair {
	exclusive := harness.Against(ours, "kitex", "apache-thrift", "grpc-go", "arpc")
	switch {
	case c.Oneway: // gRPC has no such calls.
		return append(harness.Against(ours, "kitex", "apache-thrift"), harness.Against(oursMux, "kitex-mux")...)
	case c.Local: // Nobody else has such calls for its users.
		return harness.Against(ours, ours)
	case c.Idle > 0:
		return harness.Against(ours, "kitex", "grpc-go", "apache-thrift")
	case c.Overload > 0: // kitex has its limiter, the others what they have by default.
		return append(harness.Against(oursMux, "kitex-mux", "grpc-go"), harness.Against(ours, "kitex")...)
	case c.TLS: // Kitex's servers have none.
		return harness.Against(ours, "grpc-go", "apache-thrift")
	case c.Unix:
		return harness.Against(ours, "kitex", "grpc-go")
	case c.Shared:
		return harness.Against(oursMux, "kitex-mux", "grpc-go", "arpc")
	case c.MessageBytes == 0:
		return append(exclusive, harness.Against(oursMux, "kitex-mux")...)
	default:
		return exclusive
	}
}

// quick returns the comparisons that the project holds itself to.
func quick(name string) []harness.Pair {
	switch name {
	case "pingpong-1k-c100", "complex-c100":
		return harness.Against(ours, "kitex")
	case "mux-1k-c100":
		return harness.Against(oursMux, "kitex-mux")
	}
	return nil
}
