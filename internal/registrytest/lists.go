package registrytest

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// The scenarios of this file are about what lists are made of.

// nobodyYet: a service has no instances until somebody announces one. Nobody checks here,
// so that it is the watch that sees it.
func nobodyYet(t *testing.T, k Kind) {
	server := k.Run(t)
	common := Hasty()
	common.CheckInterval = -1
	registry := k.open(t, server.Address, common)
	found := Look(t, registry)
	Eventually(t, "an empty list", func() bool { return k.Stats(registry).Delivered == 1 })
	Announce(t, registry, Newcomer)
	found.Know(t, Newcomer)
}

// awayFirst looks up when there is no registry yet: whom the list is for is told why there
// is none.
func awayFirst(t *testing.T, k Kind) {
	server := k.Run(t)
	server.Kill()
	registry := k.open(t, server.Address, Hasty())
	found := Look(t, registry)
	Eventually(t, "it is said why there is no list", func() bool { return found.Reported() != nil })
	t.Log(found.Reported())
	if n := k.Stats(registry).Delivered; n > 0 {
		t.Errorf("%d lists were delivered", n)
	}
	Start(t, server)
	Announce(t, registry, Newcomer)
	found.Know(t, Newcomer)
}

// hostile puts values among the instances that are none, too long or lie.
func hostile(t *testing.T, k Kind) {
	server := k.Run(t)
	f := fleetOf(t, k, 2, server, server.Address, server.Address)
	values := map[string]string{oddAddress: k.Odd}
	maps.Copy(values, k.Broken)
	maps.Copy(values, k.Foreign)
	f.operator.Put(t, values)
	both := append(slices.Clone(f.list), oddAddress)
	f.found.Know(t, both...)

	// By a list, where the fleet's had them by a watch.
	registry := k.open(t, server.Address, Hasty())
	found := Look(t, registry)
	found.Know(t, both...)
	if n := k.Stats(registry).Broken; n < int64(len(k.Broken)) {
		t.Errorf("%d broken values, want %d", n, len(k.Broken))
	}
	if odd := found.Instance(t, oddAddress); odd.Weight != 0 || odd.Zone != "west" {
		t.Errorf("%+v", odd)
	}

	// One that becomes sound is seen. One that breaks stays what it was, until it is removed.
	broken := k.Stats(registry).Broken
	f.operator.Put(t, map[string]string{brokenAddress: k.Value(brokenAddress), oddAddress: "}"})
	Eventually(t, "it is counted", func() bool { return k.Stats(registry).Broken > broken })
	found.Know(t, append(slices.Clone(f.list), brokenAddress, oddAddress)...)
	Announce(t, registry, Newcomer)
	found.Know(t, append(slices.Clone(f.list), brokenAddress, oddAddress, Newcomer)...)
	if odd := found.Instance(t, oddAddress); odd.Zone != "west" {
		t.Errorf("%+v", odd)
	}
	f.operator.Remove(t, oddAddress)
	found.Know(t, append(slices.Clone(f.list), brokenAddress, Newcomer)...)
}

// thousand instances go and come, and become few lists.
func thousand(t *testing.T, k Kind) {
	server := k.Run(t)
	operator := k.Operator(t, server.Address)
	list := Addresses(1000)
	values := map[string]string{}
	for _, address := range list {
		values[address] = k.Value(address)
	}
	operator.Put(t, values)
	common := Hasty()
	common.DeliverInterval, common.HoldTime = 200*time.Millisecond, -1
	begin := time.Now()
	registry := k.open(t, server.Address, common)
	found := Look(t, registry)
	found.Know(t, list...)
	t.Logf("1000 instances were known after %v", time.Since(begin))
	for range 3 {
		operator.Empty(t)
		operator.Put(t, values)
	}
	found.Know(t, list...)
	most := int64(time.Since(begin)/common.DeliverInterval) + 2
	if n := k.Stats(registry).Delivered; n > most {
		t.Errorf("%d lists, want at most %d", n, most)
	}

	common.MaxInstances, common.RequestTimeout = 100, Unhurried().RequestTimeout
	few := k.open(t, server.Address, common)
	foundFew := Look(t, few)
	foundFew.Know(t, list[:100]...)
	// As many again for each list that was asked for.
	if n := k.Stats(few).LeftOut; n == 0 || n%900 != 0 {
		t.Errorf("it is counted that %d were left out, want 900", n)
	}
	operator.Remove(t, list[0])
	foundFew.Know(t, list[1:101]...)
	if err := foundFew.Reported(); err != nil {
		t.Errorf("that there are more instances is a failure: %v", err)
	}
}
