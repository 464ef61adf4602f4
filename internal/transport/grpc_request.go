package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// grpcCall is what a request in gRPC has besides, and how it waits for its answer. It
// stays with the Request when that is used again.
type grpcCall struct {
	path string
	head RequestHead
	// encodings are the peer's. packs is how messages are compressed, where they are shorter
	// then, nil for not at all; packed is the one of the request.
	encodings *encodings
	packs     *encoding
	packed    []byte
	// fields are those of the request, and memory for them.
	fields []http2.Field
	// id is the stream, on the connection that the call is on.
	id uint32
	// rest is what of the body is not handed to the state machine yet.
	rest [][]byte
	// end is where in all that the connection sends the request ends, 0 as long as that is
	// not known.
	end int64
	// others write what the connection has of it.
	others bool
	reply  grpcReply
}

// reset lets go of what a call has referred to.
func (g *grpcCall) reset() {
	clear(g.fields)
	g.path, g.head, g.fields, g.rest = "", RequestHead{}, g.fields[:0], nil
	g.packs, g.packed = nil, nil
	g.id, g.end = 0, 0
	g.reply.reset()
}

// Keys of headers that Kitex has for metadata: a pair whose key is in upper case goes in
// lower case behind one of these, and is as it was on the other side.
const (
	grpcPersistent = "rpc-persist-"
	grpcTransient  = "rpc-transit-"
)

// errOneway and errNoService are why a method cannot be called.
var (
	errOneway    = errors.New("gRPC has no calls without an answer, so oneway methods cannot be called with it")
	errNoService = errors.New("gRPC calls a method with the name of its service, and the method has none")
)

// prepare keeps the head of a request until it is sent.
func (g *grpcCall) prepare(method Method, head RequestHead, payload wire.Payload) error {
	switch {
	case method.Oneway:
		return errOneway
	case head.Service == "":
		return errNoService
	}
	if g.path = method.Path; g.path == "" {
		g.path = "/" + head.Service + "/" + method.Name
	}
	g.head = head
	contentType := "application/grpc"
	if payload == wire.PayloadThrift {
		contentType = "application/grpc+thrift"
	}
	g.fields = append(g.fields[:0],
		http2.Field{Name: ":method", Value: "POST"},
		http2.Field{Name: ":scheme"},
		http2.Field{Name: ":path", Value: g.path},
		http2.Field{Name: ":authority"},
		http2.Field{Name: "te", Value: "trailers"},
		http2.Field{Name: "content-type", Value: contentType},
		http2.Field{Name: "user-agent", Value: "fulmar"},
		http2.Field{Name: "grpc-accept-encoding", Value: g.encodings.accepted},
	)
	if g.packs = g.encodings.find(head.Encoding); g.packs != nil {
		g.fields = append(g.fields, http2.Field{Name: "grpc-encoding", Value: g.packs.Name})
	}
	if head.FromService != "" {
		g.fields = append(g.fields, http2.Field{Name: "source-service", Value: head.FromService})
	}
	if head.FromMethod != "" {
		g.fields = append(g.fields, http2.Field{Name: "source-method", Value: head.FromMethod})
	}
	for i := range head.Metadata {
		field, err := metadataField(&head.Metadata[i])
		if err != nil {
			return err
		}
		g.fields = append(g.fields, field)
	}
	return nil
}

// pack compresses the message of a request, once, if that makes it shorter. What is sent
// without is marked so, whatever the header says.
func (g *grpcCall) pack(request *Request) {
	if g.packs == nil || g.packed != nil || request.Len() < deflateLeast {
		return
	}
	if g.packed = g.packs.deflate(request.slices(nil), request.Len()); g.packed == nil {
		g.packs = nil
	}
}

