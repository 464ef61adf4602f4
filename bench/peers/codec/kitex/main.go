//go:build linux

// Command kitex runs the contestants of suite codec that work on the structs of
// Kitex's tool: its generated FastCodec, and Frugal, which uses reflection.
package main

import (
	"slices"

	"github.com/cloudwego/frugal"
	"github.com/cloudwego/gopkg/protocol/thrift"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/peers/gen/kitex/messages"
)

func main() {
	contestant.Main(
		fastCodec().Contestant("kitex", "github.com/cloudwego/kitex", "github.com/cloudwego/gopkg"),
		fastCodec().Contestant("new", "github.com/cloudwego/kitex", "github.com/cloudwego/gopkg"), // as the article calls it
		reflecting().Contestant("frugal", "github.com/cloudwego/frugal"),
	)
}

// fastCodec is what Kitex does with a message: its length, memory of that length,
// and one pass into it. Without a NocopyWriter long texts are copied.
func fastCodec() codec.Codec[thrift.FastCodec] {
	return codec.Codec[thrift.FastCodec]{
		Empty: empty,
		Encode: func(memory []byte, v thrift.FastCodec) ([]byte, error) {
			memory = withLength(memory, v.BLength())
			return memory[:v.FastWriteNocopy(memory, nil)], nil
		},
		Decode: func(wire []byte, v thrift.FastCodec) error {
			_, err := v.FastRead(wire)
			return err
		},
		Build: build, Sum: sum, Fields: fields(),
	}
}

func reflecting() codec.Codec[thrift.FastCodec] {
	return codec.Codec[thrift.FastCodec]{
		Empty: empty,
		Encode: func(memory []byte, v thrift.FastCodec) ([]byte, error) {
			memory = withLength(memory, frugal.EncodedSize(v))
			n, err := frugal.EncodeObject(memory, nil, v)
			return memory[:n], err
		},
		Decode: func(wire []byte, v thrift.FastCodec) error {
			_, err := frugal.DecodeObject(wire, v)
			return err
		},
		Build: build, Sum: sum,
	}
}

func withLength(memory []byte, length int) []byte {
	return slices.Grow(memory[:0], length)[:length]
}

func empty(structName string) func() thrift.FastCodec {
	switch structName {
	case "Complex":
		return func() thrift.FastCodec { return messages.NewComplex() }
	case "Small":
		return func() thrift.FastCodec { return messages.NewSmall() }
	case "Mixed":
		return func() thrift.FastCodec { return messages.NewMixed() }
	case "Tiny":
		return func() thrift.FastCodec { return messages.NewTiny() }
	case "Echo":
		return func() thrift.FastCodec { return messages.NewEcho() }
	case "Int64List":
		return func() thrift.FastCodec { return messages.NewInt64List() }
	case "Int32List":
		return func() thrift.FastCodec { return messages.NewInt32List() }
	case "MyTest":
		return func() thrift.FastCodec { return messages.NewMyTest() }
	}
	return nil
}

func build() thrift.FastCodec {
	made := &messages.MyTest{Num: codec.MyTestNum, Ano: &messages.Ano{Num: codec.MyTestAno}, Nums: make([]int64, codec.MyTestNumbers)}
	for i := range made.Nums {
		made.Nums[i] = int64(i)
	}
	return made
}

func sum(v thrift.FastCodec) int64 {
	read := v.(*messages.MyTest)
	total := read.Num + read.Ano.Num
	for _, number := range read.Nums {
		total += number
	}
	return total
}
