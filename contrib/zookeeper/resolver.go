package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

const (
	// readers is how many nodes are read, or looked at, at the same time.
	readers = 32
	// lookShares is after how many checks all nodes were looked at, which finds what a watch
	// that was lost did not tell: each looks at a share of them, shareMin at least.
	lookShares = 10
	shareMin   = 10
)

// resolver finds the instances of one service.
type resolver struct {
	registry *Registry
	service  string
}

var _ cluster.Resolver = (*resolver)(nil)

// Resolver finds the instances of a service, those of Kitex servers too. It may be used
// by several goroutines, each of which watches for itself.
func (r *Registry) Resolver(service string) (cluster.Resolver, error) {
	if err := registries.CheckService(service); err != nil {
		return nil, fmt.Errorf("zookeeper registry: %w", err)
	}
	return &resolver{registry: r, service: service}, nil
}

// Resolve delivers lists until ctx ends or the Registry is closed.
func (s *resolver) Resolve(ctx context.Context, deliver func([]cluster.Instance)) error {
	r := s.registry
	session, err := r.forWatching()
	if err != nil {
		return err
	}
	joined, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(session.ctx, cancel)
	defer stop()
	v := &view{registry: r, session: session, service: s.service, path: r.servicePath(s.service), children: map[string]*child{}}
	v.waker = session.subscribe(v.path)
	defer v.waker.remove()
	v.follow(joined, deliver)
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrClosed
}

// view is what is known of the children of one node. One goroutine uses it.
type view struct {
	registry *Registry
	session  *session
	service  string // for the log
	path     string
	waker    *waker

	children map[string]*child
	// listed: children are those that the node had, of which a change is told.
	listed bool
	// looked is the name of the node that was looked at last.
	looked string
}

// child is a node that may be an instance.
type child struct {
	// instance is what the node said last that was one; nil if it never did.
	instance *cluster.Instance
	// read: it is what the node said last, watched: a change is told.
	read, watched bool
	// changed is the number of the change that made the node what was read.
	changed int64
}

func (v *view) follow(ctx context.Context, deliver func([]cluster.Instance)) {
	config := v.registry.config
	list := &registries.Roster{Hold: config.HoldTime, Interval: config.DeliverInterval, Max: config.MaxInstances}
	pauses := registries.Pauses{Min: config.BackoffMin, Max: config.BackoffMax}
	again, check := time.NewTimer(0), time.NewTimer(registries.Jitter(max(config.CheckInterval, time.Second)))
	defer again.Stop()
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.waker.wake:
		case <-again.C:
		case <-check.C:
			check.Reset(registries.Jitter(max(config.CheckInterval, time.Second)))
			if config.CheckInterval > 0 {
				v.check(ctx)
			}
		}
		if err := v.update(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			v.registry.stats.watchFailures.Add(1)
			cluster.Report(ctx, fmt.Errorf("zookeeper: %w", err))
			v.registry.notices.Warn(time.Now(), "zookeeper: watching failed, what is known stays until it works again", v.service, "error", err)
			if registries.Wait(ctx, pauses.Next()) != nil {
				return
			}
			v.waker.signal()
			continue
		}
		pauses.Reset()
		all, ok, pause := list.Update(time.Now(), v.instances())
		if ok {
			v.registry.stats.delivered.Add(1)
			deliver(all)
		}
		again.Stop()
		if pause > 0 {
			again.Reset(pause)
		}
	}
}

// instances returns all that are known, in the order of their names.
func (v *view) instances() []cluster.Instance {
	list := make([]cluster.Instance, 0, len(v.children))
	for _, c := range v.children {
		if c.instance != nil {
			list = append(list, *c.instance)
		}
	}
	return list
}

// update brings the view up to date with what was told since.
func (v *view) update(ctx context.Context) (err error) {
	// The session first: its beginning is news, after which everything would be read
	// again.
	conn, _, err := v.session.borrow(ctx)
	if err != nil {
		return err
	}
	news := v.waker.take()
	defer func() {
		if err != nil {
			v.waker.giveBack(news)
		}
	}()
	if news.renewed || news.reconnected || news.all || news.touched[v.path] {
		v.listed = false
	}
	for name, c := range v.children {
		if news.renewed || news.all || news.touched[v.path+"/"+name] {
			c.read, c.watched = false, false
		}
	}
	if !v.listed {
		if err := v.list(ctx, conn); err != nil {
			return err
		}
	}
	return v.read(ctx, conn)
}

// list asks for the children, and to be told when there are others. Without a node there
// are none.
func (v *view) list(ctx context.Context, conn *zk.Conn) error {
	v.registry.stats.lists.Add(1)
	names, err := ask(ctx, v.session, conn, func(conn *zk.Conn) ([]string, error) {
		names, _, _, err := conn.ChildrenW(v.path)
		if !errors.Is(err, zk.ErrNoNode) {
			return names, err
		}
		exists, _, _, err := conn.ExistsW(v.path)
		if err == nil && exists {
			err = errors.New("the node was made just now")
		}
		return nil, err
	})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	slices.Sort(names)
	names = v.bound(names)
	before := v.children
	v.children = make(map[string]*child, len(names))
	for _, name := range names {
		if v.children[name] = before[name]; v.children[name] == nil {
			v.children[name] = &child{}
		}
	}
	v.listed = true
	return nil
}

