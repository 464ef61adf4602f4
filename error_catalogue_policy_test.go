package fulmar_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/policy"
)

// byPolicies are mishaps that a policy or a registry decides.
func byPolicies() []mishap {
	// Nothing is tried again, which would take times by chance.
	client := func(c policy.Client) fulmar.ClientConfig {
		c.Method.Retry.Attempts = -1
		return fulmar.ClientConfig{Policy: c}
	}
	server := func(s policy.Server) fulmar.ServerConfig { return fulmar.ServerConfig{Policy: s} }
	once := client(policy.Client{})
	breaker := policy.Breaker{FailurePercent: 50, MinCalls: 2, Pause: time.Second}
	failing := returning(fulmar.NewError(fulmar.Internal, "disk full"))
	return []mishap{
		{what: "the breaker of the target is open", client: client(policy.Client{TargetBreaker: breaker}), stub: failing, call: callLast(3)},
		{what: "the breaker of the method is open", client: client(policy.Client{Method: policy.Method{Breaker: breaker}}), stub: failing,
			call: callLast(3)},
		{what: "the server's limit of calls in a second is reached", client: once, server: server(policy.Server{Limit: policy.Limit{PerSecond: 9, Burst: 1}}),
			call: callLast(2)},
		{what: "that of the caller", client: once, server: server(policy.Server{CallerLimit: policy.Limit{PerSecond: 9, Burst: 1}}), call: callLast(2)},
		{what: "that of the service", client: once, server: server(policy.Server{Methods: map[string]policy.Limit{"Echo": {PerSecond: 9, Burst: 1}}}),
			call: callLast(2)},
		{what: "that of the method", client: once, server: server(policy.Server{Methods: map[string]policy.Limit{"Echo.nothing": {PerSecond: 9, Burst: 1}}}),
			call: callLast(2)},
		{what: "the server's limit of calls that run is reached", client: once, server: server(policy.Server{Limit: policy.Limit{Running: 1}}), waits: true,
			call: callTooMany},
		{what: "the registry has no instances", client: fulmar.ClientConfig{Resolver: cluster.Static{}}, call: callNothing},
		{what: "the registry ends without a list", client: fulmar.ClientConfig{Resolver: silent{}}, call: callNothing},
		{what: "nobody listens, and the call waits until its time is over", client: fulmar.ClientConfig{WaitForReady: true}, absent: true,
			call: func(ctx context.Context, _ *testing.T, m *stage) error {
				return m.api.Nothing(ctx, fulmar.Timeout(300*time.Millisecond))
			}},
	}
}

// callLast makes calls one after the other and returns the error of the last one.
func callLast(n int) func(context.Context, *testing.T, *stage) error {
	return func(ctx context.Context, _ *testing.T, m *stage) error {
		err := errors.New("no call was made")
		for range n {
			err = m.api.Nothing(ctx)
		}
		return err
	}
}
