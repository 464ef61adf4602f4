package wire

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Ids of the blocks that the key-value part of a TTHeader consists of.
const (
	BlockPadding byte = 0x00
	BlockStrings byte = 0x01
	BlockInts    byte = 0x10
	BlockToken   byte = 0x11
)

// Info is the key-value part of a TTHeader. It was checked as a whole and
// aliases the bytes that it was found in, so nothing is allocated for it (except
// the key of a token, where Strings comes to one), and it is valid as long as
// they are. The zero value is empty. Safe for concurrent
// use, as far as those bytes are.
//
// Pairs with string keys and pairs with int keys are two maps. A key may come
// several times, also in different blocks: the last one counts. The ACL token
// is a pair with the string key TokenKey, whichever of the two forms it came
// in.
//
// A look-up walks over all pairs, of which there are at most
// limits.HeaderPairs. Who needs many keys ranges over Strings or Ints once.
type Info struct {
	blocks []byte
	pairs  int
}

// ParseInfo checks the blocks in b: what follows the protocol id and the
// transforms in a TTHeader, up to its end. The error is a *thriftwire.Error
// with the offset in b.
func ParseInfo(b []byte) (Info, error) {
	pairs := 0
	end, err := walk(b, func(byte, uint16, []byte, []byte) bool {
		pairs++
		return true
	})
	if err != nil || pairs == 0 {
		return Info{}, err
	}
	return Info{blocks: b[:end], pairs: pairs}, nil
}

// Len returns how many pairs there are, repeats included.
func (i Info) Len() int { return i.pairs }

// Size returns how many bytes CopyTo needs.
func (i Info) Size() int { return len(i.blocks) }

// CopyTo copies the pairs to b, which has at least Size bytes, and returns the
// Info that aliases b: for who keeps it longer than the bytes that it came in.
func (i Info) CopyTo(b []byte) Info {
	n := copy(b, i.blocks)
	return Info{blocks: b[:n:n], pairs: i.pairs}
}

// String returns the value of the last pair with this string key.
func (i Info) String(key string) (value []byte, ok bool) {
	_, _ = walk(i.blocks, func(block byte, _ uint16, k, v []byte) bool {
		if block == BlockStrings && string(k) == key || block == BlockToken && key == TokenKey {
			value, ok = v, true
		}
		return true
	})
	return value, ok
}

// Int returns the value of the last pair with this int key.
func (i Info) Int(key uint16) (value []byte, ok bool) {
	_, _ = walk(i.blocks, func(block byte, number uint16, _, v []byte) bool {
		if number == key && block == BlockInts {
			value, ok = v, true
		}
		return true
	})
	return value, ok
}

// Token returns the ACL token.
func (i Info) Token() (token []byte, ok bool) { return i.String(TokenKey) }

// Strings returns the pairs with string keys as they came, repeats included,
// among them the ACL token.
func (i Info) Strings() iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		_, _ = walk(i.blocks, func(block byte, _ uint16, key, value []byte) bool {
			switch block {
			case BlockInts:
				return true
			case BlockToken:
				key = []byte(TokenKey)
			}
			return yield(key, value)
		})
	}
}

// Ints returns the pairs with int keys as they came, repeats included.
func (i Info) Ints() iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		_, _ = walk(i.blocks, func(block byte, number uint16, _, value []byte) bool {
			return block != BlockInts || yield(number, value)
		})
	}
}

// walk calls visit with each pair until it returns false: key for BlockStrings,
// number for BlockInts, neither for BlockToken. It checks every step, also in
// bytes that were checked before: if they are not what they were, that is a
// wrong value and not a crash. It returns the offset behind the last pair.
func walk(b []byte, visit func(block byte, number uint16, key, value []byte) bool) (end int, err error) {
	cost := 0
	for pos := 0; pos < len(b); {
		block := b[pos]
		count := 1
		switch block {
		case BlockPadding:
			pos = skipPadding(b, pos)
			continue
		case BlockToken:
			pos++
		case BlockStrings, BlockInts:
			if len(b)-pos < 3 {
				return 0, truncated(b, pos+1, "the count of a map")
			}
			count = int(binary.BigEndian.Uint16(b[pos+1:]))
			pos += 3
		default:
			return 0, &thriftwire.Error{Kind: thriftwire.Malformed, Offset: pos, Detail: fmt.Sprintf(
				"info block of unknown id 0x%02x in TTHeader (known: 0x00 padding, 0x01 string map, 0x10 int map, 0x11 token)", block)}
		}
		// An empty map counts as well, or there could be 20,000 of them to pass
		// over.
		if cost += max(count, 1); cost > limits.HeaderPairs {
			return 0, &thriftwire.Error{Kind: thriftwire.LimitExceeded, Offset: pos, Detail: fmt.Sprintf(
				"at least %d key-value pairs in TTHeader (limit %d)", cost, limits.HeaderPairs)}
		}
		for ; count > 0; count-- {
			var number uint16
			var key []byte
			switch block {
			case BlockStrings:
				next := textEnd(b, pos)
				if next > len(b) {
					return 0, truncated(b, pos, "a string key")
				}
				key, pos = b[pos+2:next], next
			case BlockInts:
				if len(b)-pos < 2 {
					return 0, truncated(b, pos, "an int key")
				}
				number = binary.BigEndian.Uint16(b[pos:])
				pos += 2
			}
			next := textEnd(b, pos)
			if next > len(b) {
				return 0, truncated(b, pos, "a value")
			}
			value := b[pos+2 : next]
			pos, end = next, next
			if !visit(block, number, key, value) {
				return end, nil
			}
		}
	}
	return end, nil
}

// textEnd returns where the text whose length is at pos ends, more than len(b)
// if that has not even a length.
func textEnd(b []byte, pos int) int {
	if len(b)-pos < 2 {
		return len(b) + 1
	}
	return pos + 2 + int(binary.BigEndian.Uint16(b[pos:]))
}

// skipPadding returns the offset behind the padding at pos. Eight bytes at a
// time: a peer may send little else, and every look-up passes here.
func skipPadding(b []byte, pos int) int {
	for len(b)-pos >= 8 && binary.BigEndian.Uint64(b[pos:]) == 0 {
		pos += 8
	}
	for pos < len(b) && b[pos] == BlockPadding {
		pos++
	}
	return pos
}

// truncated is the error for bytes that end inside of what is at pos.
func truncated(b []byte, pos int, what string) error {
	return &thriftwire.Error{Kind: thriftwire.Truncated, Offset: pos, Detail: fmt.Sprintf(
		"the header info of the TTHeader ends inside %s (%d bytes left)", what, len(b)-pos)}
}
