// Package grpc is what gRPC puts into HTTP/2: messages behind their length, the time
// that a call has, its status, and texts and bytes as header values.
//
// It knows no connection: header values and bytes of DATA come in, values and bytes
// come out.
//
// Source: gRPC over HTTP2 (PROTOCOL-HTTP2.md) and its mapping of HTTP status codes
// (http-grpc-status-mapping.md).
package grpc

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// PrefixSize is the size of what stands in front of each message: whether it is
// compressed, and its length.
const PrefixSize = 5

// PutPrefix writes the prefix of a message to b.
func PutPrefix(b []byte, length int, compressed bool) {
	b[0] = 0
	if compressed {
		b[0] = 1
	}
	binary.BigEndian.PutUint32(b[1:], uint32(length))
}

// Error is why messages of a stream cannot be understood, with the code that the call
// fails with.
type Error struct {
	Code   Code
	Detail string
}

// Error returns "grpc: message of 5000 bytes (limit 4096)".
func (e *Error) Error() string { return "grpc: " + e.Detail }

// Next returns the first message in b and how many bytes it used, or how many b must
// hold for the next step. The payload aliases b. An error ends the stream; it comes as
// soon as the prefix is there, so nobody waits for a message that is too long.
func Next(b []byte, limit int) (payload []byte, compressed bool, used, need int, err error) {
	if len(b) < PrefixSize {
		return nil, false, 0, PrefixSize, nil
	}
	if b[0] > 1 {
		return nil, false, 0, 0, &Error{Code: Internal, Detail: fmt.Sprintf("message with the flags %#02x", b[0])}
	}
	length := uint64(binary.BigEndian.Uint32(b[1:]))
	if length > uint64(max(limit, 0)) {
		return nil, false, 0, 0, &Error{Code: ResourceExhausted, Detail: fmt.Sprintf("message of %d bytes (limit %d)", length, limit)}
	}
	used = PrefixSize + int(length)
	if len(b) < used {
		return nil, false, 0, used, nil
	}
	return b[PrefixSize:used:used], b[0] == 1, used, 0, nil
}

// contentType is what all of gRPC's begin with.
const contentType = "application/grpc"

// ContentSubtype returns what a content type says about the payload: "proto" of
// application/grpc+proto, "" of application/grpc, and whether it is gRPC at all.
func ContentSubtype(value string) (subtype string, ok bool) {
	if len(value) < len(contentType) || !strings.EqualFold(value[:len(contentType)], contentType) {
		return "", false
	}
	rest := value[len(contentType):]
	switch {
	case rest == "" || rest[0] == ';':
		return "", true
	case rest[0] != '+':
		return "", false // application/grpc-web, which is another protocol.
	}
	subtype, _, _ = strings.Cut(rest[1:], ";")
	return strings.ToLower(strings.TrimRight(subtype, " \t")), true
}

// SplitPath returns what /package.Service/Method names. Anything else is no method,
// and must not pass for one: rules for access compare names.
func SplitPath(path string) (service, method string, ok bool) {
	if path == "" || path[0] != '/' {
		return "", "", false
	}
	service, method, ok = strings.Cut(path[1:], "/")
	if !ok || service == "" || method == "" || strings.Contains(method, "/") {
		return "", "", false
	}
	return service, method, true
}
