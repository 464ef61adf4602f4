package etcd_test

import (
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fulmar-rpc/fulmar/contrib/etcd"
	"github.com/fulmar-rpc/fulmar/internal/registrytest"
)

// TestOutage_AsEveryRegistry does to a real etcd what happens to registries.
func TestOutage_AsEveryRegistry(t *testing.T) {
	t.Parallel()
	registrytest.Test(t, kind())
}

// announced announces some instances and looks them up by another connection.
func announced(t *testing.T, announcers, clients string) (*etcd.Registry, *registrytest.Lookups, []string) {
	t.Helper()
	registry := registrytest.Open(t, etcd.New, hasty(announcers))
	list := registrytest.Addresses(3)
	for _, address := range list {
		registrytest.Announce(t, registry, address)
	}
	found := registrytest.Look(t, registrytest.Open(t, etcd.New, hasty(clients)))
	found.Know(t, list...)
	return registry, found, list
}

func TestOutage_LeaseRevoked(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	_, found, list := announced(t, server.Address, server.Address)
	client := tool(t, server.Address)
	kept, err := client.Get(registrytest.Bounded(t), prefix+list[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Revoke(registrytest.Bounded(t), clientv3.LeaseID(kept.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	found.Know(t, list[0], list[2])
	found.Know(t, list...)
}

// TestOutage_KeyRemoved has a lease that goes on living without its key.
func TestOutage_KeyRemoved(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	registry, found, list := announced(t, server.Address, server.Address)
	if _, err := tool(t, server.Address).Delete(registrytest.Bounded(t), prefix+list[1]); err != nil {
		t.Fatal(err)
	}
	registrytest.Eventually(t, "it is repaired", func() bool { return registry.Stats().Repaired == 1 })
	found.Know(t, list...)
}

// TestOutage_Compaction removes the revisions that a client that is cut off has not seen.
func TestOutage_Compaction(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	behind := registrytest.Network(t, server)
	registry, found, list := announced(t, server.Address, behind.Address)
	client := tool(t, server.Address)
	behind.Cut()
	left := registrytest.Announce(t, registry, "10.9.9.8:8888")
	if err := left.Withdraw(registrytest.Bounded(t)); err != nil {
		t.Fatal(err)
	}
	registrytest.Announce(t, registry, registrytest.Newcomer)
	now, err := client.Get(registrytest.Bounded(t), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(registrytest.Bounded(t), now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	behind.Restore()
	found.Know(t, append(slices.Clone(list), registrytest.Newcomer)...)
}
