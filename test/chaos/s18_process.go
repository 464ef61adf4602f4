package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// panics is S18: handlers, interceptors and observers panic and end their goroutines.
func panics(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	// A place that is not given back is missed soon.
	server, err := start(role{Config: fulmar.ServerConfig{Address: "127.0.0.1:0", MaxCalls: 40, MaxRunningCalls: 20}, Mishaps: true}, nil)
	if err != nil {
		return seen, err
	}
	closing.add(server.kill)
	before, wrong, made := server.residentBytes(), 0, 0
	each := size.of(40, 1000)
	var mu sync.Mutex
	var all sync.WaitGroup
	misbehave := func(config fulmar.ClientConfig, how string, want fulmar.Code) error {
		config.Target = server.Address
		api, err := client(&closing, config)
		if err != nil {
			return err
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
		return nil
	}
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.Framed} {
		for _, how := range []string{"panic", "nil", "goexit", "error"} {
			want := fulmar.Internal
			if how == "error" && protocol == fulmar.TTHeader {
				want = fulmar.Unknown
			}
			if err := misbehave(fulmar.ClientConfig{Protocol: protocol}, how, want); err != nil {
				return seen, err
			}
		}
	}
	// What an observer does is no call's fault.
	for name, want := range map[string]fulmar.Code{beforeDecoding: fulmar.Internal, behindDecoding: fulmar.Internal, endsGoroutine: fulmar.Internal, observed: fulmar.CodeOf(nil)} {
		if err := misbehave(fulmar.ClientConfig{Caller: name}, "", want); err != nil {
			return seen, err
		}
	}
	all.Wait()
	seen.note("calls %s", thousands(int64(made)))
	seen.most("with another error", float64(wrong), 0, "")
	seen.most("memory", mib(server.residentBytes()-before), 32, " MiB")
	return seen, alive(ctx, &closing, server.Address, &seen)
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
