package fulmar

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// ForwardStreams returns a ServerConfig.UnknownStreamHandler that makes each call again
// with caller, and passes messages on in both directions as they come, header, trailer and
// how the call ended. What Forward says of deadline, metadata and errors holds for streams.
//
// A message is passed on before the next one is received. So whoever takes nothing stops
// the other side, and at most one message of each direction is held here.
func ForwardStreams(caller StreamCaller) func(ctx context.Context, messages *ServerMessages) error {
	return func(ctx context.Context, in *ServerMessages) error {
		call, ok := CallFrom(ctx)
		if !ok {
			return errors.New("fulmar: ForwardStreams: not in a handler")
		}
		method, err := newRawMethod(call.Service(), call.Method(), false, call.PayloadCodec())
		if err != nil {
			return &Error{code: InvalidArgument, message: err.Error()}
		}
		method.ClientStreams, method.ServerStreams = true, true
		out, err := caller.OpenStream(ctx, method)
		if err != nil {
			return forwarded(err)
		}
		f := &forwardedStream{in: in, out: out, broken: make(chan error, 1)}
		go f.sendRequests()
		err = f.sendReplies()
		out.Cancel() // if it has not ended, nobody waits for the rest
		if served, ok := ctx.Value(callKey{}).(*servedCall); ok {
			served.reply.pass(Metadata{}, out.TrailerMetadata())
		}
		if CodeOf(err) == Canceled {
			select {
			case err = <-f.broken: // that is why
			default:
			}
		}
		return err
	}
}

// forwardedStream is a stream that a proxy passes on.
type forwardedStream struct {
	in  *ServerMessages
	out *ClientMessages
	// broken is why no more requests can be passed on, if that ended the call.
	broken chan error
}

// sendRequests passes on what the caller sends, until it has sent all or the stream ends,
// also behind the end of the handler.
func (f *forwardedStream) sendRequests() {
	// Code of an interceptor, which must not take the process with it.
	guarded(f.passRequests, func(cause any) {
		if cause == nil {
			cause = goexit
		}
		f.in.server.transport.Log().ErrorWithStack("panic in a handler", "method", f.in.state.method.fullName(), "peer", f.in.in.Peer, "panic", fmt.Sprint(cause))
		f.fail(&Error{code: Internal, message: "panic while a message was passed on"})
	})
}

func (f *forwardedStream) passRequests() {
	for {
		var message Raw
		switch err := f.in.Recv(&message); {
		case err == io.EOF:
			_ = f.out.CloseSend() // what ended it is told by Recv
			return
		case err != nil:
			f.fail(err)
			return
		}
		switch err := f.out.Send(&message); {
		case err == io.EOF:
			return // it has ended, and Recv says how
		case err != nil:
			f.fail(forwarded(err))
			return
		}
	}
}

// fail ends the call with an error.
func (f *forwardedStream) fail(err error) {
	f.broken <- err
	f.out.Cancel()
}

// sendReplies passes on what the server sends, and returns how the call ended.
func (f *forwardedStream) sendReplies() error {
	header, err := f.out.HeaderMetadata()
	if err == nil && header.pairs != nil {
		// Also without metadata it says that the call has begun.
		if err := f.in.sendHeader(passable(header.pairs)); err != nil {
			return err
		}
	}
	for {
		var message Raw
		switch err := f.out.Recv(&message); {
		case err == io.EOF:
			return nil
		case err != nil:
			return forwarded(err)
		}
		if err := f.in.Send(&message); err != nil {
			return err
		}
	}
}

// unknownStream returns what serves a stream of a method that is not registered, nil if
// nothing does.
func (s *Server) unknownStream(service, name string, payload wire.Payload) any {
	if entry := s.methods.services[service][name].takes(PayloadCodec(payload)); entry != nil {
		return nil // It is oneway, which is no method in gRPC.
	}
	method := unknownMethod(service, name, PayloadCodec(payload))
	if method == nil {
		return nil
	}
	method.ClientStreams, method.ServerStreams = true, true
	method.InvokeStream = invokeUnknownStream
	return &methodEntry{method: method, implementation: s.config.UnknownStreamHandler, unknown: true}
}

// invokeUnknownStream is MethodDesc.InvokeStream of methods that are not registered.
func invokeUnknownStream(implementation any, messages *ServerMessages) error {
	handler := implementation.(func(context.Context, *ServerMessages) error)
	return handler(messages.Context(), messages)
}

// passable returns those pairs of another server that may be sent on: keys of the protocol
// say something about its own connection.
func passable(pairs []transport.Pair) []transport.Pair {
	var passed []transport.Pair
	for _, pair := range pairs {
		if pair.Key != "" && pair.Value != "" && !isReserved(pair.Prefix+pair.Key) {
			passed = append(passed, pair)
		}
	}
	return passed
}
