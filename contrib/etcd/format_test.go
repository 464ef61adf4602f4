package etcd_test

import (
	"context"
	"maps"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/contrib/etcd"
	"github.com/fulmar-rpc/fulmar/internal/registrytest"
)

// TestFormat_IsThatOfKitex compares keys and values with those that Kitex's extension for
// etcd writes, byte for byte, and reads some that it may have written.
func TestFormat_IsThatOfKitex(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	client := tool(t, server.Address)
	registry := registrytest.Open(t, etcd.New, unhurried(server.Address))
	for _, c := range []struct {
		instance   cluster.Instance
		key, value string
	}{
		{
			cluster.Instance{Address: "10.0.0.1:8888"},
			"kitex/registry-etcd/orders/10.0.0.1:8888", `{"network":"tcp","address":"10.0.0.1:8888","weight":10,"tags":null}`,
		},
		{
			cluster.Instance{Address: "[2001:db8::1]:8888", Weight: 3, Zone: "west", Tags: map[string]string{"version": "2"}},
			"kitex/registry-etcd/orders/[2001:db8::1]:8888", `{"network":"tcp","address":"[2001:db8::1]:8888","weight":3,"tags":{"version":"2","zone":"west"}}`,
		},
		{
			cluster.Instance{Address: "unix:///run/orders.socket", Weight: 1},
			"kitex/registry-etcd/orders//run/orders.socket", `{"network":"unix","address":"/run/orders.socket","weight":1,"tags":null}`,
		},
	} {
		registration, err := registry.Register(registrytest.Bounded(t), registrytest.Service, c.instance)
		if err != nil {
			t.Fatal(err)
		}
		found, err := client.Get(registrytest.Bounded(t), c.key)
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Kvs) != 1 || string(found.Kvs[0].Value) != c.value {
			t.Errorf("%s: %s", c.key, found.Kvs)
			continue
		}
		lived, err := client.TimeToLive(registrytest.Bounded(t), clientv3.LeaseID(found.Kvs[0].Lease))
		if err != nil || lived.GrantedTTL != int64(registrytest.Lease.Seconds()) {
			t.Errorf("%s: lease %+v, %v", c.key, lived, err)
		}
		want := c.instance
		if want.Weight == 0 {
			want.Weight = 10 // as it was written
		}
		if want.Zone != "" {
			want.Tags = map[string]string{"version": "2", "zone": "west"}
		}
		if list := firstList(t, registry, registrytest.Service); len(list) != 1 || !same(list[0], want) {
			t.Errorf("read as %+v, want %+v", list, want)
		}
		if err := registration.Withdraw(registrytest.Bounded(t)); err != nil {
			t.Error(err)
		}
		if n := (operator{client}).Count(); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	}
}

func same(a, b cluster.Instance) bool {
	return a.Address == b.Address && a.Weight == b.Weight && a.Zone == b.Zone && maps.Equal(a.Tags, b.Tags)
}

// TestFormat_OtherServices: a service whose name begins alike, or one below, is another one.
func TestFormat_OtherServices(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	registry := registrytest.Open(t, etcd.New, unhurried(server.Address))
	for _, other := range []string{"orders2", "order", registrytest.Service} {
		if _, err := registry.Register(registrytest.Bounded(t), other, cluster.Instance{Address: "10.0.0.1:80"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"orders2", "order", registrytest.Service} {
		if list := firstList(t, registry, name); len(list) != 1 {
			t.Errorf("%s: %v", name, list)
		}
	}
	if list := firstList(t, registry, "ord"); len(list) != 0 {
		t.Errorf("ord: %v", list)
	}
}

// firstList returns the first list of a service.
func firstList(t *testing.T, registry interface {
	Resolver(service string) (cluster.Resolver, error)
}, service string,
) (list []cluster.Instance) {
	t.Helper()
	resolver, err := registry.Resolver(service)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(registrytest.Bounded(t))
	defer cancel()
	got := false
	err = resolver.Resolve(ctx, func(first []cluster.Instance) {
		if !got {
			list, got = first, true
		}
		cancel()
	})
	if !got {
		t.Fatal(err)
	}
	return list
}
