package codec

import (
	"slices"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/harness"
)

// The contestants of suite paper-codec, as the article names them. Its old codec
// calls an interface for each field, as Apache Thrift's does; its new one is
// FastCodec.
const (
	paperOld = "old"
	paperNew = "new"
)

// ReadWrite is the article's comparison with Cap'n Proto.
const ReadWrite = "read-write-1m"

// length is how many elements a list has, and the end of the name of its case.
type length struct {
	name     string
	elements int
}

func lengths() []length {
	return []length{{"16", 16}, {"64", 64}, {"256", 256}, {"1k", 1 << 10}, {"16k", 16 << 10}, {"131k", 128 << 10}}
}

// PaperCases returns the cases of suite paper-codec.
func PaperCases() []Case {
	var cases []Case
	for _, set := range []struct {
		suffix string
		data   DataSet
	}{{"20k", small("small-20k", 20_441, manyMessages, 124)}, {"6m", small("small-6m", 6_004_293, 1, 36_500)}} {
		cases = append(cases,
			Case{Name: "marshal-" + set.suffix, Set: set.data, Operation: EncodeNew},
			Case{Name: "unmarshal-" + set.suffix, Set: set.data, Operation: Decode})
	}
	cases = append(cases, Case{Name: ReadWrite, Set: myTest(), Operation: Whole})
	for _, length := range lengths() {
		name := "simd-i64-" + length.name
		cases = append(cases, Case{Name: name, Set: int64List(name, length.elements), Operation: Encode})
	}
	for _, length := range lengths() {
		name := "simd-i32-" + length.name
		cases = append(cases, Case{Name: name, Set: int32List(name, length.elements), Operation: Encode})
	}
	return cases
}

// published are the article's figures by case and contestant.
func published(name string) map[string]string {
	return map[string]map[string]string{
		"marshal-20k":   {paperOld: "138 us, 25.4 KB, 19 allocs", paperNew: "29 us, 26.4 KB, 11 allocs"},
		"unmarshal-20k": {paperOld: "199 us, 4720 B, 1360 allocs", paperNew: "94 us, 4700 B, 1280 allocs"},
		"marshal-6m":    {paperOld: "58.7 ms, 6.96 MB, 3350 allocs", paperNew: "13.3 ms, 6.84 MB, 10 allocs"},
		"unmarshal-6m":  {paperOld: "56.6 ms, 17.4 MB, 391000 allocs", paperNew: "26.8 ms, 17.5 MB, 390000 allocs"},
		// FastCodec does not make 545 objects of this.
		ReadWrite:       {paperOld: "6.86 ms, 3.15 MB, 545 allocs", capnp: "0.84 ms, 2.09 MB, 9 allocs"},
		"simd-i64-16":   {fulmar: "10x the loop"},
		"simd-i64-131k": {fulmar: "6x the loop"},
		"simd-i32-16":   {fulmar: "20x the loop"},
		"simd-i32-131k": {fulmar: "12x the loop"},
	}[name]
}

// PaperSuite describes the suite paper-codec to the runner.
func PaperSuite() harness.Suite {
	suite := harness.Suite{
		Name:        "paper-codec",
		Deciding:    harness.Pinned,
		QuickWindow: 1500 * time.Millisecond,
		Programs: []harness.Program{
			{Module: "bench", Package: "codec/fulmar", Contestants: []string{fulmar}},
			{Module: "bench", Package: "codec/plain", Contestants: []string{loop, memoryCopy}},
			{Module: "bench/peers", Package: "codec/kitex", Contestants: []string{paperNew}},
			{Module: "bench/peers", Package: "codec/apache", Contestants: []string{paperOld}},
			{Module: "bench/peers", Package: "codec/capnp", Contestants: []string{capnp}},
		},
		Notes: inlining,
	}
	for _, c := range PaperCases() {
		played := harness.Case{Name: c.Name, Repeats: true, Published: published(c.Name)}
		switch {
		case c.Operation == Whole:
			played.Pairs = append(harness.Against(capnp, paperOld), harness.Against(fulmar, capnp, paperNew, paperOld)...)
			played.Quick = harness.Against(fulmar, capnp)
		case c.Set.list():
			played.Pairs = harness.Against(fulmar, loop, paperNew, memoryCopy)
			if slices.Contains([]string{"simd-i64-131k", "simd-i32-131k"}, c.Name) {
				played.Quick = harness.Against(fulmar, loop)
			}
		default:
			played.Pairs = append(harness.Against(paperNew, paperOld), harness.Against(fulmar, paperNew, paperOld)...)
			played.Quick = played.Pairs[:2]
		}
		suite.Cases = append(suite.Cases, played)
	}
	return suite
}
