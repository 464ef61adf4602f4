package roundtrip_test

import (
	"bytes"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/reuse/golden/reuse"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/shapes/golden/shapes"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestReuse_IsAsANewStruct reads messages one after the other into the same struct.
func TestReuse_IsAsANewStruct(t *testing.T) {
	for _, policy := range []thrift.Strings{thrift.StringsAuto, thrift.StringsOwn, thrift.StringsScoped} {
		reused := reuse.NewNode()
		for seed := range uint64(400) {
			b := marshal(t, newFilled(reused, seed))
			if seed%5 == 4 {
				// What comes too late leaves something behind, too.
				cut := bytes.Clone(b[:rand.New(rand.NewPCG(seed, 1)).IntN(len(b))])
				if err := thrift.UnmarshalOwned(cut, reused, thrift.UnmarshalConfig{Strings: policy, Reuse: true}); err == nil {
					t.Fatal("a message that was cut off was read")
				}
			}
			want := reuse.NewNode()
			if err := thrift.Unmarshal(b, want); err != nil {
				t.Fatal(err)
			}
			if err := thrift.UnmarshalOwned(b, reused, thrift.UnmarshalConfig{Strings: policy, Reuse: true}); err != nil {
				t.Fatal(err)
			}
			if !reused.Equal(want) {
				t.Fatalf("policy %d, message %d: read %v\nwant %v", policy, seed, reused, want)
			}
		}
	}
}

// TestReuse_TakesNoMemory reads the same message again: what is allocated is the Reader.
func TestReuse_TakesNoMemory(t *testing.T) {
	branch := reuse.Branch{
		Leaves: []reuse.Leaf{{Number: 1, Text: thrift.Some("one")}, {}}, Numbers: []int64{1, 2, 3}, Labels: []string{"a", "b"},
		Counts: map[int32]int32{1: 2, 3: 4}, Branches: []reuse.Branch{},
	}
	inner := branch
	branch.Branches, branch.Next = []reuse.Branch{inner, inner}, &inner
	b := marshal(t, &branch)
	var got reuse.Branch
	read := func() {
		err := thrift.UnmarshalOwned(b, &got, thrift.UnmarshalConfig{Strings: thrift.StringsScoped, Reuse: true})
		if err != nil || !got.Equal(&branch) {
			t.Fatalf("read %v, %v", &got, err)
		}
	}
	if n := testing.AllocsPerRun(20, read); n > 1 {
		t.Errorf("reading %d bytes again takes %v allocations, want 1", len(b), n)
	}
	got = reuse.Branch{}
	if n := testing.AllocsPerRun(20, func() { got = reuse.Branch{}; read() }); n < 10 {
		t.Errorf("without memory to reuse it takes %v allocations, so this shows nothing", n)
	}
}

// TestReuse_KeepsMemoryOfEmptyLists reads messages with lists that are empty and others by
// turns: both take the Reader.
func TestReuse_KeepsMemoryOfEmptyLists(t *testing.T) {
	full := reuse.Branch{Numbers: []int64{1, 2, 3}, Labels: []string{"a"}, Leaves: []reuse.Leaf{{Number: 4}}}
	messages := [][]byte{marshal(t, &full), marshal(t, &reuse.Branch{Labels: []string{}})}
	var got reuse.Branch
	allocations := testing.AllocsPerRun(20, func() {
		for _, message := range messages {
			if err := thrift.UnmarshalOwned(message, &got, thrift.UnmarshalConfig{Strings: thrift.StringsScoped, Reuse: true}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocations > 2 || got.Numbers == nil || len(got.Numbers) != 0 {
		t.Errorf("%v allocations for 2 messages; %v", allocations, &got)
	}
}

// TestReuse_MakesDefaultsOnce reads structs that are values of a map, which are new ones,
// with and without reuse: their defaults take the same memory.
func TestReuse_MakesDefaultsOnce(t *testing.T) {
	message := marshal(t, &reuse.Node{Must: []int32{}, Named: map[string]*reuse.Preset{"a": {}, "b": {}, "c": {}}})
	allocations := func(config thrift.UnmarshalConfig) float64 {
		node := reuse.NewNode()
		return testing.AllocsPerRun(20, func() {
			if err := thrift.UnmarshalOwned(message, node, config); err != nil {
				t.Fatal(err)
			}
		})
	}
	without := allocations(thrift.UnmarshalConfig{Strings: thrift.StringsScoped})
	if with := allocations(thrift.UnmarshalConfig{Strings: thrift.StringsScoped, Reuse: true}); with >= without {
		t.Errorf("%v allocations with reuse, %v without", with, without)
	}
}

// TestReuse_AfterDelete shortens a list, as the guide has it, and reads a longer one.
func TestReuse_AfterDelete(t *testing.T) {
	want := reuse.Branch{Branches: []reuse.Branch{{Numbers: []int64{1}}, {Numbers: []int64{2}}, {Numbers: []int64{3}}}}
	message := marshal(t, &want)
	var got reuse.Branch
	for range 2 {
		if err := thrift.UnmarshalOwned(message, &got, thrift.UnmarshalConfig{Reuse: true}); err != nil || !got.Equal(&want) {
			t.Fatalf("read %v, %v", &got, err)
		}
		got.Branches = slices.Delete(got.Branches, 0, 1)
	}
}

func TestReuse_IsRefusedByStructsThatCannot(t *testing.T) {
	b := marshal(t, shapes.NewEmpty())
	err := thrift.UnmarshalOwned(b, shapes.NewEmpty(), thrift.UnmarshalConfig{Reuse: true})
	if err == nil || err.Error() != "thrift: *shapes.Empty cannot reuse memory: it was generated without --reuse" {
		t.Errorf("%v", err)
	}
}

// count adds up how many numbers there are in messages.
func count(messages iter.Seq[[]byte]) (total int, err error) {
	var branch reuse.Branch
	config := thrift.UnmarshalConfig{Reuse: true}
	for message := range messages {
		if err := thrift.UnmarshalOwned(message, &branch, config); err != nil {
			return 0, err
		}
		total += len(branch.Numbers)
	}
	return total, nil
}

// TestReuse_AsInTheGuide runs what docs/guide/generated-code.md quotes.
func TestReuse_AsInTheGuide(t *testing.T) {
	var messages [][]byte
	for _, numbers := range [][]int64{{1, 2, 3}, {}, {4}} {
		messages = append(messages, marshal(t, &reuse.Branch{Numbers: numbers}))
	}
	if total, err := count(slices.Values(messages)); total != 4 || err != nil {
		t.Errorf("%d numbers, %v, want 4", total, err)
	}
}

func marshal(t testing.TB, s thrift.Struct) []byte {
	t.Helper()
	b, err := thrift.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzReuse: what was read before changes nothing.
func FuzzReuse(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(marshal(f, newFilled(reuse.NewNode(), seed)), marshal(f, newFilled(reuse.NewNode(), seed+4)))
	}
	f.Fuzz(func(t *testing.T, before, b []byte) {
		for _, policy := range []thrift.Strings{thrift.StringsAuto, thrift.StringsMessage, thrift.StringsOwn, thrift.StringsScoped} {
			compareReuse(t, before, b, policy)
		}
	})
}

// compareReuse reads before and then b into one struct, and b into a new one.
func compareReuse(t *testing.T, before, b []byte, policy thrift.Strings) {
	t.Helper()
	reused, want := reuse.NewNode(), reuse.NewNode()
	config := thrift.UnmarshalConfig{Strings: policy, Reuse: true}
	_ = thrift.UnmarshalOwned(before, reused, config)
	err, wantErr := thrift.UnmarshalOwned(b, reused, config), thrift.UnmarshalOwned(b, want, thrift.UnmarshalConfig{Strings: policy})
	if wantErr != nil && strings.Contains(wantErr.Error(), "more memory") || err != nil && strings.Contains(err.Error(), "more memory") {
		return // they need different amounts
	}
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		t.Fatalf("policy %d: %v; a new struct: %v", policy, err, wantErr)
	}
	if err == nil && want.Equal(want) && !reused.Equal(want) {
		t.Fatalf("policy %d: read %v\nwant %v", policy, reused, want)
	}
}
