package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// announcement keeps one instance known until Withdraw, and then removes its node. Its
// goroutine, which Register starts, does both; it owns owner.
type announcement struct {
	registry *Registry
	session  *session
	subject  string // for the log
	path     string
	data     []byte

	waker *waker
	// cancel ends keeping it known, and ended is closed when the node is removed, or the
	// session has ended, and the node with it.
	cancel context.CancelFunc
	ended  chan struct{}

	// owner is the session for which the node was made or found last; 0 before the first
	// attempt.
	owner int64
	// leaving: the node is to be removed. inherits: another announcement has left it to this
	// one. The lock of the Registry guards both.
	leaving, inherits bool

	mu sync.Mutex
	// left is nil if the node is removed, else why it is not.
	left error
}

var _ cluster.Registration = (*announcement)(nil)

// Register announces an instance, with one attempt, which takes RequestTimeout at most.
// From then on the instance stays known until it is withdrawn: its node is made again
// whenever it is gone, in a new session or because somebody removed it, and taken over
// from a session of a process before, with whose end it would vanish.
func (r *Registry) Register(ctx context.Context, service string, instance cluster.Instance) (cluster.Registration, error) {
	if err := errors.Join(registries.CheckService(service), registries.CheckInstance(instance)); err != nil {
		return nil, fmt.Errorf("zookeeper registry: %w", err)
	}
	name, err := nodeName(instance)
	if err != nil {
		return nil, fmt.Errorf("zookeeper registry: %w", err)
	}
	data, err := formatValue(instance, r.config.ZoneTag)
	if err != nil {
		return nil, fmt.Errorf("zookeeper registry: %w", err)
	}
	if len(data) > r.config.MaxValueBytes {
		return nil, fmt.Errorf("zookeeper registry: instance %s: data of %d bytes (limit %d)", name, len(data), r.config.MaxValueBytes)
	}
	a := &announcement{
		registry: r, subject: service + " at " + name, path: r.servicePath(service) + "/" + name,
		data: data, ended: make(chan struct{}),
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, ErrClosed
	}
	if r.announcing == nil {
		r.announcing = newSession(r.config, r.notices, false)
	}
	a.session = r.announcing
	run, cancel := context.WithCancel(a.session.ctx)
	a.cancel = cancel
	a.waker = a.session.subscribe()
	r.announcements[a] = struct{}{}
	r.running.Add(1)
	r.mu.Unlock()

	first := make(chan error, 1)
	go func() {
		defer r.running.Done()
		defer close(a.ended)
		defer r.forget(a)
		defer a.waker.remove()
		a.run(run, first)
		a.leave()
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
			r.notices.Warn(time.Now(), "zookeeper: a failed announcement could not be taken back", a.subject, "error", err)
		}
		return nil, fmt.Errorf("zookeeper registry: announce %s: %w", a.subject, cause)
	}
	return a, nil
}

// run announces the instance and keeps it known until ctx ends. It tells first how the
// first attempt ended, and returns if that failed.
func (a *announcement) run(ctx context.Context, first chan<- error) {
	_, err := a.ensure(ctx)
	first <- err
	if err != nil {
		return
	}
	config := a.registry.config
	pauses := registries.Pauses{Min: config.BackoffMin, Max: config.BackoffMax}
	// Two processes that announce one address take it from each other: less and less
	// often.
	contest := registries.Pauses{Min: config.BackoffMin, Max: max(config.SessionTimeout, config.BackoffMin)}
	quiet := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.waker.wake: // there is a session again, or another one
		case <-time.After(registries.Jitter(config.SessionTimeout / 3)):
		}
		pause := time.Duration(0)
		switch taken, err := a.ensure(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			a.registry.stats.announceFailures.Add(1)
			a.registry.notices.Warn(time.Now(), "zookeeper: an instance cannot be kept known, trying again", a.subject, "error", err)
			pause = pauses.Next()
			a.waker.signal()
		case taken:
			pause, quiet = contest.Next(), time.Now()
		default:
			pauses.Reset()
			if time.Since(quiet) > contest.Max {
				contest.Reset()
			}
		}
		if pause > 0 && registries.Wait(ctx, pause) != nil {
			return
		}
	}
}

// ensure sees to it that the node is there, and that it is of this session. It reports
// whether it took the node from another session.
func (a *announcement) ensure(ctx context.Context) (taken bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.registry.config.RequestTimeout)
	defer cancel()
	conn, id, err := a.session.borrow(ctx)
	if err != nil {
		return false, err
	}
	// Each way that it can be found leads to the next one; others that meddle may make
	// that take some more.
	for range 10 {
		found, err := a.look(ctx, conn)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			err = a.create(ctx, conn, id)
		case err != nil:
		case found.stat.EphemeralOwner == id && bytes.Equal(found.data, a.data):
			a.owner = id // of another announcement of ours, or of an attempt that had no answer
			return taken, nil
		default:
			taken = true
			err = a.takeOver(ctx, conn, id, found.stat.Version)
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion):
		default:
			return taken, err
		}
	}
	return taken, fmt.Errorf("node %s: it changes all the time", a.path)
}

type node struct {
	data []byte
	stat *zk.Stat
}

// look reads the node. It sets no watch: the client keeps each until something happens,
// and somebody who removes the node is found out within a third of the session's life.
func (a *announcement) look(ctx context.Context, conn *zk.Conn) (node, error) {
	return ask(ctx, a.session, conn, func(conn *zk.Conn) (n node, err error) {
		n.data, n.stat, err = conn.Get(a.path)
		return n, err
	})
}

