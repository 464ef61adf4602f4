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

// TestUnknown_Allocations: what a server knows of a method that is not registered is made for the
// call, but not what it needs for any call.
func TestUnknown_Allocations(t *testing.T) {
	echo := func(_ context.Context, request fulmar.Raw) (fulmar.Raw, error) { return request, nil }
	server := localServer(t, fulmar.ServerConfig{UnknownHandler: echo}, adder())
	client, err := fulmar.NewClient(fulmar.ClientConfig{Local: server.server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	method, err := fulmar.RawMethod("Elsewhere", "echo", false)
	if err != nil {
		t.Fatal(err)
	}
	request, reply := fulmar.Raw{0}, fulmar.Raw{}
	call := func() {
		if err := client.Call(t.Context(), method, &request, &reply); err != nil {
			t.Fatal(err)
		}
	}
	const budget = 12 // 14 with a pool of states that is made for the call, too
	if got := testing.AllocsPerRun(1000, call); got > budget {
		t.Errorf("%v allocations a call, budget %d", got, budget)
	}
}
