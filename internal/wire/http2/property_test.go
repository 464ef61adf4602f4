package http2_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// TestConn_BothSides connects a client and a server of ours. Each step is random:
// bytes arrive, in pieces of any length, calls begin, bodies are sent in parts,
// consumed late, calls end as they should or are reset by either side, settings and
// windows differ, the server stops. What must hold:
//
//   - bodies and trailers arrive once, in order, and whole unless the call was reset;
//   - neither side says that the other breaks a rule;
//   - no more arrives unconsumed than the windows allow;
//   - when all is quiet there are no streams, no bytes, and no chunks.
func TestConn_BothSides(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newWorld(t, uint64(seed)).run() })
	}
}

const (
	worldCalls     = 40
	worldBodyBytes = 200_000
)

type world struct {
	t              *testing.T
	random         *rand.Rand
	client, server *end
	text           []byte
	began          int
	stopped        bool
}

// end is one side, with what its caller knows.
type end struct {
	*side
	w      *world
	client bool
	calls  map[uint32]*call
	window int
	// wire is what was sent and has not arrived.
	wire []byte
	// unconsumed is what all streams have received and not consumed.
	unconsumed int
}

// call is one side of a call. Both send a body that its stream's id and side determine.
type call struct {
	id          uint32
	sent, total int
	headed      bool
	done        bool
	received    int
	unconsumed  int
	ended       bool
	reset       bool
	// blocked: data was left, and Writable has not named the stream.
	blocked bool
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 7))}
	w.text = make([]byte, worldBodyBytes+worldCalls*2*1009+1000)
	for i := range w.text {
		w.text[i] = byte(w.random.Uint32())
	}
	w.client, w.server = w.newEnd(true), w.newEnd(false)
	return w
}

func (w *world) newEnd(client bool) *end {
	e := &end{w: w, client: client, calls: map[uint32]*call{}, window: 2000 + w.random.IntN(100_000)}
	config := http2.Config{
		Client: client, Streams: 1 + w.random.IntN(10), StreamWindow: e.window,
		StreamWindowMax: e.window + w.random.IntN(100_000), ConnectionWindow: 1, UnsentBytes: 1 + w.random.IntN(50_000),
	}
	e.side = newSide(w.t, config, e.on)
	return e
}

func (w *world) run() {
	for range 100_000 {
		w.step()
		if w.began == worldCalls && w.quiet() {
			return
		}
	}
	for _, e := range []*end{w.client, w.server} {
		for _, c := range e.calls {
			w.t.Logf("client %v, window %d, congested %v: %+v", e.client, e.window, e.congested, *c)
		}
	}
	w.t.Fatalf("not quiet: client %d streams, %d unsent; server %d streams, %d unsent", w.client.conn.Streams(), w.client.conn.Unsent(), w.server.conn.Streams(), w.server.conn.Unsent())
}

func (w *world) quiet() bool {
	for _, e := range []*end{w.client, w.server} {
		if e.conn.Streams() != 0 || e.conn.Unsent() != 0 || len(e.wire)+len(e.arrived) != 0 || e.unconsumed != 0 {
			return false
		}
	}
	return true
}

func (w *world) step() {
	w.t.Helper()
	e, other := w.client, w.server
	if w.random.IntN(2) == 0 {
		e, other = other, e
	}
	e.now += http2.Nanoseconds(w.random.IntN(100_000))
	switch w.random.IntN(8) {
	case 0:
		if w.began < worldCalls {
			w.client.begin()
		}
	case 1, 2:
		// Some of what was sent arrives.
		n := w.random.IntN(len(other.wire) + 1)
		if w.random.IntN(4) == 0 {
			n = min(n, 20)
		}
		e.arrive(other.wire[:n])
		other.wire = other.wire[n:]
	case 3:
		e.wire = append(e.wire, e.take()...)
		e.read()
	case 4:
		e.resume()
	case 5:
		e.each((*end).send)
	case 6:
		e.each((*end).consume)
	case 7:
		e.each((*end).finish)
		if !w.stopped && w.random.IntN(2000) == 0 {
			w.stopped = true
			w.server.conn.Shutdown(w.server.now)
		}
	}
	if e.err != nil {
		w.t.Fatalf("client %v: %v", e.client, e.err)
	}
}

