package fulmar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// ServerConfig configures a Server. The zero value serves every protocol on
// port 8888. In every number and duration 0 is the default that the field
// gives, and a negative value switches the limit off. The name behind a default
// is its row in docs/guide/limits.md, which says why.
type ServerConfig struct {
	// Address to listen on: "host:port", "unix:///path" or "unix:@abstract".
	// Port 0 picks a free one; see Server.Listen. Default ":8888".
	Address string
	// LocalOnly serves no socket, only clients of this process; see
	// ClientConfig.Local.
	LocalOnly bool
	// Registry in which the server is announced while it serves, under the name Service,
	// as Advertise says; see docs/guide/discovery.md. If it cannot be, the server serves
	// all the same and tries again. A graceful stop begins with taking it out, and goes on
	// 1 s (WithdrawPause) later, when clients know. Default: it is not announced.
	Registry cluster.Registry `json:"-"`
	Service  string
	// Advertise is what is announced: weight, zone and tags, and the address that clients
	// call. Default: that of the listener; if it listens at all addresses the first one
	// that other machines can use, of IPv4 if there is one, or with a cluster.Directory
	// 127.0.0.1.
	Advertise cluster.Instance
	// Listener to use instead of Address. The Server closes it.
	Listener net.Listener `json:"-"`
	// Protocols that connections may speak. TTHeader and TTHeaderFramed are one
	// to a server: either allows both. KitexProtobuf is served by UnknownHandler and
	// raw methods only; without them each such call is refused. Default: all.
	Protocols []Protocol
	// TLS secures all connections. Default: none is.
	TLS ServerTLS

	// MaxMessageBytes bounds a request, and a reply. A longer request is
	// refused, and the connection goes on if its framing allows. Default 16 MiB
	// (MessageBytes).
	MaxMessageBytes int
	// MaxSendBytes bounds a reply, and each message of a stream that is sent, in place of
	// MaxMessageBytes. Default what that is, 16 MiB (MessageBytes).
	MaxSendBytes int
	// MaxDepth bounds the nesting of structs and containers. Default 64 (Depth);
	// off means 10,000, which the stack still holds.
	MaxDepth int
	// DecodeBytesPerWireByte times the length of a request, plus 64 KiB
	// (DecodeBytesBase), is how much memory decoding it may take. Lists of structs
	// with many optional fields of which few are set may need more; see
	// docs/guide/limits.md. Default 64 (DecodeBytesPerWireByte).
	DecodeBytesPerWireByte int
	// MaxDecodeBytes caps the memory that decoding one request may take. Default
	// 256 MiB (DecodeBytesMax).
	MaxDecodeBytes int64
	// MaxBufferedBytes bounds the bytes of all messages together that are
	// arriving, wait to be decoded, or wait for their peer to read them, and of
	// the headers of calls that run. Calls for which there is no room are refused
	// with ResourceExhausted, and a stream ends so whose message has to wait.
	// Default: a quarter of the memory limit of the process (GOMEMLIMIT) if it has one, else 512 MiB (BufferedBytesMax).
	MaxBufferedBytes int64
	// MaxConnections bounds open connections; more are closed at once. Default:
	// ConnectionsPercent of the file descriptors that the process may open, after
	// 64 (ConnectionsReserve).
	MaxConnections int

	// MaxCalls bounds calls in progress; more are refused. A call counts until
	// its handler returns, also when its connection is gone. Default 100,000
	// (ServerCalls).
	MaxCalls int
	// MaxConnectionCalls bounds calls in progress of one connection whose peer takes
	// replies in any order; then the server does not read from it until one has
	// ended. Default 1,000 (ConnectionCalls). In gRPC it is how many streams a client may
	// have, by default 250 (HTTP2Streams).
	MaxConnectionCalls int
	// MaxRunningCalls bounds the calls whose handlers run; more wait, the first
	// one first. It is for handlers that compute: if more of them run than there are
	// processors, all take longer and none ends earlier, so a few for each
	// processor are best. For those that wait for others it is best left alone.
	// Default 100,000 (ServerCalls), so that no call waits, unless the server is
	// overloaded: see MaxWaitPercent.
	MaxRunningCalls int
	// MaxQueuedCalls bounds the calls that wait to run; more are refused. Default
	// 1,000 (QueuedCalls).
	MaxQueuedCalls int
	// MaxQueueTime bounds how long a call waits to run; then it is refused. It is
	// refused at once if it would wait longer than that, or than its caller waits
	// for the answer. A call that expired is not run. Only a burst waits for so long:
	// when calls are refused and the queue is never short all the same, it is made
	// shorter by what always waits, which makes others wait for nothing. Default 100 ms
	// (QueueTime).
	MaxQueueTime time.Duration
	// MaxWaitPercent is how much of its time a call may wait to run, in percent, while
	// the server is overloaded: while calls have to wait for a processor. Then
	// only so many run as processors can take, the others wait, the first one first,
	// and what would wait for longer is refused, and what only makes others wait, as with
	// MaxQueueTime. Calls without a deadline wait and are not refused. It needs no
	// MaxRunningCalls, and is off with one, or if it is negative. More than all of it is
	// refused. Default 45 (WaitPercent).
	MaxWaitPercent int

	// FirstByteTimeout closes connections that say nothing at first. Default
	// 10 s (FirstByteTimeout).
	FirstByteTimeout time.Duration
	// FrameTimeout closes connections on which a message takes longer to arrive
	// than this plus its size at 64 KiB/s (FrameBytesPerSecond), and in gRPC ends
	// the call with DeadlineExceeded. Default 5 s (FrameTimeout).
	FrameTimeout time.Duration
	// IdleTimeout closes connections without a call. Keep it above the
	// clients'. Default 10 min (ServerIdleTimeout).
	IdleTimeout time.Duration
	// PingAfter is how long a connection in gRPC with calls in progress may say nothing
	// until the server asks for a sign of life. If none comes within 10 s
	// (HTTP2AnswerTimeout), it is closed, and the contexts of its calls end: it is for
	// streams, and clients that are stopped but still connected. Less than 10 s
	// (HTTP2PingInterval) counts as that. Default 1 min (ServerPingAfter).
	PingAfter time.Duration
	// MaxConnectionAge is how long a connection in gRPC takes new calls, give or take a
	// tenth. Then its client is told to use another one (GOAWAY), which loses no call:
	// behind a balancer of connections, clients reach servers that were added. Those of
	// Fulmar do so by themselves, in all protocols. Default 2 h (ServerConnectionAge).
	MaxConnectionAge time.Duration
	// MaxConnectionAgeGrace is for how long calls on such a connection, streams above all,
	// may go on behind MaxConnectionAge; then it is closed. Default 1 h (ServerAgeGrace).
	MaxConnectionAgeGrace time.Duration
	// WriteStallTimeout closes connections whose peer reads nothing although
	// bytes wait for it. Default 30 s (WriteStallTimeout); on Linux TCP gives up
	// after 20 s (UserTimeout), unless this is set to more or switched off.
	WriteStallTimeout time.Duration
	// StreamSendTimeout ends a stream on which a message waits to be sent and the client
	// has made no room for so long: Send returns DeadlineExceeded. Receivers make room for
	// half a window at a time, so it must not be short where messages are received slowly.
	// Default 1 h (StreamSendTimeout).
	StreamSendTimeout time.Duration
	// DrainTimeout is how long Serve waits for running calls after its context
	// ended. Default 30 s (DrainTimeout); off means for ever.
	DrainTimeout time.Duration

	// BeforeStop is called when a graceful stop begins, while connections are accepted
	// and calls served as before: to take the server out of a registry, and to wait
	// until clients know. After 10 s (BeforeStopTimeout) its context ends, and the stop
	// goes on without it. Serve returns its error. If Serve ends because of Close, or
	// because the listener fails, it is called then. Default: nothing is done.
	BeforeStop func(ctx context.Context) error `json:"-"`
	// Interceptors around every call, the first outermost. They run before the
	// request is decoded, unless one of them asks for it with Unary.Request.
	Interceptors []UnaryInterceptor `json:"-"`
	// DecodedInterceptors run inside of Interceptors, after the request was decoded:
	// they see every call whose request is sound and that the others let pass.
	DecodedInterceptors []UnaryInterceptor `json:"-"`
	// StreamInterceptors around every streaming call, the first outermost.
	StreamInterceptors []StreamInterceptor `json:"-"`
	// Encodings are ways to compress messages in gRPC besides gzip: requests may have any
	// of them, and get answers in the same one, if the client takes it.
	Encodings []Encoding `json:"-"`
	// Observers are told of the phases of each call, and of connections; at most 6
	// (Observers). See package observe. Default: none, which costs nothing.
	Observers []observe.Observer `json:"-"`
	// Policy bounds calls, of all protocols, before anything of them is decoded; see
	// docs/guide/limiting.md. Default: only the limits above hold.
	Policy policy.Server
	// PolicyFile is a regular file with a policy.Document in JSON, whose part for servers takes
	// the place of Policy. It is read again when it changes; one that is wrong then, or gone,
	// changes nothing, and is logged with all that is wrong. Default: none.
	PolicyFile string
	// PolicySource delivers such documents, in place of a file, while the server serves:
	// it calls deliver with the first one and with each that follows, until ctx ends.
	// version is for the log. What goes wrong meanwhile it tells cluster.Report. If it returns
	// earlier it is called again. Default: none.
	PolicySource func(ctx context.Context, deliver func(document []byte, version string)) error `json:"-"`
	// UnknownHandler answers calls of services and methods that are not registered,
	// with the bytes of their bodies; Forward makes one. It gets those in Protobuf too
	// (Call.PayloadCodec), unless Protocols leaves out KitexProtobuf. With it a call that names a
	// service which is not registered is never one of a registered method. Default:
	// such calls are refused with Unimplemented.
	UnknownHandler UnknownHandler `json:"-"`
	// UnknownStreamHandler serves streams of services and methods that are not registered:
	// messages are sent and received as *Raw, each a message in Protobuf or a struct in
	// Thrift (Call.PayloadCodec); ForwardStreams makes one. In gRPC nothing tells a stream from a
	// call with one message each way, so it gets all such calls, and UnknownHandler
	// none. Default: streams are refused with Unimplemented.
	UnknownStreamHandler func(ctx context.Context, messages *ServerMessages) error `json:"-"`
	// Logger for what operators should know. Default slog.Default().
	Logger *slog.Logger `json:"-"`
}

