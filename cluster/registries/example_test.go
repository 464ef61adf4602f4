package registries_test

import (
	"context"
	"fmt"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// entry is what some registry has of an instance.
type entry struct {
	address string
	weight  int
	tags    map[string]string
}

// polled finds the instances of a service in a registry that pushes nothing.
type polled struct {
	registries.Common
	ask func(context.Context) ([]entry, error)
}

// Resolve asks again and again. What it knows stays while the registry fails, and for a
// while when it is empty all at once.
func (p *polled) Resolve(ctx context.Context, deliver func([]cluster.Instance)) error {
	common := registries.CommonDefaults(p.Common)
	roster := registries.Roster{Hold: common.HoldTime, Interval: common.DeliverInterval, Max: common.MaxInstances}
	pauses := registries.Pauses{Min: common.BackoffMin, Max: common.BackoffMax}
	for {
		pause := registries.Jitter(common.CheckInterval)
		if instances, err := p.list(ctx, common); err != nil {
			cluster.Report(ctx, err)
			pause = pauses.Next()
		} else {
			pauses.Reset()
			list, ok, again := roster.Update(time.Now(), instances)
			if ok {
				deliver(list)
			}
			if again > 0 {
				pause = min(pause, again)
			}
		}
		if err := registries.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

func (p *polled) list(ctx context.Context, common registries.Common) ([]cluster.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, common.RequestTimeout)
	defer cancel()
	entries, err := p.ask(ctx)
	if err != nil {
		return nil, err
	}
	var instances []cluster.Instance
	for _, e := range entries {
		instance, err := registries.InstanceOf(e.address, e.weight, e.tags, common.ZoneTag)
		if err != nil {
			cluster.Report(ctx, err)
			continue
		}
		instances = append(instances, instance)
	}
	return instances, nil
}

// Example finds the instances that a registry of one's own has, without those that are
// none.
func Example() {
	resolver := &polled{ask: func(context.Context) ([]entry, error) {
		return []entry{
			{"10.0.0.2:8888", 10, map[string]string{"zone": "west"}},
			{"10.0.0.1:8888", 10, map[string]string{"zone": "east"}},
			{"nobody", 10, nil},
		}, nil
	}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx = cluster.WithReport(ctx, func(err error) { fmt.Println(err) })
	err := resolver.Resolve(ctx, func(instances []cluster.Instance) {
		for _, instance := range instances {
			fmt.Println(instance.Address, "in", instance.Zone)
		}
		cancel()
	})
	fmt.Println(err)
	// Output:
	// address "nobody" is not host:port
	// 10.0.0.1:8888 in east
	// 10.0.0.2:8888 in west
	// context canceled
}
