package roundtrip_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/reuse/golden/reuse"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestReuse_KeepsNothingOfOlderMessages has maps that become longer, so that others take
// their places, while one in sixteen stays as it is. Small maps share memory: those that stay
// must not keep what was in those that went.
func TestReuse_KeepsNothingOfOlderMessages(t *testing.T) {
	const rounds, each, longText = 20, 124, 100 << 10
	sizes := make([]int, rounds*each)
	long := strings.Repeat("x", longText)
	message := func(isLong func(child int) bool) []byte {
		sent := reuse.NewNode()
		sent.Must = []int32{}
		for i, size := range sizes {
			child := reuse.NewNode()
			child.Must, child.Groups = []int32{}, map[int32][]string{}
			for key := range size {
				child.Groups[int32(key)] = []string{"short"}
			}
			if isLong(i) {
				child.Groups[0] = []string{long}
			}
			sent.Children = append(sent.Children, *child)
		}
		return marshal(t, sent)
	}
	none := func(int) bool { return false }
	reused := reuse.NewNode()
	read := func(message []byte) {
		if err := thrift.UnmarshalOwned(message, reused, thrift.UnmarshalConfig{Strings: thrift.StringsOwn, Reuse: true}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range sizes {
		sizes[i] = 1
	}
	read(message(none))
	before := heapInUse()
	for round := range rounds {
		grows := func(i int) bool { return i/each == round && i%16 != 0 }
		resize := func(size int) {
			for i := range sizes {
				if grows(i) {
					sizes[i] = size
				}
			}
		}
		resize(2)
		read(message(grows))
		resize(9) // more than a small map takes
		read(message(none))
	}
	// 11 MiB of long texts came in each round.
	const most = 16 << 20
	if grown := heapInUse() - before; grown > most {
		t.Errorf("a struct that was read into %d times takes %d bytes more (limit %d)", 2*rounds, grown, most)
	}
	runtime.KeepAlive(reused)
}

// heapInUse returns how much memory is in use, without what nobody refers to.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
