package grpccompat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/protobuf"
)

// ServerConfig is what the services of one Registrar have around them. The zero value is
// nothing.
type ServerConfig struct {
	// UnaryInterceptors and StreamInterceptors run around the handlers, the first outermost,
	// and inside of those that the server has in its own configuration.
	UnaryInterceptors  []grpc.UnaryServerInterceptor
	StreamInterceptors []grpc.StreamServerInterceptor
}

// Registrar takes services that protoc-gen-go-grpc has generated, as a *grpc.Server does. It
// also says which it has, for package reflection of grpc-go; that of Fulmar knows them
// without. It is safe for concurrent use.
type Registrar struct {
	server fulmar.Registrar
	config ServerConfig

	mu       sync.Mutex
	services map[string]grpc.ServiceInfo
}

var _ grpc.ServiceRegistrar = (*Registrar)(nil)

// NewRegistrar returns a Registrar that adds services to a server.
func NewRegistrar(server fulmar.Registrar, config ServerConfig) *Registrar {
	config.UnaryInterceptors = slices.Clone(config.UnaryInterceptors)
	config.StreamInterceptors = slices.Clone(config.StreamInterceptors)
	return &Registrar{server: server, config: config, services: map[string]grpc.ServiceInfo{}}
}

// RegisterService implements grpc.ServiceRegistrar. Generated code calls it, before the
// server serves. It panics if that cannot be right: an implementation that is none of the
// service, messages that are not those of Go's official generator, or a service that is
// registered already.
func (r *Registrar) RegisterService(desc *grpc.ServiceDesc, implementation any) {
	checkImplementation(desc, implementation)
	info := grpc.ServiceInfo{Metadata: desc.Metadata}
	service := &fulmar.ServiceDesc{Name: desc.ServiceName}
	for i := range desc.Methods {
		method := &desc.Methods[i]
		service.Methods = append(service.Methods, r.unary(desc, method, implementation))
		info.Methods = append(info.Methods, grpc.MethodInfo{Name: method.MethodName})
	}
	for i := range desc.Streams {
		stream := &desc.Streams[i]
		service.Methods = append(service.Methods, r.stream(desc, stream))
		info.Methods = append(info.Methods, grpc.MethodInfo{Name: stream.StreamName, IsClientStream: stream.ClientStreams, IsServerStream: stream.ServerStreams})
	}
	if implementation == nil {
		// grpc-go lets tests register descriptions only, whose handlers use none.
		implementation = r
	}
	r.server.RegisterService(service, implementation)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.services[desc.ServiceName] = info
}

// GetServiceInfo returns the services that were registered here, as a *grpc.Server does.
func (r *Registrar) GetServiceInfo() map[string]grpc.ServiceInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.services)
}

func checkImplementation(desc *grpc.ServiceDesc, implementation any) {
	if implementation == nil || desc.HandlerType == nil {
		return
	}
	wanted := reflect.TypeOf(desc.HandlerType).Elem()
	if got := reflect.TypeOf(implementation); !got.Implements(wanted) {
		panic(fmt.Sprintf("grpccompat: RegisterService: %v does not implement %v of the service %s", got, wanted, desc.ServiceName))
	}
}

// errAsked ends a handler that was called to learn what it takes.
var errAsked = errors.New("grpccompat: only asking")

// requestType asks a generated handler which message it takes.
func requestType(desc *grpc.ServiceDesc, method *grpc.MethodDesc, implementation any) proto.Message {
	var asked any
	_, err := method.Handler(implementation, context.Background(), func(request any) error {
		asked = request
		return errAsked
	}, nil)
	message, ok := asked.(proto.Message)
	if err != errAsked || !ok {
		panic(fmt.Sprintf("grpccompat: RegisterService: the handler of %s/%s takes %T, which is no message of Go's official generator", desc.ServiceName, method.MethodName, asked))
	}
	return message
}

// unary describes a method with one message each way.
func (r *Registrar) unary(desc *grpc.ServiceDesc, method *grpc.MethodDesc, implementation any) *fulmar.MethodDesc {
	kind := requestType(desc, method, implementation).ProtoReflect().Type()
	full := "/" + desc.ServiceName + "/" + method.MethodName
	interceptor := chainUnary(r.config.UnaryInterceptors)
	invoke := func(ctx context.Context, implementation, request any) (any, error) {
		if implementation == r {
			implementation = nil
		}
		call := &unaryCall{method: full}
		handled, err := method.Handler(implementation, call.context(ctx), keepEmpty,
			func(ctx context.Context, _ any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				// The message that it was decoded into, in place of the empty one.
				return interceptor(ctx, request, info, handler)
			})
		call.reply(ctx)
		if err != nil {
			return nil, fromStatus(err)
		}
		return filled(handled), nil
	}
	return &fulmar.MethodDesc{
		Service: desc.ServiceName, Name: method.MethodName, Codec: protobuf.Binary,
		NewRequest: func() any { return kind.New().Interface() }, Invoke: invoke,
	}
}

func keepEmpty(any) error { return nil }

// chainUnary puts interceptors around the handler, the first outermost.
func chainUnary(interceptors []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		for _, interceptor := range slices.Backward(interceptors) {
			inner := handler
			handler = func(ctx context.Context, request any) (any, error) { return interceptor(ctx, request, info, inner) }
		}
		return handler(ctx, request)
	}
}

// stream describes a method with any number of messages in one direction or both.
func (r *Registrar) stream(desc *grpc.ServiceDesc, method *grpc.StreamDesc) *fulmar.MethodDesc {
	info := &grpc.StreamServerInfo{
		FullMethod: "/" + desc.ServiceName + "/" + method.StreamName, IsClientStream: method.ClientStreams, IsServerStream: method.ServerStreams,
	}
	handler := method.Handler
	for _, interceptor := range slices.Backward(r.config.StreamInterceptors) {
		inner := handler
		handler = func(implementation any, stream grpc.ServerStream) error {
			return interceptor(implementation, stream, info, inner)
		}
	}
	invoke := func(implementation any, messages *fulmar.ServerMessages) error {
		if implementation == r {
			implementation = nil
		}
		stream := newServerStream(info.FullMethod, messages)
		err := handler(implementation, stream)
		return stream.end(err)
	}
	return &fulmar.MethodDesc{
		Service: desc.ServiceName, Name: method.StreamName, Codec: protobuf.Binary,
		// Hand-written descriptions have streams with one message each way.
		ClientStreams: method.ClientStreams, ServerStreams: method.ServerStreams || !method.ClientStreams,
		InvokeStream: invoke,
	}
}
