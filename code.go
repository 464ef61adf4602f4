package fulmar

import (
	"context"
	"errors"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
	"github.com/fulmar-rpc/fulmar/observe"
)

// Code says what kind of failure an Error is. The numbers are those of gRPC;
// there is no code for success.
type Code uint32

// The codes.
const (
	// Canceled: the caller gave up.
	Canceled Code = 1
	// Unknown: the handler failed with an error that has no code.
	Unknown Code = 2
	// InvalidArgument: the request cannot be right, whatever the state of the
	// server.
	InvalidArgument Code = 3
	// DeadlineExceeded: no result in time. The call may have been executed.
	DeadlineExceeded Code = 4
	// NotFound: something that was asked for does not exist.
	NotFound Code = 5
	// AlreadyExists: something that should be created exists.
	AlreadyExists Code = 6
	// PermissionDenied: the caller is known and may not.
	PermissionDenied Code = 7
	// ResourceExhausted: a limit was reached.
	ResourceExhausted Code = 8
	// FailedPrecondition: the state of the server does not allow the call.
	FailedPrecondition Code = 9
	// Aborted: a conflict with another call.
	Aborted Code = 10
	// OutOfRange: past the end of something valid.
	OutOfRange Code = 11
	// Unimplemented: the server does not have the method or service.
	Unimplemented Code = 12
	// Internal: something that should never happen, such as a reply that breaks
	// the protocol, or a panic in a handler.
	Internal Code = 13
	// Unavailable: the server cannot be reached, or closed the connection.
	Unavailable Code = 14
	// DataLoss: data was lost beyond repair.
	DataLoss Code = 15
	// Unauthenticated: the caller is not known.
	Unauthenticated Code = 16
)

// String returns the name in lower case with spaces, and "ok" for 0, which is that of no error.
func (c Code) String() string {
	if c == 0 {
		return "ok"
	}
	return observe.Code(c).String()
}

// known reports whether c is one of the codes. As an int a peer's number could
// be negative on 32-bit systems.
func (c Code) known() bool { return c > 0 && c < Code(observe.Codes) }

// CodeOf returns the code of err: that of an *Error anywhere in its chain, those
// of the context package's errors, 0 for nil and Unknown for everything else,
// declared exceptions among it.
func CodeOf(err error) Code {
	if direct, ok := err.(*Error); ok && direct != nil { // nearly always
		return direct.code
	}
	var e *Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e) && e != nil:
		return e.code
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return Canceled
	default:
		return Unknown
	}
}

// exceptionCodes is how the application exceptions of Thrift are read. Types
// that are not listed are Unknown. docs/protocol/thrift.md has the same table.
var exceptionCodes = map[thriftwire.ExceptionType]Code{
	thriftwire.ExceptionUnknownMethod:         Unimplemented,
	thriftwire.ExceptionInvalidMessageType:    InvalidArgument,
	thriftwire.ExceptionWrongMethodName:       Internal,
	thriftwire.ExceptionBadSequenceID:         Internal,
	thriftwire.ExceptionMissingResult:         Internal,
	thriftwire.ExceptionInternalError:         Internal,
	thriftwire.ExceptionProtocolError:         InvalidArgument,
	thriftwire.ExceptionInvalidTransform:      Unimplemented,
	thriftwire.ExceptionInvalidProtocol:       Unimplemented,
	thriftwire.ExceptionUnsupportedClientType: Unimplemented,
	thriftwire.ExceptionUnknownService:        Unimplemented,
	thriftwire.ExceptionNoServiceName:         Unimplemented,
}

// streamExceptionCodes is the same for those that peers give streams over TTHeader.
var streamExceptionCodes = map[thriftwire.ExceptionType]Code{
	ttstream.CodeUnexpectedHeader: Internal,
	ttstream.CodeBadBusiness:      Internal,
	ttstream.CodeBadFrame:         Internal,
	ttstream.CodeIllegalOperation: Internal,
	ttstream.CodeInternal:         Internal,
	ttstream.CodeClosing:          Unavailable,
	ttstream.CodeConnectionClosed: Unavailable,
	ttstream.CodeCanceled:         Canceled,
	ttstream.CodeCanceledCause:    Canceled,
	ttstream.CodeDownstream:       Canceled,
	ttstream.CodeUpstream:         Canceled,
	ttstream.CodeHandlerReturned:  Canceled,
	ttstream.CodeReceiveTimeout:   DeadlineExceeded,
	ttstream.CodeStreamTimeout:    DeadlineExceeded,
}

// codeOfException returns the code for an application exception.
func codeOfException(t thriftwire.ExceptionType) Code {
	if code, ok := exceptionCodes[t]; ok {
		return code
	}
	if code, ok := streamExceptionCodes[t]; ok {
		return code
	}
	return Unknown
}

// exceptionOfCode returns the application exception type for an error that a
// handler returned. Thrift has no more to offer than these.
func exceptionOfCode(code Code) thriftwire.ExceptionType {
	switch code {
	case Unimplemented:
		return thriftwire.ExceptionUnknownMethod
	case InvalidArgument:
		return thriftwire.ExceptionProtocolError
	default:
		return thriftwire.ExceptionInternalError
	}
}
