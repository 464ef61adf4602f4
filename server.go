package fulmar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/peerlog"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/observe"
)

// Server answers calls for the services registered with it. Register first,
// then Serve once. Its methods are safe for concurrent use, except that
// services must not be registered while it serves.
type Server struct {
	config ServerConfig
	// limits are those of messages that arrive, sends of those that are sent.
	limits, sends limits.Message
	admission     *admission
	governor      *serverGovernor
	policies      *policySource
	logger        *slog.Logger
	methods       methodTable
	transport     *transport.Server
	next          UnaryNext
	// nextStream is next for streams.
	nextStream StreamNext
	// observers is nil if nobody observes calls. intercepted: there are interceptors.
	observers   *observers
	intercepted bool
	// states holds *unaryState that nobody has seen, of methods without InvokeInto.
	states sync.Pool
	// namesOf is one more than the version of the policy whose names were looked at last.
	namesOf atomic.Uint64

	mu       sync.Mutex
	listener *eventloop.Listener
	serving  bool
	closed   bool
	// stop ends the context of Serve, served is closed when it has returned.
	stop   context.CancelFunc
	served chan struct{}
}

// NewServer returns a server. It does not listen before Listen or Serve.
func NewServer(config ServerConfig) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		config:    config,
		limits:    messageLimits(config.MaxMessageBytes, config.MaxDepth, config.DecodeBytesPerWireByte, config.MaxDecodeBytes),
		admission: newAdmission(config),
		logger:    loggerOr(config.Logger),
		methods:   newMethodTable(),
	}
	s.sends = sendLimits(s.limits, config.MaxSendBytes)
	s.observers = newObservers(config.Observers, nil)
	secured, err := config.TLS.build(s.logger, config.allowed().Has(wire.GRPC))
	if err != nil {
		return nil, fmt.Errorf("server config: TLS: %w", err)
	}
	unknownStream := s.unknownStream
	if config.UnknownStreamHandler == nil {
		unknownStream = nil
	}
	s.transport = transport.NewServer(transport.ServerConfig{
		Allowed:          config.allowed(),
		Limits:           s.limits,
		FirstByteTimeout: limits.Or(config.FirstByteTimeout, limits.FirstByteTimeout, 0),
		FrameTimeout:     limits.Or(config.FrameTimeout, limits.FrameTimeout, 0),
		IdleTimeout:      limits.Or(config.IdleTimeout, limits.ServerIdleTimeout, 0),
		DrainTimeout:     limits.Or(config.DrainTimeout, limits.DrainTimeout, 0),
		SendTimeout:      limits.Or(config.StreamSendTimeout, limits.StreamSendTimeout, 0),
		BufferedBytes:    limits.Or(config.MaxBufferedBytes, limits.BufferedBytes(), math.MaxInt64),
		PingAfter:        pingAfter(config),
		Age:              limits.Or(config.MaxConnectionAge, limits.ServerConnectionAge, 0),
		AgeGrace:         limits.Or(config.MaxConnectionAgeGrace, limits.ServerAgeGrace, 0),
		Encodings:        transportEncodings(config.Encodings),
		HTTP2Streams:     limits.Or(config.MaxConnectionCalls, limits.HTTP2Streams, -1),
		ConnectionCalls:  limits.Or(config.MaxConnectionCalls, limits.ConnectionCalls, math.MaxInt),
		Logger:           s.logger,
		TLS:              secured,
		AllowPlaintext:   config.TLS.AllowPlaintext,
		HandshakeTimeout: config.TLS.HandshakeTimeout,
		MaxHandshakes:    config.TLS.MaxHandshakes,
		Identify:         identityOf,
		Lookup:           s.lookup,
		LookupExact:      s.lookupExact,
		Streams:          s.streamsTarget,
		TakesUnknown:     config.UnknownHandler != nil,
		UnknownStream:    unknownStream,
		Handle:           s.handle,
		Observed:         s.observers != nil,
		Connection:       connectionObserver(config.Observers, func() *peerlog.Log { return s.transport.Log() }),
	})
	if s.observers != nil {
		s.observers.log = s.transport.Log()
	}
	s.next = s.invoke
	if len(config.DecodedInterceptors) > 0 {
		s.next = decodeBefore(chain(config.DecodedInterceptors, s.invoke))
	}
	s.next = chain(config.Interceptors, s.next)
	s.nextStream = chainStreams(config.StreamInterceptors, s.invokeStream)
	s.governor = newServerGovernor(config.Policy)
	s.policies, err = newPolicySource(config.PolicyFile, config.PolicySource, s.transport.Log(), s.setPolicy)
	if err != nil {
		return nil, fmt.Errorf("server config: %w", err)
	}
	s.intercepted = len(config.Interceptors)+len(config.DecodedInterceptors) > 0
	return s, nil
}

