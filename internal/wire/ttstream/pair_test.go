package ttstream_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// side is one end of a connection and what came out of it.
type side struct {
	t      testing.TB
	conn   *ttstream.Conn
	pool   *linkbuf.Pool
	now    ttstream.Nanoseconds
	input  []byte
	skip   int
	events []string
	err    error
	// keep says that messages are not consumed as they come.
	keep bool
	// calls are events of unary messages, which end the reading here.
	calls int
}

func newSide(t testing.TB, config ttstream.Config) *side {
	t.Helper()
	s := &side{t: t, pool: linkbuf.NewPool()}
	s.conn = ttstream.NewConn(config, s.pool, 0)
	t.Cleanup(func() {
		s.conn.Close()
		if n := s.pool.Outstanding(); n != 0 {
			t.Errorf("%d buffers were not given back", n)
		}
	})
	return s
}

// arrive gives bytes to the connection and notes what they mean.
func (s *side) arrive(b []byte) {
	s.t.Helper()
	s.input = append(s.input, b...)
	for s.err == nil {
		cut := min(s.skip, len(s.input))
		s.input, s.skip = s.input[cut:], s.skip-cut
		if s.skip > 0 {
			return // all that came is thrown away
		}
		event, used, need, err := s.conn.Next(s.input, s.now)
		switch {
		case err != nil:
			s.err = err
			s.events = append(s.events, err.Error())
			return
		case need > 0 && need <= len(s.input):
			s.t.Fatalf("%d bytes are needed of %d", need, len(s.input))
		case event.Kind == ttstream.EventCall:
			s.calls++
			return
		case event.Kind == ttstream.EventCongested:
			return
		}
		cut = min(used, len(s.input))
		if event.Kind != ttstream.EventNone {
			s.events = append(s.events, describe(event))
		}
		if event.Kind == ttstream.EventData && !s.keep {
			s.conn.Consume(event.Stream, len(event.Data))
		}
		s.input, s.skip = s.input[cut:], used-cut
		if used == 0 && event.Kind == ttstream.EventNone {
			return
		}
	}
}

// sent takes what the connection wants to send.
func (s *side) sent() []byte {
	full := s.conn.Swap(linkbuf.New(s.pool))
	defer full.Release()
	var all []byte
	for _, piece := range full.Slices(nil) {
		all = append(all, piece...)
	}
	return all
}

// said returns the events since it was asked last.
func (s *side) said() string {
	said := strings.Join(s.events, "\n")
	s.events = nil
	return said
}

func (s *side) want(want string) {
	s.t.Helper()
	if got := s.said(); got != want {
		s.t.Fatalf("events:\n%s\nwant:\n%s", got, want)
	}
}

// settle lets both sides have what the other one sent until nobody says anything.
func settle(a, b *side) {
	for range 100 {
		x, y := a.sent(), b.sent()
		if len(x)+len(y) == 0 {
			return
		}
		b.arrive(x)
		a.arrive(y)
	}
	a.t.Fatal("the two never stop talking")
}

func newPair(t testing.TB, client, server ttstream.Config) (*side, *side) {
	client.Client = true
	return newSide(t, client), newSide(t, server)
}

func describe(e ttstream.Event) string {
	var b strings.Builder
	names := [...]string{"none", "open", "header", "data", "end", "reset", "go-away", "call", "congested"}
	fmt.Fprintf(&b, "%s %d", names[e.Kind], e.Stream)
	if len(e.Method) > 0 {
		fmt.Fprintf(&b, " %s", e.Method)
	}
	var keys []string
	for key, value := range e.Info.Strings() {
		keys = append(keys, fmt.Sprintf(" %s=%s", key, value))
	}
	slices.Sort(keys) // Kitex has them in any order.
	b.WriteString(strings.Join(keys, ""))
	if e.Data != nil {
		if len(e.Data) > 40 {
			fmt.Fprintf(&b, " %d bytes", len(e.Data))
		} else {
			fmt.Fprintf(&b, " %x", e.Data)
		}
	}
	if e.Timeout != 0 {
		fmt.Fprintf(&b, " timeout %d ms", e.Timeout/1e6)
	}
	if e.Failed {
		fmt.Fprintf(&b, " failure %d %q", e.Failure.Code, e.Failure.Message)
	}
	if e.HasBusiness {
		fmt.Fprintf(&b, " business %d %q %q", e.Business.Status, e.Business.Message, e.Business.Extra)
	}
	if e.Path != "" {
		fmt.Fprintf(&b, " path %q", e.Path)
	}
	if e.NotExecuted {
		b.WriteString(" not executed")
		if e.Full {
			b.WriteString(", full")
		}
	}
	if e.Problem != nil {
		fmt.Fprintf(&b, " problem: %v", e.Problem)
	}
	return b.String()
}

func pairs(texts ...string) []ttheader.Pair {
	var all []ttheader.Pair
	for i := 0; i < len(texts); i += 2 {
		all = append(all, ttheader.Pair{Key: texts[i], Value: texts[i+1]})
	}
	return all
}

func (s *side) open(method string) int32 {
	s.t.Helper()
	id, err := s.conn.Open(ttstream.Request{Method: method})
	s.must(err)
	return id
}

func (s *side) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *side) send(id int32, message string) bool {
	s.t.Helper()
	sent, err := s.conn.Send(id, []byte(message))
	s.must(err)
	return sent
}

// frame returns a frame as a peer may write it.
func frame(stream int32, kind, method string, payload []byte, texts ...string) []byte {
	head := ttheader.Head{
		Flags: wire.FlagStreaming, Sequence: stream, Protocol: ttheader.ProtocolStruct, Strings: pairs(texts...),
		Ints: []ttheader.IntPair{{Key: wire.KeyStreamFrameType, Value: kind}, {Key: wire.KeyToMethod, Value: method}},
	}
	size, err := head.Size()
	if err != nil {
		panic(err)
	}
	b := make([]byte, size, size+len(payload))
	head.Put(b, len(payload))
	return append(b, payload...)
}
