package main

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/fulmar-rpc/fulmar/bench/gen/messages"
	"github.com/fulmar-rpc/fulmar/thrift"
)

type (
	int64List = messages.Int64List
	int32List = messages.Int32List
)

// A list in Thrift Binary is a field of a struct: a type, an id, the type of the
// elements, how many there are, and behind them the end of the struct.
const (
	headBytes = 8
	tailBytes = 1
)

func (l *list) encode(memory []byte) []byte {
	if l.Int64s != nil {
		b := head(memory, thrift.I64, len(l.Int64s), 8)
		elements := b[headBytes:]
		for i, v := range l.Int64s {
			binary.BigEndian.PutUint64(elements[8*i:], uint64(v))
		}
		return b
	}
	b := head(memory, thrift.I32, len(l.Int32s), 4)
	elements := b[headBytes:]
	for i, v := range l.Int32s {
		binary.BigEndian.PutUint32(elements[4*i:], uint32(v))
	}
	return b
}

// head writes all but the elements.
func head(memory []byte, element thrift.Type, n, size int) []byte {
	length := headBytes + n*size + tailBytes
	b := slices.Grow(memory[:0], length)[:length]
	b[0], b[1], b[2], b[3] = byte(thrift.List), 0, 1, byte(element)
	binary.BigEndian.PutUint32(b[4:], uint32(n))
	b[length-1] = 0
	return b
}

func (l *list) decode(wire []byte) error {
	if len(wire) < headBytes+tailBytes {
		return fmt.Errorf("list of %d bytes", len(wire))
	}
	n := int(binary.BigEndian.Uint32(wire[4:]))
	elements := wire[headBytes : len(wire)-tailBytes]
	switch {
	case thrift.Type(wire[3]) == thrift.I64 && len(elements) == 8*n:
		values := slices.Grow(l.Int64s[:0], n)[:n]
		for i := range values {
			values[i] = int64(binary.BigEndian.Uint64(elements[8*i:]))
		}
		l.Int32s, l.Int64s = nil, values
	case thrift.Type(wire[3]) == thrift.I32 && len(elements) == 4*n:
		values := slices.Grow(l.Int32s[:0], n)[:n]
		for i := range values {
			values[i] = int32(binary.BigEndian.Uint32(elements[4*i:]))
		}
		l.Int64s, l.Int32s = nil, values
	default:
		return fmt.Errorf("%d elements of type %d in %d bytes", n, wire[3], len(elements))
	}
	return nil
}
