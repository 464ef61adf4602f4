package etcd

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// ErrClosed is what calls of a Registry return that is closed.
var ErrClosed = errors.New("etcd registry: closed")

// messageBytesMax bounds one answer of etcd: lists are asked for in pages, which get
// smaller if one does not fit.
const messageBytesMax = 16 << 20

// Registry announces and finds instances, and watches policies, over one connection to
// etcd. It is safe for concurrent use. Whoever made it closes it.
type Registry struct {
	config  Config
	notices *registries.Notices
	stats   counters

	// ctx ends with Close, and running waits for what the Registry started.
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	// connecting has one place, for who makes the client: with a password that takes
	// until etcd answers.
	connecting chan struct{}
	client     atomic.Pointer[clientv3.Client]

	mu            sync.Mutex
	closed        bool
	announcements map[*announcement]struct{}
}

var _ cluster.Registry = (*Registry)(nil)

// New returns a Registry. It connects when it is needed, so etcd need not be there yet.
func New(config Config) (*Registry, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	r := &Registry{
		config: config, notices: &registries.Notices{Logger: config.Logger},
		connecting: make(chan struct{}, 1), announcements: map[*announcement]struct{}{},
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// Close withdraws what is still announced, ends all watching, and closes the connection.
// It waits for that, for RequestTimeout at most if etcd does not answer: then what was
// announced is forgotten when its lease expires, and Close says so.
func (r *Registry) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		r.running.Wait()
		return nil
	}
	r.closed = true
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
	r.cancel()
	r.running.Wait()

	// Nobody makes a client any more: it is held until the end.
	r.connecting <- struct{}{}
	if client := r.client.Load(); client != nil {
		failures = append(failures, ignoreCanceled(client.Close()))
	}
	return errors.Join(failures...)
}

// ignoreCanceled is for a client whose connections end because it is closed.
func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// connect returns the client, and makes it if there is none: without a password that
// does not wait for etcd.
func (r *Registry) connect(ctx context.Context) (*clientv3.Client, error) {
	if client := r.client.Load(); client != nil {
		return client, nil
	}
	select {
	case r.connecting <- struct{}{}:
		defer func() { <-r.connecting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.ctx.Done():
		return nil, ErrClosed
	}
	if client := r.client.Load(); client != nil {
		return client, nil
	}
	if r.ctx.Err() != nil {
		return nil, ErrClosed
	}
	client, err := clientv3.New(clientv3.Config{
		Context: r.ctx, Endpoints: r.config.Endpoints, TLS: r.config.TLS,
		Username: r.config.Username, Password: string(r.config.Password),
		DialTimeout: r.config.RequestTimeout,
		// A member that has vanished without a word is missed after these, and its
		// connection is replaced by one to another member.
		DialKeepAliveTime: keepAliveTime, DialKeepAliveTimeout: keepAliveTimeout,
		MaxCallRecvMsgSize: messageBytesMax,
		DialOptions:        []grpc.DialOption{grpc.WithConnectParams(connectParams(r.config))},
		Logger:             zap.NewNop(),
	})
	if err != nil {
		return nil, err
	}
	r.client.Store(client)
	return client, nil
}

// joined returns a context that ends with ctx and with the Registry.
func (r *Registry) joined(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(r.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// ended returns the error of a call whose context has ended, by itself or with the
// Registry.
func (r *Registry) ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrClosed
}

// Stats are what happened in a Registry since it was made.
type Stats struct {
	// Announced is how often instances were announced, the first times included, and
	// Repaired how many of those were necessary although their lease was alive: somebody
	// had removed or overwritten the key.
	Announced, Repaired int64
	// BeatFailures is how often a lease could not be made, renewed or looked after.
	BeatFailures int64
	// Lists is how often all instances were asked for, and WatchFailures how often that
	// or a watch failed.
	Lists, WatchFailures int64
	// Delivered is how many lists of instances and documents were delivered.
	Delivered int64
	// BrokenValues is how many values were found broken, or too long: keys that had a sound
	// one stay what they were, others are left out. LeftOut is how many instances were left
	// out because there are more than MaxInstances, of each list and of what came later.
	BrokenValues, LeftOut int64
	// Problems is how many settings of Kitex were found to be not in force.
	Problems int64
}

type counters struct {
	announced, repaired, beatFailures, lists, watchFailures, delivered, brokenValues, leftOut, problems atomic.Int64
}

// Stats returns what happened so far.
func (r *Registry) Stats() Stats {
	return Stats{
		Announced: r.stats.announced.Load(), Repaired: r.stats.repaired.Load(), BeatFailures: r.stats.beatFailures.Load(),
		Lists: r.stats.lists.Load(), WatchFailures: r.stats.watchFailures.Load(), Delivered: r.stats.delivered.Load(),
		BrokenValues: r.stats.brokenValues.Load(), LeftOut: r.stats.leftOut.Load(), Problems: r.stats.problems.Load(),
	}
}
