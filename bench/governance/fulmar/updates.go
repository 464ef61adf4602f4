package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/bench/governance"
	"github.com/fulmar-rpc/fulmar/cluster"
)

// lists is a Resolver that delivers what it is given.
type lists struct {
	next  chan []cluster.Instance
	taken chan struct{}
}

var _ cluster.Resolver = (*lists)(nil)

// Resolve delivers one list after the other.
func (l *lists) Resolve(ctx context.Context, deliver func([]cluster.Instance)) error {
	for {
		select {
		case list := <-l.next:
			deliver(list)
			l.taken <- struct{}{}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func instances(addresses []string) []cluster.Instance {
	all := make([]cluster.Instance, len(addresses))
	for i, address := range addresses {
		all[i].Address = address
	}
	return all
}

func updated(n *governance.Network, addresses []string) (governance.Client, func([]string) error, error) {
	source := &lists{next: make(chan []cluster.Instance), taken: make(chan struct{})}
	client, err := connect(n, fulmar.ClientConfig{
		Target: "lists", Resolver: source, Policy: stack(),
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return client, nil, err
	}
	update := func(addresses []string) error {
		source.next <- instances(addresses)
		<-source.taken
		return nil
	}
	return client, update, errors.Join(update(addresses))
}
