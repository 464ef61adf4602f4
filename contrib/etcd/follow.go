package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

const (
	// pageKeys is how many keys a list is asked for at once.
	pageKeys = 1000
	// relistChecks is after how many checks everything is asked for again although
	// nothing seems to have changed, which finds what neither a watch nor a check shows.
	relistChecks = 10
)

// errStale says that what etcd has does not follow from what the follower knows.
var errStale = errors.New("etcd has lost or replaced its data")

// follower knows what is below a prefix, or at one key: it lists, watches, and lists
// again when the watch breaks or what it knows proves wrong. One goroutine runs it.
type follower[T any] struct {
	registry *Registry
	subject  string // for the log
	prefix   string
	// single is for one key, which is prefix.
	single bool
	// keysMax keys are kept; valueBytesMax bounds the value of each.
	keysMax, valueBytesMax int
	// parse reads a value; name is the key without prefix. foreign tells keys that
	// belong to something else, and may be nil.
	parse   func(name string, value []byte) (T, error)
	foreign func(name string) bool
	// keeps: a value that breaks stays what it was, for as long as its key exists.
	keeps bool
	// changed is told what time it is, when values or revision may have changed. It returns
	// after which time it wants to be called again though nothing did, 0 for never.
	changed func(f *follower[T], now time.Time) time.Duration

	// values are those that there are, nil for those that are broken, and revision is that
	// of etcd that they are of.
	values    map[string]*T
	revision  int64
	clusterID uint64
	// truncated: there was no room for some keys; short: there is since then, so it is of use
	// to list again.
	truncated, short bool
	// touched are names of values that are others than when changed was last called, or gone;
	// relisted says that all may be.
	touched  []string
	relisted bool
}

// run follows until ctx ends or the Registry is closed.
func (f *follower[T]) run(ctx context.Context) error {
	joined, cancel := f.registry.joined(ctx)
	defer cancel()
	pauses := registries.Pauses{Min: f.registry.config.BackoffMin, Max: f.registry.config.BackoffMax}
	for {
		err := f.list(joined)
		if err == nil {
			pauses.Reset()
			err = f.watch(joined)
		}
		if joined.Err() != nil {
			return f.registry.ended(ctx)
		}
		if errors.Is(err, errDue) {
			continue
		}
		f.registry.stats.watchFailures.Add(1)
		cluster.Report(ctx, fmt.Errorf("etcd: %w", err))
		f.registry.notices.Warn(time.Now(), "etcd: watching failed, what is known stays until it works again", f.subject, "error", err)
		if registries.Wait(joined, pauses.Next()) != nil {
			return f.registry.ended(ctx)
		}
	}
}

// list asks for everything, in pages, and keeps it if all of it came.
func (f *follower[T]) list(ctx context.Context) error {
	client, err := f.registry.connect(ctx)
	if err != nil {
		return err
	}
	f.registry.stats.lists.Add(1)
	values := map[string]*T{}
	key, limit := f.prefix, int64(pageKeys)
	var revision int64
	var clusterID uint64
	truncated := false
	for more := true; more; {
		page, err := f.page(ctx, client, key, revision, limit)
		if isTooLarge(err) && limit > 1 {
			limit = max(1, limit/8)
			continue
		}
		if isTooLarge(err) {
			// A single value that does not fit: its key comes without it.
			if page, err = f.page(ctx, client, key, revision, limit, clientv3.WithKeysOnly()); err == nil {
				for _, kv := range page.Kvs {
					kv.Value = make([]byte, f.valueBytesMax+1)
				}
			}
		}
		if err != nil {
			return err
		}
		if revision == 0 {
			revision, clusterID = page.Header.Revision, page.Header.ClusterId
		}
		for i, kv := range page.Kvs {
			if truncated = !f.put(values, kv); truncated {
				f.leaveOut(page.Count - int64(i)) // keys of others that follow count as well
				break
			}
			key = string(kv.Key) + "\x00"
		}
		more = page.More && !truncated && len(page.Kvs) > 0
	}
	f.values, f.revision, f.clusterID, f.truncated = values, revision, clusterID, truncated
	f.relisted, f.short = true, false
	return nil
}

func (f *follower[T]) page(ctx context.Context, client *clientv3.Client, key string, revision, limit int64, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, f.registry.config.RequestTimeout)
	defer cancel()
	options = append(options, clientv3.WithRev(revision), clientv3.WithLimit(limit))
	if !f.single {
		options = append(options, clientv3.WithRange(clientv3.GetPrefixRangeEnd(f.prefix)))
	}
	return client.Get(ctx, key, options...)
}

// isTooLarge tells an answer that is longer than messageBytesMax.
func isTooLarge(err error) bool {
	var said rpctypes.EtcdError
	if errors.As(err, &said) {
		return false // etcd itself says so of other things
	}
	return status.Code(err) == codes.ResourceExhausted
}

