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
	config := s.registry.config
	list := &registries.Roster{Hold: config.HoldTime, Interval: config.DeliverInterval, Max: config.MaxInstances}
	f := &follower[cluster.Instance]{
		registry: s.registry, subject: s.service, prefix: s.registry.servicePrefix(s.service),
		keysMax: config.MaxInstances, valueBytesMax: config.MaxValueBytes,
		parse: func(name string, value []byte) (cluster.Instance, error) {
			return parseValue(value, config.ZoneTag)
		},
		// "a/b" is a service of its own, although its keys begin as those of "a" do. The
		// path of a socket begins with a slash.
		foreign: func(name string) bool { return strings.LastIndexByte(name, '/') > 0 && name[0] != '/' },
		changed: func(now time.Time, _ int64, values map[string]*cluster.Instance) time.Duration {
			instances := make([]cluster.Instance, 0, len(values))
			// In order, because of two keys with the same address the first one counts.
			for _, name := range slices.Sorted(maps.Keys(values)) {
				if value := values[name]; value != nil {
					instances = append(instances, *value)
				}
			}
			all, ok, again := list.Update(now, instances)
			if ok {
				s.registry.stats.delivered.Add(1)
				deliver(all)
			}
			return again
		},
	}
	return f.run(ctx)
}
