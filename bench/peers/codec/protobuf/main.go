//go:build linux

// Command protobuf runs the contestants of suite codec that speak Protobuf, with
// the same messages: Google's library, and code that protoc-gen-go-vtproto
// generates beside it.
package main

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/contestant"
	messagespb "github.com/fulmar-rpc/fulmar/bench/peers/gen/protobuf/messages"
)

func main() {
	contestant.Main(
		google().Contestant("protobuf-go", "google.golang.org/protobuf"),
		vtproto().Contestant("vtprotobuf", "github.com/planetscale/vtprotobuf", "google.golang.org/protobuf"),
	)
}

// message is what vtproto adds to a message of Google's library.
type message interface {
	proto.Message
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

func google() codec.Codec[message] {
	return codec.Codec[message]{
		Empty: empty,
		Encode: func(memory []byte, v message) ([]byte, error) {
			return proto.MarshalOptions{}.MarshalAppend(memory[:0], v)
		},
		Decode:  func(wire []byte, v message) error { return proto.Unmarshal(wire, v) },
		Convert: convert, Build: build, Sum: sum,
	}
}

func vtproto() codec.Codec[message] {
	return codec.Codec[message]{
		Empty: empty,
		Encode: func(memory []byte, v message) ([]byte, error) {
			length := v.SizeVT()
			memory = slices.Grow(memory[:0], length)[:length]
			n, err := v.MarshalToSizedBufferVT(memory)
			return memory[length-n:], err
		},
		Decode:  func(wire []byte, v message) error { return v.UnmarshalVT(wire) },
		Convert: convert, Build: build, Sum: sum,
	}
}

func empty(structName string) func() message {
	switch structName {
	case "Complex":
		return func() message { return new(messagespb.Complex) }
	case "Small":
		return func() message { return new(messagespb.Small) }
	case "Mixed":
		return func() message { return new(messagespb.Mixed) }
	case "Tiny":
		return func() message { return new(messagespb.Tiny) }
	case "Echo":
		return func() message { return new(messagespb.Echo) }
	case "Int64List":
		return func() message { return new(messagespb.Int64List) }
	case "Int32List":
		return func() message { return new(messagespb.Int32List) }
	case "MyTest":
		return func() message { return new(messagespb.MyTest) }
	}
	return nil
}

func build() message {
	made := &messagespb.MyTest{Num: codec.MyTestNum, Ano: &messagespb.Ano{Num: codec.MyTestAno}, Nums: make([]int64, codec.MyTestNumbers)}
	for i := range made.Nums {
		made.Nums[i] = int64(i)
	}
	return made
}

func sum(v message) int64 {
	read := v.(*messagespb.MyTest)
	total := read.Num + read.Ano.Num
	for _, number := range read.Nums {
		total += number
	}
	return total
}
