package grpccompat

import (
	"context"
	"iter"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/fulmar-rpc/fulmar"
)

// Where Kitex puts its metadata into headers of gRPC.
const (
	persistentHeader = "rpc-persist-"
	transientHeader  = "rpc-transit-"
)

// incoming returns the metadata of a call as grpc-go has it.
func incoming(call fulmar.Call) metadata.MD {
	md := metadata.MD{}
	for key, value := range call.Metadata().All() {
		if !isHTTPHeader(key) {
			break // They are in front.
		}
		md[key] = append(md[key], value)
	}
	if service := call.CallerService(); service != "" {
		md["source-service"] = []string{service}
	}
	if method := call.CallerMethod(); method != "" {
		md["source-method"] = []string{method}
	}
	for key, value := range call.Metadata().AllTransient() {
		name := key
		if isKitexKey(key) {
			name = headerOf(transientHeader, key)
		}
		md[name] = append(md[name], value)
	}
	for key, value := range call.Metadata().AllPersistent() {
		name := headerOf(persistentHeader, key)
		md[name] = append(md[name], value)
	}
	return md
}

func isHTTPHeader(key string) bool {
	return key == ":authority" || key == "content-type" || key == "user-agent" || key == "grpc-accept-encoding"
}

// isKitexKey reports whether a transient pair is metadata of Kitex. Others are headers by themselves.
func isKitexKey(key string) bool { return strings.ToLower(key) != key }

// headerOf returns the header that a key of Kitex becomes.
func headerOf(prefix, key string) string {
	return prefix + strings.ReplaceAll(strings.ToLower(key), "_", "-")
}

// outgoing returns a context whose calls carry md. Headers that the protocol uses itself are
// left out, as grpc-go leaves them out. What incoming has made can go out again: handlers
// pass on what came to them.
func outgoing(ctx context.Context, md metadata.MD) context.Context {
	for key, values := range md {
		name := strings.ToLower(key)
		values = trimmed(name, values)
		switch {
		case ownHeader(name):
		case strings.HasPrefix(name, persistentHeader):
			ctx = withPersistent(ctx, name, values)
		case strings.HasPrefix(name, transientHeader):
			ctx = fulmar.WithTransient(ctx, transientKey(ctx, name), values...)
		default:
			ctx = fulmar.WithTransient(ctx, name, values...)
		}
	}
	return ctx
}

// withPersistent returns a context whose calls carry a persistent header. What the context
// carries already, as that of a handler does, goes on as it came, with the values and the
// spelling that it had.
func withPersistent(ctx context.Context, header string, values []string) context.Context {
	var keys, carried []string
	for key, value := range fulmar.OutgoingMetadata(ctx).AllPersistent() {
		if headerOf(persistentHeader, key) == header {
			keys, carried = append(keys, key), append(carried, value)
		}
	}
	if slices.Equal(carried, values) {
		return ctx
	}
	for _, key := range keys {
		ctx = fulmar.WithPersistent(ctx, key, "")
	}
	return fulmar.WithPersistent(ctx, keyOf(persistentHeader, header), oneValue(header, values))
}

// oneValue returns the values of a persistent key, which has one, as HTTP joins those of a
// header (RFC 9110, 5.3). Bytes cannot be joined: the last ones count.
func oneValue(header string, values []string) string {
	if strings.HasSuffix(header, "-bin") && len(values) > 0 {
		return values[len(values)-1]
	}
	return strings.Join(values, ",")
}

// transientKey returns the key of a transient header: in a handler as it came, if it did.
func transientKey(ctx context.Context, header string) string {
	if call, ok := fulmar.CallFrom(ctx); ok {
		for key := range call.Metadata().AllTransient() {
			if isKitexKey(key) && headerOf(transientHeader, key) == header {
				return key
			}
		}
	}
	return keyOf(transientHeader, header)
}

// keyOf returns a key of Kitex as it was before it became a header, if it was in UPPER_SNAKE.
func keyOf(prefix, header string) string {
	return strings.ReplaceAll(strings.ToUpper(strings.TrimPrefix(header, prefix)), "-", "_")
}

// ownHeader reports whether a header means something to HTTP/2, gRPC or Kitex.
func ownHeader(name string) bool {
	switch name {
	case "", "content-type", "content-length", "user-agent", "te", "host", "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade",
		"source-service", "source-method":
		return true
	}
	return name[0] == ':' || strings.HasPrefix(name, "grpc-")
}

// trimmed returns the values of a key without space around them, which gRPC lets be taken away and
// HTTP/2 forbids: strict peers reset the call for it. Bytes are as they are.
func trimmed(key string, values []string) []string {
	spaced := func(value string) bool { return strings.Trim(value, " ") != value }
	if !slices.ContainsFunc(values, spaced) || strings.HasSuffix(strings.ToLower(key), "-bin") {
		return values
	}
	values = slices.Clone(values) // They are the caller's.
	for i := range values {
		values[i] = strings.Trim(values[i], " ")
	}
	return values
}

// returned converts the metadata of a reply.
func returned(m fulmar.Metadata) metadata.MD {
	md := metadata.MD{}
	for key, value := range m.All() {
		md[key] = append(md[key], value)
	}
	return md
}

// toReturn is the same the other way round.
func toReturn(md metadata.MD) (m fulmar.Metadata) {
	for key, values := range returnable(md) {
		m = m.With(key, values...)
	}
	return m
}

// returnable yields what handlers send back, but headers that the protocol uses itself: grpc-go
// leaves those out, and metadata that goes back as it came has some of the caller.
func returnable(md metadata.MD) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for key, values := range md {
			switch {
			case key == "", key[0] == ':', key == "content-type", key == "user-agent", key == "te":
			case strings.HasPrefix(key, "grpc-") && key != "grpc-retry-pushback-ms":
			case !yield(key, trimmed(key, values)):
				return
			}
		}
	}
}
