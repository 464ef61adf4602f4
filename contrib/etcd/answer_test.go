package etcd

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// TestResolver_AnswersCostWhatTheyChange: between two lists an answer of etcd about one
// of ten thousand instances costs no more than it does about one of ten, and the next list
// has all that came meanwhile.
func TestResolver_AnswersCostWhatTheyChange(t *testing.T) {
	registry, err := New(Config{Endpoints: []string{"127.0.0.1:1"}, Common: registries.Common{DeliverInterval: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	cost := func(instances int) float64 {
		var delivered [][]cluster.Instance
		f := (&resolver{registry: registry, service: "shop"}).follower(func(list []cluster.Instance) { delivered = append(delivered, list) })
		f.values = map[string]*cluster.Instance{}
		now := time.Now()
		answer := func(i, weight int) time.Duration {
			address := fmt.Sprintf("10.0.%d.%d:1", i/250, i%250)
			value := fmt.Appendf(nil, `{"network":"tcp","address":%q,"weight":%d,"tags":null}`, address, weight)
			event := &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(f.prefix + address), Value: value}}
			if err := f.apply(clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{}, Events: []*clientv3.Event{event}}); err != nil {
				t.Fatal(err)
			}
			return f.changed(now, f.revision, f.values)
		}
		for i := range instances {
			answer(i, 10)
		}
		now = now.Add(time.Minute)
		f.changed(now, f.revision, f.values)
		lists := len(delivered)
		now = now.Add(time.Second)
		weight := 10
		allocations := testing.AllocsPerRun(20, func() {
			weight++
			if wait := answer(3, weight); wait != 59*time.Second {
				t.Errorf("it wants to be called again after %v", wait)
			}
		})
		now = now.Add(time.Minute)
		f.changed(now, f.revision, f.values)
		last := delivered[len(delivered)-1]
		third := slices.IndexFunc(last, func(i cluster.Instance) bool { return i.Address == "10.0.0.3:1" })
		if len(delivered) != lists+1 || len(last) != instances || last[third].Weight != weight {
			t.Errorf("%d lists, the last one of %d instances", len(delivered)-lists, len(last))
		}
		return allocations
	}
	if few, many := cost(10), cost(10_000); many > few+1 {
		t.Errorf("an answer allocates %v times with ten thousand instances, %v with ten", many, few)
	}
}
