package ttstream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// TestConn_Frames gives each side each frame in each state: what comes of it, what is
// answered, and whether the stream or the connection ends.
func TestConn_Frames(t *testing.T) {
	message := []byte{0}
	header := frame(1, "2", "m", nil)
	data := frame(1, "3", "m", message)
	trailer := frame(1, "4", "m", nil)
	reset := frame(1, "5", "m", nil)
	cases := []struct {
		name   string
		client bool
		frames [][]byte
		events string
		// answers are types of frames.
		answers string
		fatal   bool
	}{
		{name: "two headers at a server", frames: [][]byte{header, header}, events: "open 1 m\nreset 1 problem: ttstream: stream 1: HEADER of a stream that has one (12002)", answers: "RST"},
		{name: "header behind a reset", frames: [][]byte{header, reset, header}, events: "open 1 m\nreset 1 failure 13 \"rst\""},
		{name: "data behind trailer", frames: [][]byte{header, trailer, data, data}, events: "open 1 m\nend 1\nreset 1 problem: ttstream: stream 1: DATA behind TRAILER (12005)", answers: "RST"},
		{name: "two trailers", frames: [][]byte{header, trailer, trailer}, events: "open 1 m\nend 1"},
		{name: "reset behind trailer", frames: [][]byte{header, trailer, reset}, events: "open 1 m\nend 1\nreset 1 failure 13 \"rst\""},
		{name: "data of no stream", frames: [][]byte{data, trailer, reset, frame(1, "1", "m", nil)}},
		{name: "empty data", frames: [][]byte{header, frame(1, "3", "m", nil)}, events: "open 1 m\nreset 1 problem: ttstream: stream 1: DATA without a message (12004)", answers: "RST"},
		{name: "a negative id", frames: [][]byte{frame(-7, "2", "m", nil), frame(-7, "3", "m", message)}, events: "open -7 m\ndata -7 00"},
		{name: "stream 0", frames: [][]byte{frame(0, "2", "m", nil)}, events: "ttstream: HEADER of stream 0, which is the connection (12002)", fatal: true},
		{name: "data of stream 0", frames: [][]byte{frame(0, "3", "m", message)}},
		{name: "unknown type", frames: [][]byte{header, frame(1, "6", "m", nil)}, events: "open 1 m\nttstream: frame of unknown type \"6\" (12004)", fatal: true},
		{name: "type of two digits", frames: [][]byte{frame(1, "22", "m", nil)}, events: "ttstream: frame of unknown type \"22\" (12004)", fatal: true},
		{name: "a name that is none", frames: [][]byte{frame(1, "2", "", nil), frame(2, "2", "a\x00", nil)}, answers: "RST RST"},
		{name: "reset that cannot be read", frames: [][]byte{header, frame(1, "5", "m", []byte("\x80\x01\x00\x02junk"))}, events: "open 1 m\nreset 1 failure 13 \"rst\""},
		{name: "a proxy's meta", frames: [][]byte{header, frame(1, "1", "m", []byte("anything"), "k", "v"), data}, events: "open 1 m\ndata 1 00"},
		{name: "data before header at a client", client: true, frames: [][]byte{data, header, trailer}, events: "data 1 00\nheader 1\nend 1", answers: "HEADER TRAILER"},
		{name: "two headers at a client", client: true, frames: [][]byte{header, header, data}, events: "header 1\nreset 1 problem: ttstream: stream 1: HEADER of a stream that has one (12002)", answers: "HEADER RST"},
		{name: "a stream that a client did not begin", client: true, frames: [][]byte{frame(9, "2", "m", nil), frame(9, "3", "m", message)}, answers: "HEADER"},
		{name: "everything behind the end", client: true, frames: [][]byte{header, trailer, header, data, trailer, reset}, events: "header 1\nend 1", answers: "HEADER TRAILER"},
		{name: "trailer with half an exception", client: true, frames: [][]byte{frame(1, "4", "m", []byte("\x80\x01\x00\x03"))}, events: "end 1 problem: ttstream: stream 1: TRAILER: ttstream: exception of 4 bytes ends inside its header (12004) (12004)", answers: "HEADER TRAILER"},
		{name: "not executed, but a header came", client: true, frames: [][]byte{header, frame(1, "5", "m", nil, "fulmar-executed", "no")}, events: "header 1\nreset 1 fulmar-executed=no failure 13 \"rst\"", answers: "HEADER"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			s := newSide(t, ttstream.Config{Client: test.client})
			if test.client {
				s.open("m")
			}
			for _, b := range test.frames {
				s.arrive(b)
			}
			s.want(test.events)
			if (s.err != nil) != test.fatal {
				t.Errorf("connection: %v", s.err)
			}
			if got := strings.Join(typesOf(t, s.sent()), " "); got != test.answers {
				t.Errorf("answered %q, want %q", got, test.answers)
			}
		})
	}
}

