package transport

import (
	"math"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// TestGRPC_PingsAreBounded: a complaint counts once for all connections that pinged as often,
// and at most HTTP2PingAfterMost comes of it.
func TestGRPC_PingsAreBounded(t *testing.T) {
	for _, ping := range []time.Duration{-1, 0, time.Second, 3 * limits.HTTP2PingAfterMost, math.MaxInt64} {
		g := &streamPeer{peer: &Peer{config: PoolConfig{Ping: ping}}}
		if g.pingsLess(g.pings()); ping == time.Second {
			if g.pingsLess(ping); g.pings() != 2*ping {
				t.Errorf("pings after %v, want %v", g.pings(), 2*ping)
			}
		}
		for range 100 {
			g.pingsLess(g.pings())
		}
		want := max(ping, limits.HTTP2PingAfterMost)
		if ping <= 0 {
			want = 0
		}
		if g.pings() != want {
			t.Errorf("%v: pings after %v, want %v", ping, g.pings(), want)
		}
	}
}
