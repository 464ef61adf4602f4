package main

import "github.com/fulmar-rpc/fulmar/thrift"

// encode writes s over memory.
func encode(memory []byte, s thrift.Struct) ([]byte, error) { return thrift.Append(memory[:0], s) }

// decode reads a message as a server does by default. What it decodes may keep the
// message, so each message has memory of its own, which counts.
func decode(wire []byte, s thrift.Struct) error {
	return thrift.UnmarshalOwned(append([]byte(nil), wire...), s, thrift.UnmarshalConfig{})
}

// decodeOwn gives memory of its own to every string.
func decodeOwn(wire []byte, s thrift.Struct) error {
	return thrift.UnmarshalOwned(wire, s, thrift.UnmarshalConfig{Strings: thrift.StringsOwn})
}
