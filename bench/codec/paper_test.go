package codec_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func TestPaperSuite_NamesAndPairsAreWhatIsDocumented(t *testing.T) {
	const (
		codecs = "new/old fulmar/new fulmar/old"
		simd   = "fulmar/loop fulmar/new fulmar/memcpy"
	)
	type row struct{ name, pairs, quick string }
	want := []row{
		{"marshal-20k", codecs, "new/old fulmar/new"},
		{"unmarshal-20k", codecs, "new/old fulmar/new"},
		{"marshal-6m", codecs, "new/old fulmar/new"},
		{"unmarshal-6m", codecs, "new/old fulmar/new"},
		{"read-write-1m", "capnp/old fulmar/capnp fulmar/new fulmar/old", "fulmar/capnp"},
	}
	for _, numbers := range []string{"i64", "i32"} {
		for _, length := range []string{"16", "64", "256", "1k", "16k"} {
			want = append(want, row{"simd-" + numbers + "-" + length, simd, ""})
		}
		want = append(want, row{"simd-" + numbers + "-131k", simd, "fulmar/loop"})
	}
	suite := codec.PaperSuite()
	var got []row
	for _, c := range suite.Cases {
		got = append(got, row{c.Name, names(c.Pairs), names(c.Quick)})
		if !c.Repeats {
			t.Errorf("%s makes calls", c.Name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("cases %+v\nwant %+v", got, want)
	}
	if suite.Name != "paper-codec" || suite.Deciding != harness.Pinned {
		t.Errorf("suite %q, and a plain name stands for %s", suite.Name, suite.Deciding)
	}
}

// Nobody can tell suites apart by a case's name if two have it.
func TestPaperCases_HaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range slices.Concat(codec.Cases(), codec.PaperCases()) {
		if seen[c.Name] {
			t.Errorf("%s is in there twice", c.Name)
		}
		seen[c.Name] = true
		if found, err := codec.FindCase(c.Name); err != nil || found.Operation != c.Operation || found.Set.Bytes != c.Set.Bytes {
			t.Errorf("%s: found %+v, %v", c.Name, found, err)
		}
	}
}

func TestPaperCases_HaveTheirSizes(t *testing.T) {
	for _, c := range codec.PaperCases() {
		if c.Operation == codec.Whole {
			continue
		}
		encoded, err := thrift.Marshal(c.Set.Build(0))
		if err != nil || len(encoded) != c.Set.Bytes {
			t.Errorf("%s: %d bytes, %v; want %d", c.Name, len(encoded), err, c.Set.Bytes)
		}
	}
}

func TestPaperSuite_EveryContestantHasAProgram(t *testing.T) {
	suite := codec.PaperSuite()
	known := map[string]int{}
	for _, program := range suite.Programs {
		for _, name := range program.Contestants {
			known[name]++
		}
	}
	for _, c := range suite.Cases {
		members := map[string]bool{}
		for _, pair := range c.Pairs {
			members[pair.Ours], members[pair.Peer] = true, true
			if known[pair.Ours] != 1 || known[pair.Peer] != 1 {
				t.Errorf("%s: no program for %v", c.Name, pair)
			}
		}
		for name := range c.Published {
			if !members[name] {
				t.Errorf("%s: a published figure of %s, who is not in it", c.Name, name)
			}
		}
	}
}

// The page has a word for every name that the output can show.
func TestPaperSuite_IsInTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/codec-figures.md")
	if err != nil {
		t.Fatal(err)
	}
	suite := codec.PaperSuite()
	var all []string
	for _, c := range suite.Cases {
		all = append(all, c.Name)
		for _, figure := range c.Published {
			all = append(all, strings.Split(figure, ", ")...)
		}
	}
	for _, program := range suite.Programs {
		all = append(all, program.Contestants...)
	}
	for _, name := range all {
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/guide/codec-figures.md does not mention %q", name)
		}
	}
}
