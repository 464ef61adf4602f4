//go:build linux

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/discovery"
	"github.com/cloudwego/kitex/pkg/loadbalance"
	"github.com/cloudwego/kitex/pkg/loadbalance/lbcache"
	"github.com/cloudwego/kitex/pkg/rpcinfo"

	"github.com/fulmar-rpc/fulmar/bench/governance"
)

// never is how often the list is looked up besides.
const never = time.Hour

// listName is the target and the name of the resolver.
const listName = "lists"

func target(context.Context, rpcinfo.EndpointInfo) string { return serviceName }

// updated has lists that the resolver returns when it is asked. Kitex asks every five
// seconds; here it is asked by what its ticker calls, so that when is known.
func updated(n *governance.Network, addresses []string) (governance.Client, func([]string) error, error) {
	var current atomic.Pointer[discovery.Result]
	set := func(addresses []string) {
		found := result(addresses)
		current.Store(&found)
	}
	set(addresses)
	resolver := discovery.SynthesizedResolver{
		TargetFunc:  target,
		NameFunc:    func() string { return listName },
		ResolveFunc: func(context.Context, string) (discovery.Result, error) { return *current.Load(), nil },
	}
	options := lbcache.Options{RefreshInterval: never, Cacheable: true}
	made, err := connect(n, append(stack(), client.WithResolver(resolver),
		client.WithLoadBalancer(loadbalance.NewWeightedBalancer(), &options))...)
	if err != nil {
		return made, nil, err
	}
	// Factories of one resolver, balancer and interval are the same one.
	balancer, err := lbcache.NewBalancerFactory(resolver, loadbalance.NewWeightedBalancer(), options).Get(context.Background(), nil)
	if err != nil {
		return made, nil, err
	}
	update := func(addresses []string) error {
		set(addresses)
		balancer.Refresh()
		if held, ok := balancer.GetResult(); !ok || held.Instances[0].Address().String() != addresses[0] {
			return fmt.Errorf("kitex: the list of %d instances does not hold", len(addresses))
		}
		return nil
	}
	return made, update, nil
}
