package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// cancels is S15: clients give up ten thousand calls a second, at any moment, and go on
// with the next ones over the same connections. Another client makes calls meanwhile. Those
// who abuse HTTP/2 so are in S20.
func cancels(ctx context.Context, size size) (seen figures, err error) {
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.GRPC} {
		if err := cancelStorm(ctx, size, &seen, protocol); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

func cancelStorm(ctx context.Context, size size, seen *figures, protocol fulmar.Protocol) error {
	var closing closing
	defer closing.close()
	const running = 100
	fleet, err := startFleet(&closing, 1, fulmar.ServerConfig{MaxCalls: running})
	if err != nil {
		return err
	}
	var ids callers
	honest := func() (all []*caller, err error) {
		api, err := client(&closing, fulmar.ClientConfig{Target: fleet.servers[0].Address, Protocol: protocol})
		for range 4 {
			all = append(all, &caller{api: api, book: ids.book(), limit: time.Second, request: chaosapi.Request{Nap: 300}})
		}
		return all, err
	}
	all, err := honest()
	if err != nil {
		return err
	}
	quiet := busyMachine()
	before := gather(ctx, all, 3*time.Millisecond)
	pause(ctx, size.during(500*time.Millisecond, 3*time.Second))
	undisturbed := before.end()
	normal := quantile(took(undisturbed, func(*ledger.Call) bool { return true }), 0.99)
	impatient, err := client(&closing, fulmar.ClientConfig{Target: fleet.servers[0].Address, Protocol: protocol})
	if err != nil {
		return err
	}
	if all, err = honest(); err != nil {
		return err
	}
	crowd := gather(ctx, all, 3*time.Millisecond)
	calm := fleet.servers[0].residentBytes()
	storm := startStorm(ctx, impatient, 10_000)
	pause(ctx, size.during(500*time.Millisecond, 5*time.Second))
	memory := fleet.servers[0].residentBytes()
	pause(ctx, size.during(500*time.Millisecond, 15*time.Second))
	after := fleet.servers[0].residentBytes()
	given, seconds := storm()
	books := crowd.end()
	taken := quiet()
	// A call of the impatient client works when the storm is over.
	if _, err := impatient.Call(ctx, &chaosapi.Request{}); err != nil {
		return err
	}
	peak, err := impatient.Peak(ctx)
	if err != nil {
		return err
	}
	executions, err := fleet.executions()
	if err != nil {
		return err
	}
	verdict := ledger.Judge(append(undisturbed, books...), executions, 0)
	seen.note("%v: given up %s", protocol, thousands(given))
	seen.unlessBusy(taken, func(f *figures) { f.least("in a second", float64(given)/seconds, 8000, "") })
	// Where all stand still for 10 ms a hundred calls are there at once, and one more is refused.
	seen.tailUnlessBusy("failed of the others", float64(verdict.Failed()), 0, "", taken)
	p99 := quantile(took(books, func(*ledger.Call) bool { return true }), 0.99)
	// Twice, and what two processors that three programs share need.
	seen.tailUnlessBusy("p99", ms(p99), 2*ms(normal)+2, " ms", taken)
	seen.most("handlers at a time", float64(peak), running, "")
	seen.most("memory grown by", mib(after-calm), 16, " MiB")
	seen.most("of that behind the first quarter", mib(after-memory), 4, " MiB")
	seen.judged(verdict)
	return nil
}

// startStorm makes calls that are given up at some moment of their way, so many in a second,
// until what it returns is called, which says how many there were in how many seconds.
func startStorm(ctx context.Context, api chaosapi.ChaosClient, perSecond int) (end func() (given int64, seconds float64)) {
	const workers = 20
	ctx, stop := context.WithCancel(ctx)
	var given atomic.Int64
	var ended sync.WaitGroup
	begin := time.Now()
	for range workers {
		ended.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				within, cancel := context.WithCancel(ctx)
				timer := time.AfterFunc(time.Duration(rand.IntN(1500))*time.Microsecond, cancel)
				if _, err := api.Call(within, &chaosapi.Request{Nap: 2000}); err != nil {
					given.Add(1)
				}
				timer.Stop()
				cancel()
				if due := begin.Add(time.Duration(n) * time.Second * workers / time.Duration(perSecond)); time.Until(due) > 0 {
					pause(ctx, time.Until(due))
				}
			}
		})
	}
	return func() (int64, float64) {
		seconds := time.Since(begin).Seconds()
		stop()
		ended.Wait()
		return given.Load(), seconds
	}
}
