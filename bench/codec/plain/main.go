// Command plain runs the contestants of suite codec that are no libraries: what
// a loop over elements takes, and what copying the bytes takes.
package main

import (
	"fmt"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func main() {
	contestant.Main(loop().Contestant("loop"), memoryCopy().Contestant("memcpy"))
}

// raw is a message as bytes.
type raw struct{ bytes []byte }

// memoryCopy copies messages over existing memory, whatever the case asks for.
func memoryCopy() codec.Codec[*raw] {
	into := new(raw)
	return codec.Codec[*raw]{
		Empty:  func(string) func() *raw { return func() *raw { return into } },
		Encode: func(memory []byte, v *raw) ([]byte, error) { return append(memory[:0], v.bytes...), nil },
		Decode: func(wire []byte, v *raw) error {
			v.bytes = append(v.bytes[:0], wire...)
			return nil
		},
		Convert: func(message thrift.Struct) (*raw, error) {
			bytes, err := thrift.Marshal(message)
			return &raw{bytes}, err
		},
	}
}

// list is what the loop works on. One of the two is nil.
type list struct {
	Int64s []int64
	Int32s []int32
}

// loop takes one element after the other. It decodes over an existing list.
func loop() codec.Codec[*list] {
	into := new(list)
	return codec.Codec[*list]{
		Empty: func(structName string) func() *list {
			if structName != "Int64List" && structName != "Int32List" {
				return nil
			}
			return func() *list { return into }
		},
		Encode:  func(memory []byte, v *list) ([]byte, error) { return v.encode(memory), nil },
		Decode:  func(wire []byte, v *list) error { return v.decode(wire) },
		Convert: convert,
	}
}

func convert(message thrift.Struct) (*list, error) {
	switch m := message.(type) {
	case *int64List:
		return &list{Int64s: m.Values}, nil
	case *int32List:
		return &list{Int32s: m.Values}, nil
	}
	return nil, fmt.Errorf("%T is no list", message)
}
