package main

import (
	"context"
	"runtime"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// throughProxy starts a server behind a proxy.
func throughProxy(closing *closing, config fulmar.ServerConfig) (*fleet, *proxy, error) {
	fleet, err := startFleet(closing, 1, config)
	if err != nil {
		return nil, nil, err
	}
	proxy, err := startProxy(fleet.servers[0].Address)
	if err != nil {
		return nil, nil, err
	}
	closing.add(proxy.close)
	return fleet, proxy, nil
}

// protocolCallers returns callers over every protocol, some of which may call again.
func protocolCallers(closing *closing, ids *callers, target string, each int, limit time.Duration, repeats int) (all []*caller, err error) {
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.TTHeaderFramed, fulmar.Framed, fulmar.Bare} {
		api, err := client(closing, fulmar.ClientConfig{Target: target, Protocol: protocol, Timeout: -1})
		if err != nil {
			return nil, err
		}
		for i := range each {
			one := &caller{api: api, book: ids.book(), limit: limit, request: chaosapi.Request{Payload: make([]byte, 200)}}
			if i%2 == 0 {
				one.repeats = repeats
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// resets is S9: all connections are reset every 200 ms.
func resets(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, proxy, err := throughProxy(&closing, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	var ids callers
	all, err := protocolCallers(&closing, &ids, proxy.address(), 4, 5*time.Second, 100)
	if err != nil {
		return seen, err
	}
	quiet := busyMachine()
	crowd := gather(ctx, all, time.Millisecond)
	broken, rounds := 0, 0
	var back []time.Duration
	for begin := time.Now(); time.Since(begin) < size.during(time.Second, 30*time.Second); rounds++ {
		pause(ctx, 200*time.Millisecond)
		broken += proxy.reset()
		start, before := time.Now(), crowd.made.Load()
		// As many as there are callers: those that were told of the reset count too.
		for crowd.made.Load() < before+2*int64(len(all)) && time.Since(start) < time.Second {
			pause(ctx, time.Millisecond)
		}
		back = append(back, time.Since(start))
	}
	books := crowd.end()
	taken := quiet()
	executions, err := fleet.executions()
	if err != nil {
		return seen, err
	}
	verdict := ledger.Judge(books, executions, 0)
	lost := took(books, func(c *ledger.Call) bool { return c.Repeatable && c.Outcome != ledger.Success })
	maybe := took(books, func(c *ledger.Call) bool { return !c.Repeatable && c.Outcome == ledger.Maybe })
	seen.note("resets by a proxy %d of %d connections", rounds, broken)
	seen.note("calls %s", thousands(int64(verdict.Calls)))
	seen.most("lost of those that may repeat", float64(len(lost)), 0, "")
	seen.note("unknown of the others %d", len(maybe))
	longest := time.Duration(0)
	for _, d := range back {
		longest = max(longest, d)
	}
	seen.mostUnlessBusy("calls again within", ms(longest), 100, " ms", taken)
	seen.ended(books, taken)
	seen.judged(verdict)
	return seen, nil
}

// blackhole is S7: peers vanish without a word. Connections are cut in a proxy, which
// keeps them open, and then the server is stopped as a process.
func blackhole(ctx context.Context, size size) (seen figures, err error) {
	before := runtime.NumGoroutine()
	if err := vanish(ctx, size, &seen); err != nil {
		return seen, err
	}
	left := 0
	for range 100 {
		if left = runtime.NumGoroutine() - before; left <= 0 {
			break
		}
		pause(ctx, 50*time.Millisecond)
	}
	seen.most("goroutines left", float64(max(left, 0)), 0, "")
	return seen, nil
}

func vanish(ctx context.Context, size size, seen *figures) error {
	var closing closing
	defer closing.close()
	fleet, proxy, err := throughProxy(&closing, fulmar.ServerConfig{})
	if err != nil {
		return err
	}
	var ids callers
	limit := size.during(400*time.Millisecond, time.Second)
	all, err := protocolCallers(&closing, &ids, proxy.address(), 4, limit, 0)
	if err != nil {
		return err
	}
	quiet := busyMachine()
	crowd := gather(ctx, all, time.Millisecond)
	pause(ctx, 200*time.Millisecond)
	cut := proxy.darken()
	recovered := crowd.recovers(ctx, all)
	seen.note("connections cut %d", cut)
	seen.most("calls again after", recovered.Seconds(), 20, " s")
	fleet.servers[0].signal(syscall.SIGSTOP)
	pause(ctx, size.during(time.Second, 5*time.Second))
	fleet.servers[0].signal(syscall.SIGCONT)
	recovered = crowd.recovers(ctx, all)
	seen.most("after SIGSTOP and SIGCONT", recovered.Seconds(), 20, " s")
	books := crowd.end()
	taken := quiet()
	executions, err := fleet.executions()
	if err != nil {
		return err
	}
	verdict := ledger.Judge(books, executions, 0)
	seen.note("calls %s, unknown %d", thousands(int64(verdict.Calls)), verdict.Maybe)
	seen.ended(books, taken)
	seen.judged(verdict)
	return nil
}

// recovers waits until callers make calls as before: each of them several.
func (c *crowd) recovers(ctx context.Context, all []*caller) time.Duration {
	start := time.Now()
	for time.Since(start) < 30*time.Second && ctx.Err() == nil {
		before := c.made.Load()
		pause(ctx, 100*time.Millisecond)
		if c.made.Load()-before > int64(5*len(all)) {
			return time.Since(start) - 100*time.Millisecond
		}
	}
	return time.Since(start)
}

// loss is S8: packets get lost, and the link is slow.
func loss(ctx context.Context, size size) (seen figures, err error) {
	for _, test := range []struct {
		per10000 int64
		least    float64
	}{{100, 99.99}, {500, 99.9}} {
		if err := lossAt(ctx, size, &seen, test.per10000, test.least); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

func lossAt(ctx context.Context, size size, seen *figures, per10000 int64, least float64) error {
	var closing closing
	defer closing.close()
	fleet, proxy, err := throughProxy(&closing, fulmar.ServerConfig{})
	if err != nil {
		return err
	}
	proxy.lossPer10000.Store(per10000)
	proxy.bandwidth.Store(10_000_000 / 8)
	var ids callers
	all, err := protocolCallers(&closing, &ids, proxy.address(), 4, time.Second, 3)
	if err != nil {
		return err
	}
	for _, one := range all {
		// Longer than one lost packet takes, so that the second attempt has time too.
		one.repeats, one.attempt = 3, 400*time.Millisecond
	}
	quiet := busyMachine()
	crowd := gather(ctx, all, 10*time.Millisecond)
	pause(ctx, size.during(2*time.Second, 20*time.Second))
	books := crowd.end()
	executions, err := fleet.executions()
	if err != nil {
		return err
	}
	verdict := ledger.Judge(books, executions, 0)
	taken := quiet()
	seen.note("with %g %% late by %v at 10 Mbit/s: calls %s, late pieces %d", float64(per10000)/100, resendTime, thousands(int64(verdict.Calls)), proxy.lost.Load())
	succeeded := float64(verdict.Succeeded) / float64(verdict.Calls) * 100
	seen.unlessBusy(taken, func(f *figures) { f.least("succeeded", succeeded, least, " %") })
	seen.judged(verdict)
	return nil
}
