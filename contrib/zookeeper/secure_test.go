package zookeeper_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/contrib/zookeeper"
	"github.com/fulmar-rpc/fulmar/internal/registrytest"
)

const password = "correct horse"

// TestFormat_IsThatOfKitex compares nodes and their data with those that Kitex's extension
// for ZooKeeper writes, byte for byte, and reads some that it may have written.
func TestFormat_IsThatOfKitex(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	client := tool(t, server.Address)
	registry := registrytest.Open(t, zookeeper.New, unhurried(server.Address))
	for _, c := range []struct {
		instance   cluster.Instance
		node, data string
	}{
		{cluster.Instance{Address: "10.0.0.1:8888"}, "/orders/10.0.0.1:8888", `{"Weight":10,"Tags":null}`},
		{
			cluster.Instance{Address: "[2001:db8::1]:8888", Weight: 3, Zone: "west", Tags: map[string]string{"version": "2"}},
			"/orders/[2001:db8::1]:8888", `{"Weight":3,"Tags":{"version":"2","zone":"west"}}`,
		},
	} {
		registration, err := registry.Register(registrytest.Bounded(t), registrytest.Service, c.instance)
		if err != nil {
			t.Fatal(err)
		}
		data, stat, err := client.Get(c.node)
		if err != nil || string(data) != c.data || stat.EphemeralOwner == 0 {
			t.Fatalf("%s: %s, %+v, %v", c.node, data, stat, err)
		}
		want := c.instance
		want.Weight = max(want.Weight, 3)
		if want.Zone == "" {
			want.Weight = 10 // as it was written
		} else {
			want.Tags = map[string]string{"version": "2", "zone": "west"}
		}
		found := registrytest.Look(t, registry)
		found.Know(t, want.Address)
		if got := found.Instance(t, want.Address); got.Weight != want.Weight || got.Zone != want.Zone || !maps.Equal(got.Tags, want.Tags) {
			t.Errorf("read as %+v, want %+v", got, want)
		}
		_ = found.Stop()
		if err := registration.Withdraw(registrytest.Bounded(t)); err != nil {
			t.Error(err)
		}
		if n := (operator{client}).Count(); n != 0 {
			t.Errorf("%d nodes are left", n)
		}
	}
	if _, err := registry.Register(registrytest.Bounded(t), registrytest.Service, cluster.Instance{Address: "unix:///run/x"}); err == nil {
		t.Error("a socket was announced")
	}
}

// TestFormat_Root: services may be below a node that is not there yet.
func TestFormat_Root(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	config := hasty(server.Address)
	config.Root, config.CheckInterval = "/prod/rpc", -1
	registry := registrytest.Open(t, zookeeper.New, config)
	found := registrytest.Look(t, registry)
	registrytest.Eventually(t, "an empty list", func() bool { return registry.Stats().Delivered == 1 })
	registrytest.Announce(t, registry, registrytest.Newcomer)
	found.Know(t, registrytest.Newcomer)
	if names, _, err := tool(t, server.Address).Children("/prod/rpc/orders"); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
}

// TestSecure_Digest has nodes that belong to an identity, also after a restart.
func TestSecure_Digest(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	config := hasty(server.Address)
	config.User, config.Password = "fulmar", password
	registry := registrytest.Open(t, zookeeper.New, config)
	list := registrytest.Addresses(2)
	for _, address := range list {
		registrytest.Announce(t, registry, address)
	}
	found := registrytest.Look(t, registry)
	found.Know(t, list...)
	client := tool(t, server.Address)
	if _, _, err := client.Get(path + "/" + list[0]); err != zk.ErrNoAuth {
		t.Errorf("a stranger can read it: %v", err)
	}
	config.Password = "wrong"
	if _, err := registrytest.Open(t, zookeeper.New, config).Register(registrytest.Bounded(t), registrytest.Service, cluster.Instance{Address: "10.0.0.1:80"}); err == nil {
		t.Error("announced with a wrong password")
	}
	server.Kill()
	registrytest.Start(t, server)
	registrytest.Announce(t, registry, registrytest.Newcomer)
	found.Know(t, append(slices.Clone(list), registrytest.Newcomer)...)
}

func TestConfig_ReportsEverything(t *testing.T) {
	if err := (zookeeper.Config{Servers: []string{"zk.internal:2181"}, Root: "/prod"}).Validate(); err != nil {
		t.Error(err)
	}
	err := zookeeper.Config{
		Servers: []string{"10.0.0.1"}, User: "a:b", Root: "prod", SessionTimeout: time.Millisecond,
		Common: registries.Common{RequestTimeout: -1},
	}.Validate()
	for _, field := range []string{"Servers", "User", "Root", "SessionTimeout", "RequestTimeout"} {
		if err == nil || !strings.Contains(err.Error(), "zookeeper config: "+field+": ") {
			t.Errorf("nothing is said of %s: %v", field, err)
		}
	}
	if _, err := zookeeper.New(zookeeper.Config{}); err == nil {
		t.Error("a Registry without servers was made")
	}
}
