package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
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

// TestOutage_WithdrawnWhileTheSessionLives: what could not be withdrawn in an outage goes when
// that is over, and not with the session, with which others are announced.
func TestOutage_WithdrawnWhileTheSessionLives(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	behind := registrytest.Network(t, server)
	config := hasty(behind.Address)
	config.SessionTimeout = 4 * registrytest.Lease
	registry := registrytest.Open(t, zookeeper.New, config)
	list := registrytest.Addresses(2)
	registrytest.Announce(t, registry, list[0])
	leaves := registrytest.Announce(t, registry, list[1])
	announced := registry.Stats().Announced
	operator := kind().Operator(t, server.Address)
	behind.Darken()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := leaves.Withdraw(ctx); err == nil {
		t.Error("withdrawn from nowhere")
	}
	behind.Restore()
	registrytest.Eventually(t, "one is left", func() bool { return operator.Count() == 1 })
	if n := registry.Stats().Announced; n != announced {
		t.Errorf("the session did not live on: announced %d times, want %d", n, announced)
	}
}

// TestOutage_AnnouncedTwice: a node that two announcements of one process have made goes with
// the second one.
func TestOutage_AnnouncedTwice(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	registry := registrytest.Open(t, zookeeper.New, unhurried(server.Address))
	operator := kind().Operator(t, server.Address)
	one, other := registrytest.Announce(t, registry, registrytest.Newcomer), registrytest.Announce(t, registry, registrytest.Newcomer)
	for i, leaves := range []cluster.Registration{one, other} {
		if err := leaves.Withdraw(registrytest.Bounded(t)); err != nil {
			t.Error(err)
		}
		if n := operator.Count(); n != 1-i {
			t.Errorf("%d nodes are there when %d announcements have left", n, i+1)
		}
	}
}

// TestOutage_LeftToWhoHasNotLooked: who has been announced again leaves the node to that
// announcement, and if it fails before it has seen the node, it removes it all the same.
func TestOutage_LeftToWhoHasNotLooked(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	registry := registrytest.Open(t, zookeeper.New, unhurried(server.Address))
	operator := kind().Operator(t, server.Address)
	for i := range 100 {
		one := registrytest.Announce(t, registry, registrytest.Newcomer)
		done := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(3*i)*time.Microsecond)
			defer cancel()
			other, err := registry.Register(ctx, registrytest.Service, cluster.Instance{Address: registrytest.Newcomer})
			if err == nil {
				err = other.Withdraw(registrytest.Bounded(t))
			} else {
				err = nil // it had no time
			}
			done <- err
		}()
		if err := errors.Join(one.Withdraw(registrytest.Bounded(t)), <-done); err != nil {
			t.Error(err)
		}
		registrytest.Eventually(t, "nobody is announced", func() bool { return operator.Count() == 0 })
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
