// Package codectest tests contestants of suite codec: that a value which was
// encoded and decoded has everything that it had before. A codec that drops
// something would win.
package codectest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// CheckValues encodes and decodes every message of the data sets that the codec
// has values for, and compares all that is in them.
func CheckValues[V any](t *testing.T, c codec.Codec[V]) {
	t.Helper()
	for _, set := range smallSets() {
		empty := c.Empty(set.Struct)
		if empty == nil {
			continue
		}
		values, wires, err := c.Prepare(set)
		if err != nil {
			t.Errorf("%s: %v", set.Name, err)
			continue
		}
		var memory []byte
		for i, value := range values {
			original := contents(set.Build(i))
			if difference := differ(contents(value), original); difference != "" {
				t.Fatalf("%s, message %d: the value is not the data: %s", set.Name, i, difference)
			}
			if memory, err = c.Encode(memory, value); err != nil {
				t.Fatalf("%s, message %d: %v", set.Name, i, err)
			}
			for what, wire := range map[string][]byte{"what it encoded": memory, "what it is given": wires[i]} {
				decoded := empty()
				if err := c.Decode(slices.Clone(wire), decoded); err != nil {
					t.Fatalf("%s, message %d: decoding %s: %v", set.Name, i, what, err)
				}
				if difference := differ(contents(decoded), original); difference != "" {
					t.Fatalf("%s, message %d: decoding %s: %s", set.Name, i, what, difference)
				}
			}
		}
	}
}

// CheckThrift lets package thrift decode what a codec of Thrift Binary encodes,
// and compares that with the data.
func CheckThrift[V any](t *testing.T, c codec.Codec[V]) {
	t.Helper()
	for _, set := range smallSets() {
		if c.Empty(set.Struct) == nil {
			continue
		}
		values, _, err := c.Prepare(set)
		if err != nil {
			t.Errorf("%s: %v", set.Name, err)
			continue
		}
		var memory []byte
		for i, value := range values {
			if memory, err = c.Encode(memory, value); err != nil {
				t.Fatalf("%s, message %d: %v", set.Name, i, err)
			}
			if len(memory) != set.Bytes {
				t.Errorf("%s, message %d: %d bytes, want %d", set.Name, i, len(memory), set.Bytes)
			}
			want := set.Build(i)
			got := reflect.New(reflect.TypeOf(want).Elem()).Interface().(thrift.Struct)
			if err := thrift.Unmarshal(memory, got); err != nil {
				t.Fatalf("%s, message %d: %v", set.Name, i, err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, message %d: what was encoded is not the data", set.Name, i)
			}
		}
	}
}

// smallSets returns the data sets but for those of several megabytes: they have
// the types of smaller ones, and comparing them takes seconds. CheckRepeats has
// all of them.
func smallSets() []codec.DataSet {
	return slices.DeleteFunc(codec.DataSets(), func(set codec.DataSet) bool { return set.Bytes > 2<<20 })
}

// CheckRepeats repeats the operations of every case that one of the suites has
// the contestant in.
func CheckRepeats(t *testing.T, one contestant.Contestant) {
	t.Helper()
	for _, played := range slices.Concat(codec.Suite().Cases, codec.PaperSuite().Cases) {
		member := slices.ContainsFunc(played.Pairs, func(p harness.Pair) bool { return p.Ours == one.Name || p.Peer == one.Name })
		if !member {
			continue
		}
		found, err := codec.FindCase(played.Name)
		if err != nil {
			t.Errorf("%s: %v", played.Name, err)
			continue
		}
		operation, err := one.Repeat(played.Name)
		if err != nil {
			t.Errorf("%s, %s: %v", one.Name, played.Name, err)
			continue
		}
		if operation.Bytes != int64(found.Set.Bytes) {
			t.Errorf("%s, %s: operations of %d bytes, want %d", one.Name, played.Name, operation.Bytes, found.Set.Bytes)
		}
		if took, err := operation.Times(found.Set.Messages + 1); err != nil || took <= 0 {
			t.Errorf("%s, %s: %v, %v", one.Name, played.Name, took, err)
		}
	}
	if _, err := one.Repeat("other"); err == nil {
		t.Errorf("%s plays a case that does not exist", one.Name)
	}
}
