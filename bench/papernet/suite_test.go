package papernet_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/papernet"
)

func names(pairs []harness.Pair) string {
	var all []string
	for _, pair := range pairs {
		all = append(all, pair.Ours+"/"+pair.Peer)
	}
	return strings.Join(all, " ")
}

func TestSuite_NamesAndPairsAreWhatIsDocumented(t *testing.T) {
	type row struct{ name, pairs, quick string }
	want := []row{
		{"msec-switching", "msec-switch-gosched/msec-switch msec-switch-gosched/msec=-1 msec-switch/msec=-1 msec-switch-gosched-raw/msec-switch-gosched", "msec-switch-gosched/msec-switch"},
		{"epoll-data", "pointer/fd-map pointer/fd-sync-map slot-generation/fd-map slot-generation/pointer", "pointer/fd-map"},
		{"epoll-wait", "msec=0/msec=-1 msec=0-raw/msec=-1-raw msec=0-raw/msec=-1", "msec=0/msec=-1"},
		{"epoll-data-find", "pointer/fd-map pointer/fd-sync-map slot-generation/fd-map slot-generation/pointer", "pointer/fd-map"},
		{"pools", "pool-by-size/one-pool pool-by-size/one-pool-8k pool-by-size/no-pool one-pool/one-pool-8k", "pool-by-size/one-pool pool-by-size/one-pool-8k"},
		{"insert-1k", "insert/copy", ""},
		{"insert-2k", "insert/copy", ""},
		{"insert-4k", "insert/copy", "insert/copy"},
		{"insert-8k", "insert/copy", ""},
		{"insert-16k", "insert/copy", "insert/copy"},
		{"insert-32k", "insert/copy", ""},
		{"insert-64k", "insert/copy", ""},
	}
	suite := papernet.Suite()
	var got []row
	for _, c := range suite.Cases {
		got = append(got, row{c.Name, names(c.Pairs), names(c.Quick)})
		if c.Repeats == (strings.Join(c.Load, " ") == "-connections 64 -callers 1 -bytes 128") {
			t.Errorf("%s repeats operations: %v, and the client is told %q", c.Name, c.Repeats, c.Load)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("cases %+v\nwant %+v", got, want)
	}
	if suite.Name != "paper-net" || suite.Deciding != harness.Pinned {
		t.Errorf("suite %q, and a plain name stands for %s", suite.Name, suite.Deciding)
	}
}

func TestSuite_EveryContestantHasAProgram(t *testing.T) {
	suite := papernet.Suite()
	known, used := map[string]int{}, map[string]bool{}
	for _, program := range suite.Programs {
		for _, name := range program.Contestants {
			known[name]++
		}
	}
	for _, c := range suite.Cases {
		for _, pair := range slices.Concat(c.Pairs, c.Quick) {
			used[pair.Ours], used[pair.Peer] = true, true
			if known[pair.Ours] != 1 || known[pair.Peer] != 1 {
				t.Errorf("%s: no program for %v", c.Name, pair)
			}
		}
		for _, pair := range c.Quick {
			if !slices.Contains(c.Pairs, pair) {
				t.Errorf("%s: %v is in a quick run only", c.Name, pair)
			}
		}
		for name := range c.Published {
			if !strings.Contains(" "+strings.ReplaceAll(names(c.Pairs), "/", " ")+" ", " "+name+" ") {
				t.Errorf("%s: a published figure of %s, who is not in it", c.Name, name)
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
	page, err := os.ReadFile("../../docs/guide/network-figures.md")
	if err != nil {
		t.Fatal(err)
	}
	suite := papernet.Suite()
	var all []string
	for _, c := range suite.Cases {
		all = append(all, c.Name)
		for _, figure := range c.Published {
			all = append(all, figure)
		}
	}
	for _, name := range append(all, suite.Programs[0].Contestants...) {
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/guide/network-figures.md does not mention %q", name)
		}
	}
}

func TestInsertBytes(t *testing.T) {
	for name, want := range map[string]int{"insert-1k": 1 << 10, "insert-64k": 64 << 10} {
		if got, err := papernet.InsertBytes(name); got != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", name, got, err, want)
		}
	}
	for _, name := range []string{"", "insert-", "insert-3k", "insert-128k", "pools"} {
		if got, err := papernet.InsertBytes(name); err == nil {
			t.Errorf("%q: %d, want an error", name, got)
		}
	}
}
