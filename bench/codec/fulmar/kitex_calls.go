package main

import (
	"fmt"
	"slices"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// kitexStruct is what users of the shape of Kitex call, as the code of Kitex does for
// them: so these are measured, and not what they are built on.
type kitexStruct interface {
	thrift.Struct
	BLength() int
	FastWrite(buf []byte) int
	FastRead(buf []byte) (int, error)
}

// encodeKitex is encode as Kitex does it: first the length, then all that long.
func encodeKitex(memory []byte, s thrift.Struct) ([]byte, error) {
	value := s.(kitexStruct)
	length := value.BLength()
	memory = slices.Grow(memory[:0], length)[:length]
	if n := value.FastWrite(memory); n != length {
		return nil, fmt.Errorf("%T has %d bytes, and BLength says %d", s, n, length)
	}
	return memory, nil
}

// decodeKitex is decode as Kitex does it.
func decodeKitex(wire []byte, s thrift.Struct) error {
	n, err := s.(kitexStruct).FastRead(wire)
	if err == nil && n != len(wire) {
		err = fmt.Errorf("%d bytes follow the end of the struct", len(wire)-n)
	}
	return err
}