// RegisterService adds a service; generated code calls it. See Registrar.
func (s *Server) RegisterService(desc *ServiceDesc, implementation any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving {
		panic(fmt.Sprintf("fulmar: service %s registered after Serve was called", desc.Name))
	}
	if value := reflect.ValueOf(implementation); !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		panic(fmt.Sprintf("fulmar: the implementation of service %s is nil", desc.Name))
	}
	ambiguous, err := s.methods.add(desc, implementation)
	if err != nil {
		panic("fulmar: " + err.Error())
	}
	s.governor.register(desc.Name, slices.Collect(maps.Values(s.methods.services[desc.Name])))
	if len(ambiguous) > 0 {
		s.logger.Warn("methods are in several services: protocols without service names must call them as \"Service:method\"",
			"service", desc.Name, "methods", ambiguous)
	}
}

// Services returns the names of the registered services, as they are on the wire, sorted.
func (s *Server) Services() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.methods.services))
}

// Listen opens the address of the configuration, if that has not happened yet,
// and returns it: with port 0 this is how to learn the port.
func (s *Server) Listen() (net.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrServerClosed
	}
	if s.listener == nil {
		listener, err := s.listen()
		if err != nil {
			return nil, err
		}
		s.listener = listener
		listener.LimitConnections(s.governor.current.Load().policy.Connections)
		s.transport.Listening()
	}
	return s.listener.Addr(), nil
}

func (s *Server) listen() (*eventloop.Listener, error) {
	config := s.transport.EventLoop(s.config.eventLoop())
	if s.config.LocalOnly {
		return eventloop.NewListener(newDeafListener(), config)
	}
	if s.config.Listener != nil {
		return eventloop.NewListener(s.config.Listener, config)
	}
	address := s.config.Address
	if address == "" {
		address = ":8888"
	}
	network, address, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	return eventloop.Listen(network, address, config)
}

