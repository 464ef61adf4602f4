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

// TestPass_LooksAtNothingBehind cuts values at every byte, with others behind the end that
// would go on: what is there must not count.
func TestPass_LooksAtNothingBehind(t *testing.T) {
	texts := "\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x00"
	for _, seed := range []struct {
		t     thrift.Type
		value string
	}{
		{thrift.String, "\x00\x00\x00\x03abc"},
		{thrift.StructType, "\x0a\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x0b\x00\x02\x00\x00\x00\x01x\x0f\x00\x03\x0b" + texts + "\x00"},
		{thrift.StructType, "\x0f\x00\x01\x0a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x0c\x00\x02\x02\x00\x01\x01\x00\x00"},
		{thrift.StructType, "\x0f\x00\x01\x0c\x00\x00\x00\x02\x00\x0b\x00\x01\x00\x00\x00\x00\x00\x00"},
		{thrift.List, "\x06\x00\x00\x00\x02\x00\x01\x00\x02"},
		{thrift.Set, "\x0b" + texts},
		{thrift.List, "\x0f\x00\x00\x00\x01\x08\x00\x00\x00\x01\x00\x00\x00\x01"},
		{thrift.Map, "\x0b\x0a\x00\x00\x00\x01\x00\x00\x00\x01k\x00\x00\x00\x00\x00\x00\x00\x01"},
	} {
		for end := range len(seed.value) + 1 {
			want := -1
			if end == len(seed.value) {
				want = end
			}
			for _, behind := range [][]byte{[]byte(seed.value[end:]), make([]byte, 64), bytes.Repeat([]byte{0x0b}, 64)} {
				value := append([]byte(seed.value[:end]), behind...)[:end]
				if got := pass(value, 0, seed.t, 8); got != want {
					t.Errorf("%v %x, %x behind it: it ends at %d, want %d", seed.t, value, behind, got, want)
				}
			}
		}
	}
}

// TestPass_NestsWithoutRecursionAndWith has structs in structs and in lists, on more
// levels than frames have room for: who comes back too early finds another end.
func TestPass_NestsWithoutRecursionAndWith(t *testing.T) {
	value := []byte{0}
	for levels := 1; levels < 4*passFrames; levels++ {
		want, err := thriftwire.Skip(value, thrift.StructType, levels, levels)
		if got := passStruct(value, 0, levels); err != nil || got != want || got != len(value) {
			t.Fatalf("%d levels: it ends at %d, want %d (%v)", levels, got, want, err)
		}
		if got := passStruct(value, 0, levels-1); got != -1 {
			t.Fatalf("%d levels, one of them too many: it ends at %d", levels, got)
		}
		if levels%3 == 0 { // a list of it, and one that is empty, in a struct
			inner := value
			value = append([]byte{15, 0, 1, 12, 0, 0, 0, 3, 0}, inner...)
			value = append(append(value, 0), 0)
			levels++
		} else {
			value = append(append([]byte{12, 0, 1}, value...), 2, 0, 2, 1, 0)
		}
	}
}

// TestPass_GivesLevelsBack has fields of every kind one behind the other, in front of one
// that nests as deep as it may: who has not come back as far as he went, or remembers
// something of a field before, refuses it or ends elsewhere.
func TestPass_GivesLevelsBack(t *testing.T) {
	fields := map[string]string{
		"structs in a list":  "\x0f\x00\x01\x0c\x00\x00\x00\x02\x00\x00",
		"a struct":           "\x0c\x00\x01\x00",
		"texts in a list":    "\x0f\x00\x01\x0b\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x00",
		"numbers in a list":  "\x0f\x00\x01\x06\x00\x00\x00\x02\x00\x01\x00\x02",
		"words in a set":     "\x0e\x00\x01\x0a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07",
		"nothing in a list":  "\x0f\x00\x01\x0c\x00\x00\x00\x00",
		"lists in a list":    "\x0f\x00\x01\x0f\x00\x00\x00\x01\x02\x00\x00\x00\x01\x01",
		"a map":              "\x0d\x00\x01\x0b\x08\x00\x00\x00\x01\x00\x00\x00\x01k\x00\x00\x00\x07",
		"a map of nothing":   "\x0d\x00\x01\x00\x00\x00\x00\x00\x00",
		"a uuid":             "\x10\x00\x010123456789abcdef",
		"structs in structs": "\x0c\x00\x01\x0f\x00\x01\x0c\x00\x00\x00\x01\x00\x00",
	}
	const levels = passFrames + 3
	deep := "\x00"
	for range levels - 1 {
		deep = "\x0c\x00\x02" + deep + "\x00"
	}
	for first, a := range fields {
		for second, b := range fields {
			value := []byte(a + b + deep)
			if got := passStruct(value, 0, levels); got != len(value) {
				t.Errorf("%s, %s: it ends at %d, want %d", first, second, got, len(value))
			}
			if got := passStruct(value, 0, levels-1); got != -1 {
				t.Errorf("%s, %s: with one level less it ends at %d", first, second, got)
			}
		}
	}
}
