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
	return []named{with("fulmar", decode), with("fulmar-own", decodeOwn)}
}

func empty(set string) func() thrift.Struct {
	switch set {
	case "complex-11k":
		return func() thrift.Struct { return new(messages.Complex) }
	case "small-20k", "small-6m":
		return func() thrift.Struct { return new(messages.Small) }
	case "mixed-20k", "mixed-6m":
		return func() thrift.Struct { return new(messages.Mixed) }
	case "tiny-74b":
		return func() thrift.Struct { return new(messages.Tiny) }
	case "echo-1k", "echo-32k":
		return func() thrift.Struct { return new(messages.Echo) }
	case "list-i64-1k", "list-i64-131k":
		return func() thrift.Struct { return new(messages.Int64List) }
	case "list-i32-1k", "list-i32-131k":
		return func() thrift.Struct { return new(messages.Int32List) }
	case codec.MyTest:
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
