package rpc

import "github.com/fulmar-rpc/fulmar/bench/harness"

// GRPCCases returns the cases of suite grpc. All callers share what connections a contestant
// opens by default.
func GRPCCases() []Case {
	return []Case{
		{Name: "unary-1k-c1", Callers: 1, Shared: true, MessageBytes: 1 << 10},
		{Name: "unary-1k-c100", Callers: 100, Shared: true, MessageBytes: 1 << 10},
		{Name: "unary-1k-c512", Callers: 512, Shared: true, MessageBytes: 1 << 10},
		{Name: "unary-64k-c16", Callers: 16, Shared: true, MessageBytes: 64 << 10},
		// The same as in suite rpc.
		{Name: "idle-10k", Callers: 16, MessageBytes: 128, Idle: 10_000},
	}
}

// GRPCSuite describes the suite grpc to the runner.
func GRPCSuite() harness.Suite {
	suite := harness.Suite{
		Name:     "grpc",
		Deciding: harness.Pinned,
		Programs: []harness.Program{
			{Module: "bench", Package: "fulmargrpc", Contestants: []string{ours}},
			{Module: "bench/peers", Package: "grpcgo", Contestants: []string{"grpc-go"}},
			{Module: "bench/peers", Package: "connectgo", Contestants: []string{"connect-go"}},
			{Module: "bench/peers", Package: "kitexgrpc", Contestants: []string{"kitex"}},
			{Module: "bench/peers", Package: "drpc", Contestants: []string{"drpc"}},
		},
	}
	for _, c := range GRPCCases() {
		played := c.harness()
		played.Pairs, played.Quick = harness.Against(ours, "grpc-go", "connect-go", "kitex", "drpc"), nil
		if c.Name == "unary-1k-c100" {
			played.Quick = harness.Against(ours, "grpc-go", "kitex")
		}
		if played.Open == harness.OpenAlways {
			played.Open = harness.OpenUnlessQuick // No floor names a latency.
		}
		suite.Cases = append(suite.Cases, played)
	}
	return suite
}
