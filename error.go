package fulmar

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/policy"
)

// Origin says where an Error arose.
type Origin uint8

// The origins.
const (
	// OriginLocal: in this process, before or after the network.
	OriginLocal Origin = iota
	// OriginTransport: on the way between the two.
	OriginTransport
	// OriginRemote: the peer said so.
	OriginRemote
)

// String returns the name in lower case.
func (o Origin) String() string {
	return [...]string{"local", "transport", "remote"}[o]
}

// Executed says whether the handler of a failed call ran. Retries depend on it:
// only a call that was certainly not executed may always be repeated.
type Executed uint8

// The answers.
const (
	ExecutedMaybe Executed = iota
	ExecutedNo
	ExecutedYes
)

// String returns the answer as a clause for error texts.
func (e Executed) String() string {
	return [...]string{"maybe executed", "not executed", "executed"}[e]
}

// Phase is how far a call had come when it failed.
type Phase uint8

// The phases of a call, in order. PhaseNone is that of errors which did not
// arise in a call of this process's client.
const (
	PhaseNone      Phase = 0
	PhaseEncode          = Phase(transport.PhaseEncode)
	PhaseAcquire         = Phase(transport.PhaseAcquire)
	PhaseConnect         = Phase(transport.PhaseConnect)
	PhaseHandshake       = Phase(transport.PhaseHandshake)
	PhaseWrite           = Phase(transport.PhaseWrite)
	PhaseWait            = Phase(transport.PhaseWait)
	PhaseReply           = Phase(transport.PhaseReply)
	// PhaseResolve comes before all others: the client does not know yet where to connect.
	PhaseResolve = PhaseReply + 1
)

// String returns what the call was doing.
func (p Phase) String() string {
	return [...]string{
		PhaseEncode:    "encoding the request",
		PhaseAcquire:   "waiting for a connection",
		PhaseConnect:   "connecting",
		PhaseHandshake: "making the TLS handshake",
		PhaseWrite:     "writing the request",
		PhaseWait:      "waiting for the reply",
		PhaseReply:     "reading the reply",
		PhaseResolve:   "resolving the target",
	}[p]
}

// Error is what a call fails with, unless the IDL declares an exception for it.
// It is immutable; errors.As finds it, errors.Is finds its cause.
type Error struct {
	code     Code
	message  string
	origin   Origin
	executed Executed
	phase    Phase
	method   string
	address  string
	elapsed  time.Duration
	cause    error
	// before is how the attempt before this one failed, at another address.
	before *Error
	// exception is the type that Thrift has for exactly this error; 0 if the
	// code decides.
	exception thriftwire.ExceptionType
	// pushBack is how long the server asks to wait before another attempt; negative says
	// that there should be none.
	pushBack time.Duration
	// refused is why a server has refused the call, if it says so.
	refused policy.Refusal
	// details is a google.rpc.Status that came with the error.
	details []byte
	// forwarded: executed is about the call in which a handler returns the error.
	forwarded bool
}

// NewError returns an Error for a handler to return. The message goes to the
// caller.
func NewError(code Code, message string) *Error {
	return &Error{code: code, message: message, executed: ExecutedYes}
}

// Errorf is NewError with a format; %w makes its operand the cause.
func Errorf(code Code, format string, args ...any) *Error {
	formatted := fmt.Errorf(format, args...)
	e := NewError(code, formatted.Error())
	switch formatted.(type) {
	case interface{ Unwrap() error }, interface{ Unwrap() []error }:
		e.cause = formatted
	}
	return e
}

// MissingReply is the error for a reply that holds neither a result nor an
// exception: what a handler gets for returning (nil, nil), and a caller for a
// peer that sends such a reply. Generated code calls it.
func MissingReply(method string) error {
	return &Error{
		code:      Internal,
		message:   "neither a result nor an error",
		executed:  ExecutedYes,
		method:    method,
		exception: thriftwire.ExceptionMissingResult,
	}
}

// Code returns what kind of failure it is.
func (e *Error) Code() Code { return e.code }

// Message returns the text without the circumstances that Error adds.
func (e *Error) Message() string { return e.message }

// Origin returns where the error arose.
func (e *Error) Origin() Origin { return e.origin }

// Executed returns whether the handler ran.
func (e *Error) Executed() Executed { return e.executed }

// Phase returns how far the call had come.
func (e *Error) Phase() Phase { return e.phase }

// Method returns "Service.method" of the call, empty outside of one.
func (e *Error) Method() string { return e.method }

// Address returns the peer's address, empty if there was none. Of a call that
// was tried at two addresses it is the second; Error tells both.
func (e *Error) Address() string { return e.address }

// Elapsed returns how long the call had taken.
func (e *Error) Elapsed() time.Duration { return e.elapsed }

// Unwrap returns the cause, which may be nil.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.cause
}

