// Package kitexprotobuf reads and writes what Kitex puts around a Protobuf message
// within a frame: a header like that of Thrift Binary, and exceptions with an error
// struct of its own. It never looks into the messages of users.
//
// Source: the Protobuf codec of Kitex; docs/protocol/kitex-protobuf.md.
package kitexprotobuf

import (
	"encoding/binary"
	"fmt"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// Magic is the number that a message starts with, behind the length of its frame.
const Magic = 0x9001

const (
	// frameSize is the size of a frame's length, which no message is without.
	frameSize = 4
	// offsets of the fields, for errors, and the size of a header without its name.
	offsetType   = 2
	offsetName   = 4
	nameStart    = 8
	sequenceSize = 4
)

// Matches reports whether b starts like a framed message, and if fewer than 6
// bytes cannot tell yet, how many it needs.
func Matches(b []byte) (match bool, need int) {
	const magicEnd = frameSize + 2
	if len(b) > 0 && b[0] > limits.FrameLengthMax>>24 {
		return false, 0
	}
	if len(b) < magicEnd {
		return false, magicEnd
	}
	return binary.BigEndian.Uint16(b[frameSize:]) == Magic, 0
}

// HeaderSize returns the size of the header that PutHeader writes.
func HeaderSize(name string) int { return nameStart + len(name) + sequenceSize }

// PutHeader writes a header to b, which must be HeaderSize long.
func PutHeader(b []byte, messageType thriftwire.MessageType, name string, sequence int32) {
	binary.BigEndian.PutUint32(b, Magic<<16|uint32(messageType))
	binary.BigEndian.PutUint32(b[offsetName:], uint32(len(name)))
	n := nameStart + copy(b[nameStart:], name)
	binary.BigEndian.PutUint32(b[n:], uint32(sequence))
}

// ParseHeader reads a header from the start of b, behind the length of the frame.
// It returns what thriftwire.ParseHeader does.
func ParseHeader(b []byte) (header thriftwire.Header, size, need int, err error) {
	if len(b) < nameStart {
		return header, 0, nameStart, nil
	}
	if magic := binary.BigEndian.Uint16(b); magic != Magic {
		return header, 0, 0, &thriftwire.Error{Kind: thriftwire.Malformed, Detail: fmt.Sprintf(
			"message starts with % x, not with the magic number 90 01 of Kitex-Protobuf", b[:2])}
	}
	messageType := binary.BigEndian.Uint16(b[offsetType:])
	length := binary.BigEndian.Uint32(b[offsetName:])
	if length > limits.MethodNameBytes {
		return header, 0, 0, &thriftwire.Error{Kind: thriftwire.LimitExceeded, Offset: offsetName, Detail: fmt.Sprintf(
			"method name of %d bytes (limit %d)", length, limits.MethodNameBytes)}
	}
	size = nameStart + int(length) + sequenceSize
	if len(b) < size {
		return header, 0, size, nil
	}
	header.Name = b[nameStart : size-sequenceSize]
	header.Sequence = int32(binary.BigEndian.Uint32(b[size-sequenceSize:]))
	if messageType < uint16(thriftwire.Call) || messageType > uint16(thriftwire.Oneway) {
		return header, size, 0, &thriftwire.Error{Kind: thriftwire.BadType, Offset: offsetType, Detail: fmt.Sprintf(
			"unknown message type %d", messageType)}
	}
	header.Type = thriftwire.MessageType(messageType)
	return header, size, 0, nil
}

// ParseEither reads the header of a message that may stand in a frame: one of this
// package if b starts like it, else one of Thrift.
func ParseEither(b []byte) (header thriftwire.Header, payload wire.Payload, size, need int, err error) {
	if len(b) >= 2 && binary.BigEndian.Uint16(b) == Magic {
		header, size, need, err = ParseHeader(b)
		return header, wire.PayloadProtobuf, size, need, err
	}
	header, size, need, err = thriftwire.ParseHeader(b)
	return header, wire.PayloadThrift, size, need, err
}

// Refusal returns an exception that answers the call whose first bytes, with the
// length of its frame, are b, as far as they say which call it is: Kitex compares
// neither name nor sequence id of an exception.
func Refusal(b []byte, reason string) string {
	header, size, _, _ := ParseHeader(b[min(len(b), frameSize):])
	if size == 0 {
		header = thriftwire.Header{}
	}
	if header.Type == thriftwire.Oneway {
		return ""
	}
	name := string(header.Name)
	exception := thriftwire.ApplicationException{Type: thriftwire.ExceptionInvalidProtocol, Message: reason}
	message := HeaderSize(name) + ExceptionSize(exception)
	answer := make([]byte, frameSize+message)
	binary.BigEndian.PutUint32(answer, uint32(message))
	PutHeader(answer[frameSize:], thriftwire.Exception, name, header.Sequence)
	PutException(answer[frameSize+HeaderSize(name):], exception)
	return string(answer)
}
