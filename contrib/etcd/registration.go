package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// announcement keeps one instance known. Its goroutine, which Register starts and
// Withdraw ends and waits for, owns the lease meanwhile.
type announcement struct {
	registry *Registry
	subject  string // for the log
	key      string
	value    []byte

	cancel context.CancelFunc
	ended  chan struct{}

	// lease is that of the key, 0 if there is none, and granted how long it lives
	// without a sign of life.
	lease   clientv3.LeaseID
	granted time.Duration
	// known: the first attempt was a success.
	known bool
	// beats is the stream that renews it, nil if there is none.
	beats *beats

	mu        sync.Mutex
	withdrawn bool
}

var _ cluster.Registration = (*announcement)(nil)

// Register announces an instance, with one attempt, which takes RequestTimeout at most
// for each of its two requests. From then on the instance stays known until it is
// withdrawn: its lease is renewed three times within TTL, and each time the key is looked
// at, so that an instance whose lease expired, or whose key somebody removed, is
// announced again.
func (r *Registry) Register(ctx context.Context, service string, instance cluster.Instance) (cluster.Registration, error) {
	if err := errors.Join(registries.CheckService(service), registries.CheckInstance(instance)); err != nil {
		return nil, fmt.Errorf("etcd registry: %w", err)
	}
	value, address, err := formatValue(instance, r.config.ZoneTag)
	if err != nil {
		return nil, fmt.Errorf("etcd registry: %w", err)
	}
	if len(value) > r.config.MaxValueBytes {
		return nil, fmt.Errorf("etcd registry: instance %s: value of %d bytes (limit %d)", instance.Address, len(value), r.config.MaxValueBytes)
	}
	a := &announcement{
		registry: r, subject: service + " at " + instance.Address,
		key: r.servicePrefix(service) + address, value: value, ended: make(chan struct{}),
	}
	run, cancel := context.WithCancel(r.ctx)
	a.cancel = cancel
	// Known from here on, so that Close withdraws what it interrupts.
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		cancel()
		return nil, ErrClosed
	}
	r.announcements[a] = struct{}{}
	r.running.Add(1)
	r.mu.Unlock()

	first := make(chan error, 1)
	go func() {
		defer r.running.Done()
		defer close(a.ended)
		a.run(run, first)
	}()
	select {
	case err = <-first:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		forget, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.config.RequestTimeout)
		defer cancel()
		cause := err
		if err := a.Withdraw(forget); err != nil {
			// Nothing more can be done about it: the lease expires.
			r.notices.Warn(time.Now(), "etcd: a failed announcement could not be taken back", a.subject, "error", err)
		}
		return nil, fmt.Errorf("etcd registry: announce %s: %w", a.subject, cause)
	}
	return a, nil
}

// servicePrefix is what the keys of all instances of a service begin with.
func (r *Registry) servicePrefix(service string) string {
	return r.config.Prefix + "/" + service + "/"
}

// run announces the instance and keeps it known until ctx ends. It tells first how the
// first attempt ended, and returns if that failed.
func (a *announcement) run(ctx context.Context, first chan<- error) {
	defer func() {
		if a.beats != nil {
			a.beats.cancel()
		}
	}()
	err := a.beat(ctx)
	a.known = err == nil
	first <- err
	if err != nil {
		return
	}
	pauses := registries.Pauses{Min: a.registry.config.BackoffMin, Max: a.registry.config.BackoffMax}
	pause := a.interval()
	for registries.Wait(ctx, pause) == nil {
		switch err := a.beat(ctx); {
		case ctx.Err() != nil:
		case err != nil:
			a.registry.stats.beatFailures.Add(1)
			a.registry.notices.Warn(time.Now(), "etcd: an instance cannot be kept known, trying again", a.subject, "error", err)
			pause = min(pauses.Next(), a.interval())
		default:
			pauses.Reset()
			pause = a.interval()
		}
	}
}

// interval is how far apart signs of life are: a third of what the lease lives, so that
// two may fail.
func (a *announcement) interval() time.Duration {
	return registries.Jitter(or(a.granted, a.registry.config.TTL) / 3)
}

// timeout of one request: once the instance is known, one that takes longer than the time
// between two signs of life is better tried again.
func (a *announcement) timeout() time.Duration {
	if !a.known {
		return a.registry.config.RequestTimeout
	}
	return min(a.registry.config.RequestTimeout, a.granted/3)
}

// beat sees to it that there is a lease and that the key is there with it.
func (a *announcement) beat(ctx context.Context) error {
	client, err := a.registry.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if a.lease != clientv3.NoLease {
		alive, err := a.renew(ctx, client)
		if err != nil {
			return fmt.Errorf("renew the lease: %w", err)
		}
		if !alive {
			a.lease = clientv3.NoLease
			a.registry.config.Logger.Warn("etcd: the lease of an instance expired, announcing it again", "of", a.subject)
		}
	}
	if a.lease == clientv3.NoLease {
		if err := a.grant(ctx, client); err != nil {
			return fmt.Errorf("grant a lease: %w", err)
		}
		return a.put(ctx, client)
	}
	return a.look(ctx, client)
}