// Validate returns every problem of the configuration, joined, or nil.
func (c ServerConfig) Validate() error {
	var problems []error
	if c.LocalOnly && (c.Listener != nil || c.Address != "") {
		problems = append(problems, errors.New("server config: LocalOnly: with it nothing listens, so neither Address nor Listener can be set"))
	}
	if c.Listener == nil && c.Address != "" {
		if _, _, err := parseAddress(c.Address); err != nil {
			problems = append(problems, fmt.Errorf("server config: Address: %w", err))
		}
	}
	for i, p := range c.Protocols {
		if !supported.Has(wire.Protocol(p)) {
			problems = append(problems, fmt.Errorf("server config: Protocols[%d]: %d is not a protocol (known: %s)", i, p, supported))
		}
	}
	problems = append(problems, checkInterceptors("server config: Interceptors", c.Interceptors)...)
	problems = append(problems, checkInterceptors("server config: DecodedInterceptors", c.DecodedInterceptors)...)
	problems = append(problems, checkInterceptors("server config: StreamInterceptors", c.StreamInterceptors)...)
	problems = append(problems, checkObservers("server config", c.Observers)...)
	problems = append(problems, labelled("server config", c.TLS.check())...)
	if err := c.eventLoop().Validate(); err != nil {
		problems = append(problems, fmt.Errorf("server config: %w", err))
	}
	if c.MaxWaitPercent > 100 {
		problems = append(problems, fmt.Errorf("server config: MaxWaitPercent: %d is more than all of a call's time (at most 100)", c.MaxWaitPercent))
	}
	problems = append(problems, checkDurations("server config", map[string]time.Duration{
		"FirstByteTimeout": c.FirstByteTimeout, "FrameTimeout": c.FrameTimeout, "IdleTimeout": c.IdleTimeout, "DrainTimeout": c.DrainTimeout, "StreamSendTimeout": c.StreamSendTimeout,
		"MaxQueueTime": c.MaxQueueTime, "PingAfter": c.PingAfter, "MaxConnectionAge": c.MaxConnectionAge,
		"MaxConnectionAgeGrace": c.MaxConnectionAgeGrace,
	})...)
	problems = append(problems, checkEncodings("server config", c.Encodings)...)
	problems = append(problems, checkPolicy("server config", policy.Document{Server: c.Policy}, c.PolicyFile, c.PolicySource)...)
	problems = append(problems, c.checkAnnouncement()...)
	return errors.Join(append(problems, checkMessageLimits("server config", c.MaxMessageBytes, c.MaxSendBytes, c.MaxDepth)...)...)
}

