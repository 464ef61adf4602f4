package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// stopGrace is how long a stopping server serves what was on its way to it (StopGrace).
const stopGrace = time.Second

// longRestarts is the part of S11 with handlers that take nine seconds: servers that run
// them all at once, and servers that let most of them wait for others.
func longRestarts(ctx context.Context, size size, seen *figures) error {
	var both sync.WaitGroup
	var results [2]longResult
	nap := size.during(900*time.Millisecond, 9*time.Second)
	for i, config := range []fulmar.ServerConfig{
		{},
		// Those who wait are patient, and so is the stop.
		{MaxRunningCalls: 1, MaxQueueTime: -1, DrainTimeout: 2 * time.Minute},
	} {
		both.Go(func() { results[i].err = results[i].run(ctx, size, config, nap) })
	}
	both.Wait()
	for i, name := range []string{"handlers of %.2g s", "and calls that wait for them"} {
		r := results[i]
		if r.err != nil {
			return r.err
		}
		if i == 0 {
			name = fmt.Sprintf(name, nap.Seconds())
		}
		seen.note("%s: calls %s, %s long ones of up to %.3g s", name, thousands(int64(r.verdict.Calls)), thousands(int64(r.long)), r.longest.Seconds())
		seen.most("failed", float64(r.verdict.Failed()), 0, "")
		// A call that was on its way has run for so much less when the stop began.
		seen.mostUnlessBusy("stop", r.stop.Seconds(), (r.longest + stopGrace).Seconds(), " s", r.taken)
		seen.judged(r.verdict)
		seen.examples(r.books)
	}
	seen.least("calls that waited for a place", float64(results[1].waited), 1, "")
	return nil
}

// longResult is what restarts with long calls were like.
type longResult struct {
	verdict       ledger.Verdict
	books         []*ledger.Book
	long, waited  int
	longest, stop time.Duration
	taken         float64
	err           error
}

func (r *longResult) run(ctx context.Context, size size, config fulmar.ServerConfig, nap time.Duration) error {
	var closing closing
	defer closing.close()
	fleet, err := startFleet(&closing, 3, config)
	if err != nil {
		return err
	}
	var ids callers
	quick, slow, err := kinds(&closing, &ids, fleet.target(), 3)
	if err != nil {
		return err
	}
	all := quick
	if config.MaxRunningCalls == 0 {
		// Oneway calls wait for nothing, so where few may run they would fill the queue.
		all = append(all, slow...)
	}
	for i, one := range all {
		one.limit = 2 * time.Minute
		if i%2 == 0 && !one.oneway {
			one.request.Nap = int32(nap / time.Microsecond)
		}
	}
	quiet := busyMachine()
	crowd := gather(ctx, all, 20*time.Millisecond)
	for i := range fleet.servers {
		// Its handlers are at different places by then.
		pause(ctx, nap/3)
		stop, err := fleet.servers[i].stop(2 * time.Minute)
		if err != nil {
			return fmt.Errorf("server %d: %w", i, err)
		}
		r.stop = max(r.stop, stop)
		if err := fleet.restart(i, config); err != nil {
			return err
		}
	}
	r.books = crowd.end()
	r.taken = quiet()
	for i, server := range fleet.servers {
		if _, err := server.stop(2 * time.Minute); err != nil {
			return fmt.Errorf("server %d at the end: %w", i, err)
		}
	}
	executions, err := fleet.executions()
	if err != nil {
		return err
	}
	r.verdict = ledger.Judge(r.books, executions, 0)
	long := took(r.books, func(c *ledger.Call) bool { return c.Took >= nap })
	waiting := took(r.books, func(c *ledger.Call) bool { return c.Took > nap+nap/10 })
	r.long, r.waited, r.longest = len(long), len(waiting), quantile(long, 1)
	return nil
}
