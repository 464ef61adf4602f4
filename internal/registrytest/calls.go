package registrytest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
)

// shop is a server of Fulmar that announces itself, until stop.
func shop(t *testing.T, registry cluster.Registry) (stop func()) {
	t.Helper()
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Address: "127.0.0.1:0", Registry: registry, Service: Service, Logger: slog.New(slog.DiscardHandler),
		UnknownHandler: func(_ context.Context, request fulmar.Raw) (fulmar.Raw, error) { return request, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// serversAndClients: calls go on while the registry is killed and is back, and servers
// that come and leave afterwards are known. No call fails.
func serversAndClients(t *testing.T, k Kind) {
	server := k.Run(t)
	announcers := k.open(t, server.Address, Unhurried())
	first, _ := shop(t, announcers), shop(t, announcers)
	client, err := fulmar.NewClient(fulmar.ClientConfig{
		Target: "registry:///" + Service, Registries: map[string]cluster.Registry{"registry": k.open(t, server.Address, Hasty())},
		WaitForReady: true, Timeout: Patience, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	method, err := fulmar.RawMethod(Service, "echo", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var calls, failed atomic.Int64
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				request, reply := fulmar.Raw{0}, fulmar.Raw{}
				if err := client.Call(context.WithoutCancel(ctx), method, &request, &reply); err != nil && failed.Add(1) == 1 {
					t.Errorf("the first call that failed: %v", err)
				}
				calls.Add(1)
				Pass(2 * time.Millisecond)
			}
		})
	}
	instances := func(n int) {
		t.Helper()
		Eventually(t, fmt.Sprintf("the client knows %d servers", n), func() bool { return client.Stats().Instances == n })
	}
	instances(2)
	server.Kill()
	Pass(Lease + Lease/2)
	during := calls.Load()
	if n := client.Stats().Instances; n != 2 {
		t.Errorf("during the outage the client knows %d servers", n)
	}
	Start(t, server)
	shop(t, announcers)
	instances(3)
	first()
	instances(2)
	stop()
	callers.Wait()
	if during == 0 || failed.Load() > 0 {
		t.Errorf("%d calls failed of %d, of which %d ended during the outage", failed.Load(), calls.Load(), during)
	}
}
