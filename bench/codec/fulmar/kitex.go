package main

import (
	"github.com/fulmar-rpc/fulmar/bench/gen/kitexshape/messages"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// emptyKitex is empty for the structs of Kitex.
func emptyKitex(structName string) func() thrift.Struct {
	switch structName {
	case "Complex":
		return func() thrift.Struct { return messages.NewComplex() }
	case "Small":
		return func() thrift.Struct { return messages.NewSmall() }
	case "Mixed":
		return func() thrift.Struct { return messages.NewMixed() }
	case "Tiny":
		return func() thrift.Struct { return messages.NewTiny() }
	case "Echo":
		return func() thrift.Struct { return messages.NewEcho() }
	}
	return nil
}
