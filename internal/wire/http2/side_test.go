package http2_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

const (
	millisecond http2.Nanoseconds = 1e6
	second                        = 1000 * millisecond
)

// side is a Conn and what a transport keeps beside it.
type side struct {
	t    testing.TB
	conn *http2.Conn
	pool *linkbuf.Pool
	now  http2.Nanoseconds
	// arrived is what Next has not used yet.
	arrived []byte
	// event is told of each event.
	event func(http2.Event)
	err   error
	// congested is set when the Conn reads nothing until its output was taken.
	congested bool
}

func newSide(t testing.TB, config http2.Config, event func(http2.Event)) *side {
	t.Helper()
	s := &side{t: t, pool: linkbuf.NewPool(), event: event, now: second}
	s.conn = http2.NewConn(config, s.pool, s.now)
	t.Cleanup(func() {
		s.conn.Close()
		if n := s.pool.Outstanding(); n != 0 {
			t.Errorf("%d chunks were not given back", n)
		}
	})
	return s
}

// arrive gives bytes of the peer to the Conn.
func (s *side) arrive(b []byte) {
	s.arrived = append(s.arrived, b...)
	s.read()
}

func (s *side) read() {
	s.t.Helper()
	for s.congested = false; s.err == nil; {
		event, used, need, err := s.conn.Next(s.arrived, s.now)
		switch {
		case err != nil:
			s.err = err
			return
		case event.Kind == http2.EventCongested:
			s.congested = true
			return
		case event.Kind != http2.EventNone && s.event != nil:
			s.event(event)
		}
		s.arrived = s.arrived[used:]
		if used == 0 && event.Kind == http2.EventNone {
			if need <= len(s.arrived) {
				s.t.Fatalf("have %d bytes, need %d", len(s.arrived), need)
			}
			return
		}
	}
}

// take returns what the Conn has to send.
func (s *side) take() []byte {
	full := s.conn.Swap(linkbuf.New(s.pool))
	defer full.Release()
	return bytes.Join(full.Slices(nil), nil)
}

// describeEvent returns an event as a line.
func describeEvent(e http2.Event) string {
	names := [...]string{"none", "headers", "data", "reset", "goaway", "settings", "pong", "congested"}
	var out strings.Builder
	out.WriteString("event " + names[e.Kind])
	if e.Stream != 0 {
		fmt.Fprintf(&out, " %d", e.Stream)
	}
	for _, f := range e.Fields {
		fmt.Fprintf(&out, " %s=%s", f.Name, f.Value)
	}
	switch {
	case len(e.Data) > 40:
		fmt.Fprintf(&out, " %d bytes", len(e.Data))
	case e.Kind == http2.EventData || len(e.Data) > 0:
		fmt.Fprintf(&out, " %q", e.Data)
	}
	for _, mark := range []struct {
		set  bool
		text string
	}{{e.Trailers, "trailers"}, {e.Interim, "interim"}, {e.TooLarge, "too large"}, {e.End, "end"}, {e.NotExecuted, "not executed"}} {
		if mark.set {
			out.WriteString(" " + mark.text)
		}
	}
	if e.Kind == http2.EventGoAway {
		fmt.Fprintf(&out, " last %d", e.Last)
	}
	if e.Code != 0 || e.Kind == http2.EventGoAway || e.Kind == http2.EventReset {
		fmt.Fprintf(&out, " %v", e.Code)
	}
	if e.Problem != nil {
		out.WriteString(": " + e.Problem.Detail)
	}
	return out.String()
}

// frames returns the frames in b as lines, with header blocks decoded.
func frames(t testing.TB, b []byte, reader *http2.HeaderReader) []string {
	t.Helper()
	var lines []string
	if rest, ok := bytes.CutPrefix(b, []byte(http2.Preface)); ok {
		lines, b = append(lines, "sent preface"), rest
	}
	for len(b) > 0 {
		f, used, _, err := http2.Next(b, http2.FrameBytesMin)
		if err != nil || used == 0 {
			t.Fatalf("sent % x: %v", b, err)
		}
		b = b[used:]
		lines = append(lines, "sent "+describeSent(t, f, reader))
	}
	return lines
}

func describeSent(t testing.TB, f http2.Frame, reader *http2.HeaderReader) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprint(&out, f.Type)
	if f.Stream != 0 {
		fmt.Fprintf(&out, " %d", f.Stream)
	}
	if f.Ends() {
		out.WriteString(" end")
	}
	if (f.Type == http2.FrameSettings || f.Type == http2.FramePing) && f.Flags.Has(http2.FlagAck) {
		out.WriteString(" ack")
	}
	switch f.Type {
	case http2.FrameHeaders:
		if !f.Flags.Has(http2.FlagEndHeaders) {
			t.Fatal("a header block that goes on")
		}
		fields, _, err := reader.Read(f.Payload)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range fields {
			fmt.Fprintf(&out, " %s=%s", field.Name, field.Value)
		}
	case http2.FrameSettings:
		for i := range f.Settings() {
			id, value := f.Setting(i)
			fmt.Fprintf(&out, " %d=%d", id, value)
		}
	case http2.FrameGoAway:
		fmt.Fprintf(&out, " last %d %v %q", f.Value, f.Code, f.Payload)
	case http2.FrameRSTStream:
		fmt.Fprintf(&out, " %v", f.Code)
	case http2.FrameWindowUpdate:
		fmt.Fprintf(&out, " %d", f.Value)
	case http2.FrameData:
		if len(f.Payload) > 40 {
			fmt.Fprintf(&out, " %d bytes", len(f.Payload))
			break
		}
		fmt.Fprintf(&out, " %q", f.Payload)
	default:
		fmt.Fprintf(&out, " %x", f.Payload)
	}
	return out.String()
}

// codeOf returns the code of the error that ended a connection, -1 without one.
func codeOf(err error) int {
	var problem *http2.Error
	if errors.As(err, &problem) {
		return int(problem.Code)
	}
	return -1
}