func (a *announcement) grant(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout())
	defer cancel()
	seconds := (a.registry.config.TTL + time.Second - 1) / time.Second
	granted, err := client.Grant(ctx, int64(seconds))
	if err != nil {
		return err
	}
	a.lease, a.granted = granted.ID, time.Duration(granted.TTL)*time.Second
	return nil
}

// renew gives one sign of life. The client's own KeepAlive is not used: its channel ends
// in silence when a lease is lost, and its KeepAliveOnce tries again without a pause. The
// stream stays open between signs, because with a password each new one makes etcd compare
// that, which takes it a tenth of a second.
func (a *announcement) renew(ctx context.Context, client *clientv3.Client) (alive bool, err error) {
	if a.beats == nil {
		a.beats = &beats{}
		ctx, a.beats.cancel = context.WithCancel(ctx)
	}
	late := time.AfterFunc(a.timeout(), a.beats.cancel)
	alive, err = a.beats.beat(ctx, client, a.lease)
	tooLate := !late.Stop()
	if tooLate && err != nil {
		err = fmt.Errorf("no answer within %v", a.timeout())
	}
	if !alive || err != nil || tooLate {
		a.beats.cancel()
		a.beats = nil
	}
	return alive, err
}

// beats is a stream of signs of life.
type beats struct {
	stream etcdserverpb.Lease_LeaseKeepAliveClient
	cancel context.CancelFunc
}

func (b *beats) beat(ctx context.Context, client *clientv3.Client, lease clientv3.LeaseID) (alive bool, err error) {
	if b.stream == nil {
		if b.stream, err = clientv3.RetryLeaseClient(client).LeaseKeepAlive(ctx); err != nil {
			return false, err
		}
	}
	if err := b.stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(lease)}); err != nil {
		return false, err
	}
	answer, err := b.stream.Recv()
	if errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return answer.TTL > 0, nil
}

// put writes the key with the lease.
func (a *announcement) put(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout())
	defer cancel()
	_, err := client.Put(ctx, a.key, string(a.value), clientv3.WithLease(a.lease))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		a.lease = clientv3.NoLease // it expired in between
	}
	if err != nil {
		return fmt.Errorf("put the key: %w", err)
	}
	a.registry.stats.announced.Add(1)
	return nil
}

// look sees whether the key is there, with this lease: somebody may have removed it, or
// another process that announces the same address may have taken it.
func (a *announcement) look(ctx context.Context, client *clientv3.Client) error {
	bounded, cancel := context.WithTimeout(ctx, a.timeout())
	defer cancel()
	found, err := client.Get(bounded, a.key)
	if err != nil {
		return fmt.Errorf("look at the key: %w", err)
	}
	what := "its key was gone"
	if len(found.Kvs) > 0 {
		if found.Kvs[0].Lease == int64(a.lease) && bytes.Equal(found.Kvs[0].Value, a.value) {
			return nil
		}
		what = "its key had another value or lease: does another process announce this address?"
	}
	if err := a.put(ctx, client); err != nil {
		return err
	}
	a.registry.stats.repaired.Add(1)
	a.registry.notices.Warn(time.Now(), "etcd: an instance was announced again", a.subject, "reason", what)
	return nil
}

// Withdraw takes the instance out and ends what kept it known. Its lease is revoked,
// which removes the key unless another process has announced the same address since. It
// tries again until ctx ends. Once it succeeded it does nothing more.
func (a *announcement) Withdraw(ctx context.Context) error {
	a.cancel()
	select {
	case <-a.ended:
	case <-ctx.Done():
		// The goroutine ends soon: each of its requests has a context that ended.
		return fmt.Errorf("etcd registry: withdraw %s: %w", a.subject, ctx.Err())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.withdrawn {
		return nil
	}
	pauses := registries.Pauses{Min: a.registry.config.BackoffMin, Max: a.registry.config.BackoffMax}
	for {
		err := a.revoke(ctx)
		if err == nil {
			break
		}
		if registries.Wait(ctx, pauses.Next()) != nil {
			a.registry.forget(a)
			return fmt.Errorf("etcd registry: withdraw %s: %w", a.subject, err)
		}
	}
	a.withdrawn = true
	a.registry.forget(a)
	return nil
}

func (r *Registry) forget(a *announcement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.announcements, a)
}

func (a *announcement) revoke(ctx context.Context) error {
	if a.lease == clientv3.NoLease {
		return nil
	}
	client, err := a.registry.connect(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout())
	defer cancel()
	if _, err := client.Revoke(ctx, a.lease); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return err
	}
	return nil
}
