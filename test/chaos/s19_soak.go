package main

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// longSoak is from where on S19 says something about drift.
const longSoak = 10 * time.Minute

// soak is S19: connections come and go, with TLS and without, calls are given up, and
// servers restart.
func soak(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, config, err := mixedFleet(&closing)
	if err != nil {
		return seen, err
	}
	files := config.TLS.Files
	goroutines := runtime.NumGoroutine()
	quiet := busyMachine()
	crowd := startChurn(ctx, fleet.servers[1].Address, fulmar.ClientTLS{Files: files})
	defer crowd.end()
	total := size.during(6*time.Second, time.Minute)
	if size.soak > 0 {
		total = size.soak
	}
	pause(ctx, total/3)
	first := fleet.servers[1].residentBytes()
	files1 := fleet.servers[1].descriptors()
	var longest time.Duration
	for range 4 {
		// The other one, which nobody calls, restarts.
		took, err := fleet.servers[0].stop(10 * time.Second)
		if err != nil {
			return seen, err
		}
		longest = max(longest, took)
		if err := fleet.restart(0, config); err != nil {
			return seen, err
		}
		pause(ctx, total/6)
	}
	last := fleet.servers[1].residentBytes()
	books := crowd.end()
	taken := quiet()
	pause(ctx, 500*time.Millisecond)
	executions, err := fleet.executions()
	if err != nil {
		return seen, err
	}
	verdict := ledger.Judge(books, executions, 0)
	left := 0
	for range 100 {
		if left = runtime.NumGoroutine() - goroutines; left <= 2 {
			break
		}
		pause(ctx, 50*time.Millisecond)
	}
	seen.note("%.0f s, clients %s (%.0f a second), calls %s", total.Seconds(), thousands(int64(len(books))), float64(len(books))/total.Seconds(), thousands(int64(verdict.Calls)))
	grown := 4.0
	if total >= longSoak {
		grown = total.Minutes() / longSoak.Minutes() * 2 / 3
	}
	seen.most("memory in the last two thirds", mib(last-first), grown, " MiB")
	seen.most("descriptors more than before", float64(fleet.servers[1].descriptors()-files1), 2, "")
	seen.most("goroutines more than before", float64(left), 2, "")
	seen.drift(books, total, taken)
	seen.note("longest stop %.2g s", longest.Seconds())
	seen.judged(verdict)
	return seen, nil
}

// mixedFleet is two servers that speak with TLS and without.
func mixedFleet(closing *closing) (*fleet, fulmar.ServerConfig, error) {
	config := fulmar.ServerConfig{TLS: fulmar.ServerTLS{AllowPlaintext: true}}
	s, err := newSecured(closing)
	if err != nil {
		return nil, config, err
	}
	own, err := s.authority.issue(nil)
	if err != nil {
		return nil, config, err
	}
	if config.TLS.Files, err = store(s.folder, "server", own, s.authority); err != nil {
		return nil, config, err
	}
	fleet, err := startFleet(closing, 2, config)
	return fleet, config, err
}

// drift adds how much slower calls are in the last third than in the first.
func (f *figures) drift(books []*ledger.Book, total time.Duration, taken float64) {
	answered := func(c *ledger.Call) bool { return c.Outcome == ledger.Success }
	third := len(books) / 3
	before := quantile(took(books[:third], answered), 0.99)
	after := quantile(took(books[len(books)-third:], answered), 0.99)
	drift := (float64(after)/float64(before) - 1) * 100
	if total < longSoak {
		f.note("p99 %.3g ms, then %.3g ms", ms(before), ms(after))
		return
	}
	f.mostUnlessBusy("p99 more than in the first third", drift, 10, " %", taken)
}

// churn is clients that come, make a few calls, and go.
type churn struct {
	stop  context.CancelFunc
	ended sync.WaitGroup
	ids   callers
	mu    sync.Mutex
	books []*ledger.Book
}

func startChurn(ctx context.Context, target string, secure fulmar.ClientTLS) *churn {
	ctx, stop := context.WithCancel(ctx)
	c := &churn{stop: stop}
	for i := range 4 {
		c.ended.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				config := fulmar.ClientConfig{Target: target, Protocol: fourProtocols()[n%4], Timeout: -1, ConnectTimeout: 5 * time.Second}
				if n%3 == 0 {
					config.TLS = secure
				}
				c.one(config, n%8 == i)
				pause(ctx, 20*time.Millisecond)
			}
		})
	}
	return c
}

// one is a client; its caller may give up before the answers come.
func (c *churn) one(config fulmar.ClientConfig, givesUp bool) {
	one, err := fulmar.NewClient(config)
	if err != nil {
		return
	}
	caller := &caller{api: chaosapi.NewChaosClient(one), book: c.ids.book(), limit: 5 * time.Second, request: chaosapi.Request{Payload: make([]byte, 1000)}}
	if givesUp {
		caller.limit, caller.request.Nap = 10*time.Millisecond, 50_000
	}
	for range 4 {
		caller.call(context.Background())
	}
	_ = one.Close()
	c.mu.Lock()
	c.books = append(c.books, caller.book)
	c.mu.Unlock()
}

func (c *churn) end() []*ledger.Book {
	c.stop()
	c.ended.Wait()
	return c.books
}
