// Package netsuite is the suite net: network libraries without RPC. Servers
// return what they receive, one client in C (bench/net/client.c) calls them all.
package netsuite

import (
	"fmt"
	"strconv"
)

// Case is one measured situation.
type Case struct {
	Name string
	// Connections carry calls, each Callers of them at once. Bytes is the payload
	// of a call.
	Connections, Callers, Bytes int
	// Shared tells servers that the calls in flight on a connection belong to
	// callers who know nothing of each other: if the handler of one waits, the
	// others' replies must not.
	Shared bool
	// SleepShare and BurnShare are of how many in 10,000 calls the handlers sleep
	// for 2 ms, or compute for about 200 us. Clients choose them.
	SleepShare, BurnShare int
	// Idle are further connections, silent after one call each.
	Idle int
	// FirstBytes is the payload of one call on each connection before all others.
	// At the end of such a case the heap is measured.
	FirstBytes int
	// Churn means a connection for every call.
	Churn bool
	// Unix means a Unix socket.
	Unix bool
	// Large means that megabytes a second are of interest.
	Large bool
}

// churnSources is how many loopback addresses connections come from where each
// carries one call. A closed connection occupies its port for a minute, and one
// address has 28,000 by default: a window of two seconds takes more.
const churnSources = 16

// Cases returns the cases of the suite.
func Cases() []Case {
	return []Case{
		{Name: "echo-128-c1", Connections: 1, Callers: 1, Bytes: 128},
		{Name: "echo-128-c64", Connections: 64, Callers: 1, Bytes: 128},
		{Name: "echo-1k-c256", Connections: 256, Callers: 1, Bytes: 1 << 10},
		{Name: "echo-4k-c64", Connections: 64, Callers: 1, Bytes: 4 << 10},
		{Name: "pipeline-128-16x16", Connections: 16, Callers: 16, Bytes: 128},
		{Name: "shared-128-64", Connections: 1, Callers: 64, Bytes: 128, Shared: true},
		{Name: "shared-128-512", Connections: 1, Callers: 512, Bytes: 128, Shared: true},
		{Name: "slowmix-c64", Connections: 64, Callers: 1, Bytes: 128, SleepShare: 10},
		{Name: "burn-c1000", Connections: 1000, Callers: 1, Bytes: 1 << 10, BurnShare: 1000},
		{Name: "large-1m-c16", Connections: 16, Callers: 1, Bytes: 1 << 20, Large: true},
		{Name: "large-then-small-c100", Connections: 100, Callers: 1, Bytes: 128, FirstBytes: 4 << 20},
		{Name: "idle-10k", Connections: 16, Callers: 1, Bytes: 128, Idle: 10_000},
		{Name: "churn", Connections: 64, Callers: 1, Bytes: 128, Churn: true},
		{Name: "unix-128-c64", Connections: 64, Callers: 1, Bytes: 128, Unix: true},
	}
}

// FindCase returns the case of that name.
func FindCase(name string) (Case, error) {
	for _, c := range Cases() {
		if c.Name == name {
			return c, nil
		}
	}
	return Case{}, fmt.Errorf("suite net: no case %.40q", name)
}

// Load returns what the client is told about a case.
func (c Case) Load() []string {
	var arguments []string
	add := func(name string, value int) {
		if value != 0 {
			arguments = append(arguments, "-"+name, strconv.Itoa(value))
		}
	}
	flag := func(name string, set bool) {
		if set {
			add(name, 1)
		}
	}
	add("connections", c.Connections)
	add("callers", c.Callers)
	add("bytes", c.Bytes)
	add("sleep-share", c.SleepShare)
	add("burn-share", c.BurnShare)
	add("idle", c.Idle)
	add("first-bytes", c.FirstBytes)
	flag("churn", c.Churn)
	flag("megabytes", c.Large)
	if c.Churn {
		add("sources", churnSources)
	}
	return arguments
}

// Serve returns what a server is told about a case, beside its name.
func (c Case) Serve() []string {
	if c.Unix {
		return []string{"-network", "unix"}
	}
	return nil
}
