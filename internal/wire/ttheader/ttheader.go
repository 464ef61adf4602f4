// Package ttheader cuts bytes into messages with a TTHeader, the header of
// Kitex with keys and values, and writes that header.
//
// Source: the TTHeader of Kitex and cloudwego/gopkg; docs/protocol/ttheader.md.
package ttheader

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/framed"
	"github.com/fulmar-rpc/fulmar/internal/wire/kitexprotobuf"
)

// FixedSize is the size of the fixed part of the header: LENGTH, the magic
// number, FLAGS, SEQID and HEADER SIZE.
const FixedSize = 14

// Magic is the number at byte 4 that makes bytes a TTHeader.
const Magic = 0x1000

const (
	// offsets of the fields, for errors.
	offsetLength     = 0
	offsetMagic      = 4
	offsetFlags      = 6
	offsetSequence   = 8
	offsetHeaderSize = 12

	// lengthSize is the size of the field LENGTH, which does not count itself.
	lengthSize = 4
	// unit is what HEADER SIZE counts, and what the header is padded to.
	unit = 4
	// lengthLeast is a LENGTH with the least header and no payload.
	lengthLeast = FixedSize - lengthSize + unit
	// infoLeast is the size of the protocol id and the count of transforms.
	infoLeast = 2
	// infoMost is what HEADER SIZE can express.
	infoMost = 0xffff * unit
)

// Protocol ids, which say what the payload is. Kitex writes 0 for everything
// but streams.
const (
	protocolBinary         = 0x00
	protocolCompact2       = 0x03
	protocolKitexProtobuf  = 0x04
	protocolThriftStruct   = 0x10
	protocolProtobufStruct = 0x11
)

// Matches reports whether b starts like a TTHeader, and if fewer than 6 bytes
// cannot tell yet, how many it needs.
func Matches(b []byte) (match bool, need int) {
	if len(b) > 0 && b[0] > limits.FrameLengthMax>>24 {
		return false, 0
	}
	if len(b) < offsetFlags {
		return false, offsetFlags
	}
	return binary.BigEndian.Uint16(b[offsetMagic:]) == Magic, 0
}

// Next returns the first message in b and how many bytes it used, or how many
// bytes b must hold for the next step; message then has what of the header is
// known already. It does not believe a length: need grows
// to it, memory is the caller's to take as bytes arrive.
//
// A message above a limit is returned as Invalid as soon as what is needed to
// answer it is there; used then counts bytes that may not have arrived, which
// the caller throws away. With a limit of 0 every message is above it. A header
// that cannot be read makes the message Invalid and Last, with the
// HeaderSequence that an exception can carry. An error means that the
// connection cannot go on.
func Next(b []byte, m limits.Message) (message wire.Message, used, need int, err error) {
	head, need, err := parseFixed(b, false)
	if need > 0 || err != nil {
		return message, 0, need, err
	}
	message.Protocol = wire.TTHeader
	message.Flags, message.HeaderSequence = head.flags, head.sequence
	if head.info > limits.HeaderInfoBytes {
		message.Last = framed.GivesUp(head.payload, m)
		message.Invalid = &thriftwire.Error{Kind: thriftwire.LimitExceeded, Offset: offsetHeaderSize, Detail: fmt.Sprintf(
			"TTHeader with header info of %d bytes (limit %d)", head.info, limits.HeaderInfoBytes)}
		return message, head.used(), 0, nil
	}
	start := FixedSize + head.info
	enough := head.used()
	if head.payload-framed.HeaderSize > m.Bytes {
		// Too long in either form: not worth waiting for.
		enough = start
	}
	if len(b) < enough {
		return message, 0, enough, nil
	}
	protocol, err := readInfo(&message, b[FixedSize:start])
	if err != nil {
		message.Invalid, message.Last = err, true
	} else if err := checkProtocol(&message, protocol, b); err != nil {
		return message, 0, 0, err
	}
	need, err = readPayload(&message, b[start:min(len(b), head.used())], head.payload, m)
	switch {
	case err != nil:
		return message, 0, 0, err
	case need > 0:
		return message, 0, start + need, nil
	}
	return message, head.used(), 0, nil
}

