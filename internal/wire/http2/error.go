package http2

import (
	"fmt"
	"strconv"
)

// ErrorCode is why a stream or a connection ends (RFC 9113, 7).
type ErrorCode uint32

// The error codes.
const (
	NoError            ErrorCode = 0x0
	ProtocolError      ErrorCode = 0x1
	InternalError      ErrorCode = 0x2
	FlowControlError   ErrorCode = 0x3
	SettingsTimeout    ErrorCode = 0x4
	StreamClosed       ErrorCode = 0x5
	FrameSizeError     ErrorCode = 0x6
	RefusedStream      ErrorCode = 0x7
	Cancel             ErrorCode = 0x8
	CompressionError   ErrorCode = 0x9
	ConnectError       ErrorCode = 0xa
	EnhanceYourCalm    ErrorCode = 0xb
	InadequateSecurity ErrorCode = 0xc
	HTTP11Required     ErrorCode = 0xd
)

// String returns the name that RFC 9113 gives the code, or its number: peers
// may send any.
func (c ErrorCode) String() string {
	names := [...]string{
		"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
		"FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
		"INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
	}
	if int64(c) < int64(len(names)) {
		return names[c]
	}
	return strconv.FormatUint(uint64(c), 10)
}

// Error is what a peer did wrong. With a Stream it ends that stream, without
// one the connection (RFC 9113, 5.4).
type Error struct {
	Code   ErrorCode
	Stream uint32
	Detail string
	// told is what a GOAWAY says in place of Detail, for peers that compare it.
	told string
}

// Error returns "http2: stream 5: STREAM_CLOSED: data after the end of the stream".
func (e *Error) Error() string {
	if e.Stream == 0 {
		return fmt.Sprintf("http2: %v: %s", e.Code, e.Detail)
	}
	return fmt.Sprintf("http2: stream %d: %v: %s", e.Stream, e.Code, e.Detail)
}

// connectionError returns an error that ends the connection.
func connectionError(code ErrorCode, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// streamError returns an error that ends one stream.
func streamError(stream uint32, code ErrorCode, format string, args ...any) *Error {
	return &Error{Code: code, Stream: stream, Detail: fmt.Sprintf(format, args...)}
}
