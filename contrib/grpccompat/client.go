package grpccompat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/protobuf"
)

// ClientConfig is how a Client calls.
type ClientConfig struct {
	// ClientConfig is that of Fulmar. Its Protocol is GRPC or, with Local, 0; 0 means GRPC.
	// Unary calls with Local carry what TTHeader can: values of a key with commas between
	// them, all in the header, and no details of errors. The network of package fulmartest
	// has no such limits.
	// Timeout ends unary calls without a deadline after 5 s if it is 0; a negative one lets
	// them wait as grpc-go does.
	fulmar.ClientConfig
	// UnaryInterceptors and StreamInterceptors run around calls, the first outermost, and
	// outside of those of Fulmar's. They get no *grpc.ClientConn but nil, as there is none.
	UnaryInterceptors  []grpc.UnaryClientInterceptor
	StreamInterceptors []grpc.StreamClientInterceptor
	// Credentials are asked for metadata for each call; nil for none. Those that want
	// transport security are refused without TLS.
	Credentials credentials.PerRPCCredentials
}

// secure reports whether calls go over TLS.
func (c *ClientConfig) secure() bool {
	return c.TLS.Enable || c.TLS.Config != nil || c.TLS.Files != fulmar.CertificateFiles{}
}

// Client makes calls for stubs that protoc-gen-go-grpc has generated, as a *grpc.ClientConn
// does. Errors of its calls are statuses for package status, and *fulmar.Error for
// errors.As. It is safe for concurrent use.
//
// Of the options of calls it knows grpc.Header, Trailer, Peer, WaitForReady, UseCompressor,
// MaxCallSendMsgSize, MaxCallRecvMsgSize (beside MaxMessageBytes, which bounds what arrives),
// PerRPCCredentials, OnFinish, StaticMethod, MaxRetryRPCBufferSize (it keeps nothing for
// retries), CallContentSubtype("proto"), and those that interceptors have for themselves. A
// call with another one, such as grpc.ForceCodec or CallAuthority, fails with code
// Unimplemented and the name of the option.
//
// grpc.Peer has the address as the client knows it, which is a name where the target or the
// registry has one. With TLS its AuthInfo is credentials.TLSInfo; the certificates in it are
// those of the last handshake, and missing with several servers. Of a stream that was opened
// again it is the first server.
//
// A pair of metadata whose value is empty is not sent, nor is space around a value. Headers with rpc-persist- and
// rpc-transit- are metadata of Kitex: a '_' behind that arrives as '-', values of a
// persistent one are joined with commas, and a call with rpc-transit-upstream- fails with
// InvalidArgument, because peers would drop the pair unseen.
type Client struct {
	client *fulmar.Client
	config ClientConfig
	// methods are those that were called, by "/service/method" and kind; known counts them.
	methods sync.Map
	known   atomic.Int32
	// handshakes are those of all connections.
	handshakes handshakes
}

var _ grpc.ClientConnInterface = (*Client)(nil)

// methodsMost bounds how many methods a Client remembers. Stubs have few; names that a proxy
// was given by somebody else are made anew each time.
const methodsMost = 4096

// NewClient returns a client. It connects when the first call is made. Close ends it.
func NewClient(config ClientConfig) (*Client, error) {
	if config.Protocol == 0 && config.Local == nil {
		config.Protocol = fulmar.GRPC
	}
	if config.Protocol != fulmar.GRPC && config.Local == nil {
		return nil, fmt.Errorf("grpccompat: Protocol %v: stubs of gRPC call with %v", config.Protocol, fulmar.GRPC)
	}
	if c := config.Credentials; c != nil && c.RequireTransportSecurity() && !config.secure() {
		return nil, errors.New("grpccompat: Credentials want transport security, and TLS is not configured")
	}
	c := &Client{config: config}
	if config.secure() {
		config.TLS.Config = c.handshakes.watch(config.TLS.Config)
	}
	var err error
	if c.client, err = fulmar.NewClient(config.ClientConfig); err != nil {
		return nil, err
	}
	c.config.UnaryInterceptors = slices.Clone(config.UnaryInterceptors)
	c.config.StreamInterceptors = slices.Clone(config.StreamInterceptors)
	return c, nil
}

// Fulmar returns the client below, for generated clients of Fulmar and its other methods.
func (c *Client) Fulmar() *fulmar.Client { return c.client }

// Close ends calls in progress, and the connections.
func (c *Client) Close() error { return c.client.Close() }

// methodKey is what a Client finds a method by.
type methodKey struct {
	name             string
	clients, servers bool
}

// method returns the description of a method that stubs call "/service/method".
func (c *Client) method(name string, clients, servers bool) (*fulmar.MethodDesc, error) {
	key := methodKey{name, clients, servers}
	if found, ok := c.methods.Load(key); ok {
		return found.(*fulmar.MethodDesc), nil
	}
	at := strings.LastIndexByte(name, '/')
	if at <= 0 || name[0] != '/' || at == len(name)-1 {
		return nil, status.Errorf(codes.Internal, "the method %.100q is not /service/method", name)
	}
	method := &fulmar.MethodDesc{
		Service: name[1:at], Name: name[at+1:], Codec: protobuf.Binary, ClientStreams: clients, ServerStreams: servers,
	}
	if c.known.Load() >= methodsMost {
		return method, nil
	}
	found, loaded := c.methods.LoadOrStore(key, method)
	if !loaded {
		c.known.Add(1)
	}
	return found.(*fulmar.MethodDesc), nil
}

// Invoke implements grpc.ClientConnInterface; generated stubs call it.
func (c *Client) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	invoker := func(ctx context.Context, method string, request, reply any, _ *grpc.ClientConn, options ...grpc.CallOption) error {
		return c.invoke(ctx, method, request, reply, options)
	}
	for _, interceptor := range slices.Backward(c.config.UnaryInterceptors) {
		inner := invoker
		invoker = func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, options ...grpc.CallOption) error {
			return interceptor(ctx, method, request, reply, cc, inner, options...)
		}
	}
	return invoker(ctx, method, request, reply, nil, options...)
}

func (c *Client) invoke(ctx context.Context, name string, request, reply any, options []grpc.CallOption) error {
	o, err := c.choose(options)
	if err == nil {
		err = c.call(ctx, name, request, reply, o)
	}
	o.finish(err)
	return err
}

func (c *Client) call(ctx context.Context, name string, request, reply any, o *callOptions) error {
	method, err := c.method(name, false, false)
	if err != nil {
		return err
	}
	request = filled(request)
	if err := o.checkSent(request); err != nil {
		return err
	}
	if ctx, err = c.outgoing(ctx, method, name, o); err != nil {
		return err
	}
	var header, trailer fulmar.Metadata
	if len(o.headers)+len(o.trailers) > 0 {
		o.fulmar = append(o.fulmar, fulmar.ReceiveReply(&header, &trailer))
	}
	err = toStatus(c.client.Call(ctx, method, request, reply, o.fulmar...))
	o.returned(header, trailer)
	o.reached(c, err)
	if err != nil {
		return err
	}
	return o.checkReceived(reply)
}

// NewStream implements grpc.ClientConnInterface; generated stubs call it.
func (c *Client) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	streamer := func(ctx context.Context, desc *grpc.StreamDesc, _ *grpc.ClientConn, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
		return c.newStream(ctx, desc, method, options)
	}
	for _, interceptor := range slices.Backward(c.config.StreamInterceptors) {
		inner := streamer
		streamer = func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
			return interceptor(ctx, desc, cc, method, inner, options...)
		}
	}
	return streamer(ctx, desc, nil, method, options...)
}
