package fulmar_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestLists_TenThousandFlap: of ten thousand instances half are others each quarter of a second,
// and in the end those of the beginning are back. No call fails, and no more than a tenth of the connections ends in
// a second.
func TestLists_TenThousandFlap(t *testing.T) {
	const n, flaps, pause = 10_000, 80, 250 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		serveFeed(t, network, "all:1", fulmar.ServerConfig{MaxConnections: 2 * n}, &feed{}, streamAdder{})
		var addresses []string
		for i := range 3 * n / 2 {
			addresses = append(addresses, fmt.Sprintf("server%d:1", i))
		}
		p := newPushes()
		var opens atomic.Int64
		client := feedClient(t, fulmar.ClientConfig{Target: "mine:///shop", Resolver: p, Dial: func(ctx context.Context, kind, _ string) (net.Conn, error) {
			opens.Add(1)
			return network.Dial(ctx, kind, "all:1")
		}})
		api := testservice.NewCalculatorClient(client)
		calls := func(n int) {
			t.Helper()
			for range n {
				if sum, err := api.Add(t.Context(), 1, 2); err != nil || sum != 3 {
					t.Fatalf("%d, %v", sum, err)
				}
			}
		}
		p.push(addresses[:n]...)
		calls(2000)
		open := client.Stats().Connections
		if open < 1000 {
			t.Fatalf("%d connections are open", open)
		}
		opened, second := opens.Load(), time.Now()
		for i := range flaps {
			if i%2 == 0 {
				p.push(addresses[n/2:]...)
			} else {
				p.push(addresses[:n]...)
			}
			calls(50)
			time.Sleep(pause)
			if time.Since(second) < time.Second {
				continue
			}
			synctest.Wait()
			now, all := client.Stats().Connections, opens.Load()
			// What was opened and is not there any more was closed; a second may have a part of
			// the next one.
			if closed := open + int(all-opened) - now; closed > open/10+open/50 {
				t.Errorf("flap %d: %d of %d connections were closed in a second", i, closed, open)
			}
			open, opened, second = now, all, time.Now()
		}
		slices.Reverse(addresses[:n])
		p.push(addresses[:n]...)
		calls(200)
	})
}
