//go:build linux

package main

import (
	"bytes"
	"testing"

	"capnproto.org/go/capnp/v3"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/codec/codectest"
	"github.com/fulmar-rpc/fulmar/bench/contestant"
)

func TestRepeat_PlaysItsCaseOnly(t *testing.T) {
	codectest.CheckRepeats(t, contestant.Contestant{Name: "capnp", Repeat: repeat})
	if _, err := repeat("tiny-74b-encode"); err == nil {
		t.Error("it encodes tiny-74b, for which it has no values")
	}
}

// What stands in memory is what the library itself would send, also where the
// message before has left something.
func TestBuild_MakesTheMessageOfTheLibrary(t *testing.T) {
	memory := bytes.Repeat([]byte{0xdb}, messageBytes)
	encoded, err := build(memory)
	if err != nil {
		t.Fatal(err)
	}
	message, err := capnp.Unmarshal(encoded)
	if err != nil {
		t.Fatal(err)
	}
	want, err := message.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encoded, want) {
		t.Errorf("%d bytes are not the %d that Marshal makes of them", len(encoded), len(want))
	}
	if total, err := read(want); err != nil || total != codec.MyTestSum {
		t.Errorf("the sum is %d, %v; want %d", total, err, int64(codec.MyTestSum))
	}
}
