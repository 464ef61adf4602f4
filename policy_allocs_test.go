//go:build !race && !invariants

package fulmar_test

import (
	"context"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// TestServerPolicy_RefusalCostsNoSearch: the limit that refuses a call knows what it is, and
// nobody puts names together to find it in the document.
func TestServerPolicy_RefusalCostsNoSearch(t *testing.T) {
	const service = "shop.v1.warehouse.InventoryService" // short names need no memory of their own
	document := policy.Server{Methods: map[string]policy.Limit{service: {PerSecond: 100}, service + "/Reserve": {PerSecond: 1}}}
	refused := fulmar.PermitOf(document, service, "Reserve")
	if err := refused(); err != nil {
		t.Fatal(err)
	}
	wantOverLimit(t, refused(), "limit of "+service+".Reserve: 1 calls in a second")
	// The error, its text, and what stands in that: the name, and the wait.
	const budget = 6
	if got := testing.AllocsPerRun(1000, func() { _ = refused() }); got > budget {
		t.Errorf("%v allocations for a refusal, budget %d", got, budget)
	}
}

// TestPolicy_AttemptTimeoutCostsLittle: an attempt with a deadline of its own takes a context
// more, and nothing that waits for it.
func TestPolicy_AttemptTimeoutCostsLittle(t *testing.T) {
	r := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnAdd: func(_ context.Context, left, right int32) (int32, error) { return left + right, nil }})
	allocations := func(retry policy.Retry) float64 {
		api := dial(t, fulmar.ClientConfig{Target: r.address, Policy: policy.Client{Method: policy.Method{Retry: retry}}})
		return testing.AllocsPerRun(500, func() {
			if _, err := api.Add(context.Background(), 1, 2); err != nil {
				t.Fatal(err)
			}
		})
	}
	without, with := allocations(policy.Retry{}), allocations(policy.Retry{AttemptTimeout: time.Minute})
	if with > without+1 {
		t.Errorf("%v allocations for a call, and %v without", with, without)
	}
}
