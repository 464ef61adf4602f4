package fulmar

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/peerlog"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/kitexprotobuf"
	"github.com/fulmar-rpc/fulmar/observe"
)

// Client calls one target: one server, or several that answer for each other,
// of which each call goes to one. It connects when it is first used. It is safe for
// concurrent use; make one per target and keep it.
type Client struct {
	config   ClientConfig
	protocol Protocol
	timeout  time.Duration
	// limits are those of messages that arrive, sends of those that are sent.
	limits, sends limits.Message
	// named is the "host:port" whose addresses are looked up in DNS: certificates and the
	// authority of gRPC are about it and not about an address.
	named string
	// A target of one address has a peer, one of several instances.
	address   string
	target    string
	peer      *transport.Peer
	instances *instances
	next      UnaryNext
	// nextStream is next for streams.
	nextStream StreamNext
	// observers is nil if nobody observes calls, connection if nobody does connections.
	observers  *observers
	connection func(observe.Connection)
	// secure returns the configuration of TLS for a connection; nil for none.
	secure func() *tls.Config
	log    *peerlog.Log
	// calls are clientCalls that recycle keeps.
	calls sync.Pool
	// requests and buffers are the pools of all peers: each with its own rebuilt it behind
	// every collection, a thirtieth of an allocation for a call among 100 instances.
	requests sync.Pool
	buffers  *linkbuf.Pool
	memory   eventloop.Memory
	governor *governor
	policies *policySource
	// explains counts calls, of which one in explainEvery is explained; 0 is none.
	explains     atomic.Uint64
	explainEvery uint64
}

// NewClient returns a client for the target of config. Close it in the end.
func NewClient(config ClientConfig) (*Client, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	found, resolver, err := config.instances()
	if err != nil {
		return nil, err
	}
	c := &Client{
		config:   config,
		protocol: config.Protocol,
		buffers:  linkbuf.NewPool(),
		timeout:  limits.Or(config.Timeout, limits.CallTimeout, 0),
		limits:   messageLimits(config.MaxMessageBytes, config.MaxDepth, config.DecodeBytesPerWireByte, config.MaxDecodeBytes),
	}
	c.sends = sendLimits(c.limits, config.MaxSendBytes)
	if c.secure, err = config.TLS.build(config.Logger); err != nil {
		return nil, fmt.Errorf("client config: TLS: %w", err)
	}
	if c.protocol == 0 {
		c.protocol = TTHeader
	}
	c.log = peerlog.New(loggerOr(config.Logger))
	c.observers = newObservers(config.Observers, c.log)
	c.connection = connectionObserver(config.Observers, func() *peerlog.Log { return c.log })
	if c.target = config.Target; config.Local != nil {
		c.target = transport.LocalAddress
	}
	c.next = chain(config.Interceptors, c.invoke)
	c.nextStream = chainStreams(config.StreamInterceptors, c.openStream)
	if config.OnExplanation != nil {
		c.explainEvery = uint64(limits.Or(config.ExplainEvery, limits.ExplainEvery, 0))
	}
	c.governor = newGovernor(config.Policy)
	c.policies, err = newPolicySource(config.PolicyFile, config.PolicySource, c.log, c.setPolicy)
	if err != nil {
		return nil, fmt.Errorf("client config: %w", err)
	}
	defer c.policies.start() // when there are instances
	if len(found) == 1 && resolver == nil {
		c.address = found[0].Address
		c.peer = c.newPeer(c.address, false)
		return c, nil
	}
	if _, ok := resolver.(*cluster.DNS); ok && config.Resolver == nil {
		if c.named = strings.TrimPrefix(config.Target, "dns:///"); strings.HasPrefix(c.named, "_") {
			c.named = "" // its records name hosts
		}
	}
	c.instances = newInstances(c.target, c.governor.current.Load().policy, func(address string) *transport.Peer { return c.newPeer(address, true) })
	if resolver == nil {
		c.instances.update(found, time.Now())
	} else {
		c.instances.lists = startLists(c.instances, resolver, c.log)
	}
	return c, nil
}

