package fulmar

import (
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// Numbers that Kitex sends as codes although gRPC has no such codes.
const (
	// kitexReceiveTimeout: it did not get a message of a stream in time.
	kitexReceiveTimeout = 17
	// kitexUnknownService is what Thrift calls it. The number for an unknown method is
	// gRPC's Canceled, and only the text tells the two apart.
	kitexUnknownService = 20
	kitexUnknownMethod  = "unknown method"
)

// statusFailure returns the error for a call that ended with a status of gRPC.
func statusFailure(status *transport.Status, head transport.ReplyHead) *Error {
	return &Error{
		code:     codeOfStatus(status.Code, status.Message),
		message:  status.Message,
		origin:   OriginRemote,
		phase:    PhaseReply,
		executed: executedOf(head),
		details:  status.Details,
	}
}

// codeOfStatus returns the code that a status has: its own, or Unknown if there is none
// of that number.
func codeOfStatus(number uint32, message string) Code {
	switch code := Code(number); {
	case code == Canceled && strings.HasPrefix(message, kitexUnknownMethod):
		return Unimplemented
	case code.known():
		return code
	case number == kitexUnknownService:
		return Unimplemented
	case number == kitexReceiveTimeout:
		return DeadlineExceeded
	}
	return Unknown
}

// Details returns what came with the error in gRPC besides its code and message: a
// google.rpc.Status in Protobuf, as grpc-status-details-bin has it. It is nil if nothing
// came. The caller may change it.
func (e *Error) Details() []byte { return slices.Clone(e.details) }