// check refuses what a request cannot be compressed with.
func (e *encodings) check(protocol wire.Protocol, encoding string) error {
	switch {
	case encoding == "" || encoding == identityName:
		return nil
	case protocol != wire.GRPC:
		return fmt.Errorf("compression %.40q: protocol %v has none, only gRPC has", encoding, protocol)
	case e.find(encoding) == nil:
		return fmt.Errorf("compression %.40q is not known (known: %s)", encoding, e.known())
	}
	return nil
}

// Where in the fields those are that depend on the connection.
const (
	fieldScheme    = 1
	fieldAuthority = 3
)

// address makes the fields those of a call on a connection, now. It returns them.
func (g *grpcCall) address(ctx context.Context, scheme, authority string, now time.Time) []http2.Field {
	g.fields[fieldScheme].Value, g.fields[fieldAuthority].Value = scheme, authority
	deadline, ok := ctx.Deadline()
	if !ok {
		return g.fields
	}
	var room [16]byte
	timeout := grpc.AppendTimeout(room[:0], int64(deadline.Sub(now)))
	// Hardly ever the same, so it is of no use in a table. Not kept in fields: the call may
	// be made again.
	return append(g.fields, http2.Field{Name: "grpc-timeout", Value: string(timeout), Sensitive: true})
}

// metadataField returns a pair as a header field. Keys in upper case are those of Kitex.
// A transient one that is not is a header as any gRPC server knows them.
func metadataField(pair *Pair) (http2.Field, error) {
	key, prefix := pair.Key, grpcTransient
	if pair.Prefix == wire.PersistentPrefix {
		prefix = grpcPersistent
	} else if hasUpstreamPrefix(key) {
		return http2.Field{}, fmt.Errorf("metadata: transient key begins with %q, so peers would drop its pair as one that has made its hop (key %.100q)", wire.UpstreamKeys, key)
	}
	name := ""
	if prefix == grpcPersistent || strings.ContainsFunc(key, isUpper) {
		name = prefix + strings.ReplaceAll(strings.ToLower(key), "_", "-")
	} else if name = key; isReservedHeader(key) {
		return http2.Field{}, fmt.Errorf("metadata: the header %.100q has a meaning in gRPC of its own", key)
	}
	if name == "" || strings.ContainsFunc(name, notInName) {
		return http2.Field{}, fmt.Errorf("metadata: the key %.100q cannot be sent: headers have letters, digits, '-', '_' and '.'", key)
	}
	if grpc.IsBinary(name) {
		return http2.Field{Name: name, Value: grpc.EncodeBinary([]byte(pair.Value))}, nil
	}
	if strings.ContainsFunc(pair.Value, notInValue) || strings.TrimSpace(pair.Value) != pair.Value {
		return http2.Field{}, fmt.Errorf("metadata: the value of %.100q cannot be sent: headers have printable ASCII without space around it, and keys that end in -bin have any bytes", key)
	}
	// What is secret must not be guessed from how well it compresses.
	return http2.Field{Name: name, Value: pair.Value, Sensitive: name == "authorization"}, nil
}

// hasUpstreamPrefix reports whether a transient key becomes a header that peers drop. In one of
// Kitex neither case nor '-' matters; others are headers by themselves.
func hasUpstreamPrefix(key string) bool {
	return len(key) >= len(wire.UpstreamKeys) && upperKey(key[:len(wire.UpstreamKeys)]) == wire.UpstreamKeys && strings.ContainsFunc(key, isUpper)
}

func isUpper(r rune) bool { return r >= 'A' && r <= 'Z' }

func notInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}

func notInValue(r rune) bool { return r < ' ' || r > '~' }

// isReservedHeader reports whether a name means something to HTTP/2 or gRPC.
func isReservedHeader(name string) bool {
	switch name {
	case "content-type", "te", "user-agent", "connection", "proxy-connection", "keep-alive",
		"transfer-encoding", "upgrade", "content-length", "host", "source-service", "source-method":
		return true
	}
	return strings.HasPrefix(name, "grpc-") || strings.HasPrefix(name, grpcPersistent) || strings.HasPrefix(name, grpcTransient)
}
