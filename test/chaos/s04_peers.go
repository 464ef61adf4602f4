package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// callMessage is a whole call of Chaos.call.
func callMessage(request *chaosapi.Request) ([]byte, error) {
	body, err := thrift.Marshal(&chaosapi.ChaosCallArgs{Request: request})
	return strictMessage("call", body), err
}

// someCallers are eight that take their time, and what they make of it alone.
func someCallers(ctx context.Context, closing *closing, ids *callers, address string, during time.Duration) (all []*caller, alone time.Duration, err error) {
	api, err := client(closing, fulmar.ClientConfig{Target: address, Timeout: -1})
	if err != nil {
		return nil, 0, err
	}
	for range 8 {
		all = append(all, &caller{api: api, book: ids.book(), limit: 5 * time.Second, request: chaosapi.Request{Payload: make([]byte, 100)}})
	}
	crowd := gather(ctx, all, 2*time.Millisecond)
	pause(ctx, during)
	alone = quantile(took(crowd.end(), func(*ledger.Call) bool { return true }), 0.99)
	for _, one := range all {
		one.book = ids.book()
	}
	return all, alone, nil
}

// dialAll opens connections that close with the scenario.
func dialAll(closing *closing, address string, count int) ([]net.Conn, error) {
	conns := make([]net.Conn, count)
	for i := range conns {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return nil, err
		}
		closing.add(func() { _ = conn.Close() })
		conns[i] = conn
	}
	return conns, nil
}

// slowReader is S6: peers ask for long replies and never read one. Half of the servers'
// connections answer in order, the other half in any order.
func slowReader(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	const atOnce = 4
	fleet, err := startFleet(&closing, 2, fulmar.ServerConfig{MaxConnectionCalls: atOnce})
	if err != nil {
		return seen, err
	}
	message, err := callMessage(&chaosapi.Request{Zeros: 1 << 20})
	if err != nil {
		return seen, err
	}
	unordered := headed(message)
	binary.BigEndian.PutUint16(unordered[6:], 1)
	quiet := busyMachine()
	var results [2]stalled
	var both sync.WaitGroup
	for i, sent := range [][]byte{framed(message), unordered} {
		both.Go(func() { results[i] = neverRead(ctx, fleet.servers[i], sent) })
	}
	both.Wait()
	taken := quiet()
	seen.note("%d connections with %d replies of 1 MiB each", stalledPeers, stalledCalls)
	for i, name := range []string{"in order", "in any order"} {
		r := results[i]
		if r.err != nil {
			return seen, r.err
		}
		// The high-water mark and one message for each call that may run; and 32 MiB
		// for calls of others and what they leave to the collector.
		calls := []int{1, atOnce}[i]
		seen.most(name+": memory", mib(r.memory), float64(stalledPeers*(1+calls)+32), " MiB")
		seen.mostUnlessBusy("closed after", r.closedAfter.Seconds(), 31, " s", taken)
		seen.most("open after 45 s", float64(boolToInt(r.closedAfter == 0)), 0, "")
		seen.most("other calls failed", float64(r.verdict.Failed()), 0, "")
		seen.note("their p99 %.3g ms (alone %.3g ms)", ms(r.p99), ms(r.alone))
	}
	return seen, nil
}

const stalledPeers, stalledCalls = 8, 64

// stalled is what peers that do not read do to a server.
type stalled struct {
	memory      int64
	closedAfter time.Duration
	alone, p99  time.Duration
	verdict     ledger.Verdict
	err         error
}

// neverRead sends calls over some connections and reads nothing.
func neverRead(ctx context.Context, server *process, sent []byte) (r stalled) {
	var closing closing
	defer closing.close()
	var ids callers
	all, alone, err := someCallers(ctx, &closing, &ids, server.Address, 2*time.Second)
	if err != nil {
		return stalled{err: err}
	}
	r.alone = alone
	before := server.peakBytes()
	crowd := gather(ctx, all, 2*time.Millisecond)
	var writing sync.WaitGroup
	start := time.Now()
	for range stalledPeers {
		conn, err := net.Dial("tcp", server.Address)
		if err != nil {
			r.err = err
			break
		}
		closing.add(func() { _ = conn.Close() })
		writing.Go(func() {
			_ = conn.SetWriteDeadline(start.Add(10 * time.Second))
			for range stalledCalls {
				if _, err := conn.Write(sent); err != nil {
					return
				}
			}
		})
	}
	pause(ctx, 5*time.Second)
	files := server.descriptors() - stalledPeers
	for r.closedAfter == 0 && time.Since(start) < 45*time.Second && ctx.Err() == nil {
		pause(ctx, 200*time.Millisecond)
		if server.descriptors() <= files {
			r.closedAfter = time.Since(start)
		}
	}
	writing.Wait()
	books := crowd.end()
	r.memory = server.peakBytes() - before
	r.p99 = quantile(took(books, func(*ledger.Call) bool { return true }), 0.99)
	r.verdict = ledger.Judge(books, nil, 0)
	return r
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// descriptors is S16: a server that may open 64 files, and 200 clients.
func descriptors(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	folder, remove, err := scratch()
	if err != nil {
		return seen, err
	}
	closing.add(remove)
	// Without its own limit, accepting fails.
	server, err := start(role{Journal: folder("journal"), Config: fulmar.ServerConfig{Address: "127.0.0.1:0", MaxConnections: -1}, Files: 64}, nil)
	if err != nil {
		return seen, err
	}
	closing.add(server.kill)
	var ids callers
	all, err := protocolCallers(&closing, &ids, server.Address, 1, 5*time.Second, 0)
	if err != nil {
		return seen, err
	}
	for _, one := range all {
		if call := one.call(ctx); call.Err != nil {
			return seen, call.Err
		}
	}
	conns := make([]net.Conn, 200)
	for i := range conns {
		if conns[i], err = net.Dial("tcp", server.Address); err != nil {
			return seen, err
		}
		defer conns[i].Close()
	}
	pause(ctx, 200*time.Millisecond)
	quiet := busyMachine()
	crowd := gather(ctx, all, 20*time.Millisecond)
	before := server.share()
	pause(ctx, 3*time.Second)
	after := server.share()
	open := server.descriptors()
	books := crowd.end()
	for _, conn := range conns {
		_ = conn.Close()
	}
	start := time.Now()
	if err := throwAt(server.Address, []byte{0xff}, time.Second); err != nil {
		return seen, err
	}
	api, err := client(&closing, fulmar.ClientConfig{Target: server.Address, Protocol: fulmar.Framed})
	if err != nil {
		return seen, err
	}
	if _, err := api.Call(ctx, &chaosapi.Request{}); err != nil {
		return seen, fmt.Errorf("a call when descriptors are free again: %w", err)
	}
	accepts, taken := time.Since(start), quiet()
	verdict := ledger.Judge(books, nil, 0)
	seen.least("descriptors open", float64(open), 60, "")
	seen.most("processor while full", float64(after.ran-before.ran)/float64(after.at.Sub(before.at))*100, 10, " %")
	seen.most("calls on open connections failed", float64(verdict.Failed()), 0, "")
	// A pause of a second (AcceptBackoffMax) may just have begun, and a call follows.
	seen.mostUnlessBusy("accepts again after", accepts.Seconds(), 1.1, " s", taken)
	return seen, nil
}
