package fulmar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"reflect"
	"runtime/debug"
	"sync"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// Server answers calls for the services registered with it. Register first,
// then Serve once. Its methods are safe for concurrent use, except that
// services must not be registered while it serves.
type Server struct {
	config    ServerConfig
	limits    limits.Message
	maxCalls  int
	logger    *slog.Logger
	methods   methodTable
	transport *transport.Server
	next      UnaryNext

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
		config:   config,
		limits:   messageLimits(config.MaxMessageBytes, config.MaxDepth, config.DecodeBytesPerWireByte, config.MaxDecodeBytes),
		maxCalls: limits.Or(config.MaxCalls, limits.ServerCalls, int(^uint(0)>>1)),
		logger:   config.Logger,
		methods:  newMethodTable(),
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	s.transport = transport.NewServer(transport.ServerConfig{
		Allowed:          config.allowed(),
		Limits:           s.limits,
		FirstByteTimeout: limits.Or(config.FirstByteTimeout, limits.FirstByteTimeout, 0),
		FrameTimeout:     limits.Or(config.FrameTimeout, limits.FrameTimeout, 0),
		IdleTimeout:      limits.Or(config.IdleTimeout, limits.ServerIdleTimeout, 0),
		DrainTimeout:     limits.Or(config.DrainTimeout, limits.DrainTimeout, 0),
		BufferedBytes:    limits.Or(config.MaxBufferedBytes, limits.BufferedBytes(), math.MaxInt64),
		Logger:           s.logger,
		Handle:           s.handle,
	})
	s.next = chain(config.Interceptors, s.invoke)
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
	if len(ambiguous) > 0 {
		s.logger.Warn("methods are in several services: protocols without service names must call them as \"Service:method\"",
			"service", desc.Name, "methods", ambiguous)
	}
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
	}
	return s.listener.Addr(), nil
}

func (s *Server) listen() (*eventloop.Listener, error) {
	config := s.transport.EventLoop(s.config.eventLoop())
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
// has none. It returns nil if all calls could finish within DrainTimeout. It
// may be called once.
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
	defer s.stop()
	return s.transport.Serve(ctx, listener)
}

// Shutdown stops gracefully, as ending the context of Serve does, and waits
// until Serve returns. If ctx ends first it closes everything that is left, as
// Close does, and returns the error of ctx. A server that was not serving is
// closed.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	stop, served := s.stop, s.served
	s.mu.Unlock()
	if stop == nil {
		return s.Close()
	}
	stop()
	select {
	case <-served:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), s.Close())
	}
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

// handle serves one message. It runs on a goroutine of its own.
func (s *Server) handle(ctx context.Context, in *transport.Inbound) {
	method, implementation, err := s.resolve(in)
	if err != nil {
		s.transport.Log().Warn("call refused", "peer", in.Peer, "method", in.Name, "reason", err.Error())
		if in.Type != thriftwire.Oneway {
			s.sendException(in, in.Name, err)
		}
		return
	}
	info := &Call{
		service:  method.Service,
		method:   method.Name,
		oneway:   method.Oneway,
		protocol: Protocol(in.Protocol),
		peer:     in.Peer,
		local:    in.Local,
	}
	state := &unaryState{
		side:           SideServer,
		method:         method,
		implementation: implementation,
		peer:           in.Peer,
		protocol:       info.protocol,
		decode:         func() (any, error) { return s.decode(method, in) },
	}
	// What a handler hangs on its context ends with the call.
	ctx, cancel := context.WithCancel(context.WithValue(ctx, callKey{}, info))
	defer cancel()
	finished := false
	defer func() {
		// A panic, or a goroutine that the handler ends, is a failure of this
		// call and of nothing else.
		if !finished {
			s.panicked(in, state, recover())
		}
	}()
	err = s.next(ctx, Unary{state})
	s.answer(in, state, err)
	finished = true
}

