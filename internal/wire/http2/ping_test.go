package http2_test

import (
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// TestConn_Probe: SETTINGS that set nothing ask for a sign of life, one at a time, and nothing
// but their answer is it.
func TestConn_Probe(t *testing.T) {
	pongs := 0
	s := newSide(t, http2.Config{Client: true}, func(e http2.Event) {
		if e.Kind == http2.EventPong {
			pongs++
		}
	})
	s.arrive(frame(http2.FrameSettings, 0, 0))
	ack := frame(http2.FrameSettings, http2.FlagAck, 0)
	s.conn.Probe() // the first settings wait for an answer, which will do
	s.arrive(ack)
	s.take()
	for n := range 3 {
		s.conn.Probe()
		s.conn.Probe()
		if asked := s.take(); len(asked) != http2.FrameHeaderSize || http2.FrameType(asked[3]) != http2.FrameSettings || asked[4] != 0 {
			t.Errorf("asked with % x", asked)
		}
		if s.arrive(ack); s.err != nil || pongs != n+1 {
			t.Errorf("%d answers to %d questions: %v", pongs, n+1, s.err)
		}
	}
	answers := 0
	for ; answers < 10*limits.HTTP2OtherFrames && s.err == nil; answers++ {
		s.arrive(ack)
	}
	if codeOf(s.err) != int(http2.EnhanceYourCalm) {
		t.Errorf("after %d answers to nothing: %v", answers, s.err)
	}
}

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
