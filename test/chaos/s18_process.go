package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// panics is S18: handlers panic and end their goroutines.
func panics(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	// A place that is not given back is missed soon.
	fleet, err := startFleet(&closing, 1, fulmar.ServerConfig{MaxCalls: 40, MaxRunningCalls: 20})
	if err != nil {
		return seen, err
	}
	server := fleet.servers[0]
	before, wrong, made := server.residentBytes(), 0, 0
	each := size.of(40, 1250)
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.Framed} {
		api, err := client(&closing, fulmar.ClientConfig{Target: server.Address, Protocol: protocol})
		if err != nil {
			return seen, err
		}
		for _, how := range []string{"panic", "nil", "goexit", "error"} {
			want := fulmar.Internal
			if how == "error" && protocol == fulmar.TTHeader {
				want = fulmar.Unknown
			}
			all.Go(func() {
				for range each {
					err := api.Misbehave(ctx, how)
					mu.Lock()
					made++
					if fulmar.CodeOf(err) != want {
						wrong++
					}
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	seen.note("calls %s", thousands(int64(made)))
	seen.most("with another error", float64(wrong), 0, "")
	seen.most("memory", mib(server.residentBytes()-before), 32, " MiB")
	return seen, alive(ctx, &closing, server.Address, &seen)
}

// soak is S19, in a minute: connections come and go, calls are given up, servers
// restart.
func soak(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, err := startFleet(&closing, 2, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	goroutines := runtime.NumGoroutine()
	crowd := startChurn(ctx, fleet.servers[1].Address)
	defer crowd.end()
	total := size.during(6*time.Second, time.Minute)
	pause(ctx, total/3)
	first := fleet.servers[1].residentBytes()
	files := fleet.servers[1].descriptors()
	var longest time.Duration
	for range 4 {
		// The other one, which nobody calls, restarts.
		took, err := fleet.servers[0].stop(10 * time.Second)
		if err != nil {
			return seen, err
		}
		longest = max(longest, took)
		if err := fleet.restart(0, fulmar.ServerConfig{}); err != nil {
			return seen, err
		}
		pause(ctx, total/6)
	}
	last := fleet.servers[1].residentBytes()
	books := crowd.end()
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
	seen.note("%.0f s, clients %s, calls %s", total.Seconds(), thousands(int64(len(books))), thousands(int64(verdict.Calls)))
	seen.most("memory in the last two thirds", mib(last-first), 4, " MiB")
	seen.most("descriptors more than before", float64(fleet.servers[1].descriptors()-files), 2, "")
	seen.most("goroutines more than before", float64(left), 2, "")
	seen.note("longest stop %.2g s", longest.Seconds())
	seen.judged(verdict)
	return seen, nil
}

// churn is clients that come, make a few calls, and go.
type churn struct {
	stop  context.CancelFunc
	ended sync.WaitGroup
	ids   callers
	mu    sync.Mutex
	books []*ledger.Book
}

func startChurn(ctx context.Context, target string) *churn {
	ctx, stop := context.WithCancel(ctx)
	c := &churn{stop: stop}
	for i := range 4 {
		c.ended.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				c.one(target, []fulmar.Protocol{fulmar.TTHeader, fulmar.Framed}[n%2], n%8 == i)
				pause(ctx, 20*time.Millisecond)
			}
		})
	}
	return c
}

// one is a client; its caller may give up before the answers come.
func (c *churn) one(target string, protocol fulmar.Protocol, givesUp bool) {
	one, err := fulmar.NewClient(fulmar.ClientConfig{Target: target, Protocol: protocol, Timeout: -1, ConnectTimeout: 5 * time.Second})
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

// atTheLimit is S27: requests as long as a server takes, and one byte longer.
func atTheLimit(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	const limit = 16 << 20
	fleet, err := startFleet(&closing, 1, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	server := fleet.servers[0]
	wrong := 0
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.TTHeaderFramed, fulmar.Framed, fulmar.Bare} {
		api, err := client(&closing, fulmar.ClientConfig{Target: server.Address, Protocol: protocol, MaxMessageBytes: limit + 1<<20, Timeout: 20 * time.Second, ConnectTimeout: 10 * time.Second})
		if err != nil {
			return seen, err
		}
		send := func(length int) error {
			_, err := api.Nest(ctx, &chaosapi.Node{Names: []string{string(make([]byte, length))}})
			return err
		}
		// The longest that passes, by halves: messages have a few bytes around it.
		most, least := limit, limit-4096
		if err := send(least); err != nil {
			return seen, fmt.Errorf("%v: %d bytes: %w", protocol, least, err)
		}
		for most-least > 1 {
			if middle := (most + least) / 2; send(middle) == nil {
				least = middle
			} else {
				most = middle
			}
		}
		refusal := send(least + 1)
		if code := fulmar.CodeOf(refusal); code != fulmar.ResourceExhausted && protocol >= fulmar.TTHeader || refusal == nil {
			wrong++
			seen.note("%v: %v", protocol, refusal)
		}
		seen.note("%v %d", protocol, least-limit)
		if err := send(10); err != nil {
			wrong++
			seen.note("%v afterwards: %v", protocol, err)
		}
	}
	seen.most("wrong", float64(wrong), 0, "")
	seen.most("memory", mib(server.peakBytes()), 512, " MiB")
	return seen, nil
}

// runtimes is S28: servers with one, two and eight processors, hardly any memory, and
// a collector that always runs.
func runtimes(ctx context.Context, size size) (seen figures, err error) {
	for _, environment := range [][]string{
		{"GOMAXPROCS=1"}, {"GOMAXPROCS=2"}, {"GOMAXPROCS=8"}, {"GOGC=1"}, {"GOMEMLIMIT=64MiB"}, {"GOMAXPROCS=8", "GOGC=1", "GOMEMLIMIT=64MiB"},
	} {
		var closing closing
		calls, verdict, err := underRuntime(ctx, size, &closing, environment)
		closing.close()
		if err != nil {
			return seen, fmt.Errorf("%v: %w", environment, err)
		}
		seen.note("%v: calls %s", environment, thousands(int64(calls)))
		seen.most("failed", float64(verdict.Failed()), 0, "")
		seen.judged(verdict)
	}
	return seen, nil
}

func underRuntime(ctx context.Context, size size, closing *closing, environment []string) (int, ledger.Verdict, error) {
	folder, remove, err := scratch()
	if err != nil {
		return 0, ledger.Verdict{}, err
	}
	closing.add(remove)
	server, err := start(role{Journal: folder("journal"), Config: fulmar.ServerConfig{Address: "127.0.0.1:0"}}, environment)
	if err != nil {
		return 0, ledger.Verdict{}, err
	}
	closing.add(server.kill)
	var ids callers
	all, err := protocolCallers(closing, &ids, server.Address, 4, 10*time.Second, 0)
	if err != nil {
		return 0, ledger.Verdict{}, err
	}
	for i, one := range all {
		one.request.Payload = make([]byte, i*i*100)
	}
	crowd := gather(ctx, all, 0)
	pause(ctx, size.during(500*time.Millisecond, 4*time.Second))
	books := crowd.end()
	var executions ledger.Executions
	if err := executions.Read(folder("journal")); err != nil {
		return 0, ledger.Verdict{}, err
	}
	verdict := ledger.Judge(books, &executions, 0)
	return verdict.Calls, verdict, nil
}

// diskFull is S30: what a server logs cannot be written.
func diskFull(ctx context.Context, size size) (seen figures, err error) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		return seen, err
	}
	var closing closing
	defer closing.close()
	folder, remove, err := scratch()
	if err != nil {
		return seen, err
	}
	closing.add(remove)
	server, err := start(role{Journal: folder("journal"), Config: fulmar.ServerConfig{Address: "127.0.0.1:0"}, LogFile: full}, nil)
	if err != nil {
		return seen, err
	}
	closing.add(server.kill)
	api, err := client(&closing, fulmar.ClientConfig{Target: server.Address})
	if err != nil {
		return seen, err
	}
	var ids callers
	one := &caller{api: api, book: ids.book(), limit: 5 * time.Second}
	for range size.of(20, 500) {
		_ = api.Misbehave(ctx, "panic")
		if err := throwAt(server.Address, []byte("GET / HTTP/1.1\r\n\r\n"), 5*time.Millisecond); err != nil {
			return seen, err
		}
		one.call(ctx)
	}
	var executions ledger.Executions
	if err := executions.Read(folder("journal")); err != nil {
		return seen, err
	}
	verdict := ledger.Judge([]*ledger.Book{one.book}, &executions, 0)
	seen.note("calls %d beside as many panics and wrong bytes", verdict.Calls)
	seen.most("failed", float64(verdict.Failed()), 0, "")
	seen.judged(verdict)
	stop, err := server.stop(10 * time.Second)
	seen.note("stop %.2g s", stop.Seconds())
	return seen, err
}
