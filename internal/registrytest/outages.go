package registrytest

import (
	"slices"
	"testing"
	"time"
)

// The scenarios of this file do something to the server, or to the network before it.

func killAndRestart(t *testing.T, k Kind) {
	server := k.Run(t)
	f := fleetOf(t, k, most, server, server.Address, server.Address)
	server.Kill()
	Pass(Lease + Lease/2)
	if n := len(f.found.Addresses()); n != most {
		t.Errorf("during the outage: %d instances", n)
	}
	Start(t, server)
	before := k.Stats(f.registry).Announced
	f.announced(t)
	// It has kept the leases: they go on living.
	Pass(Lease + Lease/2)
	if n := f.operator.Count(); n != most {
		t.Errorf("%d instances after another lease", n)
	}
	f.found.Kept(t, most)
	t.Logf("announced again after the restart: %d of %d", k.Stats(f.registry).Announced-before, most)
	f.follows(t)
}

// dataLost has a server begin anew: numbers of changes that somebody waits for will not
// come for long, or are too high.
func dataLost(t *testing.T, k Kind) {
	server := k.Run(t)
	f := fleetOf(t, k, most, server, server.Address, server.Address)
	server.Kill()
	if err := server.Wipe(); err != nil {
		t.Fatal(err)
	}
	Start(t, server)
	begin := time.Now()
	f.announced(t)
	k.inTime(t, begin, k.Reconnecting)
	f.follows(t)
	f.found.Kept(t, most)
}

func emptiedByHand(t *testing.T, k Kind) {
	server := k.Run(t)
	f := fleetOf(t, k, most, server, server.Address, server.Address)
	f.operator.Empty(t)
	begin := time.Now()
	f.announced(t)
	k.inTime(t, begin, 0)
	f.counted(t, k)
	f.found.Know(t, f.list...)
	f.found.Kept(t, most)
}

func paused(t *testing.T, k Kind) {
	server := k.Run(t)
	f := fleetOf(t, k, most, server, server.Address, server.Address)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	Pass(Lease + Lease/2)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	Pass(Lease)
	f.announced(t)
	f.found.Know(t, f.list...)
	f.found.Kept(t, most)
}

// partition cuts servers, and then clients, off from the registry, so that connections
// hang, until leases have expired.
func partition(t *testing.T, k Kind) {
	server := k.Run(t)
	before, behind := Network(t, server), Network(t, server)
	f := fleetOf(t, k, most, server, before.Address, behind.Address)
	before.Darken()
	Eventually(t, "the leases expire", func() bool { return f.operator.Count() == 0 })
	f.found.Kept(t, most)
	before.Restore()
	f.announced(t)
	f.found.Know(t, f.list...)
	f.counted(t, k)

	behind.Darken()
	Announce(t, f.registry, Newcomer)
	Pass(Lease)
	if !slices.Equal(f.found.Addresses(), f.list) {
		t.Error("the list changed without a network")
	}
	behind.Restore()
	f.found.Know(t, append(slices.Clone(f.list), Newcomer)...)
}

// slow has a server that answers late, and then too late for every request.
func slow(t *testing.T, k Kind) {
	server := k.Run(t)
	before := Network(t, server)
	before.Slow(50 * time.Millisecond)
	f := fleetOf(t, k, few, server, before.Address, before.Address)
	before.Slow(3 * time.Second)
	Eventually(t, "requests fail", func() bool { return k.Stats(f.registry).Failures > 0 })
	before.Restore()
	f.announced(t)
	f.found.Know(t, f.list...)
	f.found.Kept(t, few)
}
