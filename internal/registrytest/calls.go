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

// load is callers of the shops of a registry.
type load struct {
	client        *fulmar.Client
	stop          context.CancelFunc
	callers       sync.WaitGroup
	calls, failed atomic.Int64
}

// loadOn begins to call.
func loadOn(t *testing.T, registry cluster.Registry) *load {
	t.Helper()
	client, err := fulmar.NewClient(fulmar.ClientConfig{
		Target: "registry:///" + Service, Registries: map[string]cluster.Registry{"registry": registry},
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
	l := &load{client: client}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(t.Context())
	for range 4 {
		l.callers.Go(func() {
			for ctx.Err() == nil {
				request, reply := fulmar.Raw{0}, fulmar.Raw{}
				if err := client.Call(context.WithoutCancel(ctx), method, &request, &reply); err != nil && l.failed.Add(1) == 1 {
					t.Errorf("the first call that failed: %v", err)
				}
				l.calls.Add(1)
				Pass(2 * time.Millisecond)
			}
		})
	}
	return l
}

// knows waits until the client knows n shops.
func (l *load) knows(t *testing.T, n int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("the client knows %d servers", n), func() bool { return l.client.Stats().Instances == n })
}

// goesOn checks that during an outage, which has begun, calls are made and all n shops known.
func (l *load) goesOn(t *testing.T, outage string, n int) {
	t.Helper()
	before := l.calls.Load()
	Pass(Lease + Lease/2)
	if l.calls.Load() == before {
		t.Errorf("%s: no call ended", outage)
	}
	if known := l.client.Stats().Instances; known != n {
		t.Errorf("%s: the client knows %d servers, want %d", outage, known, n)
	}
}

// end ends the calls, none of which may have failed.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.callers.Wait()
	if l.failed.Load() > 0 {
		t.Errorf("%d calls failed of %d", l.failed.Load(), l.calls.Load())
	}
}

// serversAndClients: calls go on while the registry is killed and is back, does not answer, and
// cannot be reached by clients, or by servers until their leases have expired; and servers that
// come and leave afterwards are known. No call fails.
func serversAndClients(t *testing.T, k Kind) {
	server := k.Run(t)
	before, behind := Network(t, server), Network(t, server)
	operator := k.Operator(t, server.Address)
	announcers := k.open(t, before.Address, Hasty())
	first, _ := shop(t, announcers), shop(t, announcers)
	l := loadOn(t, k.open(t, behind.Address, Hasty()))
	defer l.stop()
	l.knows(t, 2)

	server.Kill()
	l.goesOn(t, "killed", 2)
	Start(t, server)
	shop(t, announcers)
	l.knows(t, 3)

	behind.Darken()
	l.goesOn(t, "out of the reach of clients", 3)
	behind.Restore()

	before.Darken()
	Eventually(t, "the leases expire", func() bool { return operator.Count() == 0 })
	l.goesOn(t, "out of the reach of servers", 3)
	before.Restore()
	Eventually(t, "all are announced again", func() bool { return operator.Count() == 3 })

	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	l.goesOn(t, "paused", 3)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "all are announced", func() bool { return operator.Count() == 3 })
	first()
	l.knows(t, 2)
	l.end(t)
}
