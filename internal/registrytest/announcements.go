package registrytest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// The scenarios of this file are about those who announce.

// processBefore has an address that belongs to the announcement of a process that is gone,
// and about to expire, when another process takes its place.
func processBefore(t *testing.T, k Kind) {
	server := k.Run(t)
	behind := Network(t, server)
	before := k.open(t, behind.Address, Hasty())
	address := Addresses(1)[0]
	Announce(t, before, address)
	behind.Darken()
	registry := k.open(t, server.Address, Hasty())
	registration := Announce(t, registry, address)
	found := Look(t, registry)
	found.Know(t, address)
	operator := k.Operator(t, server.Address)
	Pass(Lease + Lease/2)
	if n := operator.Count(); n != 1 {
		t.Errorf("%d instances when the announcement before has expired", n)
	}
	found.Kept(t, 1)
	if err := registration.Withdraw(Bounded(t)); err != nil {
		t.Error(err)
	}
	Eventually(t, "it is withdrawn", func() bool { return operator.Count() == 0 })
}

// twoOfOneAddress: two processes that announce the same address do not keep the registry
// busy with that.
func twoOfOneAddress(t *testing.T, k Kind) {
	server := k.Run(t)
	address := Addresses(1)[0]
	one, other := k.open(t, server.Address, Hasty()), k.open(t, server.Address, Hasty())
	Announce(t, one, address)
	Announce(t, other, address)
	Pass(Lease)
	if n := k.Stats(one).Announced + k.Stats(other).Announced; n < 3 || n > 30 {
		t.Errorf("announced %d times", n)
	}
}

// withdrawnDuring withdraws one of two instances of a process while the registry cannot be
// reached: it is told of that, and the instance is gone soon after, although the other one,
// which may share a lease with it, stays.
func withdrawnDuring(t *testing.T, k Kind) {
	server := k.Run(t)
	before := Network(t, server)
	registry := k.open(t, before.Address, Hasty())
	list := Addresses(2)
	Announce(t, registry, list[0])
	leaves := Announce(t, registry, list[1])
	found := Look(t, k.open(t, server.Address, Hasty()))
	found.Know(t, list...)
	before.Darken()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := leaves.Withdraw(ctx); err == nil {
		t.Error("withdrawn from nowhere")
	}
	before.Restore()
	found.Know(t, list[0])
	if err := leaves.Withdraw(Bounded(t)); err != nil {
		t.Error(err)
	}
	Pass(Lease)
	found.Know(t, list[0])
}

// closeDuring closes everything while the registry is away: nothing waits for long.
func closeDuring(t *testing.T, k Kind) {
	server := k.Run(t)
	f := fleetOf(t, k, most, server, server.Address, server.Address)
	alone := Announce(t, k.open(t, server.Address, Hasty()), Newcomer)
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := alone.Withdraw(ctx); err == nil {
		t.Error("withdrawn from nowhere")
	}
	begin := time.Now()
	if err := f.registry.Close(); err == nil {
		t.Error("Close does not say that nobody was withdrawn")
	}
	if took := time.Since(begin); took > Patience/4 {
		t.Errorf("Close took %v", took)
	}
	if err := f.found.Stop(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := f.registry.Register(Bounded(t), Service, cluster.Instance{Address: Newcomer}); !errors.Is(err, k.ErrClosed) {
		t.Error(err)
	}
	resolver, err := f.registry.Resolver(Service)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolver.Resolve(t.Context(), func([]cluster.Instance) {}); !errors.Is(err, k.ErrClosed) {
		t.Error(err)
	}
	if err := f.registry.Close(); err != nil {
		t.Error(err)
	}
}

// refused: what nobody could connect to, or is no name, is not announced.
func refused(t *testing.T, k Kind) {
	registry := k.open(t, k.Run(t).Address, Unhurried())
	for _, wrong := range []string{"", "a/b", "..", "a\nb"} {
		if _, err := registry.Resolver(wrong); err == nil {
			t.Errorf("there is a resolver for %q", wrong)
		}
		if _, err := registry.Register(Bounded(t), wrong, cluster.Instance{Address: Newcomer}); err == nil {
			t.Errorf("%q was announced", wrong)
		}
	}
	for _, wrong := range []cluster.Instance{{}, {Address: ":80"}, {Address: "10.0.0.1:0"}, {Address: "10.0.0.1:80", Weight: -1}} {
		if _, err := registry.Register(Bounded(t), Service, wrong); err == nil {
			t.Errorf("%+v was announced", wrong)
		}
	}
}
