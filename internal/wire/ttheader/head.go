package ttheader

import (
	"encoding/binary"
	"fmt"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// Pair is a key and a value. The key on the wire is Prefix followed by Key, so
// that prefixes need no memory of their own.
type Pair struct {
	Prefix, Key, Value string
}

// IntPair is an int key and a value.
type IntPair struct {
	Key   uint16
	Value string
}

// Head is a header to write. What is written depends on nothing else, and pairs
// keep their order, so equal Heads give equal bytes.
type Head struct {
	Flags    uint16
	Sequence int32
	// Protocol is the PROTOCOL ID. 0 is what Kitex writes for all but streams.
	Protocol byte
	// Token is the ACL token, empty for none.
	Token string
	// Strings is the string map. A pair whose key is wire.TokenKey is written
	// as a token, as Kitex does.
	Strings []Pair
	Ints    []IntPair
}

const (
	// textMost is the longest key or value.
	textMost = 0xffff
	// tokenSize and mapSize are the sizes of blocks besides their texts.
	tokenSize = 1 + 2
	mapSize   = 1 + 2
	// stringPairSize and intPairSize are the sizes of pairs besides their texts.
	stringPairSize = 2 + 2
	intPairSize    = 2 + 2
)

// Size returns how many bytes the header takes: everything in front of the
// payload, a multiple of 4 but for the fixed part. The error, a
// *thriftwire.Error, is about texts that are too long and pairs that are too
// many, by the rules of a reader.
func (h *Head) Size() (int, error) {
	info, err := h.info()
	if err != nil {
		return 0, err
	}
	size := (info + unit - 1) / unit * unit
	if size > limits.HeaderInfoBytes {
		return 0, tooMuch("TTHeader with header info of %d bytes (limit %d)", size, limits.HeaderInfoBytes)
	}
	return FixedSize + size, nil
}

// info returns the size of the header info without padding.
func (h *Head) info() (int, error) {
	size := infoLeast
	blocks := 0
	if h.Token != "" {
		if len(h.Token) > textMost {
			return 0, tooMuch("TTHeader token of %d bytes (limit %d)", len(h.Token), textMost)
		}
		size += tokenSize + len(h.Token)
		blocks++
	}
	if pairs := blocks + len(h.Strings) + len(h.Ints); pairs > limits.HeaderPairs {
		return 0, tooMuch("TTHeader with %d key-value pairs (limit %d)", pairs, limits.HeaderPairs)
	}
	inMap := 0
	for i := range h.Strings {
		pair := &h.Strings[i]
		if key := len(pair.Prefix) + len(pair.Key); key > textMost {
			return 0, tooMuch("TTHeader key of %d bytes (limit %d)", key, textMost)
		}
		if len(pair.Value) > textMost {
			return 0, tooMuch("TTHeader value of %d bytes for key %.100q (limit %d)", len(pair.Value), pair.Prefix+pair.Key, textMost)
		}
		if wire.IsToken(pair.Prefix, pair.Key) {
			size += tokenSize + len(pair.Value)
			continue
		}
		inMap++
		size += stringPairSize + len(pair.Prefix) + len(pair.Key) + len(pair.Value)
	}
	if inMap > 0 {
		size += mapSize
	}
	if len(h.Ints) > 0 {
		size += mapSize
	}
	for i := range h.Ints {
		if value := len(h.Ints[i].Value); value > textMost {
			return 0, tooMuch("TTHeader value of %d bytes for int key %d (limit %d)", value, h.Ints[i].Key, textMost)
		}
		size += intPairSize + len(h.Ints[i].Value)
	}
	return size, nil
}

// Put writes the header to b, which must be as long as Size says, for a payload
// of payloadLength bytes, the inner frame's own length included. Header and
// payload together must not be longer than limits.FrameLengthMax.
func (h *Head) Put(b []byte, payloadLength int) {
	binary.BigEndian.PutUint32(b, uint32(len(b)-lengthSize+payloadLength))
	binary.BigEndian.PutUint16(b[offsetMagic:], Magic)
	binary.BigEndian.PutUint16(b[offsetFlags:], h.Flags)
	binary.BigEndian.PutUint32(b[offsetSequence:], uint32(h.Sequence))
	binary.BigEndian.PutUint16(b[offsetHeaderSize:], uint16((len(b)-FixedSize)/unit))
	b[FixedSize] = h.Protocol
	b[FixedSize+1] = 0 // transforms
	rest := b[FixedSize+infoLeast:]
	if h.Token != "" {
		rest = putToken(rest, h.Token)
	}
	inMap := len(h.Strings)
	for i := range h.Strings {
		if wire.IsToken(h.Strings[i].Prefix, h.Strings[i].Key) {
			rest = putToken(rest, h.Strings[i].Value)
			inMap--
		}
	}
	if inMap > 0 {
		rest = putMap(rest, wire.BlockStrings, inMap)
		for i := range h.Strings {
			pair := &h.Strings[i]
			if !wire.IsToken(pair.Prefix, pair.Key) {
				rest = putText(rest, pair.Prefix, pair.Key)
				rest = putText(rest, "", pair.Value)
			}
		}
	}
	if len(h.Ints) > 0 {
		rest = putMap(rest, wire.BlockInts, len(h.Ints))
		for i := range h.Ints {
			binary.BigEndian.PutUint16(rest, h.Ints[i].Key)
			rest = putText(rest[2:], "", h.Ints[i].Value)
		}
	}
	clear(rest) // padding
}

func putToken(b []byte, token string) []byte {
	b[0] = wire.BlockToken
	return putText(b[1:], "", token)
}

func putMap(b []byte, block byte, count int) []byte {
	b[0] = block
	binary.BigEndian.PutUint16(b[1:], uint16(count))
	return b[mapSize:]
}

// putText writes a length and the text, which is in two parts.
func putText(b []byte, first, second string) []byte {
	binary.BigEndian.PutUint16(b, uint16(len(first)+len(second)))
	b = b[2:]
	b = b[copy(b, first):]
	return b[copy(b, second):]
}

func tooMuch(format string, arguments ...any) error {
	return &thriftwire.Error{Kind: thriftwire.LimitExceeded, Offset: -1, Detail: fmt.Sprintf(format, arguments...)}
}