// eventLoop returns what the server's connections take from the configuration.
func (c ServerConfig) eventLoop() eventloop.Config {
	return eventloop.Config{MaxConnections: c.MaxConnections, WriteStallTimeout: c.WriteStallTimeout}
}

func (c ServerConfig) allowed() wire.Set {
	if len(c.Protocols) == 0 {
		return supported
	}
	var set wire.Set
	for _, p := range c.Protocols {
		set |= wire.SetOf(wire.Protocol(p))
	}
	return set
}

// ClientConfig configures a Client. In every number and duration 0 is the
// default that the field gives, and a negative value switches the limit off. The
// name behind a default is its row in docs/guide/limits.md, which says why.
type ClientConfig struct {
	// Target to call: "host:port", "unix:///path", "unix:@abstract", or a list of
	// servers, "static:///host:port,host:port", of at most 256 (TargetInstances);
	// or one whose servers are looked up: "dns:///host:port", "file:///service", or that
	// of a scheme in Registries. See docs/guide/targets.md and docs/guide/discovery.md.
	// Required, unless Local is set.
	Target string
	// Resolver finds the servers in place of what Target says, which is only the name of
	// them then. Default: that of Target.
	Resolver cluster.Resolver `json:"-"`
	// Registries find the servers of targets by their scheme: with "etcd" in it, Target can
	// be "etcd:///service". Default: "dns" and "file" are known.
	Registries map[string]cluster.Registry `json:"-"`
	// Local is a server of this process to call instead of a Target, without a
	// socket. All else is as on the network: messages are encoded and decoded, so
	// that caller and handler share no memory, and interceptors, metadata, deadlines,
	// limits and errors are the same; see docs/guide/local.md. Fields about
	// connections have no meaning then. Calls are refused before Server.Listen or
	// Serve, and when the server stops.
	Local *Server `json:"-"`
	// Service is the name under which the called service is registered and
	// known to operators, Caller that of the calling one. Both are only told to
	// the server, by protocols with headers. In gRPC Service is the authority, and
	// without it the address is. Default: none.
	Service string
	Caller  string
	// Protocol to speak. Default TTHeader.
	Protocol Protocol
	// AssumeMultiplexed shares connections among calls although the server does
	// not say that it answers them in any order: for Kitex servers with
	// multiplexing. Servers of Fulmar say so. Protocols TTHeader and
	// TTHeaderFramed only.
	AssumeMultiplexed bool
	// QualifiedNames calls methods as "Service:method", which Apache Thrift
	// names multiplexed: for servers where several services have a method of
	// the same name, for example an inherited one.
	QualifiedNames bool

	// TLS secures all connections. Default: none is.
	TLS ClientTLS

	// Timeout of a call, unless the option Timeout says otherwise. A deadline of
	// the context that is earlier counts. Default 5 s (CallTimeout).
	Timeout time.Duration
	// ConnectTimeout bounds one attempt to connect, with the TLS handshake, and so does half of the time
	// that the call has left if the target is a list. Default 500 ms
	// (ConnectTimeout).
	ConnectTimeout time.Duration
	// WaitForReady has calls wait for a connection until their time is over, unless the
	// option WaitForReady says otherwise, where they would fail at once because no server
	// can be reached. Default: they fail.
	WaitForReady bool
	// IdleTimeout closes pooled connections that are not used. Keep it below
	// the server's. Default 30 s (ClientIdleTimeout).
	IdleTimeout time.Duration
	// MaxConnectionAge is how long a connection is used for new calls, give or take a
	// tenth, so that those opened together do not end together. Calls in progress end
	// first. Default 30 min (ConnectionAge).
	MaxConnectionAge time.Duration
	// ShortConnections opens a connection for every call and closes it behind the reply,
	// for balancers of connections that must see each call, and for servers that serve
	// one call a connection. Default: connections are kept and, where the server can,
	// shared.
	ShortConnections bool
	// PingAfter is how long calls wait on a connection that they share with nothing
	// arriving until the client asks the server for a sign of life. If none comes for as
	// long again, the connection is closed and its calls fail: it is for calls with long
	// deadlines, and servers that are stopped but still connected. Servers of Fulmar only.
	// With less than a second a server that runs all calls that the connection may have is
	// taken for one that is stopped. Default 10 s (PingAfter). In gRPC, any server is asked,
	// with a PING, and many close connections on which that happens more often than every
	// five minutes, so the default is never; the answer has 10 s (HTTP2AnswerTimeout). One that
	// says so is asked half as often from then on, and again, up to 2 h (HTTP2PingAfterMost).
	PingAfter time.Duration
	// StreamSendTimeout is that of ServerConfig, for what the server does not take. Default
	// 1 h (StreamSendTimeout).
	StreamSendTimeout time.Duration
	// MaxConnections bounds open connections to one address, and with the protocols that carry
	// one call at a time also the calls in progress there. Streams over TTHeader have as many
	// of their own. Connections of gRPC and of such streams that take no more calls, and have
	// some, do not count, as many of them at most. Default 512 (ClientConnections).
	MaxConnections int
	// MaxWaiting bounds the calls that wait for a connection of their own to one
	// address, and those that wait for their replies on a shared one; more fail at
	// once.
	// Default 10,000 (ClientWaiting).
	MaxWaiting int

	// MaxMessageBytes bounds a request and a reply. Default 16 MiB
	// (MessageBytes).
	MaxMessageBytes int
	// MaxSendBytes bounds a request, and each message of a stream that is sent, in place of
	// MaxMessageBytes. Default what that is, 16 MiB (MessageBytes).
	MaxSendBytes int
	// MaxDepth bounds the nesting of structs and containers. Default 64 (Depth);
	// off means 10,000, which the stack still holds.
	MaxDepth int
	// DecodeBytesPerWireByte times the length of a reply, plus 64 KiB
	// (DecodeBytesBase), is how much memory decoding it may take. Lists of structs
	// with many optional fields of which few are set may need more; see
	// docs/guide/limits.md. Default 64 (DecodeBytesPerWireByte).
	DecodeBytesPerWireByte int
	// MaxDecodeBytes caps the memory that decoding one reply may take. Default
	// 256 MiB (DecodeBytesMax).
	MaxDecodeBytes int64

	// Compression of the messages that are sent, unless the option Compression says
	// otherwise: "gzip", or "identity" for none. Short ones, and those that become no
	// shorter, are sent as they are. Only gRPC has it. A server that cannot inflate refuses
	// the calls, with Unimplemented. Answers are inflated in any case. Do not compress
	// secrets together with what others choose: the length tells about both. Default: none.
	Compression string
	// Encodings are ways to compress messages in gRPC besides gzip; servers are told that
	// answers may have any of them, gzip first.
	Encodings []Encoding `json:"-"`

	// Policy says when calls are tried again, hedged or refused, and which instances they go
	// to; see docs/guide/policies.md. Its zero value has the defaults.
	Policy policy.Client
	// PolicyFile is a regular file with a policy.Document in JSON, whose part for clients takes
	// the place of Policy. It is read again when it changes; one that is wrong then, or gone,
	// changes nothing, and is logged with all that is wrong. Default: none.
	PolicyFile string
	// PolicySource delivers such documents, in place of a file: it calls deliver with the
	// first one and with each that follows, until ctx ends. version is for the log. What goes
	// wrong meanwhile it tells cluster.Report. If it returns earlier it is called again.
	// Default: none.
	PolicySource func(ctx context.Context, deliver func(document []byte, version string)) error `json:"-"`
	// RetryIf is asked, besides Policy, about a call that failed and may be tried again by
	// Attempts, Idempotent and budget: its answer takes the place of Codes. Errors that the
	// IDL declares, and business errors, are asked about too, if the method is Idempotent.
	// It is not asked about streams: one that could not be opened has not run. It must not
	// wait. Default: Codes decide.
	RetryIf func(call Unary, err error) bool `json:"-"`
	// OnExplanation gets the explanation of one in ExplainEvery calls; see Explain. That of a
	// stream comes when it has ended, for which it must be received to its end or canceled. It
	// must not wait, and keep nothing of it when it returns. Default: nobody does.
	OnExplanation func(explanation *policy.Explanation) `json:"-"`
	// ExplainEvery is how many calls and streams there are for one that is explained to
	// OnExplanation.
	// Default 1,000 (ExplainEvery).
	ExplainEvery int

	// Interceptors around every call, the first outermost.
	Interceptors []UnaryInterceptor `json:"-"`
	// StreamInterceptors around every streaming call, the first outermost.
	StreamInterceptors []StreamInterceptor `json:"-"`
	// Observers are told of the phases of each call, and of connections; at most 6
	// (Observers). See package observe. Default: none, which costs nothing.
	Observers []observe.Observer `json:"-"`
	// Logger for what operators should know: panics of observers, and certificates that
	// were read again. Default slog.Default().
	Logger *slog.Logger `json:"-"`
	// Dial opens connections in place of the net package's dialer. network is
	// "tcp" or "unix", address the target's. ctx ends after ConnectTimeout, not with the
	// call that the connection is opened for: it may become another one's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `json:"-"`
}

