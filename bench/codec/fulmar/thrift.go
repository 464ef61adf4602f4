package main

import "github.com/fulmar-rpc/fulmar/thrift"

// encode writes s over memory.
func encode(memory []byte, s thrift.Struct) ([]byte, error) { return thrift.Append(memory[:0], s) }

// decode reads a message as a server does by default: wire is memory that others use
// afterwards, as it is for the other contestants.
func decode(wire []byte, s thrift.Struct) error { return thrift.Unmarshal(wire, s) }

// decodeOwn gives memory of its own to every string.
func decodeOwn(wire []byte, s thrift.Struct) error {
	return thrift.UnmarshalOwned(wire, s, thrift.UnmarshalConfig{Strings: thrift.StringsOwn})
}

// decodeScoped lets strings refer to the message, as in a server whose handlers keep
// none of them.
func decodeScoped(wire []byte, s thrift.Struct) error {
	return thrift.UnmarshalOwned(wire, s, thrift.UnmarshalConfig{Strings: thrift.StringsScoped})
}
