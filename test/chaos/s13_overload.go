package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// overloaded is a server on one processor whose calls take a millisecond of it,
// and clients on the other one.
type overloaded struct {
	server  *process
	clients []chaosapi.ChaosClient
	ids     callers
	burn    int32
	limit   time.Duration
}

// flood makes calls at a rate, whatever becomes of them, and returns their books.
func (o *overloaded) flood(ctx context.Context, rate float64, during time.Duration) (books []*ledger.Book, unmade int) {
	const most = 20_000 // calls at a time
	var inFlight atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for made := 0; time.Since(begin) < during && ctx.Err() == nil; {
		for due := int(rate * time.Since(begin).Seconds()); made < due; made++ {
			if inFlight.Load() >= most {
				unmade++
				continue
			}
			one := &caller{api: o.clients[made%len(o.clients)], book: o.ids.book(), limit: o.limit, request: chaosapi.Request{Burn: o.burn}}
			books = append(books, one.book)
			inFlight.Add(1)
			all.Go(func() {
				defer inFlight.Add(-1)
				one.call(context.WithoutCancel(ctx))
			})
		}
		<-ticker.C
	}
	all.Wait()
	return books, unmade
}

// peak makes as many calls as the server can take.
func (o *overloaded) peak(ctx context.Context, during time.Duration) (perSecond float64, books []*ledger.Book) {
	var all []*caller
	for i := range 4 {
		all = append(all, &caller{api: o.clients[i%len(o.clients)], book: o.ids.book(), limit: 5 * time.Second, request: chaosapi.Request{Burn: o.burn}})
	}
	begin := time.Now()
	crowd := gather(ctx, all, 0)
	pause(ctx, during)
	books = crowd.end()
	return float64(crowd.made.Load()) / time.Since(begin).Seconds(), books
}

// startOverloaded starts it, the server on processor 0.
func startOverloaded(closing *closing, config fulmar.ServerConfig) (*overloaded, string, error) {
	folder, remove, err := scratch()
	if err != nil {
		return nil, "", err
	}
	closing.add(remove)
	config.Address = "127.0.0.1:0"
	o := &overloaded{burn: 1000, limit: time.Second}
	if o.server, err = start(role{Journal: folder("journal"), Config: config}, nil, "taskset", "-c", "0"); err != nil {
		return nil, "", err
	}
	closing.add(o.server.kill)
	for range 4 {
		api, err := client(closing, fulmar.ClientConfig{Target: o.server.Address, Timeout: -1})
		if err != nil {
			return nil, "", err
		}
		o.clients = append(o.clients, api)
	}
	return o, folder("journal"), nil
}

// overload is S13: calls come at 2 and at 10 times the rate that a server can
// take.
func overload(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	o, journal, err := startOverloaded(&closing, fulmar.ServerConfig{MaxRunningCalls: 1})
	if err != nil {
		return seen, err
	}
	err = pinned(1, func() error { return o.measure(ctx, size, journal, &seen) })
	return seen, err
}

func (o *overloaded) measure(ctx context.Context, size size, journal string, seen *figures) error {
	quiet := busyMachine()
	before := o.server.share()
	peak, books := o.peak(ctx, size.during(time.Second, 5*time.Second))
	after := o.server.share()
	_, taken := after.since(before)
	taken = max(taken, quiet())
	// A second is one in which the server ran: where others take the processor, or
	// that of the clients, it could make more calls than it does.
	perSecond := float64(len(took(books, func(*ledger.Call) bool { return true }))) / (after.ran - before.ran).Seconds()
	steady := o.server.residentBytes()
	seen.note("peak %.0f calls/s (of all time %.0f)", perSecond, peak)
	for _, times := range []float64{2, 10} {
		quiet = busyMachine()
		before := o.server.share()
		flood, unmade := o.flood(ctx, times*perSecond, size.during(time.Second, 30*time.Second))
		var usable time.Duration
		usable, taken = o.server.share().since(before)
		taken = max(taken, quiet())
		books = append(books, flood...)
		served := took(flood, func(c *ledger.Call) bool { return c.Outcome == ledger.Success })
		refused := took(flood, isRefused)
		others := len(flood) - len(served) - len(refused)
		seen.note("at %gx", times)
		goodput := float64(len(served)) / usable.Seconds() / perSecond * 100
		seen.unlessBusy(taken, func(f *figures) { f.least("goodput", goodput, 90, " %") })
		seen.note("served p99 %.3g ms", ms(quantile(served, 0.99)))
		seen.note("refused %s", thousands(int64(len(refused))))
		seen.note("within p50 %.3g ms", ms(quantile(refused, 0.5)))
		seen.tailUnlessBusy("within p99", ms(quantile(refused, 0.99)), 5, " ms", taken)
		seen.note("other failures %d, not made %d, others had the processors for %.0f %%", others, unmade, taken*100)
		if others > 0 {
			for _, book := range flood {
				if call := book.Calls()[0]; call.Err != nil && !isRefused(&call) {
					seen.note("such as %q", call.Err.Error())
					break
				}
			}
		}
	}
	seen.mostUnlessBusy("RSS", float64(o.server.peakBytes())/float64(steady), 2, "x steady", taken)
	recovery, calm := o.recovery(ctx)
	seen.mostUnlessBusy("recovery", recovery.Seconds(), 5, " s", taken)
	books = append(books, calm...)
	var executions ledger.Executions
	if err := executions.Read(journal); err != nil {
		return err
	}
	// What waits in the kernel while others run has no time of arrival.
	seen.mostUnlessBusy("expired and run", float64(executions.Expired), 0, "", taken)
	seen.judged(ledger.Judge(books, &executions, 0))
	return nil
}

// isRefused reports whether the server had no room for a call.
func isRefused(c *ledger.Call) bool {
	var e *fulmar.Error
	return c.Outcome == ledger.NotExecuted && errors.As(c.Err, &e) && e.Code() == fulmar.ResourceExhausted
}

// recovery returns how long it takes until 100 calls in a row are as quick as
// without load.
func (o *overloaded) recovery(ctx context.Context) (time.Duration, []*ledger.Book) {
	one := &caller{api: o.clients[0], book: o.ids.book(), limit: time.Second, request: chaosapi.Request{Burn: o.burn}}
	begin := time.Now()
	var since time.Duration
	for good := 0; good < 100 && time.Since(begin) < 10*time.Second; good++ {
		if call := one.call(ctx); call.Outcome != ledger.Success || call.Took > 20*time.Millisecond {
			good, since = 0, time.Since(begin)
		}
	}
	return since, []*ledger.Book{one.book}
}
