package etcd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// resolver finds the instances of one service.
type resolver struct {
	registry *Registry
	service  string
}

var _ cluster.Resolver = (*resolver)(nil)

// Resolver finds the instances of a service, those of Kitex servers too. It may be used
// by several goroutines, each of which watches for itself.
func (r *Registry) Resolver(service string) (cluster.Resolver, error) {
	if err := registries.CheckService(service); err != nil {
		return nil, fmt.Errorf("etcd registry: %w", err)
	}
	return &resolver{registry: r, service: service}, nil
}

// Resolve delivers lists until ctx ends or the Registry is closed.
func (s *resolver) Resolve(ctx context.Context, deliver func([]cluster.Instance)) error {
	return s.follower(deliver).run(ctx)
}

func (s *resolver) follower(deliver func([]cluster.Instance)) *follower[cluster.Instance] {
	config := s.registry.config
	known := &knownInstances{
		roster: registries.Roster{Hold: config.HoldTime, Interval: config.DeliverInterval, Max: config.MaxInstances},
	}
	return &follower[cluster.Instance]{
		registry: s.registry, subject: s.service, prefix: s.registry.servicePrefix(s.service),
		keysMax: config.MaxInstances, valueBytesMax: config.MaxValueBytes, keeps: true,
		parse: func(name string, value []byte) (cluster.Instance, error) {
			return parseValue(value, config.ZoneTag)
		},
		// "a/b" is a service of its own, although its keys begin as those of "a" do. The
		// path of a socket begins with a slash.
		foreign: func(name string) bool { return strings.LastIndexByte(name, '/') > 0 && name[0] != '/' },
		changed: func(f *follower[cluster.Instance], now time.Time) time.Duration {
			list, ok, again := known.update(f, now)
			if ok {
				s.registry.stats.delivered.Add(1)
				deliver(list)
			}
			return again
		},
	}
}

// knownInstances are those of the keys of a service. What changes costs what it changes: where
// ten thousand instances begin one after the other, each comes with an answer of etcd, and to
// look at all of them then would take 4 ms for each.
type knownInstances struct {
	roster registries.Roster
	// addresses are those of the keys that have an instance, keys how many keys have one with
	// an address.
	addresses map[string]string
	keys      map[string]int
}

// update takes over what has changed.
func (k *knownInstances) update(f *follower[cluster.Instance], now time.Time) (list []cluster.Instance, ok bool, again time.Duration) {
	if !f.relisted && k.change(f, now) {
		return k.roster.List(now)
	}
	k.addresses, k.keys = make(map[string]string, len(f.values)), make(map[string]int, len(f.values))
	instances := make([]cluster.Instance, 0, len(f.values))
	// In order, because of two keys with the same address the first one counts.
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		if value := f.values[name]; value != nil {
			instances = append(instances, *value)
			k.addresses[name] = value.Address
			k.keys[value.Address]++
		}
	}
	return k.roster.Update(now, instances)
}

// change takes over what was touched. It returns false if that does not say which instances
// there are now, because two keys have, or had, the same address.
func (k *knownInstances) change(f *follower[cluster.Instance], now time.Time) bool {
	var came []cluster.Instance
	var left []string
	for _, name := range f.touched {
		if before, known := k.addresses[name]; known {
			if k.keys[before] > 1 {
				return false
			}
			delete(k.addresses, name)
			delete(k.keys, before)
			left = append(left, before)
		}
		if value := f.values[name]; value != nil {
			if k.keys[value.Address] > 0 {
				return false
			}
			k.addresses[name] = value.Address
			k.keys[value.Address] = 1
			came = append(came, *value)
		}
	}
	left = slices.DeleteFunc(left, func(address string) bool { return k.keys[address] > 0 })
	k.roster.Change(now, came, left)
	return true
}
