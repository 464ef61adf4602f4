// Package wire has what all framings share: which protocols there are, what a
// message on a connection is, and how a connection that speaks none of them is
// refused.
//
// The folders below it turn bytes into messages, one folder a protocol, and
// know neither sockets nor clocks nor goroutines: bytes come in, messages and
// errors come out. That is what lets the event loop, plain connections and
// tests share them.
package wire

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Protocol is how messages are framed on a connection.
type Protocol uint8

// The protocols.
const (
	// Unknown stands for a connection that has not said enough yet.
	Unknown Protocol = iota
	// Bare is Thrift Binary messages one after the other ("buffered").
	Bare
	// Framed is Thrift Binary messages, each after its length.
	Framed
	// TTHeader is Thrift Binary messages, each behind a header with keys and
	// values.
	TTHeader
	// TTHeaderFramed is the same, with the length of the message between header
	// and message. Who receives either receives both: which it is shows in the
	// message only.
	TTHeaderFramed
	// KitexProtobuf in a Set allows messages whose payload is PayloadProtobuf. It
	// is no framing of its own: they come as Framed or TTHeaderFramed.
	KitexProtobuf
	// GRPC is gRPC in HTTP/2: of all that is here, it has the name only.
	GRPC

	protocols
)

// Payload is what the body of a message is encoded in.
type Payload uint8

// The payloads.
const (
	PayloadThrift Payload = iota
	PayloadProtobuf
)

// String returns the name used in logs and errors.
func (p Payload) String() string { return [...]string{"thrift", "protobuf"}[p] }

// ErrNotEnabled makes a message in Kitex-Protobuf invalid where that is not allowed.
var ErrNotEnabled = errors.New("Kitex-Protobuf is not enabled")

// String returns the name used in configurations, logs and errors.
func (p Protocol) String() string {
	switch p {
	case Bare:
		return "bare"
	case Framed:
		return "framed"
	case TTHeader:
		return "ttheader"
	case TTHeaderFramed:
		return "ttheader-framed"
	case KitexProtobuf:
		return "kitex-protobuf"
	case GRPC:
		return "grpc"
	default:
		return "unknown"
	}
}

// Set is a set of protocols: what a listener allows.
type Set uint32

// SetOf returns the set of the given protocols.
func SetOf(protocols ...Protocol) Set {
	var s Set
	for _, p := range protocols {
		s |= 1 << p
	}
	return s
}

// Has reports whether p is in the set.
func (s Set) Has(p Protocol) bool { return s&(1<<p) != 0 }

// ReceivesTTHeader reports whether a message with a TTHeader may arrive. With
// and without an inner frame are one protocol to a receiver.
func (s Set) ReceivesTTHeader() bool { return s.Has(TTHeader) || s.Has(TTHeaderFramed) }

// String returns the names, comma separated.
func (s Set) String() string {
	var names []string
	for p := Unknown + 1; p < protocols; p++ {
		if s.Has(p) {
			names = append(names, p.String())
		}
	}
	return strings.Join(names, ", ")
}

// Message is one message of a connection. Name, Body and Info alias the bytes
// it was found in.
type Message struct {
	// Protocol is also how an answer has to be framed, Payload how it has to be
	// encoded.
	Protocol Protocol
	Payload  Payload
	thriftwire.Header
	// Flags, HeaderSequence and Info are those of the TTHeader, zero without
	// one. HeaderSequence may differ from Sequence, which is the payload's.
	Flags          uint16
	HeaderSequence int32
	Info           Info
	// Body is one struct: arguments, result or application exception. In
	// PayloadProtobuf it is the message itself, which may be empty.
	Body []byte
	// Invalid says why the message cannot be served, although it is clear which
	// call it was and that it can be answered. nil for a good message.
	Invalid error
	// Last says that nothing after this message can be understood: answer,
	// then close.
	Last bool
}

// Error says why a connection cannot go on: nothing that arrived can be
// answered as a call.
type Error struct {
	// First are the bytes it was decided by: the first ones of the message, or
	// of the payload behind its TTHeader.
	First [8]byte
	// Count is how many of First arrived.
	Count int
	// Detail says what they are, as far as known, and what was expected.
	Detail string
	// Answer is what the foreign protocol would understand as a refusal; empty
	// for none.
	Answer string
}

// Error returns "first bytes 47 45 54 20 2f 20 48 54: HTTP/1.1, not enabled
// (enabled: bare, framed)".
func (e *Error) Error() string {
	return fmt.Sprintf("first bytes % x: %s", e.First[:e.Count], e.Detail)
}