// fixed is the fixed part of the header, checked.
type fixed struct {
	flags    uint16
	sequence int32
	// info is the size of the header info, payload what follows it.
	info    int
	payload int
}

// used returns how long the whole frame is.
func (f fixed) used() int { return FixedSize + f.info + f.payload }

// parseFixed reads the fixed part, of a stream's frame or of a message, each field as
// soon as it is there.
func parseFixed(b []byte, stream bool) (head fixed, need int, err error) {
	if len(b) < lengthSize {
		return head, offsetFlags, nil
	}
	length := binary.BigEndian.Uint32(b)
	switch {
	case length > limits.FrameLengthMax:
		return head, 0, malformed(offsetLength, "TTHeader with LENGTH of %d bytes (no frame is longer than %d)", length, limits.FrameLengthMax)
	case length < lengthLeast:
		return head, 0, malformed(offsetLength, "TTHeader with LENGTH of %d bytes (no frame is shorter than %d)", length, lengthLeast)
	case len(b) < offsetFlags:
		return head, offsetFlags, nil
	}
	if magic := binary.BigEndian.Uint16(b[offsetMagic:]); magic != Magic {
		return head, 0, malformed(offsetMagic, "no TTHeader: 0x%04x where 0x%04x stands in each", magic, Magic)
	}
	if len(b) < offsetSequence {
		return head, offsetSequence, nil
	}
	head.flags = binary.BigEndian.Uint16(b[offsetFlags:])
	switch isStream := head.flags&wire.FlagStreaming != 0; {
	case isStream && !stream:
		return head, 0, notEnabled(b, "TTHeader streaming, not enabled")
	case !isStream && stream:
		return head, 0, malformed(offsetFlags, "TTHeader with FLAGS 0x%04x where the frame of a stream is expected", head.flags)
	}
	if len(b) < FixedSize {
		return head, FixedSize, nil
	}
	head.sequence = int32(binary.BigEndian.Uint32(b[offsetSequence:]))
	head.info = int(binary.BigEndian.Uint16(b[offsetHeaderSize:])) * unit
	head.payload = int(length) + lengthSize - FixedSize - head.info
	switch {
	case head.info < infoLeast:
		return head, 0, malformed(offsetHeaderSize, "TTHeader with HEADER SIZE of 0 bytes (%d to %d)", unit, infoMost)
	case head.payload < 0:
		return head, 0, malformed(offsetHeaderSize, "TTHeader with HEADER SIZE of %d bytes, %d more than LENGTH leaves", head.info, -head.payload)
	}
	return head, 0, nil
}

// readInfo reads what follows the fixed part and returns the protocol id.
func readInfo(message *wire.Message, info []byte) (protocol byte, err error) {
	protocol = info[0]
	transforms := int(info[1])
	if transforms > limits.HeaderTransforms {
		return protocol, &thriftwire.Error{Kind: thriftwire.LimitExceeded, Offset: FixedSize + 1, Detail: fmt.Sprintf(
			"TTHeader with %d transforms (limit %d)", transforms, limits.HeaderTransforms)}
	}
	start := infoLeast + transforms
	if start > len(info) {
		return protocol, &thriftwire.Error{Kind: thriftwire.Truncated, Offset: FixedSize + 1, Detail: fmt.Sprintf(
			"TTHeader with %d transforms in header info of %d bytes", transforms, len(info))}
	}
	message.Info, err = wire.ParseInfo(info[start:])
	if err != nil {
		var found *thriftwire.Error
		if errors.As(err, &found) {
			found.Offset += FixedSize + start
		}
		return protocol, err
	}
	return protocol, nil
}

