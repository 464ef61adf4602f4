package http2_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// served is a client whose server does what a test says.
type served struct {
	*side
	writer *http2.HeaderWriter
	// resets are the events of streams that the server has reset.
	resets []http2.Event
}

func newServed(t testing.TB) *served {
	t.Helper()
	s := &served{writer: http2.NewHeaderWriter()}
	s.side = newSide(t, http2.Config{Client: true}, func(e http2.Event) {
		if e.Kind == http2.EventReset {
			s.resets = append(s.resets, e)
		}
	})
	s.arrive(frame(http2.FrameSettings, 0, 0))
	s.arrive(frame(http2.FrameSettings, http2.FlagAck, 0))
	return s
}

// open begins a call that sends nothing.
func (s *served) open() uint32 {
	s.t.Helper()
	id, err := s.conn.Open(requestFields(), true, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// answer returns the headers of a reply.
func (s *served) answer(id uint32, flags http2.Flags) []byte {
	return frame(http2.FrameHeaders, flags|http2.FlagEndHeaders, id, s.writer.Write([]http2.Field{{Name: ":status", Value: "200"}})...)
}

func (s *served) trailers(id uint32) []byte {
	return frame(http2.FrameHeaders, http2.FlagEndHeaders|http2.FlagEndStream, id, s.writer.Write([]http2.Field{{Name: "grpc-status", Value: "0"}})...)
}

// TestClient_LetsServersPing as often as these were told to. A flood of pings ends the
// connection all the same.
func TestClient_LetsServersPing(t *testing.T) {
	ping := frame(http2.FramePing, 0, 0, make([]byte, 8)...)
	s := newServed(t)
	s.open()
	s.take()
	for range 3600 {
		s.arrive(ping)
		s.take()
		if s.now += second; s.err != nil {
			t.Fatalf("after %d s: %v", s.now/second, s.err)
		}
	}
	pings := 0
	for ; pings < 10*limits.HTTP2OtherFrames && s.err == nil; pings++ {
		s.arrive(ping)
		s.take()
	}
	if codeOf(s.err) != int(http2.EnhanceYourCalm) {
		t.Errorf("after %d pings at once: %v", pings, s.err)
	}
}

// TestClient_AnswersCrossCancellations: headers, a message, trailers and a reset of each call
// are on their way when it is cancelled.
func TestClient_AnswersCrossCancellations(t *testing.T) {
	s := newServed(t)
	for range 20 * limits.HTTP2OtherFrames {
		id := s.open()
		s.conn.Reset(id, http2.Cancel)
		s.conn.Release(id)
		s.take()
		s.arrive(s.answer(id, 0))
		s.arrive(frame(http2.FrameData, 0, id, 0, 0, 0, 0, 0))
		s.arrive(s.trailers(id))
		s.arrive(frame(http2.FrameRSTStream, 0, id, 0, 0, 0, 0))
		if s.take(); s.err != nil {
			t.Fatalf("call %d: %v", id/2, s.err)
		}
	}
}

// TestConn_TailsOfMessages: messages of most lengths have a last frame that is not small, and
// those of others one of a byte. It is not the last one of the stream.
func TestConn_TailsOfMessages(t *testing.T) {
	for _, length := range []int{http2.FrameBytesMin, limits.HTTP2DataBeforeTiny} {
		a := newAttacked(t)
		a.arrive(a.request(0))
		for n := range 3 * limits.HTTP2TinyData {
			a.arrive(frame(http2.FrameData, 0, 1, make([]byte, length)...))
			a.arrive(frame(http2.FrameData, 0, 1, 0))
			a.conn.Consume(1, length+1, a.now)
			if a.take(); a.err != nil {
				t.Fatalf("message %d in frames of %d bytes: %v", n, length, a.err)
			}
		}
	}
}

// TestClient_RefusedBehindAnAnswer: a server that has answered has looked at the call, whatever
// it says afterwards.
func TestClient_RefusedBehindAnAnswer(t *testing.T) {
	for name, end := range map[string][]byte{
		"RST_STREAM": frame(http2.FrameRSTStream, 0, 1, 0, 0, 0, byte(http2.RefusedStream)),
		"GOAWAY":     frame(http2.FrameGoAway, 0, 0, make([]byte, 8)...),
	} {
		for _, answered := range []bool{false, true} {
			s := newServed(t)
			id := s.open()
			s.take()
			if answered {
				s.arrive(s.answer(id, 0))
			}
			s.arrive(end)
			if s.err != nil || len(s.resets) != 1 || s.resets[0].NotExecuted == answered {
				t.Errorf("%s, answered %v: %+v, %v", name, answered, s.resets, s.err)
			}
		}
	}
}

// TestClient_OpensNothingBehindWhatIsNotRead: headers wait as data does, though more of them.
func TestClient_OpensNothingBehindWhatIsNotRead(t *testing.T) {
	s := newServed(t)
	s.take()
	fields := append(requestFields(), http2.Field{Name: "k", Value: strings.Repeat("v", 8<<10)})
	opened := 0
	for ; opened < 10_000; opened++ {
		id, err := s.conn.Open(fields, true, s.now)
		if err != nil {
			if !errors.Is(err, http2.ErrStreams) || s.conn.Room() != 0 {
				t.Errorf("%v, room for %d", err, s.conn.Room())
			}
			break
		}
		s.conn.Reset(id, http2.Cancel)
		s.conn.Release(id)
	}
	if unsent := s.conn.Unsent(); unsent < 2*limits.UnsentBytes || unsent > 2*limits.UnsentBytes+64<<10 {
		t.Errorf("%d calls were begun, and %d bytes wait", opened, unsent)
	}
	s.take()
	s.open()
}
