package zookeeper_test

import (
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/contrib/zookeeper"
	"github.com/fulmar-rpc/fulmar/internal/registrytest"
)

// TestOutage_AsEveryRegistry does to a real ZooKeeper what happens to registries.
func TestOutage_AsEveryRegistry(t *testing.T) {
	t.Parallel()
	registrytest.Test(t, kind())
}

// TestOutage_TakenOver has the node of an address belong to a session that is about to
// expire: that is known, and counted.
func TestOutage_TakenOver(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	behind := registrytest.Network(t, server)
	before := registrytest.Open(t, zookeeper.New, hasty(behind.Address))
	registrytest.Announce(t, before, registrytest.Newcomer)
	behind.Darken()
	registry := registrytest.Open(t, zookeeper.New, hasty(server.Address))
	registrytest.Announce(t, registry, registrytest.Newcomer)
	if n := registry.Stats().TakenOver; n != 1 {
		t.Errorf("%d nodes taken over", n)
	}
}

// TestOutage_SaysWhy has nobody listen: the error is that of the connection, and not only
// that there was none in time.
func TestOutage_SaysWhy(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	server.Kill()
	found := registrytest.Look(t, registrytest.Open(t, zookeeper.New, hasty(server.Address)))
	registrytest.Eventually(t, "the refused connection is named", func() bool {
		err := found.Reported()
		return err != nil && strings.Contains(err.Error(), "not connected: dial tcp "+server.Address+": connect: connection refused")
	})
}
