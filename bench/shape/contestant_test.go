package shape_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	gen "github.com/fulmar-rpc/fulmar/bench/gen/shape"
	"github.com/fulmar-rpc/fulmar/bench/shape/wire"
)

// elements is the length of every list that is measured.
const elements = 500

// A mask says which fields of one struct are set: bit id-1.
type mask [4]uint64

// masks returns which fields to set in each of the elements. The choice is
// random but the same in every run and for every shape, so that all of them
// write the same bytes and meet the same mispredicted branches.
func masks(fields, percent int) []mask {
	random := rand.New(rand.NewPCG(uint64(fields), uint64(percent)))
	list := make([]mask, elements)
	for i := range list {
		for bit := range fields {
			if random.IntN(100) < percent {
				list[i][bit/64] |= 1 << (bit % 64)
			}
		}
	}
	return list
}

// element is what the generated structs have in common.
type element[T any] interface {
	*T
	Fill(*[4]uint64)
	Sum() int64
	CopyFrom(*T)
	Reset()
}

// contestant is one struct in one shape, with its type erased outside of the
// measured loops.
type contestant struct {
	shape     string
	fields    int
	size      int
	encoded   func(masks []mask) []byte
	decode    func(message []byte, config wire.Config) (elements int, err error)
	transcode func(message []byte, config wire.Config) ([]byte, error)

	benchmarkDecode func(b *testing.B, message []byte, config wire.Config)
	benchmarkEncode func(b *testing.B, masks []mask)
	benchmarkBuild  func(b *testing.B, masks []mask)
	benchmarkRead   func(b *testing.B, masks []mask)
	benchmarkCopy   func(b *testing.B, masks []mask)
	benchmarkReset  func(b *testing.B, masks []mask)
}

func contestants() []contestant {
	return []contestant{
		newContestant("opt", 2, gen.ReadOpt2List, gen.WriteOpt2List),
		newContestant("bits", 2, gen.ReadBits2List, gen.WriteBits2List),
		newContestant("pointer", 2, gen.ReadPointer2List, gen.WritePointer2List),
		newContestant("opt", 20, gen.ReadOpt20List, gen.WriteOpt20List),
		newContestant("bits", 20, gen.ReadBits20List, gen.WriteBits20List),
		newContestant("pointer", 20, gen.ReadPointer20List, gen.WritePointer20List),
		newContestant("opt", 200, gen.ReadOpt200List, gen.WriteOpt200List),
		newContestant("bits", 200, gen.ReadBits200List, gen.WriteBits200List),
		newContestant("pointer", 200, gen.ReadPointer200List, gen.WritePointer200List),
	}
}

func newContestant[T any, P element[T]](
	shape string, fields int, read func(*wire.Reader) []T, write func(*wire.Writer, []T),
) contestant {
	build := func(masks []mask) []T {
		list := make([]T, len(masks))
		for i := range list {
			P(&list[i]).Fill((*[4]uint64)(&masks[i]))
		}
		return list
	}
	c := contestant{shape: shape, fields: fields, size: int(unsafe.Sizeof(*new(T)))}
	c.encoded = func(masks []mask) []byte {
		var w wire.Writer
		write(&w, build(masks))
		return bytes.Clone(w.Bytes())
	}
	c.decode = func(message []byte, config wire.Config) (int, error) {
		r := wire.NewReader(message, config)
		return len(read(r)), r.Err()
	}
	c.transcode = func(message []byte, config wire.Config) ([]byte, error) {
		r := wire.NewReader(message, config)
		list := read(r)
		var w wire.Writer
		write(&w, list)
		return w.Bytes(), r.Err()
	}
	c.benchmarkDecode = func(b *testing.B, message []byte, config wire.Config) {
		var r wire.Reader
		for b.Loop() {
			r.Init(message, config)
			read(&r)
		}
		if r.Failed() {
			b.Fatal(r.Err())
		}
	}
	c.benchmarkEncode = func(b *testing.B, masks []mask) {
		list := build(masks)
		var w wire.Writer
		write(&w, list) // the first round makes the room
		for b.Loop() {
			w.Reset()
			write(&w, list)
		}
	}
	c.benchmarkBuild = func(b *testing.B, masks []mask) {
		for b.Loop() {
			build(masks)
		}
	}
	addMemoryBenchmarks[T, P](&c, build)
	return c
}

// addMemoryBenchmarks adds what does not need a codec.
func addMemoryBenchmarks[T any, P element[T]](c *contestant, build func([]mask) []T) {
	c.benchmarkRead = func(b *testing.B, masks []mask) {
		list := build(masks)
		for b.Loop() {
			var total int64
			for i := range list {
				total += P(&list[i]).Sum()
			}
			if total == 0 {
				b.Fatal("nothing was read")
			}
		}
	}
	c.benchmarkCopy = func(b *testing.B, masks []mask) {
		source := build(masks)
		target := make([]T, len(source))
		for b.Loop() {
			for i := range source {
				P(&target[i]).CopyFrom(&source[i])
			}
		}
	}
	c.benchmarkReset = func(b *testing.B, masks []mask) {
		list := build(masks)
		for b.Loop() {
			for i := range list {
				P(&list[i]).Reset()
			}
		}
	}
}

func (c contestant) String() string { return fmt.Sprintf("%s/%d fields", c.shape, c.fields) }