// newPeer returns what makes the calls to one address. elsewhere says that the
// target has others.
func (c *Client) newPeer(address string, elsewhere bool) *transport.Peer {
	var local *transport.Server
	if c.config.Local != nil {
		local = c.config.Local.transport
	}
	var told func(observe.Connection)
	if c.connection != nil {
		told = func(connection observe.Connection) {
			connection.Side, connection.Peer = observe.Client, address
			c.connection(connection)
		}
	}
	return transport.NewPeer(transport.PoolConfig{
		Local:          local,
		Dial:           func(ctx context.Context) (*eventloop.Conn, error) { return c.dial(ctx, address) },
		Protocol:       wire.Protocol(c.protocol),
		Limits:         c.limits,
		Connections:    limits.Or(c.config.MaxConnections, limits.ClientConnections, int(^uint(0)>>1)),
		Waiting:        limits.Or(c.config.MaxWaiting, limits.ClientWaiting, int(^uint(0)>>1)),
		IdleTimeout:    limits.Or(c.config.IdleTimeout, limits.ClientIdleTimeout, 0),
		Encodings:      transportEncodings(c.config.Encodings),
		SendTimeout:    limits.Or(c.config.StreamSendTimeout, limits.StreamSendTimeout, 0),
		ConnectTimeout: limits.Or(c.config.ConnectTimeout, limits.ConnectTimeout, 0),
		Age:            limits.Or(c.config.MaxConnectionAge, limits.ConnectionAge, 0),
		Short:          c.config.ShortConnections,
		Ping:           limits.Or(c.config.PingAfter, c.pingDefault(), 0),
		Authority:      c.authority(address),
		Elsewhere:      elsewhere,
		Multiplexed:    c.config.AssumeMultiplexed,
		Log:            c.log,
		Connection:     told,
		Buffers:        c.buffers,
		Requests:       &c.requests,
	})
}

// pingDefault returns ClientConfig.PingAfter for those who leave it alone.
func (c *Client) pingDefault() time.Duration {
	if c.protocol == GRPC {
		return 0
	}
	return limits.PingAfter
}

// authority returns what gRPC calls a server.
func (c *Client) authority(instance string) string {
	if c.config.Service != "" {
		return c.config.Service
	}
	if network, address, err := parseAddress(cmp.Or(c.named, instance)); err == nil && network == "tcp" {
		return address
	}
	return "localhost"
}

func (c *Client) dial(ctx context.Context, instance string) (*eventloop.Conn, error) {
	network, address, err := parseAddress(instance)
	if err != nil {
		return nil, err
	}
	// The buffer must hold a whole reply, because it is decoded in one piece.
	config := eventloop.Config{ReadBufferBytes: transport.ReadBufferBytes(c.limits), Memory: &c.memory}
	if c.protocol == GRPC {
		config.ReadBufferBytes = transport.HTTP2ReadBufferBytes
	}
	var conn net.Conn
	if c.config.Dial == nil {
		conn, err = eventloop.Dial(ctx, network, address, config)
	} else {
		conn, err = c.config.Dial(ctx, network, address)
	}
	switch plain, ours := conn.(*eventloop.Conn); {
	case err != nil:
		return nil, err
	case conn == nil:
		return nil, errors.New("the configured Dial returned neither a connection nor an error")
	case c.secure != nil:
		transport.HandshakeBegins(ctx)
		config.TLS = serverNamed(c.secure(), network, cmp.Or(c.named, address))
		if c.protocol == GRPC {
			return dialHTTP2(ctx, conn, config)
		}
		return eventloop.NewTLSConn(ctx, conn, config)
	case ours && c.config.Dial == nil:
		return plain, nil
	}
	return eventloop.NewConn(conn, config), nil
}

// dialHTTP2 makes a handshake in which both sides say that they speak HTTP/2.
func dialHTTP2(ctx context.Context, conn net.Conn, config eventloop.Config) (*eventloop.Conn, error) {
	config.TLS = config.TLS.Clone()
	config.TLS.NextProtos = []string{"h2"}
	secured, err := eventloop.NewTLSConn(ctx, conn, config)
	if err != nil {
		return nil, err
	}
	if state := secured.TLS(); state == nil || state.NegotiatedProtocol != "h2" {
		_ = secured.Close()
		return nil, errors.New("the server does not say in the TLS handshake that it speaks HTTP/2 (ALPN h2)")
	}
	return secured, nil
}