// checkProtocol looks at the protocol id. The payload has the last word on what
// it is, so ids that Kitex mixes up are all taken.
func checkProtocol(message *wire.Message, protocol byte, b []byte) error {
	switch protocol {
	case protocolBinary, protocolCompact2, protocolKitexProtobuf:
	case protocolThriftStruct, protocolProtobufStruct:
		return notEnabled(b, fmt.Sprintf("TTHeader with a struct of a stream (PROTOCOL ID 0x%02x), not enabled", protocol))
	default:
		message.Invalid = malformed(FixedSize, "TTHeader with PROTOCOL ID 0x%02x (0x00, 0x03 and 0x04 are taken)", protocol)
	}
	return nil
}

// readPayload finds the message in what there is of a payload of the given
// length, or returns how many bytes of it are needed. An Invalid that message
// has already stays.
func readPayload(message *wire.Message, payload []byte, length int, m limits.Message) (need int, err error) {
	// Both forms have their magic number within 8 bytes, and no message is that
	// short.
	const shortest, messageLeast = 8, 13
	switch {
	case length < shortest:
		invalid(message, &thriftwire.Error{Kind: thriftwire.Truncated, Offset: -1, Detail: fmt.Sprintf(
			"TTHeader with a payload of %d bytes (no message is shorter than %d)", length, messageLeast)})
		return 0, nil
	case len(payload) < shortest:
		return shortest, nil
	}
	prefix := 0
	switch {
	case binary.BigEndian.Uint16(payload) == thriftwire.VersionHigh:
	case isMessage(payload[framed.HeaderSize:]):
		prefix = framed.HeaderSize
		message.Protocol = wire.TTHeaderFramed
	default:
		// Only what the decision needs is named: the text must not depend on how
		// much more has arrived.
		invalid(message, malformed(-1, "payload behind TTHeader starts with % x%s: no strict Binary message, bare or framed",
			payload[:shortest], known(payload[:shortest])))
		message.Last = message.Last || framed.GivesUp(length, m)
		return 0, nil
	}
	header, codec, size, headerNeed, err := kitexprotobuf.ParseEither(payload[prefix:])
	if err == nil && headerNeed > 0 && prefix+headerNeed <= length {
		return prefix + headerNeed, nil
	}
	message.Header, message.Payload = header, codec
	inner := length - prefix
	declared := uint32(inner)
	if prefix > 0 {
		declared = binary.BigEndian.Uint32(payload)
	}
	switch {
	case inner > m.Bytes:
		message.Last = message.Last || framed.GivesUp(inner, m)
		invalid(message, &thriftwire.Error{Kind: thriftwire.LimitExceeded, Offset: -1, Detail: fmt.Sprintf(
			"message of %d bytes (limit %d)", inner, m.Bytes)})
	case declared != uint32(inner):
		invalid(message, malformed(-1, "frame of %d bytes behind TTHeader, whose payload has %d more", declared, inner))
	case err != nil:
		invalid(message, err)
	case headerNeed > 0:
		invalid(message, &thriftwire.Error{Kind: thriftwire.Truncated, Offset: inner, Detail: fmt.Sprintf(
			"message of %d bytes ends inside the message header (%d bytes)", inner, headerNeed)})
	case message.Invalid == nil:
		message.Body = payload[prefix+size:]
	}
	return 0, nil
}

// isMessage reports whether b, of at least two bytes, starts like a message that
// can stand in a frame.
func isMessage(b []byte) bool {
	version := binary.BigEndian.Uint16(b)
	return version == thriftwire.VersionHigh || version == kitexprotobuf.Magic
}

// known returns the name of what a payload is, in brackets; "" if unknown.
func known(payload []byte) string {
	if name := wire.NameOf(payload); name != "" {
		return " (" + name + ")"
	}
	return ""
}

// invalid records why a message cannot be served, unless that is known.
func invalid(message *wire.Message, err error) {
	if message.Invalid == nil {
		message.Invalid = err
	}
}

func malformed(offset int, format string, arguments ...any) error {
	return &thriftwire.Error{Kind: thriftwire.Malformed, Offset: offset, Detail: fmt.Sprintf(format, arguments...)}
}

// notEnabled is the error for what is known but not spoken. b has at least 8
// bytes.
func notEnabled(b []byte, detail string) error {
	return &wire.Error{First: [8]byte(b), Count: 8, Detail: detail}
}
