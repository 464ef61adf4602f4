package fulmar

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// Metadata are the pairs of texts that came with a call or its reply. Protocols without
// headers, Bare and Framed, carry none. The zero value is empty; it never
// changes. Keys are compared exactly. Nothing checks what a peer writes here:
// do not base access on it.
//
// Keys that are not persistent can have several values in gRPC. Who asks for one gets
// texts with commas between them, and of keys that end in "-bin" the last value.
type Metadata struct {
	pairs []transport.Pair
	// http is what the headers of a call in gRPC say besides, nil for all else.
	http *transport.HTTPHead
}

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
			value, ok = another(key, value, ok, m.pairs[i].Value), true
		}
	}
	return value, ok
}

// another returns the one value of a key that has had others, if again, and has next as well.
func another(key, value string, again bool, next string) string {
	if !again || strings.HasSuffix(key, "-bin") {
		return next
	}
	return value + "," + next
}

// All returns all pairs, in the order in which they came, with keys as TTHeader has them.
// Those of a reply are as the handler has set them. Of a call that has come in gRPC the
// headers ":authority", "content-type", "user-agent" and "grpc-accept-encoding" are in front.
func (m Metadata) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if m.http != nil && !yieldHTTP(m.http, yield) {
			return
		}
		for i := range m.pairs {
			if !yield(m.pairs[i].Prefix+m.pairs[i].Key, m.pairs[i].Value) {
				return
			}
		}
	}
}

// yieldHTTP yields the headers that are there, and reports whether more are wanted.
func yieldHTTP(head *transport.HTTPHead, yield func(string, string) bool) bool {
	return (head.Authority == "" || yield(":authority", head.Authority)) &&
		(head.ContentType == "" || yield("content-type", head.ContentType)) &&
		(head.UserAgent == "" || yield("user-agent", head.UserAgent)) &&
		(head.AcceptEncoding == "" || yield("grpc-accept-encoding", head.AcceptEncoding))
}

// With returns m with a pair of a reply for each of the values, in place of those that the key had. Values that are
// empty are left out.
func (m Metadata) With(key string, values ...string) Metadata { return m.with("", key, values...) }

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

