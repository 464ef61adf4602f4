package ttheader

import (
	"encoding/binary"
	"fmt"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/framed"
)

// ProtocolStruct is the PROTOCOL ID of frames of streams, whose payload is a struct
// without a message header.
const ProtocolStruct byte = protocolThriftStruct

// Frame is a TTHeader with FlagStreaming and what follows it. Info and Payload alias
// the bytes it was found in.
type Frame struct {
	Sequence int32
	Info     wire.Info
	Payload  []byte
	// Length is that of the payload, which is nil if it is too long.
	Length int
}

// IsFrame reports whether b, which starts with a TTHeader, is a stream's frame and not
// a message, and if there are too few bytes to tell, how many it needs.
func IsFrame(b []byte) (frame bool, need int) {
	if len(b) < offsetSequence {
		return false, offsetSequence
	}
	return binary.BigEndian.Uint16(b[offsetFlags:])&wire.FlagStreaming != 0, 0
}

// NextFrame returns the first frame in b and how many bytes it used, or how many bytes
// b must hold for the next step, as Next does. A payload above most bytes is left out as
// soon as the header is there; used then counts bytes that may not have arrived. An
// error means that the connection cannot go on.
func NextFrame(b []byte, most int) (frame Frame, used, need int, err error) {
	return nextFrame(b, most, most)
}

// NextFrameHead is NextFrame that leaves out any payload.
func NextFrameHead(b []byte, most int) (frame Frame, used, need int, err error) {
	return nextFrame(b, most, -1)
}

// nextFrame is NextFrame that leaves out payloads above kept bytes, of which none should be
// much longer than most.
func nextFrame(b []byte, most, kept int) (frame Frame, used, need int, err error) {
	head, need, err := parseFixed(b, true)
	if need > 0 || err != nil {
		return frame, 0, need, err
	}
	if head.info > limits.HeaderInfoBytes {
		return frame, 0, 0, &thriftwire.Error{Kind: thriftwire.LimitExceeded, Offset: offsetHeaderSize, Detail: fmt.Sprintf(
			"TTHeader with header info of %d bytes (limit %d)", head.info, limits.HeaderInfoBytes)}
	}
	start := FixedSize + head.info
	enough := head.used()
	if head.payload > kept {
		if framed.GivesUp(head.payload, limits.Message{Bytes: most}) {
			return frame, 0, 0, &thriftwire.Error{Kind: thriftwire.LimitExceeded, Offset: offsetLength, Detail: fmt.Sprintf(
				"frame with a payload of %d bytes (limit %d)", head.payload, most)}
		}
		enough = start
	}
	if len(b) < enough {
		return frame, 0, enough, nil
	}
	var message wire.Message
	protocol, err := readInfo(&message, b[FixedSize:start])
	if err != nil {
		return frame, 0, 0, err
	}
	switch protocol {
	case protocolThriftStruct, protocolBinary, protocolCompact2, protocolKitexProtobuf:
		// Which one it is counts for nothing with Kitex either.
	default:
		return frame, 0, 0, malformed(FixedSize, "frame of a stream with PROTOCOL ID 0x%02x (0x10 is taken)", protocol)
	}
	frame = Frame{Sequence: head.sequence, Info: message.Info, Length: head.payload}
	if head.payload <= kept {
		frame.Payload = b[start:enough:enough]
	}
	return frame, head.used(), 0, nil
}