// panicked logs a panic and fails its call. A nil cause is runtime.Goexit,
// which goes on after this. The peer learns neither cause nor stack.
func (s *Server) panicked(in *transport.Inbound, state *unaryState, cause any) {
	if cause == nil {
		cause = "runtime.Goexit"
	}
	s.transport.Log().Error("panic in a handler", "method", state.method.fullName(), "peer", in.Peer,
		"panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if !state.method.Oneway {
		s.sendException(in, state.method.Name, &Error{code: Internal, message: "panic in the handler"})
	}
}

// resolve returns the method that a message calls, or why it cannot be served.
func (s *Server) resolve(in *transport.Inbound) (*MethodDesc, any, error) {
	if running := s.transport.Running(); running > s.maxCalls {
		return nil, nil, &Error{code: ResourceExhausted, message: fmt.Sprintf("%d calls are running (limit %d)", running, s.maxCalls), executed: ExecutedNo}
	}
	if err := in.Invalid(); errors.Is(err, transport.ErrOverloaded) {
		return nil, nil, &Error{code: ResourceExhausted, message: err.Error(), executed: ExecutedNo}
	} else if err != nil {
		return nil, nil, &Error{code: InvalidArgument, message: err.Error(), executed: ExecutedNo, cause: err,
			exception: thriftwire.ExceptionProtocolError}
	}
	if in.Type != thriftwire.Call && in.Type != thriftwire.Oneway {
		return nil, nil, &Error{code: InvalidArgument, message: fmt.Sprintf("a %v is not a call", in.Type),
			executed: ExecutedNo, exception: thriftwire.ExceptionInvalidMessageType}
	}
	return s.methods.find(in.Name)
}

// decode reads the request of a call.
func (s *Server) decode(method *MethodDesc, in *transport.Inbound) (any, error) {
	request := method.NewRequest()
	if err := method.Codec.ReadBody(in.Body, request, s.limits); err != nil {
		return nil, &Error{code: InvalidArgument, message: err.Error(), executed: ExecutedNo, cause: err,
			exception: thriftwire.ExceptionProtocolError}
	}
	// The handler may take its time; the bytes need not.
	in.DropBody()
	return request, nil
}

// invoke is the end of the interceptor chain: it calls the user's method.
func (s *Server) invoke(ctx context.Context, call Unary) error {
	request, err := call.Request()
	if err != nil {
		return err
	}
	call.state.reply, err = call.state.method.Invoke(ctx, call.state.implementation, request)
	return err
}

// answer sends what a call ended in.
func (s *Server) answer(in *transport.Inbound, state *unaryState, err error) {
	method := state.method
	if err != nil && method.Exception != nil {
		if declared := method.Exception(err); declared != nil {
			state.reply, err = declared, nil
		}
	}
	if method.Oneway {
		if err != nil {
			s.transport.Log().Warn("oneway call failed", "peer", in.Peer, "method", method.fullName(), "reason", err.Error())
		}
		return
	}
	if err == nil && state.reply == nil {
		err = MissingReply(method.fullName())
	}
	if err != nil {
		s.sendException(in, method.Name, err)
		return
	}
	reply := in.NewReply(method.Name)
	defer reply.Release()
	if err := method.Codec.AppendBody(reply.Body(), state.reply, headed(s.limits, method.Name)); err != nil {
		s.transport.Log().Error("reply cannot be encoded", "method", method.fullName(), "reason", err.Error())
		s.sent(in, reply.SendException(thriftwire.ApplicationException{
			Type: thriftwire.ExceptionInternalError, Message: "the reply cannot be encoded: " + err.Error()}))
		return
	}
	s.sent(in, reply.Send())
}

func (s *Server) sendException(in *transport.Inbound, name string, err error) {
	reply := in.NewReply(name)
	defer reply.Release()
	s.sent(in, reply.SendException(exceptionFor(err)))
}

// sent notes a reply that did not reach the network: its caller has gone.
func (s *Server) sent(in *transport.Inbound, err error) {
	if err != nil {
		s.logger.Debug("reply not delivered", "peer", in.Peer, "method", in.Name, "reason", err.Error())
	}
}
