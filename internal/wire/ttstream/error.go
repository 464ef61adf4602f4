package ttstream

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Code is why a stream ended: the type of the application exception behind a TRAILER or
// RST. Handlers of peers choose others.
type Code = thriftwire.ExceptionType

// The codes that Kitex gives streams.
const (
	CodeApplication      Code = 12001
	CodeUnexpectedHeader Code = 12002
	CodeBadBusiness      Code = 12003
	CodeBadFrame         Code = 12004
	CodeIllegalOperation Code = 12005
	CodeClosing          Code = 12006
	CodeCanceled         Code = 12007
	CodeCanceledCause    Code = 12008
	CodeDownstream       Code = 12009
	CodeUpstream         Code = 12010
	CodeInternal         Code = 12011
	CodeHandlerReturned  Code = 12012
	CodeConnectionClosed Code = 12013
	CodeReceiveTimeout   Code = 12014
	CodeStreamTimeout    Code = 12015
)

// codeReset is what a RST without a payload that can be read stands for.
const codeReset Code = 13

// Error is what a peer did wrong. With a Stream it ends that stream, without one the
// connection.
type Error struct {
	Code   Code
	Stream int32
	Detail string
	// TooLarge says that a message was longer than it may be.
	TooLarge bool
}

// Error returns "ttstream: stream 5: DATA behind TRAILER (12005)".
func (e *Error) Error() string {
	if e.Stream == 0 {
		return fmt.Sprintf("ttstream: %s (%d)", e.Detail, e.Code)
	}
	return fmt.Sprintf("ttstream: stream %d: %s (%d)", e.Stream, e.Detail, e.Code)
}

func connectionError(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

func streamError(stream int32, code Code, format string, args ...any) *Error {
	return &Error{Code: code, Stream: stream, Detail: fmt.Sprintf(format, args...)}
}

// What may keep a frame from being sent. Errors of Conn wrap these.
var (
	// ErrStreamEnded: the stream is closed, or our side of it.
	ErrStreamEnded = errors.New("ttstream: stream has ended")
	// ErrStreams: there are as many streams as there may be.
	ErrStreams = errors.New("ttstream: no room for another stream")
	// ErrGoingAway: this connection takes no new streams any more.
	ErrGoingAway = errors.New("ttstream: connection is going away")
	// ErrTooLarge: the peer would not take so long a message.
	ErrTooLarge = errors.New("ttstream: message is too large")
)

// ForeignPath is where the path of a cancellation begins that came from something else
// than a stream of this kind.
const ForeignPath = "non-ttstream path"

// AppendPath returns the path of a cancellation with this service behind those that it
// came through. One that would get too long stays as it is.
func AppendPath(path, service string) string {
	service = strings.ReplaceAll(service, ",", "_")
	switch {
	case path == "":
		return cleanPath(service)
	case len(path)+1+len(service) > limits.StreamPathBytes:
		return path
	}
	return path + "," + service
}

// cleanPath cuts what came from a peer and goes to logs.
func cleanPath(path string) string {
	path = thriftwire.CleanMessage(path[:min(len(path), limits.StreamPathBytes)])
	return strings.ToValidUTF8(path[:min(len(path), limits.StreamPathBytes)], "")
}
