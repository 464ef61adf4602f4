// Package rpc is the suite rpc: echo calls through whole RPC frameworks, server
// and client in processes of their own.
//
// A contestant supplies a server, and a client that makes calls; the data, the
// check of every reply and the loops around the calls are the same for all.
package rpc

import (
	"fmt"
	"slices"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/harness"
)

// Case is one measured situation.
type Case struct {
	Name string
	// Callers make calls at the same time.
	Callers int
	// Shared tells contestants that can do both to carry the calls of all
	// callers on few connections: as many as each opens by default, or where
	// there is no default as its documentation proposes. That is up to four for
	// Fulmar (two with 100 callers), two for Kitex, one for gRPC and arpc.
	// Otherwise every caller has its own, which carries one call at a time.
	Shared bool
	// MessageBytes is the length of the text in a request. 0 means the struct
	// Complex of about 11 KB.
	MessageBytes int
	// Items is how many short structs there are in a Complex; 0 means that of 11 KB.
	Items int
	// Hop means that there is a gateway between client and server, in the process of the
	// server.
	Hop bool
	// Oneway means calls without replies. The server compares what arrives with
	// what was sent, and counts it.
	Oneway bool
	// Stream means calls with more than one message.
	Stream Stream
	// TTHeader tells that streams are of Thrift over TTHeader, not of gRPC.
	TTHeader bool
	// Unix means a Unix socket, and TLS that connections are secure.
	Unix, TLS bool
	// Local means that client and server are one process, without sockets.
	Local bool
	// Idle is how many connections are silent after one call each, beside those of
	// Callers, until all of them call at the same time.
	Idle int
	// Overload is how many times the load that can be carried is offered. Handlers
	// burn processor time, and callers wait for Timeout at most.
	Overload float64
	Timeout  time.Duration
}

// Cases returns the cases of the suite.
func Cases() []Case {
	return []Case{
		{Name: "pingpong-1k-c1", Callers: 1, MessageBytes: 1 << 10},
		{Name: "pingpong-1k-c100", Callers: 100, MessageBytes: 1 << 10},
		{Name: "pingpong-128-c100", Callers: 100, MessageBytes: 128},
		{Name: "pingpong-32k-c16", Callers: 16, MessageBytes: 32 << 10},
		{Name: "pingpong-1m-c4", Callers: 4, MessageBytes: 1 << 20},
		{Name: "mux-1k-c1", Callers: 1, Shared: true, MessageBytes: 1 << 10},
		{Name: "mux-1k-c8", Callers: 8, Shared: true, MessageBytes: 1 << 10},
		{Name: "mux-1k-c100", Callers: 100, Shared: true, MessageBytes: 1 << 10},
		{Name: "mux-1k-c512", Callers: 512, Shared: true, MessageBytes: 1 << 10},
		{Name: "mux-128-c64", Callers: 64, Shared: true, MessageBytes: 128},
		{Name: "complex-c100", Callers: 100},
		{Name: "oneway-1k-c100", Callers: 100, MessageBytes: 1 << 10, Oneway: true},
		{Name: "unix-1k-c100", Callers: 100, MessageBytes: 1 << 10, Unix: true},
		{Name: "tls-1k-c100", Callers: 100, MessageBytes: 1 << 10, TLS: true},
		{Name: "local", Callers: 1, MessageBytes: 1 << 10, Local: true},
		{Name: "idle-10k", Callers: 16, MessageBytes: 128, Idle: 10_000},
		OverloadCases()[0],
	}
}

// FindCase returns the case of that name.
func FindCase(name string) (Case, error) {
	for _, c := range slices.Concat(Cases(), OverloadCases(), ViewCases(), GRPCCases(), StreamCases()) {
		if c.Name == name {
			return c, nil
		}
	}
	return Case{}, fmt.Errorf("suites rpc, governance, view, grpc and stream: no case %.40q", name)
}

// serve returns what a server is told about a case, beside its name.
func (c Case) serve() []string {
	if c.Unix {
		return []string{"-network", "unix"}
	}
	return nil
}

// open says where latencies are measured: not of calls that end when they are
// sent, of one caller without a network, and where all call at once.
func (c Case) open() harness.OpenLoops {
	if c.Oneway || c.Local || c.Idle > 0 {
		return harness.OpenNever
	}
	return harness.OpenAlways
}

// kind is what the runner is told about the figures.
func (c Case) kind() harness.Kind {
	if c.Idle > 0 {
		return harness.Idle
	}
	if c.Overload > 0 {
		return harness.Overload
	}
	return ""
}
