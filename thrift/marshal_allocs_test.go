package thrift_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// chainOf returns a value of about so many bytes on the wire, in many short strings.
func chainOf(size int) *node {
	s := &node{Name: "first", Scores: map[string]int64{}}
	for n := 0; n < size; n += 14 {
		s.Labels = append(s.Labels, fmt.Sprintf("label %4d", n%10_000))
	}
	return s
}

// TestMarshal_TakesTheMemoryOfTheMessage and not that of all the lengths that it had
// while it grew, which is all that is allocated.
func TestMarshal_TakesTheMemoryOfTheMessage(t *testing.T) {
	for _, size := range []int{0, 50, 300, 1_000, 20_000, 300_000} {
		s := chainOf(size)
		want := mustMarshal(t, s)
		most := 1
		if len(want) > 512 {
			most = 2 // what it begins with
		}
		if got := testing.AllocsPerRun(20, func() { _ = mustMarshal(t, s) }); got > float64(most) {
			t.Errorf("%d bytes: %v allocations, want %d", len(want), got, most)
		}
		if got := cap(mustMarshal(t, s)); got > len(want)+len(want)/4+64 {
			t.Errorf("%d bytes: memory for %d", len(want), got)
		}
		// The second one, which has less room than it needs, behind what is there.
		dst := append(make([]byte, 0, 100), "abc"...)
		b, err := thrift.Append(dst, s)
		if err != nil || !bytes.Equal(b[3:], want) || string(b[:3]) != "abc" {
			t.Errorf("%d bytes: %d behind three, %v", len(want), len(b), err)
		}
		if enough := len(want)+3 <= 100; enough != (unsafe.SliceData(b) == unsafe.SliceData(dst)) {
			t.Errorf("%d bytes: memory for more was made: %v", len(want), !enough)
		}
	}
}

// TestMarshal_CountsNoMoreThanItMayWrite: parts that are shared are as many as there are
// ways to them, and looking at all of them would take for ever.
func TestMarshal_CountsNoMoreThanItMayWrite(t *testing.T) {
	s := &node{Name: strings.Repeat("n", 1000)}
	for range 30 {
		s = &node{Next: s, Children: []node{*s}}
	}
	if b, err := thrift.Marshal(s); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("%d bytes, %v; want the limit", len(b), err)
	}
}

func BenchmarkMarshal(b *testing.B) {
	for _, size := range []int{50, 1_000, 20_000, 1_000_000} {
		s := chainOf(size)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := thrift.Marshal(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
