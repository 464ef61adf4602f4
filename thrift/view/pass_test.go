package view

import (
	"bytes"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// FuzzPass passes over any bytes as a value of any type, nested as deep as it likes: as
// thriftwire.Skip does.
func FuzzPass(f *testing.F) {
	for _, seed := range []struct {
		t     byte
		value string
	}{
		{11, "\x00\x00\x00\x03abc"},
		{12, "\x08\x00\x01\x00\x00\x00\x07\x0b\x00\x02\x00\x00\x00\x01x\x00"},
		{15, "\x0c\x00\x00\x00\x02\x00\x02\x00\x01\x01\x00"},
		{14, "\x0b\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01a"},
		{13, "\x0b\x0f\x00\x00\x00\x01\x00\x00\x00\x01k\x0a\x00\x00\x00\x00"},
		{13, "\x0a\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02"},
		{16, "0123456789abcdef"},
	} {
		f.Add(seed.t, uint8(4), []byte(seed.value))
	}
	f.Fuzz(func(t *testing.T, code, depth uint8, value []byte) {
		if code == 0 {
			return // the end mark, of which nobody asks how long it is
		}
		const front = "front"
		levels := int(depth % 8)
		want, err := thriftwire.Skip(value, thrift.Type(code), levels, levels)
		if want += len(front); err != nil {
			want = -1
		}
		behind := append([]byte(front), value...)
		if got := pass(behind, len(front), thrift.Type(code), levels); got != want {
			t.Fatalf("type %d, %d levels, %x: it ends at %d, want %d (%v)", code, levels, value, got, want, err)
		}
	})
}

func TestPass_BoundsNesting(t *testing.T) {
	const levels = 100_000
	structs := append(bytes.Repeat([]byte{12, 0, 1}, levels), make([]byte, levels+1)...)
	lists := append(bytes.Repeat([]byte{15, 0, 0, 0, 1}, levels), 2, 0, 0, 0, 0)
	for _, test := range []struct {
		t     thrift.Type
		value []byte
	}{{thrift.StructType, structs}, {thrift.List, lists}} {
		if got := pass(test.value, 0, test.t, 64); got != -1 {
			t.Errorf("%v: it ends at %d", test.t, got)
		}
		if got := pass(test.value, 0, test.t, mostLevels); got != len(test.value) {
			t.Errorf("%v: with enough levels it ends at %d, want %d", test.t, got, len(test.value))
		}
	}
}