// Close closes all connections, and ends the lookup of the target. Calls in progress fail, and their handlers are told as if
// they had been canceled, unless oneway calls share the connection; later calls fail too.
func (c *Client) Close() error {
	c.policies.close()
	if c.instances != nil {
		c.instances.close()
		return nil
	}
	c.peer.Close()
	return nil
}

// WarmUp opens a connection to each server of the target that has none, so that the
// first calls need not wait for one. It returns what went wrong, joined, as *Error:
// servers that could not be reached do not keep the others from being used. It waits
// until ctx ends, or ConnectTimeout for each connection, and for the first list of a
// target that is looked up. What Dial and a handshake need is done; the first call still
// finds out what the server can.
func (c *Client) WarmUp(ctx context.Context) error {
	if c.instances == nil {
		return c.warmUp(ctx, c.address, c.peer)
	}
	if err := c.instances.lists.wait(ctx); err != nil {
		return withAddress(err, c.target)
	}
	members := c.instances.balancer.Members()
	problems := make([]error, len(members))
	slots := make(chan struct{}, limits.WarmUpsAtOnce)
	var wait sync.WaitGroup
	for i, member := range members {
		slots <- struct{}{}
		wait.Go(func() {
			problems[i] = c.warmUp(ctx, member.Address(), c.instances.peer(member))
			<-slots
		})
	}
	wait.Wait()
	return errors.Join(problems...)
}

func (c *Client) warmUp(ctx context.Context, address string, peer *transport.Peer) error {
	start := time.Now()
	err := peer.WarmUp(ctx)
	if err == nil {
		return nil
	}
	var limit time.Duration
	if deadline, ok := ctx.Deadline(); ok {
		limit = deadline.Sub(start)
	}
	failed := callFailure(err, limit)
	failed.address, failed.elapsed = address, time.Since(start)
	return failed
}

// clientCall is what a call takes. An interceptor may keep the context, which must not
// keep the request and the reply: with interceptors the state is a piece of memory of its
// own, which is let go in the end.
type clientCall struct {
	ctx   callContext
	state *unaryState
}

// wholeCall is a clientCall with its state in one piece.
type wholeCall struct {
	clientCall
	unary unaryState
}

// Call makes one call; generated clients use it. See Caller.
func (c *Client) Call(ctx context.Context, method *MethodDesc, request, reply any, options ...CallOption) error {
	if method.streams() {
		return noStreams(method)
	}
	chosen := choices(options)
	governed := c.governor.method(method)
	held := governed.held.Load()
	timeout := chosen.timeoutOf(c.timeoutFor(held))
	start := time.Now()
	call, ctx := c.newCall(ctx, start, method)
	limit := timeout
	if timeout == explicitZero {
		limit = 0
	} else if outer, ok := ctx.Deadline(); ok && (timeout == 0 || outer.Sub(start) < timeout) {
		limit = outer.Sub(start)
	}
	state := call.state
	state.side, state.start, state.limit = SideClient, start, limit
	state.method, state.peer, state.protocol = method, c.target, c.protocol
	state.chosen, state.request, state.reply = chosen, request, reply
	state.governed, state.held = governed, held
	if chosen.timeout == 0 {
		state.policyTimeout = timeout
		if timeout == 0 {
			state.policyTimeout = -1
		}
	}
	state.waits = chosen.ready.waits(c.config.WaitForReady)
	c.explainBegin(&state.governedCall, method, chosen.explained)
	state.fresh = len(c.config.Interceptors) == 0
	// Also for a call without a deadline of its own: ctx may be that of another call,
	// whose end nobody would look at if it were this one's.
	call.ctx.parent = ctx
	if limit != 0 || timeout == explicitZero {
		call.ctx.deadline = start.Add(limit)
	}
	if state.observed != nil {
		return c.runObserved(call)
	}
	err := c.run(call)
	c.recycle(call)
	return err
}

// timeoutFor returns the timeout of calls of a method that do not say otherwise.
func (c *Client) timeoutFor(held *heldMethod) time.Duration {
	if timeout := held.Timeout; timeout != 0 {
		return max(timeout, 0)
	}
	return c.timeout
}

