package governance_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/governance"
	"github.com/fulmar-rpc/fulmar/bench/harness"
)

func TestSuite_NamesAndPairsAreWhatIsDocumented(t *testing.T) {
	type row struct {
		name           string
		quick, repeats bool
		only           harness.Placement
	}
	want := []row{
		{"full-stack", true, true, ""}, {"resolver-update-10k", false, true, harness.Free},
		{"overload-2x", true, false, ""}, {"overload-10x", true, false, ""},
	}
	suite := governance.Suite()
	var got []row
	for _, c := range suite.Cases {
		got = append(got, row{c.Name, len(c.Quick) > 0, c.Repeats, c.Only})
		if !slices.Equal(c.Pairs, harness.Against("fulmar", "kitex")) || len(c.Quick) > 0 && !slices.Equal(c.Quick, c.Pairs) {
			t.Errorf("%s: pairs %v, in quick runs %v", c.Name, c.Pairs, c.Quick)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("cases %+v\nwant  %+v", got, want)
	}
	if suite.Name != "governance" || suite.Deciding != harness.Pinned {
		t.Errorf("suite %q, and a plain name stands for %s", suite.Name, suite.Deciding)
	}
}

// Closed and open loops of two contestants, five rounds each.
func TestSuite_QuickRunsTakeLessThanFiveMinutes(t *testing.T) {
	suite := governance.Suite()
	settings := suite.Settings(true)
	runs := 0
	for _, c := range suite.Cases {
		if len(c.Quick) > 0 {
			runs += 2
		}
		if len(c.Quick) > 0 && !c.Repeats {
			runs += 2
		}
	}
	if took := time.Duration(runs*settings.Rounds) * (settings.WarmUp + settings.Duration); took > 4*time.Minute {
		t.Errorf("the windows of a quick run take %v, and programs have to start between them", took)
	}
}

func TestSuite_EveryContestantHasOneProgramForACase(t *testing.T) {
	suite := governance.Suite()
	for _, plays := range []harness.Plays{harness.PlaysOperations, harness.PlaysCalls} {
		for _, name := range []string{"fulmar", "kitex"} {
			n := 0
			for _, program := range suite.Programs {
				if program.Plays == plays && slices.Contains(program.Contestants, name) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%d programs of %s for cases of kind %d", n, name, plays)
			}
		}
	}
}

// The page has a word for every name that the output can show.
func TestSuite_IsInTheGuide(t *testing.T) {
	content, err := os.ReadFile("../../docs/guide/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(content), "\n## Suite governance\n")
	page, _, _ = strings.Cut(page, "\n## ")
	shown := []string{"fulmar", "kitex"}
	for _, c := range governance.Suite().Cases {
		shown = append(shown, c.Name)
	}
	for _, name := range shown {
		if !strings.Contains(page, "`"+name) {
			t.Errorf("docs/guide/benchmarks.md does not mention %q in its section about the suite", name)
		}
	}
}
