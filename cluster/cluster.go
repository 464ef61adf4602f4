// Package cluster is about targets that several servers answer for: which
// instances there are, which of them a call goes to, and which are left alone
// for a while because they refuse connections. It opens no connection and
// reads no clock: what time it is, and what became of a call, is told to it.
package cluster

import (
	"context"
	"slices"
)

// Instance is one server of a target.
type Instance struct {
	// Address is where it listens: "host:port", "unix:///path" or
	// "unix:@abstract".
	Address string
}

// Resolver finds the instances of a target.
type Resolver interface {
	// Resolve calls deliver, one call at a time, with the complete list of
	// instances as soon as it knows it, and with the next complete list whenever
	// that changes. It returns nil when the list will not change any more, and
	// an error when ctx ends or it cannot go on.
	//
	// While the source of the list fails, Resolve delivers nothing and tries
	// again: the last list is better than none, so an empty one is delivered
	// only if the source says that there are no instances. A list belongs to
	// whom it is delivered to.
	Resolve(ctx context.Context, deliver func([]Instance)) error
}

// Static is the Resolver of a list that never changes.
type Static []Instance

var _ Resolver = Static{}

// Resolve delivers the list before it returns.
func (s Static) Resolve(_ context.Context, deliver func([]Instance)) error {
	deliver(slices.Clone(s))
	return nil
}