// Error returns "Orders.place: deadline exceeded: no result within 200ms (waiting for the
// reply, 127.0.0.1:8888, after 200ms, maybe executed)".
func (e *Error) Error() string {
	if e == nil {
		// A handler that returns a typed nil.
		return "nil *fulmar.Error"
	}
	var text strings.Builder
	if e.method != "" {
		text.WriteString(e.method + ": ")
	}
	text.WriteString(e.code.String() + ": " + e.message)
	if e.phase == PhaseNone {
		return text.String()
	}
	circumstance := e.phase.String()
	if e.origin == OriginRemote {
		circumstance = "the server's answer"
	}
	text.WriteString(" (" + circumstance)
	if e.address != "" {
		text.WriteString(", " + e.address)
	}
	fmt.Fprintf(&text, ", after %v, %v", e.elapsed.Round(10*time.Microsecond), e.executed)
	if e.before != nil {
		// Its address must not leave for another peer either, so it is not part of the message.
		fmt.Fprintf(&text, "; before that %s: %s", e.before.address, e.before.message)
	}
	text.WriteByte(')')
	return text.String()
}

// callFailure converts a failure of the transport in a call that may take limit.
func callFailure(err error, limit time.Duration) *Error {
	e := &Error{code: Unavailable, origin: OriginTransport, phase: PhaseAcquire, executed: ExecutedNo, cause: err}
	var failed *transport.CallError
	if errors.As(err, &failed) {
		e.phase = Phase(failed.Phase)
		if failed.Sent {
			e.executed = ExecutedMaybe
		}
	}
	e.message = reason(err)
	var reply *transport.ReplyError
	var encoding *thriftwire.Error
	var foreign *wire.Error
	var status *grpc.Error
	switch code := CodeOf(err); {
	case code == DeadlineExceeded && limit <= 0:
		e.code, e.message = code, "the deadline had passed before the call began"
	case code == DeadlineExceeded:
		e.code, e.message = code, fmt.Sprintf("no result within %v", rounded(limit))
	case code == Canceled:
		e.code, e.message = code, "canceled by the caller"
	case errors.Is(err, transport.ErrClosed):
		e.code, e.origin, e.message = Canceled, OriginLocal, transport.ErrClosed.Error()
	case errors.Is(err, transport.ErrExhausted):
		e.code, e.origin = ResourceExhausted, OriginLocal
	case errors.As(err, &reply):
		e.code, e.exception = Internal, reply.Exception
	case errors.As(err, &encoding):
		e.code = codeOfWire(encoding)
	case errors.As(err, &foreign):
		e.code = Internal
	case errors.As(err, &status):
		e.code, e.message = Code(status.Code), status.Detail
	default:
		if text := handshakeReason(err); text != "" {
			e.message = text
		}
	}
	return e
}

// rounded leaves out digits that nobody reads.
func rounded(limit time.Duration) time.Duration {
	if limit < time.Microsecond {
		return limit
	}
	return limit.Round(time.Microsecond)
}

// codeOfWire returns the code for bytes from a peer, or a value of ours, that
// break the rules of the encoding.
func codeOfWire(err *thriftwire.Error) Code {
	switch err.Kind {
	case thriftwire.LimitExceeded:
		return ResourceExhausted
	case thriftwire.BadValue:
		return InvalidArgument
	default:
		return Internal
	}
}

// reason returns the text of err without the addresses that package net puts
// into it: they are a field of Error, and must not leave for another peer.
func reason(err error) string {
	var operation *net.OpError
	if !errors.As(err, &operation) || operation.Err == nil {
		return err.Error()
	}
	text := operation.Err.Error()
	if strings.HasPrefix(text, operation.Op+": ") {
		return text
	}
	return operation.Op + ": " + text
}

// exceptionFor returns what a handler's error tells the peer: neither stacks nor
// addresses of other servers.
func exceptionFor(err error) thriftwire.ApplicationException {
	if e, ok := err.(*Error); ok && e != nil && e.cause == nil && e.exception == 0 {
		// A refusal: under overload there is one for most calls.
		return thriftwire.ApplicationException{Type: exceptionOfCode(e.code), Message: e.message}
	}
	exception := thriftwire.ApplicationException{Type: exceptionOfCode(CodeOf(err)), Message: withoutAddresses(err, 0)}
	var e *Error
	if errors.As(err, &e) && e != nil && e.exception != 0 {
		exception.Type = e.exception
	}
	return exception
}

// withoutAddresses returns the text of err in which the texts of what it wraps
// are shortened to what another peer may see.
func withoutAddresses(err error, depth int) string {
	const deepest = 32
	text := err.Error()
	if depth > deepest {
		return text
	}
	switch e := err.(type) {
	case *Error:
		text = e.message
	case *net.OpError:
		return reason(e)
	}
	for _, inner := range unwrap(err) {
		text = strings.ReplaceAll(text, inner.Error(), withoutAddresses(inner, depth+1))
	}
	return text
}

func unwrap(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}
		}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}
