package grpc

import "strconv"

// Code is a status code of gRPC.
type Code uint32

// The codes.
const (
	OK                 Code = 0
	Canceled           Code = 1
	Unknown            Code = 2
	InvalidArgument    Code = 3
	DeadlineExceeded   Code = 4
	NotFound           Code = 5
	AlreadyExists      Code = 6
	PermissionDenied   Code = 7
	ResourceExhausted  Code = 8
	FailedPrecondition Code = 9
	Aborted            Code = 10
	OutOfRange         Code = 11
	Unimplemented      Code = 12
	Internal           Code = 13
	Unavailable        Code = 14
	DataLoss           Code = 15
	Unauthenticated    Code = 16
)

// ParseCode returns the code of a grpc-status. Numbers that gRPC does not have are
// kept: Kitex sends some. What is no number is Unknown, as grpc-go has it.
func ParseCode(value string) (Code, bool) {
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return Unknown, false
	}
	return Code(n), true
}

// CodeOfHTTP returns what the status of HTTP means of a response that is not gRPC's, as
// those of proxies are.
func CodeOfHTTP(status int) Code {
	switch status {
	case 400:
		return Internal
	case 401:
		return Unauthenticated
	case 403:
		return PermissionDenied
	case 404:
		return Unimplemented
	case 429, 502, 503, 504:
		return Unavailable
	default:
		return Unknown
	}
}

// CodeOfReset returns what the end of a stream by RST_STREAM means, by the code of
// HTTP/2 (RFC 9113, 7). A CANCEL behind the call's own deadline is DeadlineExceeded,
// which only the caller knows.
func CodeOfReset(code uint32) Code {
	switch code {
	case 0x7, 1000: // REFUSED_STREAM; servers of Kitex that stop say 1000.
		return Unavailable
	case 0x8: // CANCEL
		return Canceled
	case 0x3, 0xb: // FLOW_CONTROL_ERROR, ENHANCE_YOUR_CALM
		return ResourceExhausted
	case 0xc: // INADEQUATE_SECURITY
		return PermissionDenied
	}
	if code <= 0xd {
		return Internal
	}
	return Unknown
}