// Validate returns every problem of the configuration, joined, or nil.
func (c ClientConfig) Validate() error {
	var problems []error
	if c.Local != nil {
		problems = append(problems, c.checkLocal()...)
	} else if c.Target == "" {
		problems = append(problems, errors.New("client config: Target is empty"))
	} else if c.Resolver == nil {
		if _, err := parseTarget(c.Target, c.Registries); err != nil {
			problems = append(problems, fmt.Errorf("client config: Target: %w", err))
		}
	}
	problems = append(problems, c.checkRegistries()...)
	switch {
	case c.Protocol == KitexProtobuf:
		problems = append(problems, fmt.Errorf("client config: Protocol: %v is not one that a client has: describe methods with RawProtobufMethod, and use %v, %v or %v", KitexProtobuf, Framed, TTHeader, TTHeaderFramed))
	case c.Protocol != 0 && !clientProtocols.Has(wire.Protocol(c.Protocol)):
		problems = append(problems, fmt.Errorf("client config: Protocol: %d is not a protocol (known: %s)", c.Protocol, clientProtocols))
	}
	if c.Protocol == GRPC {
		problems = append(problems, c.checkGRPC()...)
	}
	problems = append(problems, c.checkCompression()...)
	if c.AssumeMultiplexed && (c.Protocol == Bare || c.Protocol == Framed) {
		problems = append(problems, fmt.Errorf("client config: AssumeMultiplexed: protocol %v has no sequence ids to match replies by (possible: %v, %v)", c.Protocol, TTHeader, TTHeaderFramed))
	}
	if c.AssumeMultiplexed && c.ShortConnections {
		problems = append(problems, errors.New("client config: ShortConnections: a connection for each call cannot be shared, as AssumeMultiplexed asks"))
	}
	problems = append(problems, checkInterceptors("client config: Interceptors", c.Interceptors)...)
	problems = append(problems, checkInterceptors("client config: StreamInterceptors", c.StreamInterceptors)...)
	problems = append(problems, checkObservers("client config", c.Observers)...)
	problems = append(problems, labelled("client config", c.TLS.check(strings.HasPrefix(c.Target, "unix:")))...)
	problems = append(problems, checkDurations("client config", map[string]time.Duration{
		"Timeout": c.Timeout, "ConnectTimeout": c.ConnectTimeout, "StreamSendTimeout": c.StreamSendTimeout, "IdleTimeout": c.IdleTimeout,
		"MaxConnectionAge": c.MaxConnectionAge, "PingAfter": c.PingAfter,
	})...)
	problems = append(problems, checkEncodings("client config", c.Encodings)...)
	problems = append(problems, checkPolicy("client config", policy.Document{Client: c.Policy}, c.PolicyFile, c.PolicySource)...)
	return errors.Join(append(problems, checkMessageLimits("client config", c.MaxMessageBytes, c.MaxSendBytes, c.MaxDepth)...)...)
}

