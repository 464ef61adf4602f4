package codec_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/gen/messages"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// EchoComplex of Kitex's benchmark has 11,429 bytes.
func TestDataSets_HaveTheirSizes(t *testing.T) {
	for _, set := range codec.DataSets() {
		for i := range set.Messages {
			encoded, err := thrift.Marshal(set.Build(i))
			if err != nil {
				t.Fatalf("%s: %v", set.Name, err)
			}
			if len(encoded) != set.Bytes {
				t.Errorf("%s, message %d: %d bytes, want %d", set.Name, i, len(encoded), set.Bytes)
			}
		}
	}
}

// The names of cases say how large their messages are.
func TestDataSets_AreAsLargeAsTheirNames(t *testing.T) {
	units := map[string]struct{ low, high int }{
		"11k": {11_000, 11_500}, "20k": {20_000, 20_500}, "6m": {5_950_000, 6_050_000}, "74b": {74, 74},
		"i64-1k": {8 << 10, 8<<10 + 100}, "i64-131k": {1 << 20, 1<<20 + 100}, "i32-1k": {4 << 10, 4<<10 + 100}, "i32-131k": {512 << 10, 512<<10 + 100},
		"echo-1k": {1 << 10, 1<<10 + 100}, "echo-32k": {32 << 10, 32<<10 + 100},
	}
	for _, set := range codec.DataSets() {
		found := 0
		for suffix, size := range units {
			if !strings.HasSuffix(set.Name, suffix) {
				continue
			}
			found++
			if set.Bytes < size.low || set.Bytes > size.high {
				t.Errorf("%s has %d bytes", set.Name, set.Bytes)
			}
		}
		if found != 1 {
			t.Errorf("%s: %d sizes belong to that name", set.Name, found)
		}
	}
}

func TestDataSets_AreReproducibleAndDiffer(t *testing.T) {
	for _, set := range codec.DataSets() {
		if !reflect.DeepEqual(set.Build(0), set.Build(0)) {
			t.Errorf("%s: the same message differs from itself", set.Name)
		}
		if reflect.DeepEqual(set.Build(0), set.Build(1)) {
			t.Errorf("%s: two messages are the same", set.Name)
		}
	}
}

// Half of the items have the optional field, so that codecs meet both.
func TestDataSets_HaveOptionalFieldsInHalfOfTheItems(t *testing.T) {
	for _, set := range codec.DataSets() {
		items, noted := 0, 0
		count := func(note thrift.Opt[string]) {
			items++
			if note.IsSet() {
				noted++
			}
		}
		switch m := set.Build(0).(type) {
		case *messages.Small:
			for _, item := range m.Items {
				count(item.Note)
			}
		case *messages.Mixed:
			for _, item := range m.Items {
				count(item.Note)
			}
			for _, item := range m.Index {
				count(item.Note)
			}
		default:
			continue
		}
		if items == 0 || noted != items/2 {
			t.Errorf("%s: %d of %d items have a note", set.Name, noted, items)
		}
	}
}

func TestCases_MyTest(t *testing.T) {
	c, err := codec.FindCase(codec.MyTest)
	if err != nil {
		t.Fatal(err)
	}
	made := &messages.MyTest{Num: codec.MyTestNum, Ano: messages.Ano{Num: codec.MyTestAno}, Nums: make([]int64, codec.MyTestNumbers)}
	sum := made.Num + made.Ano.Num
	for i := range made.Nums {
		made.Nums[i] = int64(i)
		sum += int64(i)
	}
	encoded, err := thrift.Marshal(made)
	if err != nil || len(encoded) != c.Set.Bytes || sum != codec.MyTestSum {
		t.Errorf("%d bytes with a sum of %d, %v; want %d bytes with %d", len(encoded), sum, err, c.Set.Bytes, int64(codec.MyTestSum))
	}
	if _, err := codec.FindCase("mytest-1m-encode"); err == nil {
		t.Error("a case was found that does not exist")
	}
}