// create makes the node, and those above it that are missing.
func (a *announcement) create(ctx context.Context, conn *zk.Conn, id int64) error {
	a.owner = id
	err := a.make(ctx, conn, a.path, a.data, zk.FlagEphemeral)
	if errors.Is(err, zk.ErrNoNode) {
		if err = a.makeAbove(ctx, conn); err == nil {
			err = a.make(ctx, conn, a.path, a.data, zk.FlagEphemeral)
		}
	}
	if err == nil {
		a.registry.stats.announced.Add(1)
	}
	return err
}

func (a *announcement) make(ctx context.Context, conn *zk.Conn, path string, data []byte, flags int32) error {
	_, err := ask(ctx, a.session, conn, func(conn *zk.Conn) (string, error) {
		return conn.Create(path, data, flags, a.registry.acl)
	})
	return err
}

func (a *announcement) makeAbove(ctx context.Context, conn *zk.Conn) error {
	for i := 1; i < len(a.path); i++ {
		if a.path[i] != '/' {
			continue
		}
		if err := a.make(ctx, conn, a.path[:i], nil, 0); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// takeOver replaces a node of another session, or with other data, in one step, so that
// the instance is never unknown. A node of a session that is about to expire looks well
// and is not.
func (a *announcement) takeOver(ctx context.Context, conn *zk.Conn, id int64, version int32) error {
	a.owner = id
	_, err := ask(ctx, a.session, conn, func(conn *zk.Conn) ([]zk.MultiResponse, error) {
		return conn.Multi(
			&zk.DeleteRequest{Path: a.path, Version: version},
			&zk.CreateRequest{Path: a.path, Data: a.data, Acl: a.registry.acl, Flags: zk.FlagEphemeral},
		)
	})
	if err != nil {
		return err
	}
	a.registry.stats.announced.Add(1)
	a.registry.stats.takenOver.Add(1)
	a.registry.notices.Warn(time.Now(), "zookeeper: the node of an instance was taken over from another session", a.subject)
	return nil
}

// Withdraw takes the instance out and ends what kept it known: the node is removed, unless
// another process, or another announcement of this one, has announced the same address
// since. It waits for that until ctx ends. If ZooKeeper cannot be reached until then the node
// is removed when it can be, or expires with the session. Once that is done it does nothing
// more.
func (a *announcement) Withdraw(ctx context.Context) error {
	a.cancel()
	a.waker.signal() // who asks again does not wait for the next attempt
	done := false
	select {
	case <-a.ended:
		done = true
	case <-ctx.Done():
	}
	a.mu.Lock()
	err := a.left
	a.mu.Unlock()
	switch {
	case err == nil && !done:
		err = ctx.Err()
	case err == nil:
		return nil
	}
	return fmt.Errorf("zookeeper registry: withdraw %s: %w", a.subject, err)
}

// leave removes the node, and tries again until that was a success or the session is closed.
// Whoever withdraws may not wait for so long, but the session lives for as long as anybody
// else is announced with it, and the node with the session.
func (a *announcement) leave() {
	config, ctx := a.registry.config, a.session.ctx
	pauses := registries.Pauses{Min: config.BackoffMin, Max: config.BackoffMax}
	for {
		err := error(nil)
		if a.registry.leaves(a) == nil {
			err = a.remove(ctx)
		}
		if other := a.registry.leaves(a); err == nil && other != nil {
			other.waker.signal() // it may have found the node before that was removed
		}
		a.mu.Lock()
		a.left = err
		a.mu.Unlock()
		if err == nil || ctx.Err() != nil {
			return
		}
		a.registry.stats.announceFailures.Add(1)
		a.registry.notices.Warn(time.Now(), "zookeeper: an instance cannot be withdrawn, trying again", a.subject, "error", err)
		select {
		case <-ctx.Done():
		case <-a.waker.wake: // there is a session again, or another one
		case <-time.After(pauses.Next()):
		}
	}
}

// leaves notes that an announcement is to end, and returns another one of the same node that
// is not, to which the node belongs then, whether it has looked already or not; nil if there is
// none.
func (r *Registry) leaves(a *announcement) *announcement {
	r.mu.Lock()
	defer r.mu.Unlock()
	a.leaving = true
	for other := range r.announcements {
		if other.path == a.path && !other.leaving {
			other.inherits = true
			return other
		}
	}
	return nil
}

func (r *Registry) forget(a *announcement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.announcements, a)
}

// mayOwn reports whether there may be a node to remove.
func (a *announcement) mayOwn() bool {
	a.registry.mu.Lock()
	defer a.registry.mu.Unlock()
	return a.owner != 0 || a.inherits
}

// remove removes the node if it is of a session of ours.
func (a *announcement) remove(ctx context.Context) error {
	if !a.mayOwn() {
		return nil // never asked for
	}
	conn, id, err := a.session.borrow(ctx)
	if err != nil {
		return err
	}
	found, err := a.look(ctx, conn)
	if err == nil && (found.stat.EphemeralOwner == id || a.owner != 0 && found.stat.EphemeralOwner == a.owner) {
		_, err = ask(ctx, a.session, conn, func(conn *zk.Conn) (struct{}, error) {
			return struct{}{}, conn.Delete(a.path, found.stat.Version)
		})
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