// checkGRPC returns what cannot be set with gRPC.
func (c ClientConfig) checkGRPC() (problems []error) {
	if c.AssumeMultiplexed {
		problems = append(problems, errors.New("client config: AssumeMultiplexed: gRPC always shares connections"))
	}
	if c.QualifiedNames {
		problems = append(problems, errors.New("client config: QualifiedNames: gRPC always calls methods with the names of their services"))
	}
	if c.Local != nil {
		problems = append(problems, errors.New("client config: Local: calls without a socket are not made in gRPC; leave Protocol alone"))
	}
	return problems
}

// checkCompression refuses what messages cannot be compressed with.
func (c ClientConfig) checkCompression() (problems []error) {
	switch {
	case c.Compression == "" || c.Compression == "identity":
	case c.Compression != "gzip" && !slices.ContainsFunc(c.Encodings, func(e Encoding) bool { return e.Name == c.Compression }):
		problems = append(problems, fmt.Errorf("client config: Compression: %.40q is not known (known: gzip, identity, and those in Encodings)", c.Compression))
	case c.Protocol != GRPC:
		problems = append(problems, errors.New("client config: Compression: only gRPC compresses messages"))
	}
	return problems
}

// checkLocal returns what cannot be set beside Local.
func (c ClientConfig) checkLocal() (problems []error) {
	if c.Target != "" {
		problems = append(problems, errors.New("client config: Target and Local are both set"))
	}
	if c.Resolver != nil {
		problems = append(problems, errors.New("client config: Resolver and Local are both set"))
	}
	if c.Dial != nil {
		problems = append(problems, errors.New("client config: Dial and Local are both set, and calls to a local server open no connection"))
	}
	return problems
}

