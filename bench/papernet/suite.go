// Package papernet is the suite paper-net: what the article about Kitex claims of
// its network library, as variants of one piece of code that differ in one thing
// each. None of them is part of eventloop. docs/guide/network-figures.md sets the
// article's figures beside those measured.
package papernet

import (
	"fmt"
	"strings"

	"github.com/fulmar-rpc/fulmar/bench/harness"
)

// The variants, named as in the article where it has a name for them.
const (
	// How the goroutine that polls waits: in the call epoll_wait with msec 0 or
	// -1, and as a loop that always has -1, that switches to 0 after an event, that
	// also yields before it blocks, and as Netpoll's own does it.
	Msec0         = "msec=0"
	MsecBlock     = "msec=-1"
	Msec0Raw      = "msec=0-raw"
	MsecBlockRaw  = "msec=-1-raw"
	Switch        = "msec-switch"
	SwitchGosched = "msec-switch-gosched"
	SwitchRaw     = "msec-switch-gosched-raw"

	// How the connection of an event is found.
	Pointer        = "pointer"
	FDMap          = "fd-map"
	FDSyncMap      = "fd-sync-map"
	SlotGeneration = "slot-generation"

	// Where memory for messages comes from.
	PoolBySize  = "pool-by-size"
	OnePool     = "one-pool"
	OnePoolCap  = "one-pool-8k"
	WithoutPool = "no-pool"

	// How a piece gets into a message.
	Insert = "insert"
	Copy   = "copy"
)

// The cases. Those of inserting are called InsertPrefix and a size.
const (
	EpollWait     = "epoll-wait"
	MsecSwitching = "msec-switching"
	EpollData     = "epoll-data"
	EpollDataFind = "epoll-data-find"
	Pools         = "pools"
	InsertPrefix  = "insert-"
)

// insertSizes are in KiB.
func insertSizes() []int { return []int{1, 2, 4, 8, 16, 32, 64} }

// InsertBytes returns how long the piece is in a case of inserting.
func InsertBytes(name string) (int, error) {
	for _, size := range insertSizes() {
		if name == insertCase(size) {
			return size << 10, nil
		}
	}
	return 0, fmt.Errorf("suite paper-net: no case %.40q with a piece", name)
}

func insertCase(size int) string { return fmt.Sprintf("%s%dk", InsertPrefix, size) }

// load is what the client does in the cases with servers.
const load = "-connections 64 -callers 1 -bytes 128"

// Suite describes the suite to the runner.
func Suite() harness.Suite {
	suite := harness.Suite{
		Name: "paper-net",
		// One processor for the server shows what its goroutines cost each other
		// without what it costs to wake a second processor, which the article's
		// machines never had to do: theirs were busy.
		Deciding: harness.Pinned,
		Programs: []harness.Program{{Module: "bench", Package: "papernet/variants", Contestants: []string{
			Msec0, MsecBlock, Msec0Raw, MsecBlockRaw, Switch, SwitchGosched, SwitchRaw,
			Pointer, FDMap, FDSyncMap, SlotGeneration,
			PoolBySize, OnePool, OnePoolCap, WithoutPool,
			Insert, Copy,
		}}},
		Client: harness.Program{Module: "bench", Package: "net/client.c"},
		Cases:  append(servers(), repeated()...),
	}
	for _, size := range insertSizes() {
		c := harness.Case{Name: insertCase(size), Repeats: true, Pairs: harness.Against(Insert, Copy)}
		if size == 4 || size == 16 { // Where Netpoll begins to insert, and where the server of suite net does.
			c.Quick = c.Pairs
		}
		suite.Cases = append(suite.Cases, c)
	}
	return suite
}

// servers are the cases in which a client makes calls.
func servers() []harness.Case {
	cases := []harness.Case{
		{
			Name:  MsecSwitching,
			Pairs: append(harness.Against(SwitchGosched, Switch, MsecBlock), harness.Pair{Ours: Switch, Peer: MsecBlock}, harness.Pair{Ours: SwitchRaw, Peer: SwitchGosched}),
			Quick: harness.Against(SwitchGosched, Switch),
			Published: map[string]string{
				Switch: "no significant gain", SwitchGosched: "calls/s +12 %, p99 -64 %",
			},
		},
		{
			Name:  EpollData,
			Pairs: append(harness.Against(Pointer, FDMap, FDSyncMap), harness.Against(SlotGeneration, FDMap, Pointer)...),
			Quick: harness.Against(Pointer, FDMap),
			Published: map[string]string{
				Pointer: "calls/s +10 %, p99 -10 %",
			},
		},
	}
	for i := range cases {
		cases[i].Load = strings.Fields(load)
	}
	return cases
}

// repeated are the cases that repeat an operation, but for those of inserting.
func repeated() []harness.Case {
	return []harness.Case{
		{
			Name: EpollWait, Repeats: true,
			Pairs:     []harness.Pair{{Ours: Msec0, Peer: MsecBlock}, {Ours: Msec0Raw, Peer: MsecBlockRaw}, {Ours: Msec0Raw, Peer: MsecBlock}},
			Quick:     harness.Against(Msec0, MsecBlock),
			Published: map[string]string{Msec0: "270 ns", MsecBlock: "328 ns"},
		},
		{
			Name: EpollDataFind, Repeats: true,
			Pairs: append(harness.Against(Pointer, FDMap, FDSyncMap), harness.Against(SlotGeneration, FDMap, Pointer)...),
			Quick: harness.Against(Pointer, FDMap),
		},
		{
			Name: Pools, Repeats: true,
			Pairs:     append(harness.Against(PoolBySize, OnePool, OnePoolCap, WithoutPool), harness.Pair{Ours: OnePool, Peer: OnePoolCap}),
			Quick:     harness.Against(PoolBySize, OnePool, OnePoolCap),
			Published: map[string]string{PoolBySize: "less allocation and GC", OnePoolCap: "large not reused"},
		},
	}
}
