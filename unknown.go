package fulmar

import (
	"context"
	"errors"
	"strings"
)

// UnknownHandler answers calls of services and methods that are not registered.
// CallFrom tells which they are, with deadline, metadata and peer, as in any
// handler, and with PayloadCodec whether they are in Thrift or in Protobuf. request is
// the body of the arguments, and reply must be that of the result, in the same
// encoding; see Raw. An error is answered as that of any handler, but exceptions
// that an IDL declares are unknown here: they are fields of a result.
//
// The bytes of request must not be written to. They are lent until the handler
// returns if they are shorter than 32 KiB (LinkedStringBytes), so whoever keeps
// them longer copies them; longer ones stay valid. Both may be sent on by a call,
// and returned. Those of a reply that is not lent must not be changed any more.
//
// What a oneway call returns is not sent. Whether a call is one its message says.
type UnknownHandler func(ctx context.Context, request Raw) (reply Raw, err error)

// Forward returns a handler that makes each call again with caller and passes on
// what comes of it: the result or the declared exception as it is, a business
// error, or another error with its code; and the reply's metadata. Deadline and
// persistent metadata go on, as with all calls that a handler makes.
//
// An error says whether the call was executed as the called server says it, not
// that this handler was. So return it only if nothing else was done for the call
// that must not be done twice.
func Forward(caller Caller) UnknownHandler {
	return func(ctx context.Context, request Raw) (reply Raw, err error) {
		call, ok := CallFrom(ctx)
		if !ok {
			return nil, errors.New("fulmar: Forward: not in a handler")
		}
		method, err := newRawMethod(call.Service(), call.Method(), call.Oneway(), call.PayloadCodec())
		if err != nil {
			return nil, &Error{code: InvalidArgument, message: err.Error()}
		}
		var header, trailer Metadata
		var result any
		if !method.Oneway {
			result = &reply
		}
		err = caller.Call(ctx, method, &request, result, ReceiveReply(&header, &trailer))
		if served, ok := ctx.Value(callKey{}).(*servedCall); ok {
			served.reply.pass(header, trailer)
		}
		if err != nil {
			return nil, forwarded(err)
		}
		return reply, nil
	}
}

// forwarded marks an error of a call as that of the call which it was made for.
func forwarded(err error) error {
	failure, ok := err.(*Error)
	if !ok || failure == nil {
		return err
	}
	marked := *failure
	marked.forwarded = true
	return &marked
}

// executedText returns what a failed call tells of its handler.
func executedText(err error, handled bool) string {
	var failure *Error
	if errors.As(err, &failure) && failure != nil && failure.forwarded {
		return [...]string{ExecutedMaybe: "", ExecutedNo: executedNo, ExecutedYes: executedYes}[failure.executed]
	}
	if handled {
		return executedYes
	}
	return executedNo
}

// unknown returns what serves a method that is not registered, nil if nothing does.
func (s *Server) unknown(service, name string, payload PayloadCodec) *methodEntry {
	handler := s.config.UnknownHandler
	if handler == nil {
		return nil
	}
	if entry := s.methods.methods[methodKey{name, payload}]; service == "" && entry != nil && entry.method == nil {
		// In several services: it is known, but not which one is meant.
		return nil
	}
	method := unknownMethod(service, name, payload)
	if method == nil {
		return nil
	}
	method.Invoke = invokeUnknown
	if payload == PayloadProtobuf {
		method.Invoke = invokeUnknownProtobuf
	}
	return &methodEntry{method: method, implementation: handler, unknown: true}
}

// unknownMethod describes a method that is not registered, nil if it can be none.
func unknownMethod(service, name string, payload PayloadCodec) *MethodDesc {
	if before, after, qualified := strings.Cut(name, ":"); qualified {
		if before == "" {
			return nil
		}
		service, name = before, after
	}
	method, err := newRawMethod(service, name, false, payload)
	if err != nil {
		return nil
	}
	return method
}

// invokeUnknown is MethodDesc.Invoke of methods that are not registered.
func invokeUnknown(ctx context.Context, implementation, request any) (any, error) {
	reply, err := implementation.(UnknownHandler)(ctx, *request.(*Raw))
	if err != nil || len(reply) == 0 {
		return nil, err
	}
	return &reply, nil
}

// invokeUnknownProtobuf is the same for calls in Protobuf, where nothing is an empty
// message.
func invokeUnknownProtobuf(ctx context.Context, implementation, request any) (any, error) {
	reply, err := implementation.(UnknownHandler)(ctx, *request.(*Raw))
	if err != nil {
		return nil, err
	}
	return &reply, nil
}
