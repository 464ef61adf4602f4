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
)

const password = "correct horse"

// TestFormat_IsThatOfKitex compares nodes and their data with those that Kitex's extension
// for ZooKeeper writes, byte for byte, and reads some that it may have written.
func TestFormat_IsThatOfKitex(t *testing.T) {
	t.Parallel()
	server := real(t)
	operator := tool(t, server.Address)
	registry := open(t, patient(server.Address))
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
		registration, err := registry.Register(bounded(t), service, c.instance)
		if err != nil {
			t.Fatal(err)
		}
		data, stat, err := operator.Get(c.node)
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
		found := look(t, registry)
		found.know(t, []string{want.Address})
		if got := found.last[0]; got.Weight != want.Weight || got.Zone != want.Zone || !maps.Equal(got.Tags, want.Tags) {
			t.Errorf("read as %+v, want %+v", got, want)
		}
		found.stop()
		if err := registration.Withdraw(bounded(t)); err != nil {
			t.Error(err)
		}
		if n := keys(t, operator); n != 0 {
			t.Errorf("%d nodes are left", n)
		}
	}
	for _, wrong := range []string{"", "a/b", "..", "a\nb"} {
		if _, err := registry.Resolver(wrong); err == nil {
			t.Errorf("there is a resolver for %q", wrong)
		}
		if _, err := registry.Register(bounded(t), wrong, cluster.Instance{Address: "10.0.0.1:80"}); err == nil {
			t.Errorf("%q was announced", wrong)
		}
	}
	for _, wrong := range []cluster.Instance{{}, {Address: ":80"}, {Address: "unix:///run/x"}, {Address: "10.0.0.1:80", Weight: -1}} {
		if _, err := registry.Register(bounded(t), service, wrong); err == nil {
			t.Errorf("%+v was announced", wrong)
		}
	}
}

// TestResolve_ServiceThatIsNotThere: it has no instances until somebody announces one.
func TestResolve_ServiceThatIsNotThere(t *testing.T) {
	t.Parallel()
	server := real(t)
	config := hasty(server.Address)
	config.Root, config.CheckInterval = "/prod/rpc", -1
	registry := open(t, config)
	found := look(t, registry)
	eventually(t, "an empty list", func() bool { return registry.Stats().Delivered == 1 })
	announce(t, registry, "10.0.0.1:80")
	found.know(t, []string{"10.0.0.1:80"})
	operator := tool(t, server.Address)
	if names, _, err := operator.Children("/prod/rpc/orders"); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
}

// TestSecure_Digest has nodes that belong to an identity, also after a restart.
func TestSecure_Digest(t *testing.T) {
	t.Parallel()
	server := real(t)
	config := hasty(server.Address)
	config.User, config.Password = "fulmar", password
	registry := open(t, config)
	list := addresses(2)
	for _, address := range list {
		announce(t, registry, address)
	}
	found := look(t, registry)
	found.know(t, list)
	operator := tool(t, server.Address)
	if _, _, err := operator.Get(path + "/" + list[0]); err != zk.ErrNoAuth {
		t.Errorf("a stranger can read it: %v", err)
	}
	config.Password = "wrong"
	if _, err := open(t, config).Register(bounded(t), service, cluster.Instance{Address: "10.0.0.1:80"}); err == nil {
		t.Error("announced with a wrong password")
	}
	server.Kill()
	start(t, server)
	announce(t, registry, "10.9.9.9:8888")
	found.know(t, append(slices.Clone(list), "10.9.9.9:8888"))
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