// each calls act for one of the calls that are not released.
func (e *end) each(act func(*end, *call)) {
	var calls []*call
	for id := uint32(1); len(calls) < len(e.calls); id += 2 {
		if c := e.calls[id]; c != nil {
			calls = append(calls, c)
		}
	}
	if len(calls) > 0 {
		act(e, calls[e.w.random.IntN(len(calls))])
	}
}

// begin opens a stream at the client, if it may.
func (e *end) begin() {
	total := e.w.random.IntN(worldBodyBytes) * e.w.random.IntN(2)
	id, err := e.conn.Open([]http2.Field{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: fmt.Sprint("/", e.w.began%7)},
		{Name: "x-value", Value: fmt.Sprint(e.w.random.Uint32())},
	}, total == 0, e.now)
	switch {
	case err == nil:
		e.w.began++
		e.calls[id] = &call{id: id, total: total, headed: true, done: total == 0}
	case e.w.stopped:
		e.w.began = worldCalls
	}
}

// body is what a side sends at a place: bytes of one list that nobody changes, from a
// place that its stream and side determine.
func (w *world) body(id uint32, client bool, from, n int) []byte {
	start := int(id) * 1009
	if client {
		start += 503
	}
	return w.text[start+from : start+from+n]
}

// send sends the next part of a call: headers, data, or trailers.
func (e *end) send(c *call) {
	e.w.t.Helper()
	if c.done || c.reset || c.blocked {
		return
	}
	var err error
	switch {
	case !c.headed:
		c.headed = true
		err = e.conn.Headers(c.id, []http2.Field{{Name: ":status", Value: "200"}}, false)
	case c.sent < c.total:
		n := min(c.total-c.sent, 1+e.w.random.IntN(40_000))
		final := e.client && c.sent+n == c.total
		var rest [][]byte
		rest, err = e.conn.DataPieces(c.id, e.pieces(e.w.body(c.id, e.client, c.sent, n)), final)
		sent := n
		for _, piece := range rest {
			sent -= len(piece)
		}
		c.sent += sent
		c.blocked = sent < n
		c.done = final && sent == n
	case e.client:
		_, err = e.conn.Data(c.id, nil, true)
		c.done = true
	default:
		c.done = true
		err = e.conn.Headers(c.id, []http2.Field{{Name: "sum", Value: fmt.Sprint(c.total)}}, true)
	}
	if err != nil {
		e.w.t.Fatalf("client %v, stream %d: %v", e.client, c.id, err)
	}
}

// pieces cuts a part of a body into some, which may be empty.
func (e *end) pieces(b []byte) (pieces [][]byte) {
	for range e.w.random.IntN(4) {
		n := e.w.random.IntN(len(b) + 1)
		pieces, b = append(pieces, b[:n:n]), b[n:]
	}
	return append(pieces, b)
}

// resume goes on with a stream that was blocked.
func (e *end) resume() {
	id, _, ok := e.conn.Writable()
	if !ok {
		return
	}
	c := e.calls[id]
	if c == nil || !c.blocked {
		e.w.t.Fatalf("stream %d can be written, of %+v", id, c)
	}
	c.blocked = false
	before := c.sent
	e.send(c)
	if c.sent == before {
		e.w.t.Fatalf("stream %d can be written, and took nothing: %+v", id, c)
	}
}

func (e *end) consume(c *call) {
	n := c.unconsumed
	if e.w.random.IntN(2) == 0 {
		n = e.w.random.IntN(n + 1)
	}
	e.conn.Consume(c.id, n, e.now)
	c.unconsumed -= n
	e.unconsumed -= n
}

// finish releases a call that has ended, and now and then one that has not.
func (e *end) finish(c *call) {
	over := c.reset || c.ended && (c.done || e.client) && (c.unconsumed == 0 || e.w.random.IntN(4) == 0)
	if !over && e.w.random.IntN(200) != 0 {
		return
	}
	if !over && e.w.random.IntN(2) == 0 {
		e.conn.Reset(c.id, http2.Cancel)
	}
	e.unconsumed -= c.unconsumed
	e.conn.Release(c.id)
	delete(e.calls, c.id)
}

