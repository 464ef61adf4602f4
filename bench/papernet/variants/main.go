//go:build linux

// Command variants runs the variants of suite paper-net: small servers that
// differ in how they poll or find connections, and operations that are repeated.
package main

import (
	"context"
	"fmt"
	"net"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/papernet"
)

func main() { contestant.Main(contestants()...) }

func contestants() []contestant.Contestant {
	var all []contestant.Contestant
	for _, w := range waits() {
		all = append(all, waitContestant(w))
	}
	for _, l := range loops() {
		if l.name == papernet.MsecBlock {
			continue // It is one of waits.
		}
		c := contestant.Contestant{Name: l.name, Serve: serveCase(papernet.MsecSwitching, l, newSlots)}
		all = append(all, c)
	}
	for _, d := range directories() {
		all = append(all, contestant.Contestant{
			Name:   d.name,
			Serve:  serveCase(papernet.EpollData, loopOf(papernet.SwitchGosched), d.make),
			Repeat: repeatCase(papernet.EpollDataFind, func() (contestant.Repeat, error) { return finding(d.make()), nil }),
		})
	}
	for _, p := range pools() {
		all = append(all, contestant.Contestant{
			Name:   p.name,
			Repeat: repeatCase(papernet.Pools, func() (contestant.Repeat, error) { return pooling(p.make()), nil }),
		})
	}
	return append(all, pieceContestant(papernet.Insert, true), pieceContestant(papernet.Copy, false))
}

// waitContestant repeats a system call, and is a server where its name is one of
// a loop too.
func waitContestant(w wait) contestant.Contestant {
	c := contestant.Contestant{Name: w.name, Repeat: repeatCase(papernet.EpollWait, w.repeat)}
	if w.name == papernet.MsecBlock {
		c.Serve = serveCase(papernet.MsecSwitching, loopOf(w.name), newSlots)
	}
	return c
}

func pieceContestant(name string, insert bool) contestant.Contestant {
	return contestant.Contestant{Name: name, Repeat: func(caseName string) (contestant.Repeat, error) {
		size, err := papernet.InsertBytes(caseName)
		if err != nil {
			return contestant.Repeat{}, err
		}
		return writing(size, insert)
	}}
}

// serveCase and repeatCase refuse cases that a contestant is not in.
func serveCase(want string, l loop, make func() directory) func(context.Context, net.Listener, contestant.Played) error {
	return func(ctx context.Context, listener net.Listener, played contestant.Played) error {
		if played.Case != want {
			return fmt.Errorf("suite paper-net: no server for case %.40q", played.Case)
		}
		return serve(ctx, listener, l, make())
	}
}

func repeatCase(want string, prepare func() (contestant.Repeat, error)) func(string) (contestant.Repeat, error) {
	return func(name string) (contestant.Repeat, error) {
		if name != want {
			return contestant.Repeat{}, fmt.Errorf("suite paper-net: nothing to repeat for case %.40q", name)
		}
		return prepare()
	}
}
