package http2_test

import (
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// TestConn_CountsPings has peers that ping a connection on which nothing else happens: how
// long they wait decides, give or take some delay, and a few that come early are forgiven.
func TestConn_CountsPings(t *testing.T) {
	const second = http2.Nanoseconds(time.Second)
	for name, test := range map[string]struct {
		// waits are those between pings, in turn.
		waits  []http2.Nanoseconds
		closed bool
	}{
		"as often as they may":          {[]http2.Nanoseconds{10 * second}, false},
		"a little early":                {[]http2.Nanoseconds{10*second - second/1000}, false},
		"a delay that comes and goes":   {[]http2.Nanoseconds{11 * second, 9 * second}, false},
		"two too early, now and then":   {[]http2.Nanoseconds{1, 1, 30 * second}, false},
		"three too early, now and then": {[]http2.Nanoseconds{1, 1, 1, 60 * second}, true},
		"too often":                     {[]http2.Nanoseconds{8*second + 900*second/1000}, true},
		"twice as often":                {[]http2.Nanoseconds{5 * second}, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttacked(t)
			times := 0
			for ; times < 1000 && a.err == nil; times++ {
				a.arrive(frame(http2.FramePing, 0, 0, make([]byte, 8)...))
				a.now += test.waits[times%len(test.waits)]
				a.take()
			}
			if closed := a.err != nil; closed != test.closed || closed && times > 2*limits.HTTP2PingStrikes {
				t.Errorf("after %d pings: %v", times, a.err)
			}
		})
	}
}

// TestConn_WhatIsSentForgivesPings: who has been sent something begins anew, also if it has
// used up what it was excused for. Each frame is worth so many pings, and no more.
func TestConn_WhatIsSentForgivesPings(t *testing.T) {
	a := newAttacked(t)
	a.arrive(a.request(http2.FlagEndStream)) // which excuses one
	if err := a.conn.Headers(1, []http2.Field{{Name: ":status", Value: "200"}}, false); err != nil {
		t.Fatal(err)
	}
	pings := 2 + limits.HTTP2PingStrikes
	for range 100 {
		for range pings {
			a.arrive(frame(http2.FramePing, 0, 0, make([]byte, 8)...))
		}
		if a.take(); a.err != nil {
			t.Fatal(a.err)
		}
		if _, err := a.conn.Data(1, []byte{0}, false); err != nil {
			t.Fatal(err)
		}
		pings = 1 + limits.HTTP2PingStrikes
	}
	for range pings + 1 {
		a.arrive(frame(http2.FramePing, 0, 0, make([]byte, 8)...))
	}
	if codeOf(a.err) != int(http2.EnhanceYourCalm) {
		t.Errorf("one more: %v", a.err)
	}
}
