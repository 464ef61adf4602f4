package fulmar_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestServer_CallsOfOneConnectionUseSeveralProcessors: handlers that compute, and
// whose calls come over one connection, run at the same time. Each computes
// until it sees another one that does, for at most a few milliseconds, which is
// less than the 10 ms after which the scheduler lets another goroutine have the
// processor: so they can only see each other from different ones.
func TestServer_CallsOfOneConnectionUseSeveralProcessors(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("this machine has one processor")
	}
	if runtime.GOMAXPROCS(0) < 2 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	const steps = 1 << 20 // about 1 ms of atomic loads, about 5 under the race detector
	var computing atomic.Int32
	var met atomic.Int64
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnAdd: func(_ context.Context, left, right int32) (int32, error) {
			computing.Add(1)
			for range steps {
				if computing.Load() > 1 {
					met.Add(1)
					break
				}
			}
			computing.Add(-1)
			return left + right, nil
		},
	})
	client := dialAny(t, fulmar.ClientConfig{Target: server.address})
	api := testservice.NewEchoClient(client)
	call := func() {
		if sum, err := api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
			t.Errorf("Add = %d, %v", sum, err)
		}
	}
	call() // so that the client knows that calls can share the connection
	const callers, rounds = 8, 50
	for round := 0; round < rounds && met.Load() == 0; round++ {
		var calls sync.WaitGroup
		for range callers {
			calls.Go(call)
		}
		calls.Wait()
	}
	if met.Load() == 0 {
		t.Errorf("of %d calls no two ran at the same time", callers*rounds)
	}
	if stats := client.Stats(); stats.Connections != 1 || stats.Multiplexed != 1 {
		t.Errorf("the calls used %d connections, %d of them shared, want one", stats.Connections, stats.Multiplexed)
	}
}