// on checks what arrives.
func (e *end) on(event http2.Event) {
	t := e.w.t
	t.Helper()
	c := e.calls[event.Stream]
	switch event.Kind {
	case http2.EventHeaders:
		if !e.client && !event.Trailers {
			if c != nil {
				t.Fatalf("stream %d began twice", event.Stream)
			}
			c = &call{id: event.Stream, total: e.w.random.IntN(worldBodyBytes) * e.w.random.IntN(2)}
			e.calls[event.Stream] = c
		}
		if event.Trailers && (!event.End || event.Fields[0].Value != fmt.Sprint(c.received)) {
			t.Fatalf("trailers of stream %d, %v, after %d bytes", event.Stream, event.Fields, c.received)
		}
		c.ended = event.End
	case http2.EventData:
		if c == nil || c.ended || c.reset {
			t.Fatalf("data of stream %d, which is %+v", event.Stream, c)
		}
		if !bytes.Equal(event.Data, e.w.body(c.id, !e.client, c.received, len(event.Data))) {
			t.Fatalf("stream %d has other bytes behind the first %d", c.id, c.received)
		}
		c.received += len(event.Data)
		c.unconsumed += len(event.Data)
		e.unconsumed += len(event.Data)
		c.ended = event.End
		if e.unconsumed > 65535+200_000 || c.unconsumed > e.window+100_000 {
			t.Fatalf("%d bytes of stream %d and %d of all are not consumed", c.unconsumed, c.id, e.unconsumed)
		}
	case http2.EventReset:
		if event.Problem != nil {
			t.Fatalf("stream %d: %v", event.Stream, event.Problem)
		}
		if c == nil || c.reset {
			t.Fatalf("reset of stream %d, which is %+v", event.Stream, c)
		}
		c.reset = true
	}
}

// FuzzConn gives any bytes to both sides, in one piece and byte by byte: the same
// events come out, streams stay within their limit, and nothing is kept.
func FuzzConn(f *testing.F) {
	request := http2.NewHeaderWriter().Write([]http2.Field{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: "/"}})
	hello := bytes.Join([][]byte{
		frame(http2.FrameSettings, 0, 0, 0, 4, 0, 0, 0, 1),
		frame(http2.FrameHeaders, http2.FlagEndHeaders, 1, request...),
		frame(http2.FrameData, 0, 1, 'a', 'b'),
		frame(http2.FrameWindowUpdate, 0, 1, 0, 0, 0, 9),
		frame(http2.FrameRSTStream, 0, 1, 0, 0, 0, 8),
	}, nil)
	f.Add(hello, false)
	f.Add(bytes.Join([][]byte{
		frame(http2.FrameSettings, 0, 0),
		frame(http2.FrameHeaders, http2.FlagEndHeaders, 1, 0x88),
		frame(http2.FrameData, http2.FlagPadded|http2.FlagEndStream, 1, 1, 'b', 0),
		frame(http2.FrameGoAway, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0),
	}, nil), true)
	f.Fuzz(func(t *testing.T, b []byte, client bool) {
		if whole, single := feed(t, b, client, len(b)), feed(t, b, client, 1); whole != single {
			t.Fatalf("in one piece:\n%s\nbyte by byte:\n%s", whole, single)
		}
	})
}

// feed gives b to a side, in pieces, and returns all events as text. Whoever gets them
// answers some calls and leaves others.
func feed(t *testing.T, b []byte, client bool, piece int) string {
	var out bytes.Buffer
	var s *side
	s = newSide(t, http2.Config{Client: client, Streams: 3, HeaderListBytes: 500}, func(e http2.Event) {
		fmt.Fprintln(&out, describeEvent(e))
		switch e.Kind {
		case http2.EventData:
			s.conn.Consume(e.Stream, len(e.Data)/2, s.now)
		case http2.EventHeaders:
			if e.End && !client {
				// An error is that of a stream which the peer has ended.
				_ = s.conn.Headers(e.Stream, []http2.Field{{Name: ":status", Value: "200"}}, e.Stream%4 == 1)
				_, _ = s.conn.Data(e.Stream, make([]byte, 100), true)
			}
		case http2.EventReset:
			s.conn.Release(e.Stream)
		}
	})
	if client {
		for range 3 {
			if _, err := s.conn.Open([]http2.Field{{Name: ":method", Value: "GET"}}, false, s.now); err != nil {
				t.Fatal(err)
			}
		}
	} else {
		s.arrive([]byte(http2.Preface))
	}
	for len(b) > 0 {
		n := min(piece, len(b))
		s.arrive(b[:n])
		b = b[n:]
		if n := s.conn.Streams(); n > 3 {
			t.Fatalf("%d streams", n)
		}
	}
	for range 1000 {
		s.take()
		if !s.congested {
			break
		}
		s.read()
	}
	fmt.Fprintln(&out, s.err, s.conn.Streams())
	return out.String()
}