// with returns m with the values of a key, but those that are empty.
func (m Metadata) with(prefix, key string, values ...string) Metadata {
	pairs := make([]transport.Pair, 0, len(m.pairs)+len(values))
	for _, pair := range m.pairs {
		if pair.Prefix != prefix || pair.Key != key {
			pairs = append(pairs, pair)
		}
	}
	for _, value := range values {
		if key != "" && value != "" {
			pairs = append(pairs, transport.Pair{Prefix: prefix, Key: key, Value: value})
		}
	}
	return Metadata{pairs: pairs, http: m.http}
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
// server only: one hop. It takes the place of the values that the key had; an empty
// one removes the key. Several values are several headers in gRPC, and texts with commas
// between them elsewhere. Keys that begin with
// "UPSTREAM_" cannot be sent: every peer, Kitex too, takes their pairs for some
// that have made their hop. A call with one fails before it is sent, with code
// InvalidArgument; protocols without headers do not look at it.
func WithTransient(ctx context.Context, key string, values ...string) context.Context {
	return withOutgoing(ctx, wire.TransientPrefix, key, values...)
}

func withOutgoing(ctx context.Context, prefix, key string, values ...string) context.Context {
	return context.WithValue(ctx, outgoingKey{}, OutgoingMetadata(ctx).with(prefix, key, values...))
}

// OutgoingMetadata returns what calls with ctx carry.
func OutgoingMetadata(ctx context.Context) Metadata {
	outgoing, _ := ctx.Value(outgoingKey{}).(Metadata)
	return outgoing
}

// replyMetadata collects what a handler sends back. Safe for concurrent use.
type replyMetadata struct {
	mu   sync.Mutex
	sent bool
	// set is nil while there are none.
	set *replyPairs
}

// replyPairs are metadata of a reply. trailing are those that go behind the message where that
// can be said.
type replyPairs struct{ pairs, trailing []transport.Pair }

// SetReplyMetadata sends a pair back with the reply of the call that ctx belongs
// to, whether it succeeds or fails; the caller gets it with ReceiveMetadata. What is set last
// for a key counts, an empty value removes it. Several values are as WithTransient has
// them. In gRPC the pairs of a unary call are its header, and other clients than ours make no
// further attempt of a call that has failed with one. It fails outside of a
// handler, once the reply has gone, for empty keys and for those that the
// protocol uses itself, and in gRPC for what no header can have: other characters in a key than
// letters, digits, '-', '_' and '.', and in a value than printable ASCII, or space around it,
// unless the key ends in "-bin". Peers that cannot be sent metadata do not get it.
func SetReplyMetadata(ctx context.Context, key string, values ...string) error {
	return setReply(ctx, key, values, false)
}

// SetReplyTrailer is SetReplyMetadata for a pair that goes behind the message in gRPC, in
// the trailers, as all pairs of streams do. Other protocols know no difference.
func SetReplyTrailer(ctx context.Context, key string, values ...string) error {
	return setReply(ctx, key, values, true)
}

func setReply(ctx context.Context, key string, values []string, behind bool) error {
	call, ok := ctx.Value(callKey{}).(*servedCall)
	switch {
	case !ok:
		return fmt.Errorf("reply metadata %q: not in a handler", key)
	case key == "":
		return fmt.Errorf("reply metadata: the key of %q is empty", values)
	case isReserved(key):
		return fmt.Errorf("reply metadata %q: the protocol uses this key itself", key)
	case call.protocol == GRPC:
		for _, value := range values {
			if err := transport.CheckReplyPair(transport.Pair{Key: key, Value: value}); err != nil && value != "" {
				return fmt.Errorf("reply metadata %q: %w", key, err)
			}
		}
	}
	return call.reply.put(key, values, behind)
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

func (r *replyMetadata) put(key string, values []string, behind bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent {
		return fmt.Errorf("reply metadata %q: the reply has gone already", key)
	}
	set := r.setLocked()
	// A key is in one place.
	there, other := &set.pairs, &set.trailing
	if behind {
		there, other = other, there
	}
	*there = Metadata{pairs: *there}.with("", key, values...).pairs
	if len(*other) > 0 {
		*other = Metadata{pairs: *other}.with("", key).pairs
	}
	return nil
}

func (r *replyMetadata) setLocked() *replyPairs {
	if r.set == nil {
		r.set = new(replyPairs)
	}
	return r.set
}

// pass sets what another server sent and may be sent on, in place of what there is for the
// same keys.
func (r *replyMetadata) pass(header, trailer Metadata) {
	front, behind := passable(header.pairs), passable(trailer.pairs)
	if len(front)+len(behind) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent {
		return
	}
	again := make(map[string]bool, len(front)+len(behind))
	for _, pairs := range [...][]transport.Pair{front, behind} {
		for _, pair := range pairs {
			again[pair.Key] = true
		}
	}
	isAgain := func(pair transport.Pair) bool { return again[pair.Key] }
	set := r.setLocked()
	set.pairs = append(slices.DeleteFunc(set.pairs, isAgain), front...)
	set.trailing = append(slices.DeleteFunc(set.trailing, isAgain), behind...)
}

// take returns a head with the pairs for the reply; none can be added afterwards.
func (r *replyMetadata) take() transport.ReplyHead {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = true
	if r.set == nil {
		return transport.ReplyHead{}
	}
	return transport.ReplyHead{Metadata: r.set.pairs, Trailing: r.set.trailing}
}

// ReceiveMetadata makes a call fill into with what the server sends back besides
// the result, also if the call fails; nil if that is nothing. With one variable
// for several calls, the last one counts.
func ReceiveMetadata(into *map[string]string) CallOption { return CallOption{receive: into} }

// ReceiveReply makes a call fill into header what the server sends in front of its result,
// and into trailer what comes behind it, also if the call fails; both are empty if that is
// nothing. Only gRPC and streams know the difference: everywhere else all is in header. Keys
// are as the handler has set them. Either may be nil.
func ReceiveReply(header, trailer *Metadata) CallOption {
	return CallOption{reply: &receivedReply{header, trailer}}
}

// receivedReply is where the metadata of a reply go.
type receivedReply struct{ header, trailer *Metadata }

// fill copies the pairs, whose memory is used again. r may be nil.
func (r *receivedReply) fill(header, trailer []transport.Pair) {
	if r == nil {
		return
	}
	if r.header != nil {
		*r.header = Metadata{pairs: slices.Clone(header)}
	}
	if r.trailer != nil {
		*r.trailer = Metadata{pairs: slices.Clone(trailer)}
	}
}

// received converts what a reply carried, with one value for each key.
func received(header, trailer []transport.Pair) map[string]string {
	if len(header)+len(trailer) == 0 {
		return nil
	}
	values := make(map[string]string, len(header)+len(trailer))
	for _, pairs := range [...][]transport.Pair{header, trailer} {
		for _, pair := range pairs {
			key := pair.Prefix + pair.Key
			before, again := values[key]
			values[key] = another(key, before, again, pair.Value)
		}
	}
	return values
}
