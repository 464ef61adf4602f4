package main

import "github.com/fulmar-rpc/fulmar/thrift"

// encode writes s over memory.
func encode(memory []byte, s thrift.Struct) ([]byte, error) { return thrift.Append(memory[:0], s) }

// decode reads a message as a server does by default.
func decode(wire []byte, s thrift.Struct) error { return thrift.Unmarshal(wire, s) }

// decodeOwn gives memory of its own to every string.
func decodeOwn(wire []byte, s thrift.Struct) error { return thrift.Unmarshal(wire, s) }
