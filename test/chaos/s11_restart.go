package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// fleet is servers at fixed addresses, which restart.
type fleet struct {
	servers  []*process
	journals []string
}

func startFleet(closing *closing, n int, config fulmar.ServerConfig) (*fleet, error) {
	folder, remove, err := scratch()
	if err != nil {
		return nil, err
	}
	closing.add(remove)
	f := &fleet{}
	for i := range n {
		journal := folder(fmt.Sprintf("journal%d", i))
		config.Address = "127.0.0.1:0"
		server, err := start(role{Journal: journal, Config: config}, nil)
		if err != nil {
			return nil, err
		}
		f.servers, f.journals = append(f.servers, server), append(f.journals, journal)
		closing.add(func() { f.servers[i].kill() })
	}
	return f, nil
}

// target returns all addresses.
func (f *fleet) target() string {
	var addresses []string
	for _, server := range f.servers {
		addresses = append(addresses, server.Address)
	}
	return "static:///" + strings.Join(addresses, ",")
}

// restart starts a server again at the address that it had.
func (f *fleet) restart(i int, config fulmar.ServerConfig) (err error) {
	config.Address = f.servers[i].Address
	f.servers[i], err = start(role{Journal: f.journals[i], Config: config}, nil)
	return err
}

// executions returns what all of them did.
func (f *fleet) executions() (*ledger.Executions, error) {
	all := &ledger.Executions{}
	for _, journal := range f.journals {
		if err := all.Read(journal); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// kinds are clients of every kind that there is.
func kinds(closing *closing, ids *callers, target string, each int) (quick, slow []*caller, err error) {
	for _, kind := range []struct {
		config fulmar.ClientConfig
		slow   bool
		oneway bool
	}{
		{config: fulmar.ClientConfig{Protocol: fulmar.TTHeader}},
		{config: fulmar.ClientConfig{Protocol: fulmar.TTHeaderFramed}},
		{config: fulmar.ClientConfig{Protocol: fulmar.Framed}},
		{config: fulmar.ClientConfig{Protocol: fulmar.Bare}},
		{config: fulmar.ClientConfig{Protocol: fulmar.Framed}, slow: true},
		{config: fulmar.ClientConfig{Protocol: fulmar.TTHeader}, slow: true},
		{config: fulmar.ClientConfig{Protocol: fulmar.Bare}, slow: true, oneway: true},
		{config: fulmar.ClientConfig{Protocol: fulmar.TTHeader}, slow: true, oneway: true},
	} {
		kind.config.Target, kind.config.Timeout = target, -1
		api, err := client(closing, kind.config)
		if err != nil {
			return nil, nil, err
		}
		for range each {
			one := &caller{api: api, book: ids.book(), limit: 10 * time.Second, oneway: kind.oneway, request: chaosapi.Request{Payload: make([]byte, 100)}}
			if kind.slow {
				slow = append(slow, one)
			} else {
				quick = append(quick, one)
			}
		}
	}
	return quick, slow, nil
}

// rollingRestart is S11: three servers stop gracefully one after the other and
// come back, under load.
func rollingRestart(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, err := startFleet(&closing, 3, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	var ids callers
	quick, slow, err := kinds(&closing, &ids, fleet.target(), 4)
	if err != nil {
		return seen, err
	}
	for i, one := range quick {
		// Some are running when their server stops, whenever that is.
		one.request.Nap = int32(i%4) * 500
	}
	quiet := busyMachine()
	busy, idle := gather(ctx, quick, 0), gather(ctx, slow, 150*time.Millisecond)
	var longest time.Duration
	least := int64(size.of(2000, 100_000))
	for round := 0; round < size.of(1, 5) || busy.made.Load() < least && round < 50; round++ {
		for i := range fleet.servers {
			pause(ctx, size.during(100*time.Millisecond, 400*time.Millisecond))
			stop, err := fleet.servers[i].stop(20 * time.Second)
			if err != nil {
				return seen, fmt.Errorf("server %d: %w", i, err)
			}
			longest = max(longest, stop)
			if err := fleet.restart(i, fulmar.ServerConfig{}); err != nil {
				return seen, err
			}
		}
	}
	books := append(busy.end(), idle.end()...)
	taken := quiet()
	// What was sent and needs no reply is executed before a server has stopped.
	for i, server := range fleet.servers {
		if _, err := server.stop(20 * time.Second); err != nil {
			return seen, fmt.Errorf("server %d at the end: %w", i, err)
		}
	}
	executions, err := fleet.executions()
	if err != nil {
		return seen, err
	}
	verdict := ledger.Judge(books, executions, 0)
	seen.least("calls", float64(verdict.Calls), float64(least), "")
	seen.most("failed", float64(verdict.Failed()), 0, "")
	seen.mostUnlessBusy("stop", longest.Seconds(), 2, " s", taken)
	seen.ended(books, taken)
	seen.judged(verdict)
	seen.examples(books)
	return seen, longRestarts(ctx, size, &seen)
}

// judged adds what the ledger says.
func (f *figures) judged(v ledger.Verdict) {
	f.note("%v", v)
	f.failed = f.failed || v.Broken() > 0
}

// examples adds why calls failed, of each caller the first one that did.
func (f *figures) examples(books []*ledger.Book) {
	for _, book := range books {
		for _, call := range book.Calls() {
			if call.Err != nil {
				f.note("caller %d: \"%v\"", call.ID>>40, call.Err)
				break
			}
		}
	}
}
