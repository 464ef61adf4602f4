package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// lorisRole is peers that begin a message and do not end it, as a process of their own that
// gets what everybody else leaves of the processors, like those of [attackRole]: within the
// callers' process their ten thousand goroutines stood in the p99 of good calls, which was
// 1.5 to 1.8 times that without them.
type lorisRole struct {
	Server      string
	Connections int
}

// lorisResult is what became of the connections: how many the server had left open after
// lorisPatience, and when it had closed the last one.
type lorisResult struct {
	Open int
	Last time.Duration
}

const lorisPatience = 20 * time.Second

// attack is what the process does: it connects, and goes on at the first line that it is told.
func (r lorisRole) attack() error {
	message, err := callMessage(&chaosapi.Request{})
	if err != nil {
		return err
	}
	var closing closing
	defer closing.close()
	conns, err := dialAll(&closing, r.Server, r.Connections)
	if err != nil {
		return err
	}
	fmt.Println("connected")
	lines := bufio.NewScanner(os.Stdin)
	if !lines.Scan() {
		return lines.Err()
	}
	text, err := json.Marshal(slowly(conns, framed(message)))
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", text)
	return nil
}

// slowly sends a part of a message over each of the connections, or one byte a second, and
// waits until all are closed.
func slowly(conns []net.Conn, message []byte) (result lorisResult) {
	prefixes := []int{0, 1, 4, 8, 19, len(message) - 1}
	ctx, cancel := context.WithTimeout(context.Background(), lorisPatience)
	defer cancel()
	var mu sync.Mutex
	var waiting sync.WaitGroup
	start := time.Now()
	for i, conn := range conns {
		if kind := i % (len(prefixes) + 1); kind < len(prefixes) {
			_, _ = conn.Write(message[:prefixes[kind]])
		} else {
			waiting.Go(func() { dribble(ctx, conn, message) })
		}
		waiting.Go(func() {
			_ = conn.SetReadDeadline(start.Add(lorisPatience))
			_, err := conn.Read(make([]byte, 1))
			mu.Lock()
			defer mu.Unlock()
			if failed, ok := err.(net.Error); ok && failed.Timeout() {
				result.Open++
			}
			result.Last = max(result.Last, time.Since(start))
		})
	}
	waiting.Wait()
	return result
}

// dribble sends a byte every second, as long as somebody takes it.
func dribble(ctx context.Context, conn net.Conn, message []byte) {
	for i := range message {
		if _, err := conn.Write(message[i : i+1]); err != nil || ctx.Err() != nil {
			return
		}
		pause(ctx, time.Second)
	}
}

// slowLoris is S4: peers that begin a message, or say nothing, and wait.
func slowLoris(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, err := startFleet(&closing, 1, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	server := fleet.servers[0]
	var ids callers
	all, alone, err := someCallers(ctx, &closing, &ids, server.Address, 3*time.Second)
	if err != nil {
		return seen, err
	}
	before := server.residentBytes()
	count := size.of(500, 5000)
	peers, err := start(role{Loris: &lorisRole{Server: server.Address, Connections: count}}, nil, "chrt", "--idle", "0")
	if err != nil {
		return seen, err
	}
	closing.add(peers.kill)
	quiet := busyMachine()
	crowd := gather(ctx, all, 2*time.Millisecond)
	var result lorisResult
	var memory int64
	var measuring sync.WaitGroup
	measuring.Go(func() {
		pause(ctx, 2*time.Second)
		memory = server.residentBytes() - before
	})
	answer, err := peers.ask("begin", lorisPatience+10*time.Second)
	measuring.Wait()
	books := crowd.end()
	taken := quiet()
	if err == nil {
		err = json.Unmarshal(answer, &result)
	}
	if err != nil {
		return seen, fmt.Errorf("the slow peers: %w", err)
	}
	p99 := quantile(took(books, func(*ledger.Call) bool { return true }), 0.99)
	seen.note("connections %s", thousands(int64(count)))
	seen.most("open after 20 s", float64(result.Open), 0, "")
	seen.mostUnlessBusy("closed within", result.Last.Seconds(), 11, " s", taken)
	seen.most("memory", mib(memory), 30, " MiB")
	seen.tailUnlessBusy("p99 of good calls", float64(p99)/float64(alone), 1.5, "x", taken)
	executions, err := fleet.executions()
	if err != nil {
		return seen, err
	}
	verdict := ledger.Judge(books, &ledger.Executions{Times: executions.Times}, 0)
	verdict.Unknown = 0 // Those of before.
	seen.most("failed", float64(verdict.Failed()), 0, "")
	return seen, nil
}
