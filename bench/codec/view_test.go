package codec_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/harness"
)

func TestViewSuite_NamesAreWhatIsDocumented(t *testing.T) {
	var want []string
	for _, operation := range []string{"forward", "readall", "readone"} {
		for _, size := range []string{"1k", "4k", "11k", "32k", "1m", "6m"} {
			want = append(want, operation+"-"+size)
		}
	}
	suite := codec.ViewSuite()
	var got []string
	for _, c := range suite.Cases {
		got = append(got, c.Name)
		pairs := "fulmar-view/fulmar-struct fulmar-view/kitex fulmar/kitex"
		if c.Name == codec.MyTest {
			pairs = "fulmar-view/fulmar-struct fulmar-view/kitex fulmar/capnp"
		}
		if names(c.Pairs) != pairs || !c.Repeats {
			t.Errorf("%s: %s, want %s", c.Name, names(c.Pairs), pairs)
		}
	}
	if want = append(want, codec.MyTest); !slices.Equal(got, want) {
		t.Errorf("cases %q\nwant  %q", got, want)
	}
	if suite.Name != "view" || suite.Deciding != harness.Pinned {
		t.Errorf("suite %q, and a plain name stands for %s", suite.Name, suite.Deciding)
	}
}

func TestViewSuite_QuickRunsHaveTheFloors(t *testing.T) {
	want := map[string]string{"forward-1k": "fulmar/kitex", "forward-11k": "fulmar/kitex", "forward-6m": "fulmar/kitex", codec.MyTest: "fulmar/capnp"}
	for _, c := range codec.ViewSuite().Cases {
		if names(c.Quick) != want[c.Name] {
			t.Errorf("%s: %q in a quick run, want %q", c.Name, names(c.Quick), want[c.Name])
		}
	}
}

func TestViewSuite_EveryContestantHasAProgram(t *testing.T) {
	suite := codec.ViewSuite()
	known := map[string]int{}
	for _, program := range suite.Programs {
		for _, name := range program.Contestants {
			known[name]++
		}
	}
	for _, c := range suite.Cases {
		for _, pair := range c.Pairs {
			if known[pair.Ours] != 1 || known[pair.Peer] != 1 {
				t.Errorf("%s: no program for %v", c.Name, pair)
			}
		}
	}
}

// The page has a word for every name that the output can show.
func TestViewSuite_IsInTheGuide(t *testing.T) {
	content, err := os.ReadFile("../../docs/guide/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(content), "\n## Suite view\n")
	page, _, _ = strings.Cut(page, "\n## ")
	var all []string
	for _, c := range codec.ViewSuite().Cases {
		all = append(all, c.Name)
	}
	for _, program := range codec.ViewSuite().Programs {
		all = append(all, program.Contestants...)
	}
	for _, name := range all {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/guide/benchmarks.md does not mention %q in its section about the suite", name)
		}
	}
}
