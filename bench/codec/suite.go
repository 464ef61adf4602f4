package codec

import (
	"slices"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/harness"
)

// The contestants that stand in comparisons by name.
const (
	fulmar    = "fulmar"        // as a user gets it: the default shape, the default string policy
	fulmarOwn = "fulmar-own"    // every string has memory of its own
	scoped    = "fulmar-scoped" // strings refer to the memory that the message was received in
	// fulmarKitexShape has the structs of Kitex, with our codec.
	fulmarKitexShape = "fulmar-kitexshape"

	kitex      = "kitex"
	capnp      = "capnp"
	loop       = "loop"   // for every element a load, a swap of bytes, and a store
	memoryCopy = "memcpy" // the message is copied: what the memory allows
)

// entry is a contestant of the suite.
type entry struct {
	name string
	// ours is compared with everybody else in each of its cases.
	ours    bool
	program program
	plays   func(Case) bool
}

// program is where a contestant is built from.
type program struct{ module, folder string }

func entries() []entry {
	var (
		own      = program{"bench", "codec/fulmar"}
		plain    = program{"bench", "codec/plain"}
		kitexes  = program{"bench/peers", "codec/kitex"}
		apache   = program{"bench/peers", "codec/apache"}
		protobuf = program{"bench/peers", "codec/protobuf"}
		capnps   = program{"bench/peers", "codec/capnp"}
	)
	everything := func(Case) bool { return true }
	return []entry{
		{fulmar, true, own, everything},
		{fulmarOwn, true, own, decodesTexts},
		{scoped, true, own, decodesTexts},
		{fulmarKitexShape, true, own, hasStructs},
		{kitex, false, kitexes, everything},
		{"frugal", false, kitexes, everything},
		{"apache-thrift", false, apache, everything},
		{"protobuf-go", false, protobuf, everything},
		{"vtprotobuf", false, protobuf, everything},
		{capnp, false, capnps, func(c Case) bool { return c.Operation == Whole }},
		{loop, false, plain, func(c Case) bool { return c.Set.list() }},
		{memoryCopy, false, plain, func(c Case) bool { return c.Operation != Whole }},
	}
}

// decodesTexts is for policies about strings: they differ where one is decoded.
func decodesTexts(c Case) bool { return c.Operation == Decode && !c.Set.list() }

// hasStructs is for shapes of structs: they are what differs.
func hasStructs(c Case) bool { return c.Operation != Whole && !c.Set.list() }

// Suite describes the suite to the runner.
func Suite() harness.Suite {
	suite := harness.Suite{
		Name: "codec",
		// One processor for all that a contestant does, its garbage collector
		// included: what the second one did would not be seen.
		Deciding: harness.Pinned,
		// Ten comparisons of five rounds: four and a half minutes with windows of
		// two seconds, which is too close to five for a machine that starts
		// programs slowly.
		QuickWindow: 1500 * time.Millisecond,
		Programs:    programs(entries()),
	}
	for _, c := range Cases() {
		suite.Cases = append(suite.Cases, harness.Case{Name: c.Name, Pairs: c.pairs(entries()), Quick: quick(c.Name), Repeats: true})
	}
	return suite
}

// programs returns what is to be built, each with its contestants.
func programs(entries []entry) []harness.Program {
	var all []harness.Program
	for _, e := range entries {
		at := slices.IndexFunc(all, func(p harness.Program) bool { return p.Module == e.program.module && p.Package == e.program.folder })
		if at < 0 {
			at = len(all)
			all = append(all, harness.Program{Module: e.program.module, Package: e.program.folder})
		}
		all[at].Contestants = append(all[at].Contestants, e.name)
	}
	return all
}

// pairs compares each of ours with everybody else.
func (c Case) pairs(entries []entry) []harness.Pair {
	var ours, peers []string
	for _, e := range entries {
		switch {
		case !e.plays(c):
		case e.ours:
			ours = append(ours, e.name)
		default:
			peers = append(peers, e.name)
		}
	}
	var pairs []harness.Pair
	for _, name := range ours {
		pairs = append(pairs, harness.Against(name, peers...)...)
	}
	return pairs
}

// quick returns the comparisons that the project holds itself to.
func quick(name string) []harness.Pair {
	switch name {
	case "complex-11k-encode", "complex-11k-decode", "small-20k-encode", "small-20k-decode",
		"small-6m-encode", "small-6m-decode", "mixed-6m-decode":
		return harness.Against(fulmar, kitex)
	case "list-i64-131k-encode", "list-i32-131k-encode":
		return harness.Against(fulmar, loop)
	case MyTest:
		return harness.Against(fulmar, capnp)
	}
	return nil
}
