package netsuite

import (
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/harness"
)

func TestCases_AreThoseOfTheDesign(t *testing.T) {
	var names []string
	for _, c := range Cases() {
		names = append(names, c.Name)
		found, err := FindCase(c.Name)
		if err != nil || found != c {
			t.Errorf("%s: found %+v, %v", c.Name, found, err)
		}
	}
	want := []string{
		"echo-128-c1", "echo-128-c64", "echo-1k-c256", "echo-4k-c64", "pipeline-128-16x16", "shared-128-64", "shared-128-512",
		"slowmix-c64", "burn-c1000", "large-1m-c16", "large-then-small-c100", "idle-10k", "churn", "unix-128-c64",
	}
	if !slices.Equal(names, want) {
		t.Errorf("cases %q, want %q", names, want)
	}
	if _, err := FindCase("other"); err == nil {
		t.Error("a case that does not exist was found")
	}
}

func TestCases_AreToldToTheClient(t *testing.T) {
	for name, want := range map[string]string{
		"echo-1k-c256":          "-connections 256 -callers 1 -bytes 1024",
		"pipeline-128-16x16":    "-connections 16 -callers 16 -bytes 128",
		"slowmix-c64":           "-connections 64 -callers 1 -bytes 128 -sleep-share 10",
		"burn-c1000":            "-connections 1000 -callers 1 -bytes 1024 -burn-share 1000",
		"large-1m-c16":          "-connections 16 -callers 1 -bytes 1048576 -megabytes 1",
		"large-then-small-c100": "-connections 100 -callers 1 -bytes 128 -first-bytes 4194304",
		"idle-10k":              "-connections 16 -callers 1 -bytes 128 -idle 10000",
		"churn":                 "-connections 64 -callers 1 -bytes 128 -churn 1 -sources 16",
	} {
		c, err := FindCase(name)
		if got := strings.Join(c.Load(), " "); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
		if got := c.Serve(); got != nil {
			t.Errorf("%s: the server is told %q, want nothing", name, got)
		}
	}
	c, err := FindCase("unix-128-c64")
	if got := strings.Join(c.Serve(), " "); err != nil || got != "-network unix" {
		t.Errorf("the server of a Unix socket is told %q, %v", got, err)
	}
}

func TestSuite_EveryContestantHasAProgram(t *testing.T) {
	suite := Suite()
	known := map[string]int{}
	for _, program := range suite.Programs {
		for _, name := range program.Contestants {
			known[name]++
		}
	}
	for _, name := range []string{"fulmar", "fulmar-inline", "fulmar-spawn", "fulmar-std", "netpoll", "netpoll-2", "gnet", "std", "c-epoll"} {
		if known[name] != 1 {
			t.Errorf("%d programs know %s, want 1", known[name], name)
		}
	}
	var quick, latencies []string
	for _, c := range suite.Cases {
		for _, pair := range slices.Concat(c.Pairs, c.Quick) {
			if known[pair.Ours] != 1 || known[pair.Peer] != 1 {
				t.Errorf("%s: no program for %v", c.Name, pair)
			}
		}
		for _, pair := range c.Quick {
			quick = append(quick, c.Name+" "+pair.Ours+"/"+pair.Peer)
			if !slices.Contains(c.Pairs, pair) {
				t.Errorf("%s: %v is in a quick run only", c.Name, pair)
			}
		}
		if c.Open == harness.OpenAlways {
			latencies = append(latencies, c.Name)
		}
	}
	want := []string{
		"echo-128-c64 fulmar/netpoll", "echo-128-c64 fulmar/gnet", "echo-128-c64 fulmar/c-epoll", "shared-128-64 fulmar/netpoll",
		"slowmix-c64 fulmar/netpoll", "large-then-small-c100 fulmar/netpoll", "idle-10k fulmar/netpoll",
	}
	if !slices.Equal(quick, want) || !slices.Equal(latencies, []string{"slowmix-c64"}) {
		t.Errorf("a quick run compares %q, latencies of %q; want what the floors name: %q", quick, latencies, want)
	}
	if suite.Deciding != harness.Free {
		t.Errorf("a plain name stands for %s", suite.Deciding)
	}
}
