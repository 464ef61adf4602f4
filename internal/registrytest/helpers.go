package registrytest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// Bounded is a context for what must happen.
func Bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Eventually waits until something is so.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	for !is() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}

// Pass lets time pass: an outage lasts as long as leases live, and real servers have no
// clock to move.
func Pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// Addresses are n addresses that nobody listens at, in their order.
func Addresses(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("10.%d.%d.%d:8888", i>>16&255, i>>8&255, i&255)
	}
	slices.Sort(list)
	return list
}

// Announce registers an instance. On a busy machine an attempt may take too long.
func Announce(t testing.TB, registry cluster.Registry, address string) (registration cluster.Registration) {
	t.Helper()
	Eventually(t, "the instance is announced", func() bool {
		var err error
		registration, err = registry.Register(Bounded(t), Service, cluster.Instance{Address: address})
		return err == nil
	})
	return registration
}

// Batches returns the names of values in parts that a registry takes in one transaction.
func Batches(values map[string]string) iter.Seq[[]string] {
	const names, bytes = 100, 500_000
	return func(yield func([]string) bool) {
		var batch []string
		size := 0
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if len(batch) > 0 && (len(batch) == names || size+len(values[name]) > bytes) {
				if !yield(batch) {
					return
				}
				batch, size = nil, 0
			}
			batch, size = append(batch, name), size+len(values[name])
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}
