package viewsuite

import (
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

// The contestants of suite paper-view that are no others in suite view, as suite
// paper-codec has them: the article's FastWrite/FastRead is FastCodec, and what it
// compares with Cap'n Proto is a codec that calls an interface for each field.
const (
	paperOld = "old"
	paperNew = "new"
)

// published are the article's figures by case and contestant. Its own messages without
// serialisation stand beside our views.
func published(name string) map[string]string {
	return map[string]map[string]string{
		codec.ReadWrite: {paperOld: "6,855,840 ns, 3,154,209 B, 545 allocs", capnp: "844,924 ns, 2,085,713 B, 9 allocs"},
		"echo-1k":       {view: "70,700/s, TP90 1, TP99 3, TP999 6 ms", paperNew: "82,490/s, TP90 1, TP99 2, TP999 4 ms"},
		"echo-2k":       {view: "65,000/s, TP90 1, TP99 4, TP999 9 ms", paperNew: "72,000/s, TP90 1, TP99 2, TP999 8 ms"},
		"echo-4k":       {view: "56,400/s, TP90 2, TP99 5, TP999 10 ms, CPU 380%", paperNew: "52,700/s, TP90 2, TP99 4, TP999 10 ms, CPU 380%"},
		"echo-32k":      {view: "27,400/s", paperNew: "19,500/s"},
		"echo-1m":       {view: "986/s, TP90 53, TP99 56, TP999 59 ms, CPU 260%", paperNew: "942/s, TP90 55, TP99 59, TP999 62 ms, CPU 290%"},
		"echo-10m":      {view: "82/s, TP90 630, TP99 640, TP999 645 ms, CPU 240%", paperNew: "82/s, TP90 630, TP99 640, TP999 640 ms, CPU 270%"},
	}[name]
}

// PaperSuite describes the suite paper-view to the runner: the article's two tables about
// messages without serialisation. Quick runs have what it compares, and views.
func PaperSuite() harness.Suite {
	suite := harness.Suite{
		Name:     "paper-view",
		Deciding: harness.Pinned,
		// The article has latencies, so quick runs have open loops.
		QuickWindow: time.Second,
		Programs: []harness.Program{
			{Module: "bench", Package: "codec/view", Contestants: []string{view, structs}, Plays: harness.PlaysOperations},
			{Module: "bench", Package: "fulmar", Contestants: []string{view, structs}, Plays: harness.PlaysCalls},
			{Module: "bench/peers", Package: "codec/kitex", Contestants: []string{paperNew}, Plays: harness.PlaysOperations},
			{Module: "bench/peers", Package: "kitex", Contestants: []string{paperNew}, Plays: harness.PlaysCalls},
			{Module: "bench/peers", Package: "codec/apache", Contestants: []string{paperOld}, Plays: harness.PlaysOperations},
			{Module: "bench/peers", Package: "codec/capnp", Contestants: []string{capnp}, Plays: harness.PlaysOperations},
		},
		Cases: []harness.Case{{
			Name: codec.ReadWrite, Repeats: true, Published: published(codec.ReadWrite),
			Pairs: append(harness.Against(capnp, paperOld), harness.Against(view, structs, capnp, paperNew, paperOld)...),
			Quick: append(harness.Against(capnp, paperOld), harness.Against(view, capnp)...),
		}},
	}
	for _, c := range rpc.ViewCalls() {
		if !strings.HasPrefix(c.Name, "echo-") || strings.HasPrefix(c.Name, "echo-items-") {
			continue
		}
		c.Pairs, c.Quick = harness.Against(view, paperNew, structs), harness.Against(view, paperNew)
		c.Open, c.Published = harness.OpenAlways, published(c.Name)
		suite.Cases = append(suite.Cases, c)
	}
	return suite
}
