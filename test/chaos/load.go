package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// caller makes calls that stand in its book. One goroutine at a time uses it.
type caller struct {
	api  chaosapi.ChaosClient
	book *ledger.Book
	// limit is how long a call may take.
	limit time.Duration
	// request is what every call sends, but for its id.
	request chaosapi.Request
	// repeats is how often a call that may have failed is made again, under the
	// same id: its user says that it may run more than once.
	repeats int
	// repeatable: its client makes calls again that may run more than once.
	repeatable bool
	// attempt is how long one of these may take; 0 for as long as the call.
	attempt time.Duration
	// oneway: it waits for no reply.
	oneway bool
	// same, if it is set, looks at each reply.
	same func(*chaosapi.Reply)
}

// callers counts books, so that no two have the same ids.
type callers struct{ n atomic.Int64 }

func (c *callers) book() *ledger.Book { return ledger.NewBook(int(c.n.Add(1))) }

// call makes one call.
func (c *caller) call(ctx context.Context) *ledger.Call {
	id := c.book.Begin(c.repeats > 0 || c.repeatable, c.limit)
	start := time.Now()
	request := c.request
	request.ID = int64(id)
	deadline := start.Add(c.limit)
	request.Deadline = deadline.UnixNano()
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	var before error
	for attempt := 0; ; attempt++ {
		reply, err := c.once(ctx, &request)
		if err != nil && ledger.OutcomeOf(err) != ledger.NotExecuted {
			before = err
		}
		if err != nil && attempt < c.repeats && ctx.Err() == nil {
			pause(ctx, time.Duration(attempt)*5*time.Millisecond)
			continue
		}
		if err != nil && before != nil {
			err = before // The last one did not run; an earlier one may have.
		}
		var replyID uint64
		if reply != nil {
			replyID = uint64(reply.ID)
			if c.same != nil {
				c.same(reply)
			}
		}
		return c.book.End(replyID, time.Since(start), err)
	}
}

// once is one attempt.
func (c *caller) once(ctx context.Context, request *chaosapi.Request) (*chaosapi.Reply, error) {
	if c.attempt > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.attempt)
		defer cancel()
	}
	if c.oneway {
		if err := c.api.Tell(ctx, request); err != nil {
			return nil, err
		}
		// Who has sent it knows no more, and expects that it ran.
		return &chaosapi.Reply{ID: request.ID}, nil
	}
	return c.api.Call(ctx, request)
}

// crowd is callers that make calls at the same time until they are told to stop.
type crowd struct {
	books []*ledger.Book
	stop  context.CancelFunc
	ended sync.WaitGroup
	// made counts calls that have ended.
	made atomic.Int64
}

// gather starts callers. Each makes a call every interval, or as fast as it can.
func gather(ctx context.Context, all []*caller, interval time.Duration) *crowd {
	ctx, stop := context.WithCancel(ctx)
	c := &crowd{stop: stop}
	for _, one := range all {
		c.books = append(c.books, one.book)
		c.ended.Go(func() {
			for ctx.Err() == nil {
				// What was begun is finished.
				one.call(context.WithoutCancel(ctx))
				c.made.Add(1)
				if interval > 0 {
					pause(ctx, interval)
				}
			}
		})
	}
	return c
}

// end stops the callers and returns their books.
func (c *crowd) end() []*ledger.Book {
	c.stop()
	c.ended.Wait()
	return c.books
}

// client returns a client, which closes with the scenario.
func client(closing *closing, config fulmar.ClientConfig) (chaosapi.ChaosClient, error) {
	c, err := fulmar.NewClient(config)
	if err != nil {
		return nil, err
	}
	closing.add(func() { _ = c.Close() })
	return chaosapi.NewChaosClient(c), nil
}

// closing is what is to happen at the end of a scenario, the last one first.
type closing struct{ all []func() }

func (c *closing) add(f func()) { c.all = append(c.all, f) }

func (c *closing) close() {
	for _, f := range slices.Backward(c.all) {
		f()
	}
}

// took returns the times of calls that match, sorted.
func took(books []*ledger.Book, match func(*ledger.Call) bool) []time.Duration {
	var all []time.Duration
	for _, book := range books {
		calls := book.Calls()
		for i := range calls {
			if match(&calls[i]) {
				all = append(all, calls[i].Took)
			}
		}
	}
	slices.Sort(all)
	return all
}

// ended adds how much later than its deadline a call ended: at most 250 ms, if the
// machine has time for it.
func (f *figures) ended(books []*ledger.Book, taken float64) {
	var latest time.Duration
	for _, book := range books {
		for _, call := range book.Calls() {
			latest = max(latest, call.Took-call.Limit)
		}
	}
	f.mostUnlessBusy("after deadline", ms(max(latest, 0)), 250, " ms", taken)
}

// quantile returns one of sorted times, 0 without any.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
