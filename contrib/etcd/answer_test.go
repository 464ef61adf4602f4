package etcd

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// answering is a follower of instances that is told what etcd answers.
type answering struct {
	*follower[cluster.Instance]
	t         *testing.T
	delivered [][]cluster.Instance
}

func newAnswering(t *testing.T, interval time.Duration) *answering {
	t.Helper()
	registry, err := New(Config{Endpoints: []string{"127.0.0.1:1"}, Common: registries.Common{DeliverInterval: interval, Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.Close() })
	a := &answering{t: t}
	a.follower = (&resolver{registry: registry, service: "shop"}).follower(func(list []cluster.Instance) { a.delivered = append(a.delivered, list) })
	a.values, a.relisted = map[string]*cluster.Instance{}, true
	a.tell(time.Now().Add(-time.Hour))
	return a
}

// put is an event that gives a key an instance.
func (a *answering) put(key, address string, weight int) *clientv3.Event {
	value := fmt.Appendf(nil, `{"network":"tcp","address":%q,"weight":%d,"tags":null}`, address, weight)
	return &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(a.prefix + key), Value: value}}
}

// gone is an event that removes a key.
func (a *answering) gone(key string) *clientv3.Event {
	return &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte(a.prefix + key)}}
}

func (a *answering) answer(now time.Time, events ...*clientv3.Event) (again time.Duration) {
	a.t.Helper()
	if err := a.apply(clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{}, Events: events}); err != nil {
		a.t.Fatal(err)
	}
	return a.tell(now)
}

// broken is an event that gives a key a value that is none.
func (a *answering) broken(key string) *clientv3.Event {
	return &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(a.prefix + key), Value: []byte("}")}}
}

// known returns the addresses of the last list.
func (a *answering) known() (addresses []string) {
	for _, instance := range a.delivered[len(a.delivered)-1] {
		addresses = append(addresses, instance.Address)
	}
	return addresses
}

// TestResolver_WhatBreaksStaysAsItWas: however many values break, by what a watch or a list
// says, the instances stay for as long as their keys exist, and each is counted.
func TestResolver_WhatBreaksStaysAsItWas(t *testing.T) {
	a := newAnswering(t, -1)
	now := time.Now()
	a.answer(now, a.put("k0", "10.0.0.0:1", 10), a.put("k1", "10.0.0.1:1", 10), a.put("k2", "10.0.0.2:1", 10), a.broken("k3"))
	all := []string{"10.0.0.0:1", "10.0.0.1:1", "10.0.0.2:1"}
	a.answer(now, a.broken("k0"), a.broken("k1"), a.broken("k2"))
	a.tell(now.Add(time.Hour))
	if known := a.known(); !slices.Equal(known, all) {
		t.Errorf("after a watch: %v", known)
	}
	listed := map[string]*cluster.Instance{}
	for _, event := range []*clientv3.Event{a.broken("k0"), a.broken("k1"), a.broken("k2"), a.broken("k3")} {
		a.follower.put(listed, event.Kv)
	}
	a.values, a.relisted = listed, true
	a.tell(now.Add(2 * time.Hour))
	if known := a.known(); !slices.Equal(known, all) {
		t.Errorf("after a list: %v", known)
	}
	if n := a.registry.Stats().BrokenValues; n != 8 {
		t.Errorf("%d broken values, want 8", n)
	}
	a.answer(now.Add(2*time.Hour), a.gone("k1"), a.broken("k1"), a.put("k0", "10.0.0.0:1", 3))
	if known := a.known(); !slices.Equal(known, []string{"10.0.0.0:1", "10.0.0.2:1"}) || a.delivered[len(a.delivered)-1][0].Weight != 3 {
		t.Errorf("after one is gone, and one is sound again: %v", known)
	}
}

// TestResolver_MoreKeysThanAreKept: another list is wanted when one of those that are kept is
// gone, and not before the next check, as often as that happens. Who was left out counts once.
func TestResolver_MoreKeysThanAreKept(t *testing.T) {
	a := newAnswering(t, -1)
	a.keysMax = 3
	now := time.Now()
	for i := range 10 {
		a.answer(now, a.put(fmt.Sprint("k", i), fmt.Sprintf("10.0.0.%d:1", i), 10))
	}
	changed := a.put("k9", "10.0.0.9:1", 3)
	changed.Kv.CreateRevision, changed.Kv.ModRevision = 1, 2
	a.answer(now, changed, a.gone("k8"))
	if n := a.registry.Stats().LeftOut; n != 7 {
		t.Errorf("%d were left out, want 7", n)
	}
	if a.short {
		t.Error("a list is wanted because of keys that are not kept")
	}
	a.answer(now, a.gone("k0"))
	a.answer(now, a.gone("k1"))
	if !a.short {
		t.Error("no list is wanted although there is room")
	}
}

