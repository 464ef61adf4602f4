package viewsuite_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/viewsuite"
)

func TestPaperSuite_NamesAndPairsAreWhatIsDocumented(t *testing.T) {
	type row struct{ name, pairs, quick string }
	want := []row{{
		"read-write-1m", "capnp/old fulmar-view/fulmar-struct fulmar-view/capnp fulmar-view/new fulmar-view/old", "capnp/old fulmar-view/capnp",
	}}
	for _, size := range []string{"1k", "2k", "4k", "32k", "1m", "10m"} {
		want = append(want, row{"echo-" + size, "fulmar-view/new fulmar-view/fulmar-struct", "fulmar-view/new"})
	}
	suite := viewsuite.PaperSuite()
	var got []row
	for _, c := range suite.Cases {
		got = append(got, row{c.Name, names(c.Pairs), names(c.Quick)})
		if c.Repeats != (c.Name == "read-write-1m") || !c.Repeats && c.Open != harness.OpenAlways {
			t.Errorf("%s repeats %v, open loops %v", c.Name, c.Repeats, c.Open)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("cases %+v\nwant  %+v", got, want)
	}
	if suite.Name != "paper-view" || suite.Deciding != harness.Pinned {
		t.Errorf("suite %q, and a plain name stands for %s", suite.Name, suite.Deciding)
	}
	if took := quickRun(suite); took > 4*time.Minute {
		t.Errorf("the windows of a quick run take %v, and programs have to start between them", took)
	}
}

// Each figure of the article stands beside a contestant that runs, and none is left out: two
// rows in each case.
func TestPaperSuite_EveryFigureHasItsRow(t *testing.T) {
	for _, c := range viewsuite.PaperSuite().Cases {
		if len(c.Published) != 2 {
			t.Errorf("%s: %d published figures, want those of two rows", c.Name, len(c.Published))
		}
		for name := range c.Published {
			if !slices.ContainsFunc(c.Quick, func(p harness.Pair) bool { return p.Ours == name || p.Peer == name }) {
				t.Errorf("%s: a published figure of %s, who is not in a quick run", c.Name, name)
			}
		}
	}
}

// The page has a word for every name and every published figure that the output can show.
func TestPaperSuite_IsInTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/view-figures.md")
	if err != nil {
		t.Fatal(err)
	}
	suite := viewsuite.PaperSuite()
	var shown []string
	for _, c := range suite.Cases {
		shown = append(shown, "`"+c.Name+"`")
		for name, figure := range c.Published {
			shown = append(shown, "| `"+name+"` | "+figure+" |")
		}
	}
	for _, program := range suite.Programs {
		for _, name := range program.Contestants {
			shown = append(shown, "`"+name+"`")
		}
	}
	for _, name := range shown {
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/guide/view-figures.md does not mention %q", name)
		}
	}
}
