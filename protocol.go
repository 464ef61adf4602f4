package fulmar

import (
	"fmt"

	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// Protocol is how messages are framed on a connection.
type Protocol uint8

// The protocols. The zero Protocol means the default of the place it is used.
const (
	// Bare is Thrift Binary without framing, "buffered" in Apache Thrift.
	Bare = Protocol(wire.Bare)
	// Framed is Thrift Binary behind a length.
	Framed = Protocol(wire.Framed)
	// TTHeader is Thrift Binary behind a header with keys and values, the only
	// one of these that carries metadata, business errors and deadlines, and on
	// which calls can share a connection.
	TTHeader = Protocol(wire.TTHeader)
	// TTHeaderFramed is TTHeader with a length in front of the message. Who
	// receives one of the two understands the other.
	TTHeaderFramed = Protocol(wire.TTHeaderFramed)
	// KitexProtobuf in ServerConfig.Protocols allows calls whose messages are in
	// Protobuf, as Kitex sends them behind a length, with TTHeader or without; see
	// PayloadCodec. It is no framing of its own, so clients cannot have it: a call of
	// theirs is in Protobuf if generated code says so, or RawProtobufMethod.
	KitexProtobuf = Protocol(wire.KitexProtobuf)
	// GRPC is gRPC in HTTP/2, of services in Protobuf, and of services in
	// Thrift as Kitex has them there.
	GRPC = Protocol(wire.GRPC)
)

// PayloadCodec is what the body of a call is encoded in.
type PayloadCodec uint8

// The payload codecs.
const (
	// PayloadThrift is Thrift Binary: a struct.
	PayloadThrift = PayloadCodec(wire.PayloadThrift)
	// PayloadProtobuf is a Protobuf message, with the header that Kitex puts in
	// front of it ("Kitex-Protobuf").
	PayloadProtobuf = PayloadCodec(wire.PayloadProtobuf)
)

// String returns the name in lower case.
func (p PayloadCodec) String() string { return wire.Payload(p).String() }

// String returns the name in lower case.
func (p Protocol) String() string { return wire.Protocol(p).String() }

// MarshalText returns the name.
func (p Protocol) MarshalText() ([]byte, error) {
	if p == 0 {
		return nil, nil
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads a name; the empty one is the zero Protocol.
func (p *Protocol) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = 0
		return nil
	}
	for known := Bare; known <= GRPC; known++ {
		if known.String() == string(text) {
			*p = known
			return nil
		}
	}
	return fmt.Errorf("protocol %.40q is not known (known: %s)", text, supported|clientProtocols)
}

// supported is every protocol there is.
const supported = framings | wire.Set(1<<wire.KitexProtobuf|1<<wire.GRPC)

// framings is every framing of messages in Thrift.
const framings = wire.Set(1<<wire.Bare | 1<<wire.Framed | 1<<wire.TTHeader | 1<<wire.TTHeaderFramed)

// clientProtocols is every protocol that a client can have.
const clientProtocols = framings | wire.Set(1<<wire.GRPC)
