package fulmar

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// Metadata are the pairs of texts that came with a call. Protocols without
// headers, Bare and Framed, carry none. The zero value is empty; it never
// changes. Keys are compared exactly. Nothing checks what a peer writes here:
// do not base access on it.
type Metadata struct{ pairs []transport.Pair }

// Persistent returns a value that travels the whole chain of calls.
func (m Metadata) Persistent(key string) (value string, ok bool) {
	return m.find(wire.PersistentPrefix, key)
}

// Transient returns a value that the direct caller has set.
func (m Metadata) Transient(key string) (value string, ok bool) {
	return m.find(wire.TransientPrefix, key)
}

func (m Metadata) find(prefix, key string) (value string, ok bool) {
	for i := range m.pairs {
		if m.pairs[i].Prefix == prefix && m.pairs[i].Key == key {
			return m.pairs[i].Value, true
		}
	}
	return "", false
}

// AllPersistent returns the persistent pairs, in the order in which they came.
func (m Metadata) AllPersistent() iter.Seq2[string, string] { return m.all(wire.PersistentPrefix) }

// AllTransient returns the transient pairs, in the order in which they came.
func (m Metadata) AllTransient() iter.Seq2[string, string] { return m.all(wire.TransientPrefix) }

func (m Metadata) all(prefix string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := range m.pairs {
			if m.pairs[i].Prefix == prefix && !yield(m.pairs[i].Key, m.pairs[i].Value) {
				return
			}
		}
	}
}

// with returns m with a pair set, or without it if the value is empty.
func (m Metadata) with(prefix, key, value string) Metadata {
	pairs := make([]transport.Pair, 0, len(m.pairs)+1)
	for _, pair := range m.pairs {
		if pair.Prefix != prefix || pair.Key != key {
			pairs = append(pairs, pair)
		}
	}
	if key != "" && value != "" {
		pairs = append(pairs, transport.Pair{Prefix: prefix, Key: key, Value: value})
	}
	return Metadata{pairs}
}

// onward returns what a handler's own calls carry: the persistent pairs.
func (m Metadata) onward() Metadata {
	var onward Metadata
	for _, pair := range m.pairs {
		if pair.Prefix == wire.PersistentPrefix {
			onward.pairs = append(onward.pairs, pair)
		}
	}
	return onward
}

// outgoingKey is the context key of the Metadata that calls carry.
type outgoingKey struct{}

// WithPersistent returns a context whose calls carry a pair that travels on
// through all calls that they cause. An empty value removes the key. In a
// handler the context carries the persistent pairs of its call already.
//
// The header that holds all of it is bounded (limits.HeaderInfoBytes,
// limits.HeaderPairs in docs/guide/limits.md); a call with more fails before it
// is sent. Keys from other systems are usually UPPER_SNAKE: gRPC can carry no
// others unchanged.
func WithPersistent(ctx context.Context, key, value string) context.Context {
	return withOutgoing(ctx, wire.PersistentPrefix, key, value)
}

// WithTransient returns a context whose calls carry a pair for the called
// server only: one hop. An empty value removes the key. Keys that begin with
// "UPSTREAM_" cannot be sent: every peer, Kitex too, takes their pairs for some
// that have made their hop. A call with one fails before it is sent, with code
// InvalidArgument; protocols without headers do not look at it.
func WithTransient(ctx context.Context, key, value string) context.Context {
	return withOutgoing(ctx, wire.TransientPrefix, key, value)
}

func withOutgoing(ctx context.Context, prefix, key, value string) context.Context {
	return context.WithValue(ctx, outgoingKey{}, OutgoingMetadata(ctx).with(prefix, key, value))
}

// OutgoingMetadata returns what calls with ctx carry.
func OutgoingMetadata(ctx context.Context) Metadata {
	outgoing, _ := ctx.Value(outgoingKey{}).(Metadata)
	return outgoing
}

// replyMetadata collects what a handler sends back. Safe for concurrent use.
type replyMetadata struct {
	mu    sync.Mutex
	pairs []transport.Pair
	// trailing are those that go behind the message where that can be said.
	trailing []transport.Pair
	sent     bool
}

// SetReplyMetadata sends a pair back with the reply of the call that ctx belongs
// to, whether it succeeds or fails; the caller gets it with ReceiveMetadata. The
// last value of a key counts, an empty one removes it. It fails outside of a
// handler, once the reply has gone, for empty keys and for those that the
// protocol uses itself. Peers that cannot be sent metadata do not get it.
func SetReplyMetadata(ctx context.Context, key, value string) error {
	return setReply(ctx, key, value, false)
}

// SetReplyTrailer is SetReplyMetadata for a pair that goes behind the message in gRPC, in
// the trailers, as all pairs of streams do. Other protocols know no difference.
func SetReplyTrailer(ctx context.Context, key, value string) error {
	return setReply(ctx, key, value, true)
}

func setReply(ctx context.Context, key, value string, behind bool) error {
	call, ok := ctx.Value(callKey{}).(*servedCall)
	switch {
	case !ok:
		return fmt.Errorf("reply metadata %q: not in a handler", key)
	case key == "":
		return fmt.Errorf("reply metadata: the key of %q is empty", value)
	case isReserved(key):
		return fmt.Errorf("reply metadata %q: the protocol uses this key itself", key)
	}
	return call.reply.set(key, value, behind)
}

// isReserved reports whether a key of a reply has a meaning of its own.
func isReserved(key string) bool {
	switch key {
	case wire.CloseConnection, wire.IDLServiceName, wire.RealAddress, wire.Checksum:
		return true
	}
	for _, prefix := range []string{"biz-", "fulmar-", wire.PersistentPrefix, wire.TransientPrefix} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func (r *replyMetadata) set(key, value string, behind bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent {
		return fmt.Errorf("reply metadata %q: the reply has gone already", key)
	}
	// A key is in one place.
	there, other := value, ""
	if behind {
		there, other = other, there
	}
	if there != "" || len(r.pairs) > 0 {
		r.pairs = Metadata{r.pairs}.with("", key, there).pairs
	}
	if other != "" || len(r.trailing) > 0 {
		r.trailing = Metadata{r.trailing}.with("", key, other).pairs
	}
	return nil
}

// add sets all pairs that another server sent and that may be sent on: keys of the
// protocol say something about its own connection. At once, because a server may send
// many.
func (r *replyMetadata) add(values map[string]string) {
	if len(values) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent {
		return
	}
	pairs := make([]transport.Pair, 0, len(r.pairs)+len(values))
	for _, pair := range r.pairs {
		if _, again := values[pair.Key]; !again {
			pairs = append(pairs, pair)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if key != "" && values[key] != "" && !isReserved(key) {
			pairs = append(pairs, transport.Pair{Key: key, Value: values[key]})
		}
	}
	r.pairs = pairs
}

// take returns a head with the pairs for the reply; none can be added afterwards.
func (r *replyMetadata) take() transport.ReplyHead {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = true
	return transport.ReplyHead{Metadata: r.pairs, Trailing: r.trailing}
}

// ReceiveMetadata makes a call fill into with what the server sends back besides
// the result, also if the call fails; nil if that is nothing. With one variable
// for several calls, the last one counts.
func ReceiveMetadata(into *map[string]string) CallOption { return CallOption{receive: into} }

// received converts what a reply carried.
func received(pairs []transport.Pair) map[string]string {
	if len(pairs) == 0 {
		return nil
	}
	values := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		values[pair.Prefix+pair.Key] = pair.Value
	}
	return values
}
