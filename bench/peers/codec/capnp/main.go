//go:build linux

// Command capnp runs Cap'n Proto in suite codec. Its values are their own bytes,
// so it is in the case that builds a value and reads it only.
package main

import (
	"encoding/binary"
	"fmt"

	"capnproto.org/go/capnp/v3"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/contestant"
	messages "github.com/fulmar-rpc/fulmar/bench/peers/gen/capnp"
)

func main() {
	contestant.Main(contestant.Contestant{Name: "capnp", Modules: []string{"capnproto.org/go/capnp/v3"}, Repeat: repeat})
}

func repeat(name string) (contestant.Repeat, error) {
	if name != codec.MyTest && name != codec.ReadWrite {
		return contestant.Repeat{}, fmt.Errorf("it has no values for the case %.40q", name)
	}
	memory := make([]byte, messageBytes)
	return codec.RepeatWhole(func() (int64, error) {
		encoded, err := build(memory)
		if err != nil {
			return 0, err
		}
		return read(encoded)
	}), nil
}

// A message of one segment has 8 bytes in front of it: that there is one segment,
// and its length in words. MyTest takes a word for the pointer to it, one for a
// number and two for pointers, one for the number of Ano, and those of the list.
const (
	headBytes    = 8
	wordBytes    = 8
	messageBytes = headBytes + (1+3+1+codec.MyTestNumbers)*wordBytes
)

// build makes a message in memory, which it reuses, and puts its head in front of
// it by hand: Message.Marshal would copy all of it, and a server would not.
func build(memory []byte) ([]byte, error) {
	// New objects are taken to be zero.
	clear(memory)
	_, segment, err := capnp.NewMessage(capnp.SingleSegment(memory[headBytes:headBytes]))
	if err != nil {
		return nil, err
	}
	made, err := messages.NewRootMyTest(segment)
	if err != nil {
		return nil, err
	}
	made.SetNum(codec.MyTestNum)
	ano, err := made.NewAno()
	if err != nil {
		return nil, err
	}
	ano.SetNum(codec.MyTestAno)
	nums, err := made.NewNums(codec.MyTestNumbers)
	if err != nil {
		return nil, err
	}
	for i := range nums.Len() {
		nums.Set(i, int64(i))
	}
	length := len(segment.Data())
	binary.LittleEndian.PutUint32(memory[4:], uint32(length/wordBytes))
	return memory[:headBytes+length], nil
}

// read returns the sum of all numbers. The message refers to encoded.
func read(encoded []byte) (int64, error) {
	message, err := capnp.Unmarshal(encoded)
	if err != nil {
		return 0, err
	}
	root, err := messages.ReadRootMyTest(message)
	if err != nil {
		return 0, err
	}
	ano, err := root.Ano()
	if err != nil {
		return 0, err
	}
	nums, err := root.Nums()
	if err != nil {
		return 0, err
	}
	total := root.Num() + ano.Num()
	for i := range nums.Len() {
		total += nums.At(i)
	}
	return total, nil
}
