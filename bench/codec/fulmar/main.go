// Command fulmar runs this project's contestants of suite codec.
package main

import (
	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/gen/messages"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func main() {
	var all []contestant.Contestant
	for _, c := range codecs() {
		all = append(all, c.Contestant(c.name))
	}
	contestant.Main(all...)
}

type named struct {
	name string
	codec.Codec[thrift.Struct]
}

func codecs() []named {
	with := func(name string, decode func([]byte, thrift.Struct) error) named {
		return named{name, codec.Codec[thrift.Struct]{Empty: empty, Encode: encode, Decode: decode, Build: build, Sum: sum}}
	}
	shape := codec.Codec[thrift.Struct]{Empty: emptyKitex, Encode: encodeKitex, Decode: decodeKitex}
	return []named{with("fulmar", decode), with("fulmar-own", decodeOwn), with("fulmar-scoped", decodeScoped), {"fulmar-kitexshape", shape}}
}

func empty(structName string) func() thrift.Struct {
	switch structName {
	case "Complex":
		return func() thrift.Struct { return new(messages.Complex) }
	case "Small":
		return func() thrift.Struct { return new(messages.Small) }
	case "Mixed":
		return func() thrift.Struct { return new(messages.Mixed) }
	case "Tiny":
		return func() thrift.Struct { return new(messages.Tiny) }
	case "Echo":
		return func() thrift.Struct { return new(messages.Echo) }
	case "Int64List":
		return func() thrift.Struct { return new(messages.Int64List) }
	case "Int32List":
		return func() thrift.Struct { return new(messages.Int32List) }
	case "MyTest":
		return func() thrift.Struct { return new(messages.MyTest) }
	}
	return nil
}

func build() thrift.Struct {
	made := &messages.MyTest{Num: codec.MyTestNum, Ano: messages.Ano{Num: codec.MyTestAno}, Nums: make([]int64, codec.MyTestNumbers)}
	for i := range made.Nums {
		made.Nums[i] = int64(i)
	}
	return made
}

func sum(s thrift.Struct) int64 {
	read := s.(*messages.MyTest)
	total := read.Num + read.Ano.Num
	for _, number := range read.Nums {
		total += number
	}
	return total
}
