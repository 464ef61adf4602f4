package shape_test

import (
	"fmt"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/shape/wire"
)

// Benchmarks are named <what>/<fields>/<percent set>/<variant>/<shape>, shapes
// last, so that one pass measures the shapes of one case right after each
// other and a noisy second hits them alike.

func eachShape(b *testing.B, percents []int, variant string, run func(b *testing.B, c contestant, masks []mask)) {
	all := contestants()
	for _, fields := range []int{2, 20, 200} {
		for _, percent := range percents {
			chosen := masks(fields, percent)
			for _, c := range all {
				if c.fields != fields {
					continue
				}
				b.Run(fmt.Sprintf("%d/%d/%s/%s", fields, percent, variant, c.shape), func(b *testing.B) {
					b.ReportAllocs()
					run(b, c, chosen)
				})
			}
		}
	}
}

func benchmarkDecode(b *testing.B, percents []int, variant string, config wire.Config) {
	eachShape(b, percents, variant, func(b *testing.B, c contestant, masks []mask) {
		c.benchmarkDecode(b, c.encoded(masks), config)
	})
}

// BenchmarkDecode decodes a list<struct> of 500 elements into fresh memory.
// alias: strings point into the message. own: every string is copied. first64K:
// as alias, but the list starts with 64 KiB and doubles.
// first16x: the same, but it may also start with 16 bytes for every byte of the
// message that is still unread.
func BenchmarkDecode(b *testing.B) {
	benchmarkDecode(b, []int{0, 25, 100}, "alias", wire.Config{})
	benchmarkDecode(b, []int{25, 100}, "own", wire.Config{OwnStrings: true})
	const first64K = 64 << 10
	benchmarkDecode(b, []int{25}, "first64K", wire.Config{FirstBytes: first64K})
	benchmarkDecode(b, []int{25}, "first16x", wire.Config{FirstBytes: first64K, FirstPerWireByte: 16})
}

// BenchmarkEncode encodes the list into memory that is already there.
func BenchmarkEncode(b *testing.B) {
	eachShape(b, []int{0, 25, 100}, "reused", func(b *testing.B, c contestant, masks []mask) {
		c.benchmarkEncode(b, masks)
	})
}

// BenchmarkBuild makes the list as a handler does before it replies.
func BenchmarkBuild(b *testing.B) {
	eachShape(b, []int{25, 100}, "new", func(b *testing.B, c contestant, masks []mask) {
		c.benchmarkBuild(b, masks)
	})
}

// BenchmarkRead looks at every field of every element.
func BenchmarkRead(b *testing.B) {
	eachShape(b, []int{25}, "all", func(b *testing.B, c contestant, masks []mask) {
		c.benchmarkRead(b, masks)
	})
}

// BenchmarkCopy assigns every element to another list's.
func BenchmarkCopy(b *testing.B) {
	eachShape(b, []int{25}, "assign", func(b *testing.B, c contestant, masks []mask) {
		c.benchmarkCopy(b, masks)
	})
}

// BenchmarkReset assigns the zero value to every element.
func BenchmarkReset(b *testing.B) {
	eachShape(b, []int{25}, "zero", func(b *testing.B, c contestant, masks []mask) {
		c.benchmarkReset(b, masks)
	})
}
