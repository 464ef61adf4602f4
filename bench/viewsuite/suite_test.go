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

func names(pairs []harness.Pair) string {
	var all []string
	for _, pair := range pairs {
		all = append(all, pair.Ours+"/"+pair.Peer)
	}
	return strings.Join(all, " ")
}

func TestSuite_NamesAndPairsAreWhatIsDocumented(t *testing.T) {
	const everybody = "fulmar-view/fulmar-struct fulmar-view/kitex"
	want := map[string]string{"mytest-1m": everybody + " fulmar-view/capnp"}
	for prefix, sizes := range map[string]string{
		"forward-": "1k 4k 11k 32k 1m 6m", "forward-copy-": "1k 4k 11k 32k 1m 6m",
		"readone-": "1k 4k 11k 32k 1m 6m", "readall-": "1k 4k 11k 32k 1m 6m",
		"echo-": "1k 2k 4k 32k 1m 10m", "echo-items-": "1k 2k 4k 32k 1m 10m", "hop-": "1k 32k 1m",
	} {
		for size := range strings.FieldsSeq(sizes) {
			want[prefix+size] = everybody
		}
	}
	suite := viewsuite.Suite()
	for _, c := range suite.Cases {
		calls := strings.HasPrefix(c.Name, "echo-") || strings.HasPrefix(c.Name, "hop-")
		if names(c.Pairs) != want[c.Name] || c.Repeats == calls {
			t.Errorf("%s: %s, want %s; repeats %v", c.Name, names(c.Pairs), want[c.Name], c.Repeats)
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("no cases %v", want)
	}
	if suite.Name != "view" || suite.Deciding != harness.Pinned || suite.AlsoAs["fulmar-view"] != "fulmar" {
		t.Errorf("suite %q, a plain name stands for %s, and second names are %v", suite.Name, suite.Deciding, suite.AlsoAs)
	}
}

// Quick runs have what a floor names and nothing else, within five minutes.
func TestSuite_QuickRunsHaveTheFloors(t *testing.T) {
	want := map[string]string{"mytest-1m": "fulmar-view/capnp"}
	for _, size := range []string{"1k", "11k", "6m"} {
		want["forward-"+size] = "fulmar-view/kitex"
	}
	for _, size := range []string{"1k", "2k", "4k", "32k", "1m", "10m"} {
		want["echo-"+size] = "fulmar-view/fulmar-struct"
	}
	suite := viewsuite.Suite()
	if took := quickRun(suite); took > 4*time.Minute {
		t.Errorf("the windows of a quick run take %v, and programs have to start between them", took)
	}
	for _, c := range suite.Cases {
		if names(c.Quick) != want[c.Name] {
			t.Errorf("%s: %q in a quick run, want %q", c.Name, names(c.Quick), want[c.Name])
		}
		if len(c.Quick) > 0 && !c.Repeats && c.Open != harness.OpenUnlessQuick {
			t.Errorf("%s: no floor names a latency, and a quick run has open loops", c.Name)
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("no cases %v", want)
	}
}

// quickRun is how long the windows of a quick run are, with those of open loops where a
// quick run has them.
func quickRun(suite harness.Suite) time.Duration {
	settings := suite.Settings(true)
	runs := 0
	for _, c := range suite.Cases {
		contestants := map[string]bool{}
		for _, pair := range c.Quick {
			contestants[pair.Ours], contestants[pair.Peer] = true, true
		}
		runs += len(contestants)
		if !c.Repeats && c.Open == harness.OpenAlways {
			runs += 2 * len(c.Quick)
		}
	}
	return time.Duration(runs*settings.Rounds) * (settings.WarmUp + settings.Duration)
}

func TestSuite_EveryContestantHasOneProgramForACase(t *testing.T) {
	for _, suite := range all() {
		for _, c := range suite.Cases {
			for _, pair := range c.Pairs {
				for _, name := range []string{pair.Ours, pair.Peer} {
					if n := programs(suite, name, c.Repeats); n != 1 {
						t.Errorf("%s/%s: %d programs for %s", suite.Name, c.Name, n, name)
					}
				}
			}
		}
	}
}

func all() []harness.Suite { return []harness.Suite{viewsuite.Suite(), viewsuite.PaperSuite()} }

func programs(suite harness.Suite, name string, repeats bool) (n int) {
	plays := harness.PlaysCalls
	if repeats {
		plays = harness.PlaysOperations
	}
	for _, program := range suite.Programs {
		if slices.Contains(program.Contestants, name) && program.Plays == plays {
			n++
		}
	}
	return n
}

// The page has a word for every name that the output can show.
func TestSuite_IsInTheGuide(t *testing.T) {
	content, err := os.ReadFile("../../docs/guide/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(content), "\n## Suite view\n")
	page, _, _ = strings.Cut(page, "\n## ")
	suite := viewsuite.Suite()
	shown := []string{"fulmar"}
	for _, c := range suite.Cases {
		shown = append(shown, c.Name)
	}
	for _, program := range suite.Programs {
		shown = append(shown, program.Contestants...)
	}
	for _, name := range shown {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/guide/benchmarks.md does not mention %q in its section about the suite", name)
		}
	}
}
