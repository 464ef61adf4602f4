//go:build linux

// Command apache runs Apache Thrift's Go library in suite codec: its Binary
// protocol over a buffer in memory.
package main

import (
	"bytes"
	"context"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/peers/gen/apache/messages"
)

func main() {
	contestant.Main(
		binary().Contestant("apache-thrift", "github.com/apache/thrift"),
		binary().Contestant("old", "github.com/apache/thrift"), // A codec of that kind is what the article calls so.
	)
}

// binary has one protocol for each direction, which all messages go through.
func binary() codec.Codec[thrift.TStruct] {
	ctx := context.Background()
	out, in := thrift.NewTMemoryBuffer(), thrift.NewTMemoryBuffer()
	writer, reader := thrift.NewTBinaryProtocolConf(out, nil), thrift.NewTBinaryProtocolConf(in, nil)
	return codec.Codec[thrift.TStruct]{
		Empty: empty,
		Encode: func(memory []byte, v thrift.TStruct) ([]byte, error) {
			*out.Buffer = *bytes.NewBuffer(memory[:0])
			if err := v.Write(ctx, writer); err != nil {
				return nil, err
			}
			return out.Bytes(), writer.Flush(ctx)
		},
		// The buffer reads the message where it is.
		Decode: func(wire []byte, v thrift.TStruct) error {
			*in.Buffer = *bytes.NewBuffer(wire)
			return v.Read(ctx, reader)
		},
		Build: build, Sum: sum,
	}
}

func empty(structName string) func() thrift.TStruct {
	switch structName {
	case "Complex":
		return func() thrift.TStruct { return messages.NewComplex() }
	case "Small":
		return func() thrift.TStruct { return messages.NewSmall() }
	case "Mixed":
		return func() thrift.TStruct { return messages.NewMixed() }
	case "Tiny":
		return func() thrift.TStruct { return messages.NewTiny() }
	case "Echo":
		return func() thrift.TStruct { return messages.NewEcho() }
	case "Int64List":
		return func() thrift.TStruct { return messages.NewInt64List() }
	case "Int32List":
		return func() thrift.TStruct { return messages.NewInt32List() }
	case "MyTest":
		return func() thrift.TStruct { return messages.NewMyTest() }
	}
	return nil
}

func build() thrift.TStruct {
	made := &messages.MyTest{Num: codec.MyTestNum, Ano: &messages.Ano{Num: codec.MyTestAno}, Nums: make([]int64, codec.MyTestNumbers)}
	for i := range made.Nums {
		made.Nums[i] = int64(i)
	}
	return made
}

func sum(v thrift.TStruct) int64 {
	read := v.(*messages.MyTest)
	total := read.Num + read.Ano.Num
	for _, number := range read.Nums {
		total += number
	}
	return total
}