// Serve answers calls until ctx ends and then stops gracefully: it accepts
// nothing more, lets running calls finish and closes each connection once it
// has none. It stops in the same way when the listener fails for good or was
// closed by somebody else, and returns that error. Otherwise it returns nil if
// all calls could finish within DrainTimeout. It may be called once.
func (s *Server) Serve(ctx context.Context) error {
	if _, err := s.Listen(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.serving {
		s.mu.Unlock()
		return errors.New("fulmar: Serve was called before")
	}
	s.serving = true
	listener := s.listener
	ctx, s.stop = context.WithCancel(ctx)
	s.served = make(chan struct{})
	s.mu.Unlock()
	defer close(s.served)
	drainCtx, drain := context.WithCancel(context.WithoutCancel(ctx))
	defer drain()
	left, ended := make(chan error, 1), make(chan struct{})
	announced := s.announce()
	context.AfterFunc(ctx, func() {
		left <- s.beforeStop(announced, ended)
		drain()
	})
	s.warnOfNames(s.Policy())
	s.policies.start()
	defer s.policies.close()
	err := s.transport.Serve(drainCtx, listener)
	close(ended)
	s.stop()
	return errors.Join(err, <-left)
}

// Close closes the listener and every connection at once, and ends the contexts
// of running calls. To stop gracefully use Shutdown, or end the context of Serve.
func (s *Server) Close() error {
	s.mu.Lock()
	listener := s.listener
	s.closed = true
	s.mu.Unlock()
	switch {
	case listener != nil:
		return s.transport.Close(listener)
	case s.config.Listener != nil:
		return s.config.Listener.Close()
	default:
		return nil
	}
}

// ErrServerClosed is returned by Listen and Serve after Close.
var ErrServerClosed = errors.New("fulmar: the server is closed")

// lookup finds what a message calls.
func (s *Server) lookup(service, method []byte, payload wire.Payload) any {
	if entry := s.methods.lookup(service, method, PayloadCodec(payload), s.config.UnknownHandler != nil || s.config.UnknownStreamHandler != nil); entry != nil {
		return entry
	}
	return nil // and not a nil entry, which is something
}

// lookupExact is lookup for gRPC, which always names the service, and waits for an answer.
func (s *Server) lookupExact(service, method string, payload wire.Payload) any {
	entry := s.methods.services[service][method].takes(PayloadCodec(payload))
	if entry == nil || entry.method.Oneway {
		return nil
	}
	return entry
}

// handle serves one message. Calls run at the same time, and this may be the
// goroutine that polls.
func (s *Server) handle(ctx context.Context, in *transport.Inbound) {
	var deadline time.Time
	if timeout := in.Head.Timeout; timeout > 0 {
		deadline = in.Arrived.Add(timeout)
	}
	entry, err := s.resolve(in)
	var started time.Time
	var permits permits
	if err == nil {
		permits, err = s.governor.permit(in, entry)
	}
	if err == nil {
		if started, err = s.admission.enter(ctx, in, deadline); err != nil {
			permits.giveBack(0)
		}
	}
	if err != nil {
		s.refuse(ctx, in, entry, err)
		return
	}
	if permits.governor != nil {
		defer permits.done()
	}
	if in.Stream != nil {
		s.handleStream(ctx, in, entry, deadline)
		return
	}
	defer s.admission.leave(started)
	inProgress, state := s.newCall(in, entry)
	call := &inProgress.served
	s.fillIn(call, state, in, entry, deadline)
	callCtx := inProgress.begin(ctx)
	defer callCtx.finish()
	ctx = callCtx
	o := state.observed
	if o != nil {
		defer o.done() // also behind a panic
	}
	finished := false
	defer func() {
		// A panic, or a goroutine that the handler ends, is a failure of this
		// call and of nothing else.
		if !finished {
			s.panicked(in, state, call, recover())
		}
	}()
	if o == nil && !s.intercepted && in.Short() && !entry.method.refers() {
		// What comes next in any case. The message need not be copied for it while it lies
		// where the connection has read it, which was 3 % of the time of a call of 1 KB.
		_, _ = Unary{state}.Request()
	}
	in.LetGo()
	callCtx.detached = in.Detached()
	if o != nil {
		ctx = o.served(ctx) // may end the goroutine
	}
	err = s.next(ctx, Unary{state})
	s.answer(in, state, call, err)
	finished = true
	state.method.endLease(state.request)
	if !s.intercepted {
		if state.messages != nil {
			entry.method.Forget(state.messages.request, state.messages.reply)
		}
		// A quarter of the memory that an echo of 1 KB takes.
		*state = unaryState{messages: state.messages}
		s.statesOf(entry).Put(state)
		in.Forget()
	}
}

// fillIn writes down what a message says of its call.
func (s *Server) fillIn(served *servedCall, state *unaryState, in *transport.Inbound, entry *methodEntry, deadline time.Time) {
	served.fill(in, entry, deadline)
	state.side, state.method, state.implementation = SideServer, entry.method, entry.implementation
	state.peer, state.protocol = in.Peer, Protocol(in.Protocol)
	state.server, state.undecoded = s, in
}

// fill writes down what a message says of its call.
func (c *servedCall) fill(in *transport.Inbound, entry *methodEntry, deadline time.Time) {
	call := &c.Call
	call.method, call.ends, call.protocol, call.payload = entry.method, in.Ends, Protocol(in.Protocol), PayloadCodec(in.Payload)
	call.callerService, call.callerMethod = in.Head.FromService, in.Head.FromMethod
	call.metadata, call.deadline = Metadata{pairs: in.Head.Metadata, http: in.Head.HTTP}, deadline
}

// refuse answers a call that will not be served; entry may be nil. If refusing takes
// too much its connection rests for a moment, so that those who send less are served.
func (s *Server) refuse(ctx context.Context, in *transport.Inbound, entry *methodEntry, err error) {
	s.transport.Log().WarnFunc("call refused", func() []any {
		return []any{"peer", in.Peer, "method", nameOf(in, entry), "reason", err.Error()}
	})
	var o *observedCall
	if s.observers != nil {
		in.LetGo() // for observers that take their time, or end the goroutine
		o = new(observedCall)
		s.observe(o, in, entry)
		defer o.done()
	}
	// Deferred because an observer may end the goroutine.
	defer s.sendRefusal(in, entry, err)
	if o != nil {
		defer func() { o.err = err }()
		o.served(ctx)
	}
}

func (s *Server) sendRefusal(in *transport.Inbound, entry *methodEntry, err error) {
	if wantsAnswer(in, entry) {
		s.sendException(in, nameOf(in, entry), err, refusalHead(err))
	}
	if CodeOf(err) == ResourceExhausted && s.admission.shedding.refuse(time.Now()) {
		in.Rest(limits.ShedPause)
	}
}

// callInProgress is what a handler may keep of a call that is served, in one piece of
// memory.
type callInProgress struct {
	served servedCall
	ctx    callContext
}

// wantsAnswer reports whether the peer waits for an answer: the IDL decides, and
// the message where there is no method.
func wantsAnswer(in *transport.Inbound, entry *methodEntry) bool {
	if entry != nil {
		return !entry.method.Oneway
	}
	return in.Type != thriftwire.Oneway
}

// begin returns the context of the call: what a handler hangs on it ends with the call,
// or when its caller stops waiting. Once the call has let go of its connection, the
// context needs to know it.
func (c *callInProgress) begin(conn context.Context) *callContext {
	ctx := &c.ctx
	ctx.parent, ctx.served = conn, &c.served
	ctx.deadline = c.served.deadline
	return ctx
}

// nameOf returns the method's name on the wire.
func nameOf(in *transport.Inbound, entry *methodEntry) string {
	if entry != nil {
		return entry.method.Name
	}
	return in.Name
}

// What a refused or failed call tells of its handler.
const (
	executedNo  = "no"
	executedYes = "yes"
)

// panicked logs a panic and fails its call. A nil cause is runtime.Goexit,
// which goes on after this. The peer learns neither cause nor stack.
func (s *Server) panicked(in *transport.Inbound, state *unaryState, call *servedCall, cause any) {
	state.method.endLease(state.request) // before the connection may go on
	if cause == nil {
		in.EndsGoroutine()
		cause = goexit
	}
	s.transport.Log().ErrorWithStack("panic in a handler", "method", state.method.fullName(), "peer", in.Peer,
		"panic", fmt.Sprint(cause))
	err := &Error{code: Internal, message: "panic in the handler"}
	state.ended(err, false)
	if !state.method.Oneway {
		s.fail(in, state, call, err)
	}
}

// resolve returns what a message calls, and why it cannot be served.
func (s *Server) resolve(in *transport.Inbound) (*methodEntry, error) {
	entry, _ := in.Target.(*methodEntry)
	if err := in.Invalid(); err != nil {
		return entry, invalid(err)
	}
	if in.Type != thriftwire.Call && in.Type != thriftwire.Oneway {
		return entry, &Error{code: InvalidArgument, message: fmt.Sprintf("message type %v is not that of a call", in.Type),
			executed: ExecutedNo, exception: thriftwire.ExceptionInvalidMessageType}
	}
	if entry == nil {
		payload := PayloadCodec(in.Payload)
		if entry = s.unknown(in.Head.Service, in.Name, payload); entry == nil {
			return nil, s.methods.missing(in.Head.Service, in.Name, payload, in.Protocol == wire.GRPC)
		}
		entry.method.Oneway = in.Type == thriftwire.Oneway
	}
	if in.Stream == nil && entry.method.streams() {
		return entry, noStreams(entry.method)
	}
	return entry, nil
}

// invoke is the end of the interceptor chain: it calls the user's method.
func (s *Server) invoke(ctx context.Context, call Unary) error {
	request, err := call.Request()
	if err != nil {
		return err
	}
	state := call.state
	state.handled = true
	if invoke := state.method.InvokeInto; invoke == nil {
		state.reply, err = state.method.Invoke(ctx, state.implementation, request)
	} else if err = invoke(ctx, state.implementation, request, state.messages.reply); err == nil {
		state.reply = state.messages.reply
	}
	if o := state.observed; o != nil {
		o.Tell(observe.Event{Phase: observe.PhaseHandled, Err: err})
	}
	return err
}

// answer sends what a call ended in.
func (s *Server) answer(in *transport.Inbound, state *unaryState, call *servedCall, err error) {
	method := state.method
	state.ended(err, false)
	if err != nil && method.Exception != nil {
		if declared := method.Exception(err); declared != nil {
			state.ended(err, true)
			state.reply, err = declared, nil
		}
	}
	if method.Oneway {
		if err != nil {
			// A clone, because it may be text of a request whose memory is about to be
			// reused, and a logger may write it later.
			s.transport.Log().Warn("oneway call failed", "peer", in.Peer, "method", method.fullName(), "reason", strings.Clone(err.Error()))
		}
		return
	}
	if err == nil && state.reply == nil {
		err = MissingReply(method.fullName())
		state.ended(err, false)
	}
	if err != nil {
		s.fail(in, state, call, err)
		return
	}
	head := call.reply.take()
	head.LikelyBytes = method.replies.get()
	reply, err := in.NewReply(method.Name, head)
	if err != nil {
		s.unencodable(in, state, err)
		return
	}
	defer reply.Release()
	before := reply.Body().Len()
	err = checkUnframed(Protocol(in.Protocol), state.reply, s.sends)
	if err == nil {
		err = method.encode(reply.Body(), state.reply, s.sends, method.Name, &method.replies)
	}
	if err != nil {
		s.unencodable(in, state, err)
		return
	}
	state.tell(observe.PhaseEncoded, reply.Body().Len()-before)
	s.delivered(in, method.Name, reply.Send())
}

// unencodable fails a call whose handler succeeded with something that cannot
// be sent.
func (s *Server) unencodable(in *transport.Inbound, state *unaryState, err error) {
	s.transport.Log().Error("reply cannot be encoded", "method", state.method.fullName(), "reason", err.Error())
	failed := &Error{code: Internal, message: "the reply cannot be encoded: " + err.Error()}
	state.ended(failed, false)
	s.sendException(in, state.method.Name, failed,
		transport.ReplyHead{Executed: executedYes})
}

// fail answers a call that ended in err.
func (s *Server) fail(in *transport.Inbound, state *unaryState, call *servedCall, err error) {
	head := call.reply.take()
	head.Executed = executedText(err, state.handled)
	var business *BusinessError
	switch errors.As(err, &business); {
	case business == nil:
	case business.status == 0:
		err = &Error{code: Internal, message: business.Error() + ", which would be a success"}
		state.ended(err, false)
	default:
		state.ended(err, true)
		if in.HasHeader() {
			head.Business = business.businessStatus()
			s.sendBusiness(in, state, head)
			return
		}
	}
	s.sendException(in, state.method.Name, err, head)
}

// sendBusiness answers with a business error: a reply whose result is empty.
func (s *Server) sendBusiness(in *transport.Inbound, state *unaryState, head transport.ReplyHead) {
	reply, err := in.NewReply(state.method.Name, head)
	if err != nil {
		s.unencodable(in, state, err)
		return
	}
	defer reply.Release()
	if in.Payload == wire.PayloadThrift {
		reply.Body().Append([]byte{byte(thriftwire.Stop)})
	}
	s.delivered(in, state.method.Name, reply.Send())
}

func (s *Server) sendException(in *transport.Inbound, name string, err error, head transport.ReplyHead) {
	head.Code, head.Details = uint32(CodeOf(err)), detailsOf(err)
	s.delivered(in, name, in.SendException(name, exceptionFor(err), head))
}

// delivered notes a reply that did not reach the network: its caller has gone.
func (s *Server) delivered(in *transport.Inbound, method string, err error) {
	if err != nil {
		s.logger.Debug("reply not delivered", "peer", in.Peer, "method", method, "reason", err.Error())
	}
}
