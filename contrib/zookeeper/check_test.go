package zookeeper

import (
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/fulmar-rpc/fulmar/internal/registrytest"
	"github.com/fulmar-rpc/fulmar/internal/testservers"
)

// TestCheck_FindsWhatNoWatchTold changes the data of one of many nodes and loses the news of
// that: the checks find it, and read that node alone.
func TestCheck_FindsWhatNoWatchTold(t *testing.T) {
	t.Parallel()
	server := registrytest.Kind{Server: testservers.NewZooKeeper}.Run(t)
	registry := registrytest.Open(t, New, Config{Servers: []string{server.Address}, Common: registrytest.Unhurried()})
	session, err := registry.forWatching()
	if err != nil {
		t.Fatal(err)
	}
	ctx := registrytest.Bounded(t)
	conn, _, err := session.borrow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	v := &view{registry: registry, session: session, service: registrytest.Service, path: registry.servicePath(registrytest.Service)}
	v.waker = session.subscribe(v.path)
	t.Cleanup(v.waker.remove)
	if _, err := conn.Create(v.path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	list := registrytest.Addresses(3 * shareMin)
	for _, address := range list {
		if _, err := conn.Create(v.path+"/"+address, []byte(`{"Weight":10}`), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.update(ctx); err != nil {
		t.Fatal(err)
	}

	changed := list[len(list)/2]
	if _, err := conn.Set(v.path+"/"+changed, []byte(`{"Weight":3}`), -1); err != nil {
		t.Fatal(err)
	}
	registrytest.Eventually(t, "the change was told", func() bool { return v.waker.take().touched[v.path+"/"+changed] })
	var read []string
	for range 3 {
		v.check(ctx)
		for name, c := range v.children {
			if !c.read {
				read = append(read, name)
			}
		}
		if err := v.update(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if weight := v.children[changed].instance.Weight; weight != 3 || !slices.Equal(read, []string{changed}) || !v.listed {
		t.Errorf("weight %d, read were %v, listed: %v", weight, read, v.listed)
	}
}

// TestCheck_LooksAtAllInTurn: a share of the nodes at a time, so that it takes no more than
// ten checks, whatever nodes come and go.
func TestCheck_LooksAtAllInTurn(t *testing.T) {
	for _, c := range []struct{ nodes, size int }{{0, 0}, {1, 1}, {7, 7}, {10, 10}, {11, 10}, {99, 10}, {101, 11}, {10_000, 1000}} {
		v := &view{}
		names := registrytest.Addresses(c.nodes)
		looks := map[string]int{}
		for range lookShares {
			share := v.share(names)
			if len(share) != c.size {
				t.Errorf("%d of %d at a time, want %d", len(share), c.nodes, c.size)
			}
			for _, name := range share {
				looks[name]++
			}
		}
		if len(looks) != c.nodes {
			t.Errorf("%d of %d were looked at", len(looks), c.nodes)
		}
	}
	v := &view{}
	before := v.share(registrytest.Addresses(100))
	rest := slices.DeleteFunc(registrytest.Addresses(100), func(name string) bool { return name == before[shareMin-1] })
	if next := v.share(rest); next[0] != rest[shareMin-1] {
		t.Errorf("behind %v it looks at %v", before, next)
	}
}
