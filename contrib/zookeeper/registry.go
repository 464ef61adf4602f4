package zookeeper

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// Registry announces and finds instances, over a session of ZooKeeper for either. It is
// safe for concurrent use. Whoever made it closes it.
type Registry struct {
	config  Config
	notices *registries.Notices
	stats   counters
	acl     []zk.ACL

	// ended is closed when Close is done.
	ended chan struct{}

	mu     sync.Mutex
	closed bool
	// announcing and watching are made when they are needed.
	announcing, watching *session
	announcements        map[*announcement]struct{}
	running              sync.WaitGroup
}

var _ cluster.Registry = (*Registry)(nil)

// New returns a Registry. It connects when it is needed, so ZooKeeper need not be there
// yet.
func New(config Config) (*Registry, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	r := &Registry{
		config: config, notices: &registries.Notices{Logger: config.Logger}, announcements: map[*announcement]struct{}{},
		acl: zk.WorldACL(zk.PermAll), ended: make(chan struct{}),
	}
	if config.User != "" {
		r.acl = zk.DigestACL(zk.PermAll, config.User, string(config.Password))
	}
	return r, nil
}

// forWatching returns the session of resolvers.
func (r *Registry) forWatching() (*session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	if r.watching == nil {
		r.watching = newSession(r.config, r.notices, true)
	}
	return r.watching, nil
}

// Close withdraws what is still announced, ends all watching, and closes the session. It
// waits for that, for RequestTimeout and about a second more if ZooKeeper does not answer:
// then what was announced is forgotten when the session expires, and Close says so.
func (r *Registry) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		<-r.ended
		return nil
	}
	defer close(r.ended)
	r.closed = true
	sessions := []*session{r.watching, r.announcing}
	var left []*announcement
	for a := range r.announcements {
		left = append(left, a)
	}
	r.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), r.config.RequestTimeout)
	defer cancel()
	failures := make([]error, len(left))
	var withdrawn sync.WaitGroup
	for i, a := range left {
		withdrawn.Go(func() { failures[i] = a.Withdraw(ctx) })
	}
	withdrawn.Wait()
	var ended sync.WaitGroup
	for _, s := range sessions {
		if s != nil {
			ended.Go(s.close)
		}
	}
	ended.Wait()
	r.running.Wait()
	return errors.Join(failures...)
}

// Stats are what happened in a Registry since it was made.
type Stats struct {
	// Announced is how often nodes were made, the first times included, and TakenOver
	// how often in place of one of another session: that of a process before, or of
	// another process that announces the same address.
	Announced, TakenOver int64
	// AnnounceFailures is how often a node could not be made, looked after or removed.
	AnnounceFailures int64
	// Lists is how often children were asked for, WatchFailures how often that or
	// reading them failed.
	Lists, WatchFailures int64
	// Delivered is how many lists of instances were delivered.
	Delivered int64
	// BrokenValues is how many nodes were found to be no instances, or too long: those that
	// were instances stay what they were, others are left out. LeftOut is how many nodes
	// were left out because there are more than MaxInstances, of each list.
	BrokenValues, LeftOut int64
}

type counters struct {
	announced, takenOver, announceFailures, lists, watchFailures, delivered, brokenValues, leftOut atomic.Int64
}

// Stats returns what happened so far.
func (r *Registry) Stats() Stats {
	return Stats{
		Announced: r.stats.announced.Load(), TakenOver: r.stats.takenOver.Load(), AnnounceFailures: r.stats.announceFailures.Load(),
		Lists: r.stats.lists.Load(), WatchFailures: r.stats.watchFailures.Load(), Delivered: r.stats.delivered.Load(),
		BrokenValues: r.stats.brokenValues.Load(), LeftOut: r.stats.leftOut.Load(),
	}
}

// servicePath is the node whose children are the instances of a service.
func (r *Registry) servicePath(service string) string { return r.config.Root + "/" + service }
