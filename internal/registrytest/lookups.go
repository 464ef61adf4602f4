package registrytest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// Lookups is what a client has: the last list that was delivered, and what all of them
// were like. Safe for concurrent use.
type Lookups struct {
	mu       sync.Mutex
	last     []cluster.Instance
	known    bool
	shortest int // since Know
	reported error

	cancel context.CancelFunc
	ended  chan struct{}
	err    error // of Resolve, when ended is closed
}

// Look resolves Service until the test ends.
func Look(t testing.TB, registry cluster.Registry) *Lookups {
	t.Helper()
	resolver, err := registry.Resolver(Service)
	if err != nil {
		t.Fatal(err)
	}
	l := &Lookups{ended: make(chan struct{})}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(cluster.WithReport(context.Background(), l.report))
	go func() {
		defer close(l.ended)
		l.err = resolver.Resolve(ctx, l.deliver)
	}()
	t.Cleanup(func() { _ = l.Stop() })
	return l
}

func (l *Lookups) deliver(list []cluster.Instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = list
	if l.known {
		l.shortest = min(l.shortest, len(list))
	}
}

func (l *Lookups) report(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reported = err
}

// Reported returns what the resolver said last of what fails.
func (l *Lookups) Reported() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reported
}

// Stop ends the resolver, waits for it, and returns its error.
func (l *Lookups) Stop() error {
	l.cancel()
	<-l.ended
	return l.err
}

// Addresses returns those of the last list.
func (l *Lookups) Addresses() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := []string{}
	for _, instance := range l.last {
		list = append(list, instance.Address)
	}
	return list
}

// Instance returns the one of the last list with an address.
func (l *Lookups) Instance(t testing.TB, address string) cluster.Instance {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.last, func(i cluster.Instance) bool { return i.Address == address })
	if i < 0 {
		t.Fatalf("no instance %s in %v", address, l.last)
	}
	return l.last[i]
}

// Kept checks that no list since Know lost more than a quarter of n instances, which is
// when they are held.
func (l *Lookups) Kept(t testing.TB, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shortest < n-n/4 {
		t.Errorf("a list of %d of %d instances was delivered", l.shortest, n)
	}
}

// Know waits until a list is exactly these addresses, in their order.
func (l *Lookups) Know(t testing.TB, want ...string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("a list of %d instances", len(want)), func() bool { return slices.Equal(l.Addresses(), want) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		l.known, l.shortest = true, len(want)
	}
}