// recycle keeps a call that has ended for another one, if nobody but the client has
// seen it: no interceptor, no observer, and nobody who made another context of its
// context. That saves a fifth of the memory that an echo of 1 KB takes, and as many
// collections. Otherwise it lets go of request and reply: observers may keep their call,
// which is in the same memory, and a stopped timer of a context made for dialing is in
// Go's heap of timers until it would have fired.
func (c *Client) recycle(call *clientCall) {
	switch state := call.state; {
	case len(c.config.Interceptors) > 0:
		call.state = nil // an interceptor may have it
	case state.observed == nil && !call.ctx.shared():
		*state = unaryState{}
		*call = clientCall{state: state}
		c.calls.Put(call)
	default:
		state.request, state.reply = nil, nil
	}
}

// run makes a call that is complete.
func (c *Client) run(call *clientCall) error {
	defer call.ctx.finish()
	state := call.state
	err := c.next(&call.ctx, Unary{state})
	if err == nil && !state.invoked {
		// An interceptor answered by itself; hold it to what a peer is held to.
		if reply, ok := state.reply.(replyMessage); ok {
			err = reply.ReplyError()
		}
	}
	if state.explained != nil {
		c.explainEnd(&state.governedCall, err)
	}
	return err
}

// invoke is the end of the interceptor chain: it makes the call. An interceptor
// that retries calls it again.
func (c *Client) invoke(ctx context.Context, call Unary) error {
	state := call.state
	if state.invoked {
		state.beginAgain()
	}
	state.invoked = true
	now, address := state.clock(), c.target
	err := c.enter(&state.governedCall, now)
	if err == nil {
		// No method is called for this: callers wait by the hundred, and each collection of
		// garbage looks through their stacks. Two functions less between a caller and its
		// connection were 3 % of a client's time with 100 callers.
		if state.plain(ctx) {
			address, err = c.inTurn(ctx, state, &state.governedCall, nil, now)
		} else {
			address, err = c.attempts(ctx, state, now)
		}
		c.leave(state, err)
	}
	e, ok := err.(*Error)
	if o := state.observed; o != nil {
		o.err = err
		if !ok {
			o.declared = err
		}
	}
	if !ok {
		// A result, or an error that only a handler can have returned.
		state.mayHaveRun = true
		return err
	}
	if e.executed == ExecutedNo && state.mayHaveRun {
		e.executed = ExecutedMaybe
	}
	state.mayHaveRun = state.mayHaveRun || e.executed != ExecutedNo
	e.method, e.address, e.elapsed = state.method.fullName(), address, time.Since(state.start)
	return e
}

// attempt makes a call once, at one address. What it returns is an *Error of its own, or an
// exception that the IDL declares.
func (c *Client) attempt(ctx context.Context, peer *transport.Peer, state *unaryState, now time.Time, limit time.Duration) error {
	if err := errAt(ctx, now); err != nil {
		return callFailure(err, limit)
	}
	method := transport.Method{Name: state.method.Name, Qualified: c.nameOf(state.method), Oneway: state.method.Oneway, Path: c.pathOf(state.method), Payload: wire.Payload(state.method.payload()), KeepsReply: state.method.keeps(state.reply),
		LikelyBytes: state.method.requests.get()}
	request, err := peer.NewRequest(method, c.requestHead(ctx, state.method, now, state.chosen.compression))
	if err != nil {
		return &Error{code: encodeCode(err), message: err.Error(), phase: PhaseEncode, executed: ExecutedNo, cause: err}
	}
	defer request.Release()
	if o := state.observed; o != nil {
		request.Observe(o, o.call.Start)
	}
	head := request.Body().Len()
	err = checkUnframed(c.protocol, state.request, c.sends)
	if err == nil {
		err = state.method.encode(request.Body(), state.request, c.sends, method.Qualified, &state.method.requests)
	}
	if err != nil {
		return &Error{code: encodeCode(err), message: err.Error(), phase: PhaseEncode, executed: ExecutedNo, cause: err}
	}
	state.tell(observe.PhaseEncoded, request.Body().Len()-head)
	response, err := peer.Do(ctx, request)
	if err != nil {
		return callFailure(err, limit)
	}
	// Decoding copies or takes over what it keeps, so the connection can go on afterwards.
	defer response.Release()
	if state.chosen.receive != nil {
		*state.chosen.receive = received(response.Head.Metadata, response.Head.Trailing)
	}
	state.chosen.reply.fill(response.Head.Metadata, response.Head.Trailing)
	if state.method.Oneway {
		return nil
	}
	return c.readReply(response, state)
}