// name returns a key without the prefix.
func (f *follower[T]) name(kv *mvccpb.KeyValue) string {
	return string(kv.Key[min(len(f.prefix), len(kv.Key)):])
}

// put keeps a value. It returns false if there is no room for another key.
func (f *follower[T]) put(values map[string]*T, kv *mvccpb.KeyValue) bool {
	name := f.name(kv)
	if f.foreign != nil && f.foreign(name) {
		return true
	}
	if _, known := values[name]; !known && len(values) >= f.keysMax {
		return false
	}
	values[name] = f.value(name, kv.Value)
	return true
}

// leaveOut notes for how many keys there is no room.
func (f *follower[T]) leaveOut(keys int64) {
	f.registry.stats.leftOut.Add(keys)
	f.registry.notices.Warn(time.Now(), "etcd: there are more keys than are kept", f.subject, "limit", f.keysMax)
}

// value reads one value. For one that is broken it returns what it was before, if that is
// to be kept, else nil.
func (f *follower[T]) value(name string, value []byte) *T {
	var parsed T
	err := error(nil)
	if len(value) > f.valueBytesMax {
		err = fmt.Errorf("value of %d bytes or more (limit %d)", len(value), f.valueBytesMax)
	} else {
		parsed, err = f.parse(name, value)
	}
	if err == nil {
		return &parsed
	}
	var before *T
	what := "etcd: a broken value was left out"
	if f.keeps && f.values[name] != nil {
		before, what = f.values[name], "etcd: a value is broken, what it was before stays"
	}
	f.registry.stats.brokenValues.Add(1)
	f.registry.notices.Warn(time.Now(), what, f.subject, "key", fmt.Sprintf("%.80s", name), "error", err)
	return before
}

// watch tells what it knows, and follows until something breaks.
func (f *follower[T]) watch(ctx context.Context) error {
	client, err := f.registry.connect(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := f.open(ctx, cancel, client)
	if err != nil {
		return err
	}
	again := time.NewTimer(0) // at once: what was listed
	defer again.Stop()
	checks := newChecks(f.registry.config)
	defer checks.stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case answer, ok := <-events:
			if !ok {
				return errors.New("watch: the channel is closed")
			}
			if err := answer.Err(); err != nil {
				return fmt.Errorf("watch: %w", err)
			}
			if err := f.apply(answer); err != nil {
				return err
			}
			if f.short {
				checks.need()
			}
		case <-again.C:
		case <-checks.due():
			if err := checks.did(f.check(ctx, client), f.short); err != nil {
				return err
			}
			continue
		}
		again.Stop()
		if pause := f.tell(time.Now()); pause > 0 {
			again.Reset(pause)
		}
	}
}

// tell calls changed.
func (f *follower[T]) tell(now time.Time) (again time.Duration) {
	again = f.changed(f, now)
	f.touched, f.relisted = f.touched[:0], false
	return again
}

// open begins to watch from where the list ended. It does not wait for ever: while etcd
// is away the client would.
func (f *follower[T]) open(ctx context.Context, cancel context.CancelFunc, client *clientv3.Client) (clientv3.WatchChan, error) {
	// With a leader only: a member that is cut off from the others knows no news.
	options := []clientv3.OpOption{clientv3.WithRev(f.revision + 1), clientv3.WithFragment()}
	if !f.single {
		options = append(options, clientv3.WithPrefix())
	}
	late := time.AfterFunc(f.registry.config.RequestTimeout, cancel)
	events := client.Watch(clientv3.WithRequireLeader(ctx), f.prefix, options...)
	if !late.Stop() {
		return nil, fmt.Errorf("watch: no answer within %v", f.registry.config.RequestTimeout)
	}
	return events, nil
}

// apply takes over what a watch says.
func (f *follower[T]) apply(answer clientv3.WatchResponse) error {
	if answer.Header.ClusterId != f.clusterID {
		return errStale
	}
	for _, event := range answer.Events {
		name := f.name(event.Kv)
		f.touched = append(f.touched, name)
		if event.Type == clientv3.EventTypePut {
			if !f.put(f.values, event.Kv) {
				f.truncated = true
				if event.IsCreate() { // else it counts already
					f.leaveOut(1)
				}
			}
			continue
		}
		_, kept := f.values[name]
		delete(f.values, name)
		f.short = f.short || kept && f.truncated
	}
	f.revision = max(f.revision, answer.Header.Revision)
	return nil
}

// check compares what is known with etcd: an etcd that lost its data, or was restored
// from a backup, counts its revisions anew, and a watch would wait for those that it had.
func (f *follower[T]) check(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, f.registry.config.RequestTimeout)
	defer cancel()
	options := []clientv3.OpOption{clientv3.WithCountOnly()}
	if !f.single {
		options = append(options, clientv3.WithPrefix())
	}
	found, err := client.Get(ctx, f.prefix, options...)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if found.Header.ClusterId != f.clusterID || found.Header.Revision < f.revision {
		return errStale
	}
	return nil
}
