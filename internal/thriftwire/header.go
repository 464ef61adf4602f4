package thriftwire

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// MessageType is the kind of a message.
type MessageType uint8

// The message types. Peers may send a oneway call as Call or as Oneway; the
// IDL decides.
const (
	Call      MessageType = 1
	Reply     MessageType = 2
	Exception MessageType = 3
	Oneway    MessageType = 4
)

// String returns the name that the specification uses.
func (t MessageType) String() string {
	switch t {
	case Call:
		return "call"
	case Reply:
		return "reply"
	case Exception:
		return "exception"
	case Oneway:
		return "oneway"
	default:
		return fmt.Sprintf("message type %d", uint8(t))
	}
}

// VersionHigh is the upper half of the first word of a strict Binary message,
// which tells it from everything else.
const VersionHigh = 0x8001

// Header is the head of a message.
type Header struct {
	Type MessageType
	// Name aliases the bytes that were parsed.
	Name     []byte
	Sequence int32
}

// AppendedHeaderSize returns the size of the header that PutHeader writes.
func AppendedHeaderSize(name string) int { return 12 + len(name) }

// PutHeader writes a strict header to b, which must be AppendedHeaderSize long.
func PutHeader(b []byte, messageType MessageType, name string, sequence int32) {
	binary.BigEndian.PutUint32(b, VersionHigh<<16|uint32(messageType))
	binary.BigEndian.PutUint32(b[4:], uint32(len(name)))
	n := 8 + copy(b[8:], name)
	binary.BigEndian.PutUint32(b[n:], uint32(sequence))
}

// ParseHeader reads a strict header from the start of b. It returns the size of
// the header, or 0 and how many bytes it needs to go on. An unusable name or
// type is an *Error together with the header's size, so that the caller can
// still answer: the header then holds what could be read.
func ParseHeader(b []byte) (header Header, size, need int, err error) {
	if len(b) < 8 {
		return header, 0, 8, nil
	}
	if high := binary.BigEndian.Uint16(b); high != VersionHigh {
		return header, 0, 0, &Error{Kind: Malformed, Detail: fmt.Sprintf(
			"message starts with % x, not with the strict Binary version 80 01", b[:2])}
	}
	header.Type = MessageType(b[3])
	length := int32(binary.BigEndian.Uint32(b[4:]))
	if length < 0 || length > limits.MethodNameBytes {
		return header, 0, 0, &Error{Kind: LimitExceeded, Offset: 4, Detail: fmt.Sprintf(
			"method name of %d bytes (limit %d)", uint32(length), limits.MethodNameBytes)}
	}
	size = 12 + int(length)
	if len(b) < size {
		return header, 0, size, nil
	}
	header.Name = b[8 : 8+length]
	header.Sequence = int32(binary.BigEndian.Uint32(b[8+length:]))
	if header.Type < Call || header.Type > Oneway {
		return header, size, 0, &Error{Kind: BadType, Offset: 3, Detail: fmt.Sprintf("unknown %v", header.Type)}
	}
	return header, size, 0, nil
}

// CheckName returns an error for a method name that no table may be asked for:
// empty, not UTF-8, or with control characters, which would let two spellings
// of one name pass for different ones in logs and rules.
func CheckName(name []byte) error {
	if len(name) == 0 {
		return &Error{Kind: Malformed, Offset: 8, Detail: "empty method name"}
	}
	if !utf8.Valid(name) {
		return &Error{Kind: Malformed, Offset: 8, Detail: fmt.Sprintf("method name %q is not UTF-8", name)}
	}
	for _, c := range name {
		if c < 0x20 || c == 0x7f {
			return &Error{Kind: Malformed, Offset: 8, Detail: fmt.Sprintf("method name %q contains a control character", name)}
		}
	}
	return nil
}