// requestHead returns what a request tells besides its arguments.
func (c *Client) requestHead(ctx context.Context, method *MethodDesc, now time.Time, compression string) transport.RequestHead {
	head := transport.RequestHead{
		Service:     method.Service,
		ToService:   c.config.Service,
		FromService: c.config.Caller,
		Metadata:    OutgoingMetadata(ctx).pairs,
		Encoding:    cmp.Or(compression, c.config.Compression),
	}
	if deadline, ok := ctx.Deadline(); ok {
		head.Timeout, head.At = deadline.Sub(now), now
	}
	if call, ok := ctx.Value(callKey{}).(*servedCall); ok {
		head.FromMethod = call.Method()
	}
	return head
}

// nameOf returns what a request calls the method.
func (c *Client) nameOf(method *MethodDesc) string {
	if c.config.QualifiedNames && method.Service != "" {
		return method.Service + ":" + method.Name
	}
	return method.Name
}

// pathOf returns what gRPC calls a method; "" for other protocols.
func (c *Client) pathOf(method *MethodDesc) string {
	if c.protocol != GRPC {
		return ""
	}
	if path := method.path.Load(); path != nil {
		return *path
	}
	path := "/" + method.Service + "/" + method.Name
	method.path.Store(&path)
	return path
}

// encodeCode returns the code for a request that cannot be encoded: who calls has made it.
func encodeCode(err error) Code {
	var wireError *thriftwire.Error
	if errors.As(err, &wireError) && wireError.Kind == thriftwire.LimitExceeded {
		return ResourceExhausted
	}
	return InvalidArgument
}

// readReply decodes a reply, a business error or an application exception.
func (c *Client) readReply(message *transport.Response, state *unaryState) error {
	if message.Type == thriftwire.Exception {
		parse := thriftwire.ParseApplicationException
		if message.Payload == wire.PayloadProtobuf {
			parse = kitexprotobuf.ParseException
		}
		exception, err := parse(message.Body)
		if err != nil {
			bad := c.badReply(err)
			bad.executed = ExecutedMaybe
			return bad
		}
		state.tell(observe.PhaseDecoded, len(message.Body))
		return withWishes(remoteFailure(exception, message.Head), message.Head)
	}
	if message.Status != nil {
		state.tell(observe.PhaseDecoded, 0)
		return withWishes(statusFailure(message.Status, message.Head), message.Head)
	}
	if business := message.Head.Business; business != nil {
		return &BusinessError{status: business.Status, message: business.Message, extra: business.Extra}
	}
	body, mayRefer := message.Body, false
	if state.method.keeps(state.reply) {
		body, mayRefer = message.KeepBody(), true
	}
	if _, err := state.method.Codec.ReadBody(body, state.reply, c.limits, mayRefer); err != nil {
		return c.badReply(err)
	}
	state.tell(observe.PhaseDecoded, len(body))
	if reply, ok := state.reply.(replyMessage); ok {
		err := reply.ReplyError()
		if missing, ok := err.(*Error); ok {
			missing.origin, missing.phase = OriginRemote, PhaseReply
		}
		return err
	}
	return nil
}

// badReply is the error for a reply that cannot be decoded: the handler ran, its
// result is lost.
func (c *Client) badReply(err error) *Error {
	e := &Error{code: Internal, message: err.Error(), origin: OriginTransport, phase: PhaseReply, executed: ExecutedYes, cause: err}
	var wireError *thriftwire.Error
	if errors.As(err, &wireError) {
		e.code = codeOfWire(wireError)
	}
	return e
}

// remoteFailure returns the error for an application exception.
func remoteFailure(exception thriftwire.ApplicationException, head transport.ReplyHead) *Error {
	e := &Error{
		code:      codeOfException(exception.Type),
		message:   exception.Message,
		origin:    OriginRemote,
		phase:     PhaseReply,
		exception: exception.Type,
	}
	e.executed = executedOf(head)
	if code := Code(head.Code); code.known() {
		e.code = code
	}
	return e
}

func executedOf(head transport.ReplyHead) Executed {
	switch head.Executed {
	case executedNo:
		return ExecutedNo
	case executedYes:
		return ExecutedYes
	}
	return ExecutedMaybe
}