// bound leaves out what is too much.
func (v *view) bound(names []string) []string {
	most := v.registry.config.MaxInstances
	if len(names) <= most {
		return names
	}
	v.registry.stats.leftOut.Add(int64(len(names) - most))
	v.registry.notices.Warn(time.Now(), "zookeeper: there are more nodes than are kept", v.service, "limit", most, "got", len(names))
	return names[:most]
}

// read reads the nodes of which it is not known what they say.
func (v *view) read(ctx context.Context, conn *zk.Conn) error {
	var wanted []string
	for name, c := range v.children {
		if !c.read {
			wanted = append(wanted, name)
		}
	}
	gone, err := each(ctx, wanted, func(ctx context.Context, name string) error {
		return v.readOne(ctx, conn, name, v.children[name])
	})
	for _, name := range gone {
		delete(v.children, name) // its parent will tell
	}
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	return nil
}

// each does something with each of some nodes, readers at a time, and returns those that are
// gone.
func each(ctx context.Context, wanted []string, do func(ctx context.Context, name string) error) (gone []string, err error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	names := make(chan string)
	failures := make(chan error, readers)
	var mu sync.Mutex // of gone
	var all sync.WaitGroup
	for range min(readers, len(wanted)) {
		all.Go(func() {
			for name := range names {
				switch err := do(ctx, name); {
				case errors.Is(err, zk.ErrNoNode):
					mu.Lock()
					gone = append(gone, name)
					mu.Unlock()
				case err != nil:
					failures <- err
					cancel()
					return
				}
			}
		})
	}
	for _, name := range wanted {
		select {
		case names <- name:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(names)
	all.Wait()
	select {
	case err := <-failures:
		return gone, err
	default:
		return gone, ctx.Err()
	}
}

// readOne reads a node, and asks to be told when it changes unless it has.
func (v *view) readOne(ctx context.Context, conn *zk.Conn, name string, c *child) error {
	config := v.registry.config
	broken := registries.CheckHostPort(name)
	if broken == nil {
		watched := c.watched
		found, err := ask(ctx, v.session, conn, func(conn *zk.Conn) (n node, err error) {
			if watched {
				n.data, n.stat, err = conn.Get(v.path + "/" + name)
			} else {
				n.data, n.stat, _, err = conn.GetW(v.path + "/" + name)
			}
			return n, err
		})
		if err != nil {
			return err
		}
		c.watched, c.changed = true, found.stat.Mzxid
		if len(found.data) > config.MaxValueBytes {
			broken = fmt.Errorf("data of %d bytes (limit %d)", len(found.data), config.MaxValueBytes)
		} else if instance, err := parseValue(name, found.data, config.ZoneTag); err != nil {
			broken = err
		} else {
			c.instance, c.read = &instance, true
			return nil
		}
	}
	c.read = true
	what := "zookeeper: a broken node was left out"
	if c.instance != nil {
		what = "zookeeper: a node is broken, what it was before stays"
	}
	v.registry.stats.brokenValues.Add(1)
	v.registry.notices.Warn(time.Now(), what, v.service, "node", fmt.Sprintf("%.80s", name), "error", broken)
	return nil
}

// check compares the names with those that there are, and looks whether a share of the nodes
// has changed. A difference that was not told is looked into; one that is being told does no
// harm.
func (v *view) check(ctx context.Context) {
	conn, _, err := v.session.borrow(ctx)
	if err != nil {
		return // watching fails as well, and says so
	}
	names, err := ask(ctx, v.session, conn, func(conn *zk.Conn) ([]string, error) {
		names, _, err := conn.Children(v.path)
		return names, err
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return
	}
	slices.Sort(names)
	names = names[:min(len(names), v.registry.config.MaxInstances)]
	same := len(names) == len(v.children)
	for _, name := range names {
		same = same && v.children[name] != nil
	}
	if !same {
		v.listed = false
	}
	v.look(ctx, conn, v.share(names))
}

// share returns the nodes whose turn it is, of names in their order: those behind the last one
// that was looked at.
func (v *view) share(names []string) []string {
	size := min(max((len(names)+lookShares-1)/lookShares, shareMin), len(names))
	next, found := slices.BinarySearch(names, v.looked)
	if found {
		next++
	}
	share := make([]string, 0, size)
	for i := range size {
		share = append(share, names[(next+i)%len(names)])
	}
	if size > 0 {
		v.looked = share[size-1]
	}
	return share
}

// look has those nodes read that are others than they were.
func (v *view) look(ctx context.Context, conn *zk.Conn, names []string) {
	names = slices.DeleteFunc(names, func(name string) bool {
		c := v.children[name]
		return c == nil || !c.read || !c.watched // it is read anyway, or not read at all
	})
	// What fails has another turn, and who is gone is told by its parent.
	_, _ = each(ctx, names, func(ctx context.Context, name string) error {
		stat, err := ask(ctx, v.session, conn, func(conn *zk.Conn) (*zk.Stat, error) {
			exists, stat, err := conn.Exists(v.path + "/" + name)
			if err == nil && !exists {
				err = zk.ErrNoNode
			}
			return stat, err
		})
		if c := v.children[name]; err == nil && stat.Mzxid != c.changed {
			c.read, c.watched = false, false
		}
		return err
	})
}
