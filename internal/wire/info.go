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
// aliases the bytes that it was found in, so nothing is allocated for it, and
// it is valid as long as they are. The zero value is empty. Safe for concurrent
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
	info := Info{blocks: b}
	c := cursor{b: b}
	for {
		ok, err := c.next()
		if err != nil {
			return Info{}, err
		}
		if !ok {
			return info, nil
		}
		info.pairs++
	}
}

// Len returns how many pairs there are, repeats included.
func (i Info) Len() int { return i.pairs }

// String returns the value of the last pair with this string key.
func (i Info) String(key string) (value []byte, ok bool) {
	c := i.cursor()
	for c.more() {
		if c.block == BlockStrings && string(c.key) == key || c.block == BlockToken && key == TokenKey {
			value, ok = c.value, true
		}
	}
	return value, ok
}

// Int returns the value of the last pair with this int key.
func (i Info) Int(key uint16) (value []byte, ok bool) {
	c := i.cursor()
	for c.more() {
		if c.block == BlockInts && c.number == key {
			value, ok = c.value, true
		}
	}
	return value, ok
}

// Token returns the ACL token.
func (i Info) Token() (token []byte, ok bool) { return i.String(TokenKey) }

// Strings returns the pairs with string keys as they came, repeats included,
// among them the ACL token.
func (i Info) Strings() iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		c := i.cursor()
		for c.more() {
			switch c.block {
			case BlockInts:
				continue
			case BlockToken:
				c.key = []byte(TokenKey)
			}
			if !yield(c.key, c.value) {
				return
			}
		}
	}
}

// Ints returns the pairs with int keys as they came, repeats included.
func (i Info) Ints() iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		c := i.cursor()
		for c.more() {
			if c.block == BlockInts && !yield(c.number, c.value) {
				return
			}
		}
	}
}

// cursor returns a cursor that is at its end if there is nothing to find.
func (i Info) cursor() cursor {
	if i.pairs == 0 {
		return cursor{}
	}
	return cursor{b: i.blocks}
}

// cursor walks over blocks, checking every step.
type cursor struct {
	b   []byte
	pos int
	// block is the id of the block that pos is in, left how many of its pairs
	// are still to come.
	block byte
	left  int
	// cost is how much of limits.HeaderPairs is used up.
	cost int

	// What next found: number for BlockInts, key for BlockStrings.
	number uint16
	key    []byte
	value  []byte
}

// more goes to the next pair of blocks that were checked before.
func (c *cursor) more() bool {
	ok, err := c.next()
	return ok && err == nil
}

// next goes to the next pair and reports whether there is one.
func (c *cursor) next() (ok bool, err error) {
	for c.left == 0 {
		if c.pos == len(c.b) {
			return false, nil
		}
		if err := c.open(); err != nil {
			return false, err
		}
	}
	c.left--
	switch c.block {
	case BlockStrings:
		if c.key, ok = c.text(); !ok {
			return false, c.truncated("a string key")
		}
	case BlockInts:
		if c.number, ok = c.uint16(); !ok {
			return false, c.truncated("an int key")
		}
	}
	if c.value, ok = c.text(); !ok {
		return false, c.truncated("a value")
	}
	return true, nil
}

// open enters the block at pos, or passes over padding.
func (c *cursor) open() error {
	c.block = c.b[c.pos]
	switch c.block {
	case BlockPadding:
		// Eight at a time: a peer may send nothing else, and every look-up
		// passes here.
		for c.pos+8 <= len(c.b) && binary.BigEndian.Uint64(c.b[c.pos:]) == 0 {
			c.pos += 8
		}
		for c.pos < len(c.b) && c.b[c.pos] == BlockPadding {
			c.pos++
		}
		return nil
	case BlockToken:
		c.pos++
		c.left = 1
	case BlockStrings, BlockInts:
		c.pos++
		count, ok := c.uint16()
		if !ok {
			return c.truncated("the count of a map")
		}
		c.left = int(count)
	default:
		return &thriftwire.Error{Kind: thriftwire.Malformed, Offset: c.pos, Detail: fmt.Sprintf(
			"info block of unknown id 0x%02x in TTHeader (known: 0x00 padding, 0x01 string map, 0x10 int map, 0x11 token)", c.block)}
	}
	// An empty map counts as well, or there could be 20,000 of them to pass over.
	c.cost += max(c.left, 1)
	if c.cost > limits.HeaderPairs {
		return &thriftwire.Error{Kind: thriftwire.LimitExceeded, Offset: c.pos, Detail: fmt.Sprintf(
			"at least %d key-value pairs in TTHeader (limit %d)", c.cost, limits.HeaderPairs)}
	}
	return nil
}

// uint16 reads a number, if it is there as a whole.
func (c *cursor) uint16() (n uint16, ok bool) {
	if len(c.b)-c.pos < 2 {
		return 0, false
	}
	n = binary.BigEndian.Uint16(c.b[c.pos:])
	c.pos += 2
	return n, true
}

// text reads a length and as many bytes, if they are there as a whole.
func (c *cursor) text() (text []byte, ok bool) {
	if len(c.b)-c.pos < 2 {
		return nil, false
	}
	length := int(binary.BigEndian.Uint16(c.b[c.pos:]))
	if len(c.b)-c.pos-2 < length {
		return nil, false
	}
	start := c.pos + 2
	c.pos = start + length
	return c.b[start:c.pos:c.pos], true
}

// truncated is the error for something at pos that the header ends inside of.
func (c *cursor) truncated(what string) error {
	return &thriftwire.Error{Kind: thriftwire.Truncated, Offset: c.pos, Detail: fmt.Sprintf(
		"the header info of the TTHeader ends inside %s (%d bytes left)", what, len(c.b)-c.pos)}
}