// TestConn_Abuse lets a peer do too much of something that is work for nothing: the
// connection ends, at the limit and not before it.
func TestConn_Abuse(t *testing.T) {
	header := func(i int) []byte { return frame(int32(i)+1, "2", "m", nil) }
	cases := []struct {
		name  string
		limit int
		frame func(i int) []byte
		want  string
	}{
		{"frames of no stream", limits.StreamOtherFrames, func(i int) []byte { return frame(99, "4", "m", nil) }, "frames without effect"},
		{"empty messages of no stream", limits.StreamOtherFrames, func(i int) []byte { return frame(99, "3", "m", nil) }, "frames without effect"},
		{"meta", limits.StreamOtherFrames, func(i int) []byte { return frame(0, "1", "", nil) }, "META frames"},
		{"names", limits.StreamPeerErrors, func(i int) []byte { return frame(int32(i)+1, "2", "", nil) }, "streams with errors"},
		{"broken streams", limits.StreamPeerErrors, func(i int) []byte { return append(header(i), frame(int32(i)+1, "3", "m", nil)...) }, "streams with errors"},
		// Each stream allows half a reset.
		{"resets", 2 * limits.StreamResets, func(i int) []byte { return append(header(i), frame(int32(i)+1, "5", "m", nil)...) }, "resets"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			s := newSide(t, ttstream.Config{})
			for i := range test.limit {
				s.arrive(test.frame(i))
				s.conn.Release(int32(i) + 1)
				s.sent()
			}
			if s.err != nil {
				t.Fatalf("ended too early: %v", s.err)
			}
			for i := range 3 { // streams of their own excuse a little
				s.arrive(test.frame(test.limit + i))
			}
			if s.err == nil || !strings.Contains(s.err.Error(), test.want) {
				t.Errorf("not ended for %q: %v", test.want, s.err)
			}
			if _, _, _, err := s.conn.Next(header(0), 0); err == nil {
				t.Error("a connection that ended reads on")
			}
		})
	}
}

// TestConn_AbuseNextPeriod does as much again when counting has begun anew.
func TestConn_AbuseNextPeriod(t *testing.T) {
	s := newSide(t, ttstream.Config{})
	for range 3 {
		for range limits.StreamOtherFrames {
			s.arrive(frame(99, "4", "m", nil))
		}
		s.now += ttstream.Nanoseconds(limits.StreamPeriod)
	}
	if s.err != nil {
		t.Error(s.err)
	}
}

// TestConn_RapidReset wants streams that were given up to count as long as their
// handlers run.
func TestConn_RapidReset(t *testing.T) {
	s := newSide(t, ttstream.Config{Streams: 5})
	for i := range 50 {
		s.arrive(frame(int32(i)+1, "2", "m", nil))
		s.arrive(frame(int32(i)+1, "5", "m", nil))
	}
	if s.conn.Streams() != 5 || strings.Count(s.said(), "open") != 5 {
		t.Errorf("%d streams", s.conn.Streams())
	}
}

// TestConn_Answers wants a peer that makes us answer and reads nothing to be read no more.
func TestConn_Answers(t *testing.T) {
	s := newSide(t, ttstream.Config{Streams: 1})
	s.arrive(frame(1, "2", "m", nil))
	for i := range limits.StreamControlFrames + 50 {
		s.arrive(frame(int32(i)+2, "2", "m", nil))
	}
	if got := len(typesOf(t, s.sent())); got != limits.StreamControlFrames {
		t.Errorf("%d answers", got)
	}
	s.arrive(nil)
	if got := len(typesOf(t, s.sent())); got != 50 {
		t.Errorf("%d answers when the first were sent", got)
	}
}

// TestConn_Paused fills a stream of a peer that knows no windows, whose handler does not
// receive: the connection is not read any more, until the handler does, or time is over.
func TestConn_Paused(t *testing.T) {
	fill := func() *side {
		s := newSide(t, ttstream.Config{BufferBytes: 1000, Window: 500})
		s.keep = true
		s.arrive(frame(1, "2", "slow", nil))
		s.arrive(frame(2, "2", "other", nil))
		for range 20 {
			s.arrive(frame(1, "3", "slow", make([]byte, 200)))
		}
		s.arrive(frame(2, "4", "other", nil))
		if got := strings.Count(s.said(), "data"); got != 4 {
			t.Fatalf("%d messages were read", got)
		}
		return s
	}
	s := fill()
	s.conn.Consume(1, 200)
	s.arrive(nil)
	s.want(fmt.Sprintf("data 1 %d bytes", 200))

	s = fill()
	due := s.conn.Tick(s.now)
	if want := ttstream.Nanoseconds(limits.StreamPause); due != want {
		t.Fatalf("due %d, want %d", due, want)
	}
	s.now = due
	if next := s.conn.Tick(s.now); next != 0 {
		t.Errorf("the next at %d", next)
	}
	s.arrive(nil)
	s.want("reset 1 problem: ttstream: stream 1: nobody receives from the stream, and others wait (12011)\nend 2")
	if got := strings.Join(typesOf(t, s.sent()), " "); got != "RST" {
		t.Errorf("answered %s", got)
	}
	// Its handler may still use what it has: that is no room twice.
	s.conn.Consume(1, 200)
	s.conn.Release(1)
	s.conn.Release(2)
}

// TestConn_Calls has unary messages between the frames, for who allows them.
func TestConn_Calls(t *testing.T) {
	call := []byte("\x00\x00\x00\x20\x10\x00\x00\x00\x00\x00\x00\x01\x00\x01\x00\x00")
	s := newSide(t, ttstream.Config{Calls: true})
	s.arrive(frame(1, "2", "m", nil))
	s.arrive(call)
	if s.calls != 1 || len(s.input) != len(call) || s.err != nil {
		t.Errorf("%d calls, %d bytes left, %v", s.calls, len(s.input), s.err)
	}
	s = newSide(t, ttstream.Config{})
	s.arrive(call)
	if s.err == nil {
		t.Error("a call was taken where none is allowed")
	}
}
