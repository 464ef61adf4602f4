package codec_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/harness"
)

func names(pairs []harness.Pair) string {
	var all []string
	for _, pair := range pairs {
		all = append(all, pair.Ours+"/"+pair.Peer)
	}
	return strings.Join(all, " ")
}

func TestSuite_NamesAreWhatIsDocumented(t *testing.T) {
	var want []string
	for _, set := range []string{
		"complex-11k", "small-20k", "small-6m", "mixed-20k", "mixed-6m", "tiny-74b", "echo-1k", "echo-32k",
		"list-i64-1k", "list-i64-131k", "list-i32-1k", "list-i32-131k",
	} {
		want = append(want, set+"-encode", set+"-decode")
	}
	suite := codec.Suite()
	var got []string
	for _, c := range suite.Cases {
		got = append(got, c.Name)
		if !c.Repeats {
			t.Errorf("%s makes calls", c.Name)
		}
	}
	if want = append(want, "mytest-1m"); !slices.Equal(got, want) {
		t.Errorf("cases %q\nwant  %q", got, want)
	}
	if suite.Name != "codec" || suite.Deciding != harness.Pinned {
		t.Errorf("suite %q, and a plain name stands for %s", suite.Name, suite.Deciding)
	}
}

func TestSuite_PairsAreWhatIsDocumented(t *testing.T) {
	const (
		libraries = "fulmar/kitex fulmar/frugal fulmar/apache-thrift fulmar/protobuf-go fulmar/vtprotobuf"
		own       = "fulmar-own/kitex fulmar-own/frugal fulmar-own/apache-thrift fulmar-own/protobuf-go fulmar-own/vtprotobuf fulmar-own/memcpy"
		scoped    = "fulmar-scoped/kitex fulmar-scoped/frugal fulmar-scoped/apache-thrift fulmar-scoped/protobuf-go fulmar-scoped/vtprotobuf fulmar-scoped/memcpy"
		shape     = " fulmar-kitexshape/kitex fulmar-kitexshape/frugal fulmar-kitexshape/apache-thrift fulmar-kitexshape/protobuf-go fulmar-kitexshape/vtprotobuf fulmar-kitexshape/memcpy"
	)
	want := map[string]string{
		"complex-11k-encode":   libraries + " fulmar/memcpy" + shape,
		"complex-11k-decode":   libraries + " fulmar/memcpy " + own + " " + scoped + shape,
		"list-i64-1k-encode":   libraries + " fulmar/loop fulmar/memcpy",
		"list-i32-131k-decode": libraries + " fulmar/loop fulmar/memcpy",
		"mytest-1m":            libraries + " fulmar/capnp",
	}
	for _, c := range codec.Suite().Cases {
		if pairs, ok := want[c.Name]; ok && names(c.Pairs) != pairs {
			t.Errorf("%s: %s\nwant %s", c.Name, names(c.Pairs), pairs)
		}
		delete(want, c.Name)
	}
	for name := range want {
		t.Errorf("there is no case %s", name)
	}
}

// A quick run has what the project holds itself to, and nothing else.
func TestSuite_QuickRunsHaveTheFloors(t *testing.T) {
	want := map[string]string{
		"complex-11k-encode": "fulmar/kitex", "complex-11k-decode": "fulmar/kitex",
		"small-20k-encode": "fulmar/kitex", "small-20k-decode": "fulmar/kitex",
		"small-6m-encode": "fulmar/kitex", "small-6m-decode": "fulmar/kitex", "mixed-6m-decode": "fulmar/kitex",
		"list-i64-131k-encode": "fulmar/loop", "list-i32-131k-encode": "fulmar/loop", "mytest-1m": "fulmar/capnp",
	}
	suite := codec.Suite()
	runs := 0
	for _, c := range suite.Cases {
		if got := names(c.Quick); got != want[c.Name] {
			t.Errorf("%s: %q in a quick run, want %q", c.Name, got, want[c.Name])
		}
		for _, pair := range c.Quick {
			runs += 2
			if !slices.Contains(c.Pairs, pair) {
				t.Errorf("%s: %v is in a quick run only", c.Name, pair)
			}
		}
	}
	settings := suite.Settings(true)
	if took := settings.WarmUp + settings.Duration; took.Minutes()*float64(runs*settings.Rounds) > 4 || settings.Duration.Seconds() < 1 {
		t.Errorf("%d runs of %v with windows of %v: more than four minutes, or less than a second each", runs*settings.Rounds, took, settings.Duration)
	}
}

func TestSuite_EveryContestantHasAProgram(t *testing.T) {
	suite := codec.Suite()
	known, used := map[string]int{}, map[string]bool{}
	for _, program := range suite.Programs {
		for _, name := range program.Contestants {
			known[name]++
		}
	}
	for _, c := range suite.Cases {
		for _, pair := range c.Pairs {
			used[pair.Ours], used[pair.Peer] = true, true
			if known[pair.Ours] != 1 || known[pair.Peer] != 1 {
				t.Errorf("%s: no program for %v", c.Name, pair)
			}
		}
	}
	for name := range known {
		if !used[name] {
			t.Errorf("%s is in no case", name)
		}
	}
}

// The page has a word for every name that the output can show.
func TestSuite_IsInTheGuide(t *testing.T) {
	content, err := os.ReadFile("../../docs/guide/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(content), "\n## Suite codec\n")
	page, _, _ = strings.Cut(page, "\n## ")
	all := []string{codec.MyTest}
	for _, set := range codec.DataSets() {
		all = append(all, set.Name)
	}
	for _, program := range codec.Suite().Programs {
		all = append(all, program.Contestants...)
	}
	for _, name := range all {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/guide/benchmarks.md does not mention %q in its section about the suite", name)
		}
	}
}
