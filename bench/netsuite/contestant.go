package netsuite

import (
	"context"
	"net"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
)

// Contestant is a network library in this suite.
type Contestant struct {
	Name string
	// Modules are those whose versions belong to a result.
	Modules []string
	// Serve answers every frame that arrives with what Handle returns for it,
	// until ctx ends.
	Serve func(ctx context.Context, listener net.Listener, c Case) error
	// ServeAddress stands in place of Serve for libraries that listen by
	// themselves. It calls ready with the address, once clients can connect.
	ServeAddress func(ctx context.Context, network, address string, c Case, ready func(address string) error) error
}

// Main is the main function of a contestant's program.
func Main(contestants ...Contestant) {
	var all []contestant.Contestant
	for _, c := range contestants {
		made := contestant.Contestant{Name: c.Name, Modules: c.Modules}
		if c.Serve != nil {
			made.Serve = func(ctx context.Context, listener net.Listener, played contestant.Played) error {
				found, err := FindCase(played.Case)
				if err != nil {
					return err
				}
				return c.Serve(ctx, listener, found)
			}
		} else {
			made.ServeAddress = func(ctx context.Context, network, address, name string, ready func(string) error) error {
				found, err := FindCase(name)
				if err != nil {
					return err
				}
				return c.ServeAddress(ctx, network, address, found, ready)
			}
		}
		all = append(all, made)
	}
	contestant.Main(all...)
}
