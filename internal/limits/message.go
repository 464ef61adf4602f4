package limits

import "sync"

// Message bounds the encoding and decoding of one message. The zero value is
// not usable; see DefaultMessage.
type Message struct {
	// Bytes is the longest message, HeadBytes how many of them stand before the
	// body that is to be encoded.
	Bytes     int
	HeadBytes int
	// LikelyBytes is how long the message will probably be, 0 if nobody knows. It
	// is no limit.
	LikelyBytes int
	// Depth is how deep structs and containers may nest.
	Depth int
	// DecodeBytesPerWireByte is how much memory decoding may take for each byte
	// of the message, DecodeBytesMax caps it.
	DecodeBytesPerWireByte int64
	DecodeBytesMax         int64
	// Scratch is where a codec finds what it needs while it works on a message; nil if
	// it has to make that. It is no limit either, and belongs to a client or server.
	Scratch *sync.Pool
}

// DefaultMessage returns the limits that apply unless configured otherwise.
func DefaultMessage() Message {
	return Message{
		Bytes:                  MessageBytes,
		Depth:                  Depth,
		DecodeBytesPerWireByte: DecodeBytesPerWireByte,
		DecodeBytesMax:         DecodeBytesMax,
	}
}

// DecodeBytes returns how many bytes decoding a message of wireBytes bytes may
// allocate.
func (m Message) DecodeBytes(wireBytes int) int64 {
	room := m.DecodeBytesMax - DecodeBytesBase
	if room <= 0 || int64(wireBytes) > room/max(m.DecodeBytesPerWireByte, 1) {
		return m.DecodeBytesMax
	}
	return DecodeBytesBase + m.DecodeBytesPerWireByte*int64(wireBytes)
}
