package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec/codectest"
)

func TestLoop_IsACodec(t *testing.T) {
	codectest.CheckValues(t, loop())
	codectest.CheckThrift(t, loop())
	codectest.CheckRepeats(t, loop().Contestant("loop"))
}

func TestLoop_RefusesOtherMessages(t *testing.T) {
	for _, wire := range []string{"", "\x0f\x00\x01\x0a\x00\x00\x00\x02\x00", "\x0f\x00\x01\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"} {
		if err := new(list).decode([]byte(wire)); err == nil {
			t.Errorf("%q was decoded", wire)
		}
	}
}

func TestMemoryCopy_CopiesMessages(t *testing.T) {
	codectest.CheckThrift(t, memoryCopy())
	codectest.CheckRepeats(t, memoryCopy().Contestant("memcpy"))
	into := new(raw)
	if err := memoryCopy().Decode([]byte("message"), into); err != nil || string(into.bytes) != "message" {
		t.Errorf("%q, %v; want the message", into.bytes, err)
	}
}