// TestChecks_ListWhenThatIsWanted: at the next check that succeeds, which there is even if
// there are to be none.
func TestChecks_ListWhenThatIsWanted(t *testing.T) {
	for _, interval := range []time.Duration{time.Minute, -1} {
		synctest.Test(t, func(t *testing.T) {
			c := newChecks(Config{Common: registries.Common{CheckInterval: interval, BackoffMin: time.Second, BackoffMax: time.Second}})
			defer c.stop()
			for range 10 {
				c.need()
			}
			begin := time.Now()
			<-c.due()
			if waited := time.Since(begin); waited < 27*time.Second {
				t.Errorf("due after %v", waited)
			}
			if err := c.did(errors.New("no answer"), true); err != nil {
				t.Error(err)
			}
			<-c.due()
			if err := c.did(nil, false); err != nil {
				t.Error(err)
			}
			<-c.due()
			if err := c.did(nil, true); !errors.Is(err, errDue) {
				t.Error(err)
			}
		})
	}
}

// TestResolver_AnswersCostWhatTheyChange: between two lists an answer of etcd about one
// of ten thousand instances costs no more than it does about one of ten, and the next list
// has all that came meanwhile.
func TestResolver_AnswersCostWhatTheyChange(t *testing.T) {
	cost := func(instances int) float64 {
		a := newAnswering(t, time.Minute)
		now := time.Now()
		address := func(i int) string { return fmt.Sprintf("10.0.%d.%d:1", i/250, i%250) }
		for i := range instances {
			a.answer(now, a.put(address(i), address(i), 10))
		}
		now = now.Add(time.Minute)
		a.tell(now)
		lists := len(a.delivered)
		now = now.Add(time.Second)
		weight := 10
		allocations := testing.AllocsPerRun(20, func() {
			weight++
			if wait := a.answer(now, a.put(address(3), address(3), weight)); wait != 59*time.Second {
				t.Errorf("it wants to be called again after %v", wait)
			}
		})
		a.tell(now.Add(time.Minute))
		last := a.delivered[len(a.delivered)-1]
		third := slices.IndexFunc(last, func(i cluster.Instance) bool { return i.Address == address(3) })
		if len(a.delivered) != lists+1 || len(last) != instances || last[third].Weight != weight {
			t.Errorf("%d lists, the last one of %d instances", len(a.delivered)-lists, len(last))
		}
		return allocations
	}
	if few, many := cost(10), cost(10_000); many > few+1 {
		t.Errorf("an answer allocates %v times with ten thousand instances, %v with ten", many, few)
	}
}

// TestResolver_ChangesAreWhatAListSays: however keys come, go and change addresses, also to
// one that another key has, the lists are those of who looks at all keys each time.
func TestResolver_ChangesAreWhatAListSays(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		changes, lists := newAnswering(t, time.Second), newAnswering(t, time.Second)
		now := time.Now()
		for range 200 {
			now = now.Add(time.Duration(random.IntN(2000)) * time.Millisecond)
			var events []*clientv3.Event
			for range 1 + random.IntN(4) {
				key, number := fmt.Sprintf("k%d", random.IntN(8)), random.IntN(8)
				if random.IntN(3) == 0 {
					events = append(events, changes.gone(key))
				} else {
					events = append(events, changes.put(key, fmt.Sprintf("10.0.0.%d:1", number), 1+random.IntN(3)))
				}
			}
			changes.answer(now, events...)
			lists.relisted = true
			lists.answer(now, events...)
			if !slices.EqualFunc(changes.delivered, lists.delivered, func(a, b []cluster.Instance) bool {
				return slices.EqualFunc(a, b, func(a, b cluster.Instance) bool { return a.Address == b.Address && a.Weight == b.Weight })
			}) {
				t.Fatalf("seed %d: %v, want %v", seed, changes.delivered[len(changes.delivered)-1], lists.delivered[len(lists.delivered)-1])
			}
		}
		if len(changes.delivered) < 20 {
			t.Fatalf("%d lists", len(changes.delivered))
		}
	}
}
