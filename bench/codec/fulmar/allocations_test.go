package main

import (
	"runtime"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestAllocations_AreAFew bounds how many allocations a message takes, and with them most
// of the time: speed is for benchmarks, this fails at once. The bounds are what was
// counted, and for messages with large maps a little more, because how a map grows is up
// to the runtime.
//
// Each decoding has one for the struct, one for the pieces of a message above 16 KiB, and one
// for each list of structs and each 64 KiB of short lists. What the codec itself needs
// comes from a pool, which is empty when garbage was collected twice, as while 6 MB are
// decoded. Kitex takes 345 for complex-11k, 1,245 for small-20k and 365,000 for small-6m.
func TestAllocations_AreAFew(t *testing.T) {
	for _, test := range allocationsOfSets() {
		t.Run(test.set, func(t *testing.T) {
			found, err := codec.FindCase(test.set + "-decode")
			if err != nil {
				t.Fatal(err)
			}
			message := found.Set.Build(0)
			if !strings.HasPrefix(runtime.Version(), "go1.26") {
				for _, most := range []*float64{&test.decode, &test.own, &test.scoped, &test.kitex} {
					*most += 2 * test.maps
				}
			}
			wire, err := thrift.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			unmarshal := func(policy thrift.Strings) func() error {
				return func() error {
					return thrift.UnmarshalOwned(wire, empty(found.Set.Struct)(), thrift.UnmarshalConfig{Strings: policy})
				}
			}
			asKitex := func() error { return nil }
			if empty := emptyKitex(found.Set.Struct); empty != nil {
				asKitex = func() error { return decodeKitex(wire, empty()) }
			}
			memory := make([]byte, 0, len(wire))
			for what, measured := range map[string]struct {
				do   func() error
				most float64
			}{
				"decoding":                    {unmarshal(thrift.StringsAuto), test.decode},
				"decoding with StringsOwn":    {unmarshal(thrift.StringsOwn), test.own},
				"decoding with StringsScoped": {unmarshal(thrift.StringsScoped), test.scoped},
				"decoding in Kitex's shape":   {asKitex, test.kitex},
				"encoding to new memory":      {func() error { _, err := thrift.Marshal(message); return err }, test.marshal},
				"encoding over other memory":  {func() error { memory, err = thrift.Append(memory[:0], message); return err }, test.encode},
			} {
				// The mean is rounded down, so that what else the process allocates does not
				// count: of three runs, one time in seven, it made 53 of 52 for small-6m.
				const runs = 10
				got := testing.AllocsPerRun(runs, func() {
					if err := measured.do(); err != nil {
						t.Fatal(err)
					}
				})
				if got > measured.most {
					t.Errorf("%s takes %v allocations, want at most %v", what, got, measured.most)
				}
			}
		})
	}
}

// allocations are how many a message of a set takes at most.
type allocations struct {
	set string
	// decode is by the default policy from memory that may be kept, own with memory for
	// each string. marshal is into new memory, which is made in one piece;
	// encode is over memory that is there.
	decode, own, marshal, encode float64
	// scoped is decode where strings refer to the message, kitex is it in the shape of Kitex,
	// which has structs and optional scalars behind pointers. Lists alone are not in that.
	scoped, kitex float64
	// maps is how many small ones there are, each of which takes two where the layout of
	// maps is not known (docs/adr/0075-small-maps-in-pieces.md).
	maps float64
}

func allocationsOfSets() []allocations {
	return []allocations{
		// A map and its 5 structs, 3 lists of structs: the strings are the message.
		{set: "complex-11k", decode: 8, own: 121, scoped: 8, kitex: 23, marshal: 1, encode: 0},
		// One list of 124 structs; 372 labels are in 4 pieces, 496 numbers in one, and
		// all strings, in a message that is above 16 KiB, in 2, by how much text there was.
		{set: "small-20k", decode: 10, own: 815, scoped: 8, kitex: 26, marshal: 1, encode: 0},
		// 36,500 structs at once; pieces of 64 KiB for 1.75 MB of labels and 1.17 MB of
		// numbers, pieces of 16 KiB for 1.5 MB of text.
		{set: "small-6m", decode: 147, own: 237_400, scoped: 52, kitex: 256, marshal: 2, encode: 1},
		// 96 maps, of 2 entries each, are in pieces of 32, and the structs of an index of 24
		// in one; the index takes a few.
		{set: "mixed-20k", maps: 96, decode: 30, own: 1_060, scoped: 26, kitex: 43, marshal: 1, encode: 0},
		// 28,200 such maps, and 7,050 such structs in pieces of 64 KiB.
		{set: "mixed-6m", maps: 28_200, decode: 1_100, own: 304_200, scoped: 985, kitex: 1180, marshal: 2, encode: 1},
		// No memory but that of the struct: 2 strings are the message.
		{set: "tiny-74b", decode: 1, own: 3, scoped: 1, kitex: 2, marshal: 1, encode: 0},
		{set: "echo-1k", decode: 1, own: 3, scoped: 1, kitex: 2, marshal: 1, encode: 0},
		// The short text gets a piece, the long one is the message.
		{set: "echo-32k", decode: 3, own: 3, scoped: 1, kitex: 4, marshal: 1, encode: 0},
		// The list, however long it is.
		{set: "list-i64-1k", decode: 2, own: 2, scoped: 2, marshal: 1, encode: 0},
		{set: "list-i64-131k", decode: 3, own: 2, scoped: 2, marshal: 1, encode: 0},
		{set: "list-i32-1k", decode: 2, own: 2, scoped: 2, marshal: 1, encode: 0},
		{set: "list-i32-131k", decode: 3, own: 2, scoped: 2, marshal: 1, encode: 0},
	}
}

// TestAllocations_OfMyTest: its struct, the list of 131,072 numbers, the message, the struct
// and its list again. What the codec itself needs comes from a pool, which a collection
// between the four empties, and several do on a busy machine: the least of five counts.
func TestAllocations_OfMyTest(t *testing.T) {
	const most = 9
	var memory []byte
	exchange := func() {
		var err error
		if memory, err = encode(memory, build()); err != nil {
			t.Fatal(err)
		}
		read := empty("MyTest")()
		if err := decode(memory, read); err != nil {
			t.Fatal(err)
		}
		if sum(read) != codec.MyTestSum {
			t.Fatalf("the sum is %d, want %d", sum(read), codec.MyTestSum)
		}
	}
	got := testing.AllocsPerRun(5, exchange)
	for range 4 {
		got = min(got, testing.AllocsPerRun(5, exchange))
	}
	if got > most {
		t.Errorf("%v allocations, want at most %d", got, most)
	}
}
