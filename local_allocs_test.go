//go:build !race && !invariants

package fulmar_test

import (
	"context"
	"testing"

	"github.com/fulmar-rpc/fulmar"
)

// TestLocal_Allocations: what a call of either side allocates is what it does over a
// socket, and nothing for the way: the structs and strings of both sides, and one object
// for each side's part of the call.
func TestLocal_Allocations(t *testing.T) {
	server := localServer(t, fulmar.ServerConfig{}, adder())
	api := dial(t, fulmar.ClientConfig{Local: server.server})
	ctx := context.Background()
	const budget = 8
	if got := testing.AllocsPerRun(1000, func() { _, _ = api.Add(ctx, 1, 2) }); got > budget {
		t.Errorf("%v allocations a call, budget %d", got, budget)
	}
}
