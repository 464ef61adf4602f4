package fulmar_test

import (
	"context"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// threeAttempts is what policyFile has: a policy for clients, and one call in a second one for servers.
const threeAttempts = `{"client": {"retry": {"attempts": 3, "idempotent": true, "backoff_min": "10us"}}, "server": {"limit": {"per_second": 1, "burst": 1}}}`

// policyFile is a file with threeAttempts.
const policyFile = "testdata/policy.json"

// policySource delivers threeAttempts.
func policySource(ctx context.Context, deliver func(document []byte, version string)) error {
	deliver([]byte(threeAttempts), "1")
	<-ctx.Done()
	return ctx.Err()
}

// clientPolicies are the fields about policies.
func clientPolicies() map[string]field[fulmar.ClientConfig] {
	// attempts is how many attempts a call has that fails.
	attempts := func(t *testing.T, config fulmar.ClientConfig) any {
		stub, count := failingCalls(fulmar.Unavailable, -1)
		config.Target = serve(t, fulmar.ServerConfig{}, stub).address
		client := dialAny(t, config)
		if config.PolicySource != nil {
			eventually(t, func() bool { _, version, _ := client.Policy(); return version == 1 })
		}
		_, _ = testservice.NewEchoClient(client).Add(context.Background(), 1, 2)
		return count.Load()
	}
	again := policy.Client{Method: policy.Method{Retry: policy.Retry{Attempts: 2, Idempotent: true}}}
	explained := func(t *testing.T, config fulmar.ClientConfig) any {
		config.Target = serve(t, fulmar.ServerConfig{}, adder()).address
		calls := 0
		if config.ExplainEvery != 0 {
			config.OnExplanation = func(*policy.Explanation) { calls++ }
		}
		api := dial(t, config)
		for range 1000 {
			if _, err := api.Add(context.Background(), 1, 2); err != nil {
				t.Fatal(err)
			}
		}
		return calls
	}
	explanations := new(int)
	return map[string]field[fulmar.ClientConfig]{
		"Policy":       {observe: attempts, settings: []setting{{nil, int64(1)}, {again, int64(2)}}},
		"PolicyFile":   {observe: attempts, settings: []setting{{nil, int64(1)}, {policyFile, int64(3)}}},
		"PolicySource": {observe: attempts, settings: []setting{{nil, int64(1)}, {policySource, int64(3)}}},
		"RetryIf": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				config.Policy = again
				return attempts(t, config)
			},
			settings: []setting{{nil, int64(2)}, {func(fulmar.Unary, error) bool { return false }, int64(1)}},
		},
		"OnExplanation": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				before := *explanations
				explained(t, config)
				return *explanations - before
			},
			settings: []setting{{nil, 0}, {func(*policy.Explanation) { *explanations++ }, 1}},
		},
		"ExplainEvery": {observe: explained, settings: []setting{{nil, 0}, {100, 10}, {-1, 0}}},
	}
}

// serverPolicies are the fields about policies.
func serverPolicies() map[string]field[fulmar.ServerConfig] {
	// refused is whether the second of two calls is.
	refused := func(t *testing.T, config fulmar.ServerConfig) any {
		r := serve(t, config, adder())
		if config.PolicySource != nil {
			eventually(t, func() bool { _, version, _ := r.server.Policy(); return version == 1 })
		}
		api := dial(t, fulmar.ClientConfig{Target: r.address})
		_, _ = api.Add(context.Background(), 1, 2)
		_, err := api.Add(context.Background(), 1, 2)
		return fulmar.CodeOf(err) == fulmar.ResourceExhausted
	}
	return map[string]field[fulmar.ServerConfig]{
		"Policy":       {observe: refused, settings: []setting{{nil, false}, {policy.Server{Limit: policy.Limit{PerSecond: 1, Burst: 1}}, true}}},
		"PolicyFile":   {observe: refused, settings: []setting{{nil, false}, {policyFile, true}}},
		"PolicySource": {observe: refused, settings: []setting{{nil, false}, {policySource, true}}},
	}
}
