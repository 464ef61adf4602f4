// Package framed cuts bytes into framed messages: an unsigned 32-bit length, then
// one message of that length, in Thrift Binary or Kitex-Protobuf.
//
// Source: TFramedTransport of Apache Thrift; docs/protocol/thrift.md.
package framed

import (
	"encoding/binary"
	"fmt"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/kitexprotobuf"
)

// HeaderSize is the size of the length in front of a message.
const HeaderSize = 4

// DiscardFactor times the message limit is how long a refused message may be
// for the connection to survive it: up to there its bytes are thrown away as
// they arrive, a longer one costs the peer its connection.
const DiscardFactor = 4

// GivesUp reports whether a refused message of length bytes costs the peer its
// connection. None does with a limit of 0, with which every message is refused.
func GivesUp(length int, m limits.Message) bool {
	return m.Bytes > 0 && int64(length) > DiscardFactor*int64(m.Bytes)
}

// PutHeader writes the length of a message to b.
func PutHeader(b []byte, length int) { binary.BigEndian.PutUint32(b, uint32(length)) }

// Matches reports whether b starts like a framed strict message, and if fewer
// than 6 bytes cannot tell yet, how many it needs.
func Matches(b []byte) (match bool, need int) {
	if len(b) > 0 && b[0] > limits.FrameLengthMax>>24 {
		return false, 0
	}
	if len(b) < 6 {
		return false, 6
	}
	return binary.BigEndian.Uint16(b[4:]) == thriftwire.VersionHigh, 0
}

// Next returns the first message in b and how many bytes it used, or how many
// bytes b must hold for the next step. It does not believe a length: need grows
// to it, memory is the caller's to take as bytes arrive.
//
// A message above the limit is returned as Invalid as soon as its header is
// there; used then counts bytes that may not have arrived, which the caller
// throws away. With a limit of 0 every message is above it.
func Next(b []byte, m limits.Message) (message wire.Message, used, need int, err error) {
	if len(b) < HeaderSize {
		return message, 0, HeaderSize, nil
	}
	declared := binary.BigEndian.Uint32(b)
	if declared > limits.FrameLengthMax {
		// Also because it would be negative where an int has 32 bits.
		return message, 0, 0, &thriftwire.Error{Kind: thriftwire.Malformed, Detail: fmt.Sprintf(
			"frame of %d bytes (no frame is longer than %d)", declared, limits.FrameLengthMax)}
	}
	length := int(declared)
	used = HeaderSize + length
	message.Protocol = wire.Framed
	if length > m.Bytes {
		return tooLong(b, length, m)
	}
	if len(b) < used {
		return message, 0, used, nil
	}
	payload := b[HeaderSize:used]
	header, codec, size, headerNeed, err := kitexprotobuf.ParseEither(payload)
	message.Header, message.Payload = header, codec
	switch {
	case err != nil:
		message.Invalid = err
	case headerNeed > 0:
		message.Invalid = &thriftwire.Error{Kind: thriftwire.Truncated, Offset: len(payload), Detail: fmt.Sprintf(
			"frame of %d bytes ends inside the message header (%d bytes)", length, headerNeed)}
	default:
		message.Body = payload[size:]
	}
	return message, used, 0, nil
}

// tooLong answers a message above the limit, once its header is there.
func tooLong(b []byte, length int, m limits.Message) (message wire.Message, used, need int, err error) {
	message.Protocol = wire.Framed
	// Not beyond the message: with a small limit the header may not fit it.
	header, codec, size, headerNeed, err := kitexprotobuf.ParseEither(b[HeaderSize:min(len(b), HeaderSize+length)])
	if err == nil && size == 0 && headerNeed <= length {
		return message, 0, HeaderSize + headerNeed, nil
	}
	message.Header, message.Payload = header, codec
	message.Last = GivesUp(length, m)
	message.Invalid = &thriftwire.Error{Kind: thriftwire.LimitExceeded, Offset: -1, Detail: fmt.Sprintf(
		"message of %d bytes (limit %d)", length, m.Bytes)}
	return message, HeaderSize + length, 0, nil
}
