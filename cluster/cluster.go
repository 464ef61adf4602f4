// Package cluster is about targets that several servers answer for: which
// instances there are (Resolver, Registry), which of them a call goes to, and
// which are left alone for a while because they refuse connections or fail
// (Balancer). It calls none of them.
package cluster

import (
	"context"
	"maps"
	"slices"
)

// Instance is one server of a target.
type Instance struct {
	// Address is where it listens: "host:port", "unix:///path" or
	// "unix:@abstract".
	Address string
	// Weight is how many calls it gets beside others, in proportion to theirs. Default: 10
	// (InstanceWeight). A negative one gets none, as long as others have any.
	Weight int
	// Zone is where it runs: instances in the zone of the caller can be preferred.
	Zone string
	// Tags are what else is known of it. They are not changed once delivered.
	Tags map[string]string
}

// same reports whether two say the same.
func (i *Instance) same(other *Instance) bool {
	return i.Address == other.Address && i.Weight == other.Weight && i.Zone == other.Zone && maps.Equal(i.Tags, other.Tags)
}

// Registry is where servers announce themselves, and clients find them.
type Registry interface {
	// Register announces an instance of a service, and keeps it known for as long as it
	// is not withdrawn: through outages of the registry, after which it is announced
	// again. It returns an error if the first announcement fails, or ctx ends before.
	Register(ctx context.Context, service string, instance Instance) (Registration, error)
	// Resolver finds the instances of a service.
	Resolver(service string) (Resolver, error)
}

// Registration is an instance that is announced.
type Registration interface {
	// Withdraw takes the instance out, and ends what kept it known. It returns an error
	// if the registry could not be told until ctx ended: then the instance is forgotten
	// when its announcement expires. Where that lives on, because others are announced
	// with it, the registry is told when it can be.
	Withdraw(ctx context.Context) error
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
	// only if the source says that there are no instances. What fails it tells to
	// Report, and again several times a minute as long as it does: silence means
	// that the list still holds, and an empty one is believed when it has for a
	// minute. A list belongs to whom it is delivered to.
	Resolve(ctx context.Context, deliver func([]Instance)) error
}

// reportKey is the key of what WithReport has put into a context.
type reportKey struct{}

// WithReport returns a context in which Report calls report, which must be safe for
// concurrent use. A Resolver gets one from the client that it works for, which logs what
// it is told, and says it in the errors of calls that wait for a list.
func WithReport(ctx context.Context, report func(error)) context.Context {
	return context.WithValue(ctx, reportKey{}, report)
}

// Report tells whom a Resolver works for why there is no list, or why something of it was
// left out. It is for failures after which Resolve goes on.
func Report(ctx context.Context, err error) {
	if report, ok := ctx.Value(reportKey{}).(func(error)); ok && err != nil {
		report(err)
	}
}

// Static is the Resolver of a list that never changes.
type Static []Instance

var _ Resolver = Static{}

// Resolve delivers the list before it returns.
func (s Static) Resolve(_ context.Context, deliver func([]Instance)) error {
	deliver(slices.Clone(s))
	return nil
}
