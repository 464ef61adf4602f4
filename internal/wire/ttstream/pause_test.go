package ttstream_test

import (
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// unaryMessage is the beginning of one.
const unaryMessage = "\x00\x00\x00\x20\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01\x00\x00"

// crowd is the event of a stream that ended because others wait.
const crowd = "reset 1 problem: ttstream: stream 1: nobody receives from the stream, and others wait (12011)"

// fillAlone returns a server with one stream, of a peer that knows no windows, which nobody
// receives from, until it is not read.
func fillAlone(t *testing.T, config ttstream.Config) *side {
	t.Helper()
	config.BufferBytes, config.Window = 1000, 500
	s := newSide(t, config)
	s.keep = true
	s.arrive(frame(1, "2", "slow", nil))
	for range 20 {
		s.arrive(frame(1, "3", "slow", make([]byte, 200)))
	}
	s.arrive(frame(1, "4", "slow", nil))
	if got := strings.Count(s.said(), "data"); got != 4 {
		t.Fatalf("%d messages were read", got)
	}
	return s
}

// later lets time pass as transports do it: again and again, and what has arrived is looked at
// each time.
func (s *side) later(d ttstream.Nanoseconds) {
	s.t.Helper()
	for end := s.now + d; s.now < end; {
		s.now = min(s.now+second, end)
		s.conn.Tick(s.now)
		s.arrive(nil)
	}
}

// second is how often transports look.
const second = ttstream.Nanoseconds(1e9)

// TestConn_PausedAlone: a stream for which no other one waits is not ended by its slow
// handler, unless that never receives.
func TestConn_PausedAlone(t *testing.T) {
	s := fillAlone(t, ttstream.Config{Calls: true})
	s.later(ttstream.Nanoseconds(limits.StreamPauseAlone) / 2)
	s.want("")
	s.conn.Consume(1, 200)
	s.arrive(nil)
	s.want("data 1 200 bytes")
	s.later(ttstream.Nanoseconds(limits.StreamPauseAlone) - second)
	s.want("")
	s.later(2 * second)
	s.want("reset 1 problem: ttstream: stream 1: nobody has received from the stream for 2m0s (12011)")
	s.conn.Release(1)
}

// TestConn_PausedNotAlone: what waits behind the messages of a stream ends it, some time after
// it came.
func TestConn_PausedNotAlone(t *testing.T) {
	for what, behind := range map[string]string{
		"another stream":       string(frame(2, "2", "other", nil)),
		"a unary call":         unaryMessage,
		"its own cancellation": string(frame(1, "5", "slow", nil)),
	} {
		t.Run(what, func(t *testing.T) {
			s := fillAlone(t, ttstream.Config{Calls: true})
			s.later(ttstream.Nanoseconds(limits.StreamPauseAlone) / 2)
			s.arrive([]byte(behind))
			s.later(ttstream.Nanoseconds(limits.StreamPause) - second)
			s.want("")
			s.later(2 * second)
			if got := s.said(); !strings.HasPrefix(got, crowd) {
				t.Errorf("got %q", got)
			}
			s.conn.Release(1)
			s.conn.Release(2)
		})
	}
}

// TestConn_PausedNextToEnded: streams that have ended wait for nothing.
func TestConn_PausedNextToEnded(t *testing.T) {
	s := newSide(t, ttstream.Config{BufferBytes: 1000, Window: 500})
	s.keep = true
	s.arrive(frame(2, "2", "ended", nil))
	s.arrive(frame(2, "5", "ended", nil)) // but its handler runs
	s.arrive(frame(1, "2", "slow", nil))
	for range 20 {
		s.arrive(frame(1, "3", "slow", make([]byte, 200)))
	}
	s.said()
	s.later(ttstream.Nanoseconds(limits.StreamPauseAlone) / 2)
	s.want("")
	s.conn.Release(1)
	s.conn.Release(2)
}

// TestConn_PausedClient: a client that begins another stream on the connection of one that
// nobody receives from gives that some time.
func TestConn_PausedClient(t *testing.T) {
	s := newSide(t, ttstream.Config{Client: true, BufferBytes: 1000, Window: 500})
	s.keep = true
	s.open("slow")
	for range 20 {
		s.arrive(frame(1, "3", "slow", make([]byte, 200)))
	}
	s.said()
	s.later(ttstream.Nanoseconds(limits.StreamPauseAlone) / 2)
	s.open("other")
	s.later(ttstream.Nanoseconds(limits.StreamPause) - second)
	s.want("")
	s.later(2 * second)
	s.want(crowd)
	s.conn.Release(1)
	s.conn.Release(2)
}

// TestConn_WindowsAreNoExcess: peers that keep to their windows are read, however many streams
// nobody receives from. What is beyond windows counts, whoever sends it.
func TestConn_WindowsAreNoExcess(t *testing.T) {
	const streams, window, most = 50, 1000, 2000
	s := newSide(t, ttstream.Config{Window: window, ConnectionBytes: most, MessageBytes: 5000})
	s.keep = true
	for id := range int32(streams) {
		s.arrive(frame(id+1, "2", "slow", nil, "fulmar-window", "1000"))
	}
	s.said()
	fill := func(message int) (read int) {
		for id := range int32(streams) {
			s.arrive(frame(id+1, "3", "slow", make([]byte, message)))
		}
		return strings.Count(s.said(), "data")
	}
	if read := fill(window - 64); read != streams {
		t.Fatalf("%d windows of %d were read", read, streams)
	}
	if read := fill(200 - 64); read != most/200 {
		t.Errorf("beyond windows %d messages were read, want %d", read, most/200)
	}
	s.later(ttstream.Nanoseconds(limits.StreamPause))
	if got := s.said(); !strings.HasPrefix(got, crowd) || strings.Count(got, "reset") != 1 {
		t.Errorf("got %q", got)
	}
	for id := range int32(streams) {
		s.conn.Release(id + 1)
	}
	s.arrive(nil)
	if len(s.input) > 0 {
		t.Errorf("%d bytes are not read, without streams", len(s.input))
	}
}

// TestConn_WindowsThatBecomeKnown: what came before a client knew that its server has its
// windows is no excess either.
func TestConn_WindowsThatBecomeKnown(t *testing.T) {
	client, server := newPair(t, ttstream.Config{Window: 1000, ConnectionBytes: 2000}, ttstream.Config{})
	client.keep = true
	a, b, c := client.open("a"), client.open("b"), client.open("c")
	server.arrive(client.sent())
	known := server.sent()
	for _, id := range []int32{a, b} {
		client.arrive(frame(id, "3", "m", make([]byte, 900)))
	}
	client.arrive(known)
	for _, id := range []int32{c, a, b} {
		client.arrive(frame(id, "3", "m", make([]byte, 900)))
	}
	if read := strings.Count(client.said(), "data"); read != 5 {
		t.Errorf("%d of 5 messages were read", read)
	}
	for _, id := range []int32{a, b, c} {
		client.conn.Release(id)
		server.conn.Release(id)
	}
}