// checkDurations refuses what is set, but so short that a unit must have been
// forgotten: Timeout: 5 is five nanoseconds.
func checkDurations(config string, fields map[string]time.Duration) (problems []error) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if d := fields[name]; d > 0 && d < limits.ConfigDurationMin {
			problems = append(problems, fmt.Errorf("%s: %s: %v is too short; was a unit forgotten? (at least %v)", config, name, d, limits.ConfigDurationMin))
		}
	}
	return problems
}

// depthOff is what "no limit" means for nesting: the deepest that fits into a
// goroutine's stack with room to spare.
const depthOff = 10000

func checkMessageLimits(config string, messageBytes, sendBytes, depth int) (problems []error) {
	for _, field := range []struct {
		name  string
		bytes int
	}{{"MaxMessageBytes", messageBytes}, {"MaxSendBytes", sendBytes}} {
		if field.bytes > limits.FrameLengthMax {
			problems = append(problems, fmt.Errorf("%s: %s: %d is more than a frame can hold (limit %d)", config, field.name, field.bytes, limits.FrameLengthMax))
		}
	}
	if depth > depthOff {
		problems = append(problems, fmt.Errorf("%s: MaxDepth: %d is more than the stack is sure to hold (limit %d)", config, depth, depthOff))
	}
	return problems
}

func messageLimits(messageBytes, depth, decodeFactor int, decodeBytes int64) limits.Message {
	return limits.Message{
		Bytes:                  limits.Or(messageBytes, limits.MessageBytes, limits.FrameLengthMax),
		Depth:                  limits.Or(depth, limits.Depth, depthOff),
		DecodeBytesPerWireByte: limits.Or(int64(decodeFactor), limits.DecodeBytesPerWireByte, math.MaxInt64),
		DecodeBytesMax:         limits.Or[int64](decodeBytes, limits.DecodeBytesMax, math.MaxInt64),
		Scratch:                new(sync.Pool),
	}
}

// sendLimits returns the limits of messages that are sent, of those that all have.
func sendLimits(all limits.Message, sendBytes int) limits.Message {
	all.Bytes = limits.Or(sendBytes, all.Bytes, limits.FrameLengthMax)
	return all
}
