package rpc_test

import (
	"os"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

func TestGRPCSuite_NamesAndPairsAreWhatIsDocumented(t *testing.T) {
	want := []string{"unary-1k-c1", "unary-1k-c100", "unary-1k-c512", "unary-64k-c16", "idle-10k"}
	suite := rpc.GRPCSuite()
	if len(suite.Cases) != len(want) || suite.Name != "grpc" || suite.Deciding != harness.Pinned {
		t.Fatalf("suite %q with %d cases, want %v; a plain name stands for %s", suite.Name, len(suite.Cases), want, suite.Deciding)
	}
	for i, c := range suite.Cases {
		var peers, quick []string
		for _, pair := range c.Pairs {
			peers = append(peers, pair.Peer)
		}
		for _, pair := range c.Quick {
			quick = append(quick, pair.Peer)
		}
		if c.Name != want[i] || strings.Join(peers, " ") != "grpc-go connect-go kitex drpc" {
			t.Errorf("%s with %v, want %s with all peers", c.Name, peers, want[i])
		}
		if floor := c.Name == "unary-1k-c100"; floor != (strings.Join(quick, " ") == "grpc-go kitex") || floor == (len(quick) == 0) {
			t.Errorf("%s: %v in a quick run", c.Name, quick)
		}
		if (c.Kind == harness.Idle) != (c.Name == "idle-10k") {
			t.Errorf("%s is of the kind %q", c.Name, c.Kind)
		}
	}
}

// A name that two suites have must be the same case: contestants know only the name.
func TestGRPCCases_AreFound(t *testing.T) {
	for _, want := range rpc.GRPCCases() {
		if c, err := rpc.FindCase(want.Name); err != nil || c != want {
			t.Errorf("%s: found %+v, %v", want.Name, c, err)
		}
	}
}

// The page has a word for every name that the output can show.
func TestGRPCAndStreamSuites_AreInTheGuide(t *testing.T) {
	content, err := os.ReadFile("../../docs/guide/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	section := func(name string) string {
		_, page, _ := strings.Cut(string(content), "\n## Suite "+name+"\n")
		page, _, _ = strings.Cut(page, "\n## ")
		return page
	}
	var shown []string
	for _, program := range rpc.GRPCSuite().Programs {
		shown = append(shown, program.Contestants...)
	}
	for _, suite := range []harness.Suite{rpc.GRPCSuite(), rpc.StreamSuite()} {
		for _, c := range suite.Cases {
			if !strings.Contains(section(suite.Name), "`"+c.Name+"`") {
				t.Errorf("docs/guide/benchmarks.md does not mention %q in its section about suite %s", c.Name, suite.Name)
			}
		}
	}
	for _, name := range shown {
		if !strings.Contains(section("grpc"), "`"+name+"`") {
			t.Errorf("docs/guide/benchmarks.md does not mention %q in its section about the suite", name)
		}
	}
}
