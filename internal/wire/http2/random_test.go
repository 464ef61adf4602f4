package http2_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// TestConn_RandomFrames has a peer send frames of all types, in any order, many of which
// break rules, while the caller answers, waits, resets and releases. Whatever comes:
// events of a stream are in order, and none follows its end or a reset; there are never
// more streams than allowed; what is sent can be read; and no memory is kept.
func TestConn_RandomFrames(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	codes := map[int]int{}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			codes[newVandal(t, uint64(seed)).run()]++
		})
	}
	// The test is worth something only if connections end in many ways, and some live.
	if len(codes) < 4 || codes[-1] < rounds/10 {
		t.Errorf("connections ended with the codes %v", codes)
	}
}

const vandalStreams = 4

type vandal struct {
	*side
	random *rand.Rand
	client bool
	writer *http2.HeaderWriter
	reader *http2.HeaderReader
	// calls are what the caller knows of streams that it has not released.
	calls map[uint32]*vandalCall
	// next is the id that is likely to begin the next stream.
	next uint32
	// ended are streams of which the peer has said that it sends nothing more.
	ended map[uint32]bool
}

type vandalCall struct{ headed, ended, reset bool }

func newVandal(t *testing.T, seed uint64) *vandal {
	v := &vandal{random: rand.New(rand.NewPCG(seed, 3)), calls: map[uint32]*vandalCall{}, ended: map[uint32]bool{}, next: 1}
	v.client = seed%3 == 0
	v.writer, v.reader = http2.NewHeaderWriter(), http2.NewHeaderReader(1<<20)
	v.side = newSide(t, http2.Config{Client: v.client, Streams: vandalStreams, UnsentBytes: 2000}, v.on)
	if !v.client {
		v.arrive([]byte(http2.Preface))
	}
	v.arrive(frame(http2.FrameSettings, 0, 0))
	return v
}

// run returns the code that the connection ended with, -1 if it did not.
func (v *vandal) run() int {
	for range 400 {
		if v.random.IntN(3) == 0 {
			v.act()
		} else {
			v.arrive(v.frame())
		}
		if n := v.conn.Streams(); !v.client && n > vandalStreams || n != len(v.calls) {
			v.t.Fatalf("%d streams, the caller has %d", n, len(v.calls))
		}
		if v.err != nil || v.random.IntN(4) == 0 {
			frames(v.t, v.take(), v.reader)
			v.read()
		}
		if v.err != nil {
			break
		}
		v.now += http2.Nanoseconds(v.random.IntN(int(second)))
	}
	return codeOf(v.err)
}

// frame returns a frame, which is more often good than not.
func (v *vandal) frame() []byte {
	id := v.stream()
	if id == 0 {
		return frame(http2.FrameSettings, 0, 0, 0, 3, 0, 0, 0, 100)
	}
	flags := http2.Flags(v.random.IntN(2))
	number := make([]byte, 4)
	binary.BigEndian.PutUint32(number, uint32(v.random.IntN(1000)))
	kind := v.random.IntN(12)
	if id == v.next && !v.client {
		kind = 0
	}
	if flags == http2.FlagEndStream && kind < 6 || kind == 7 {
		v.ended[id] = true
	}
	switch kind {
	case 0, 1, 2:
		if id == v.next && !v.client {
			v.next += 2
			return frame(http2.FrameHeaders, flags|http2.FlagEndHeaders, id, v.writer.Write(requestFields())...)
		}
		return frame(http2.FrameHeaders, flags|http2.FlagEndHeaders, id, v.writer.Write(v.fields())...)
	case 3, 4, 5:
		return frame(http2.FrameData, flags, id, make([]byte, v.random.IntN(3000))...)
	case 6:
		return frame(http2.FrameWindowUpdate, 0, id*uint32(v.random.IntN(2)), number...)
	case 7:
		return frame(http2.FrameRSTStream, 0, id, number...)
	case 8:
		return frame(http2.FramePriority, 0, id, append(number, 0)...)
	case 9:
		if flags == http2.FlagAck {
			return frame(http2.FrameSettings, flags, 0)
		}
		return frame(http2.FrameSettings, 0, 0, append([]byte{0, [...]byte{1, 3, 4, 6}[v.random.IntN(4)]}, number...)...)
	case 10:
		return frame(http2.FramePing, flags, 0, append(number, number...)...)
	}
	if v.random.IntN(20) != 0 {
		return frame(http2.FrameType(20+v.random.IntN(200)), flags, id)
	}
	return frame(http2.FrameType(v.random.IntN(10)), http2.Flags(v.random.IntN(256)), id, make([]byte, v.random.IntN(10))...)
}

// stream returns a stream that the peer may send for, or now and then any. At a server
// it may be one that is to begin.
func (v *vandal) stream() uint32 {
	if v.random.IntN(200) == 0 {
		return uint32(v.random.IntN(int(v.next) + 5))
	}
	var live []uint32
	for id := uint32(1); id < v.next; id += 2 {
		if !v.ended[id] {
			live = append(live, id)
		}
	}
	if !v.client && (len(live) == 0 || v.random.IntN(8) == 0) {
		return v.next
	}
	if len(live) == 0 {
		return 0
	}
	return live[v.random.IntN(len(live))]
}

// fields returns those of a request, a response or trailers, whichever it may be.
func (v *vandal) fields() []http2.Field {
	switch {
	case v.random.IntN(3) == 0:
		return []http2.Field{{Name: "grpc-status", Value: "0"}}
	case v.client:
		return []http2.Field{{Name: ":status", Value: "200"}}
	default:
		return requestFields()
	}
}

// act is what the caller does.
func (v *vandal) act() {
	if v.client && len(v.calls) < vandalStreams {
		// The peer answers those before it.
		if id, err := v.conn.Open(requestFields(), v.random.IntN(2) == 0, v.now); err == nil {
			v.calls[id] = new(vandalCall)
			v.next = id + 2
		}
	}
	id := uint32(0)
	for i := uint32(1); i <= v.next+2; i += 2 {
		if v.calls[i] != nil && (id == 0 || v.random.IntN(2) == 0) {
			id = i
		}
	}
	if id == 0 {
		return
	}
	// Errors are of streams that have ended, or of parts in the wrong order.
	switch v.random.IntN(6) {
	case 0:
		_ = v.conn.Headers(id, []http2.Field{{Name: ":status", Value: "200"}}, v.random.IntN(2) == 0)
	case 1:
		_, _ = v.conn.Data(id, make([]byte, v.random.IntN(3000)), v.random.IntN(2) == 0)
	case 2:
		v.conn.Consume(id, v.random.IntN(5000), v.now)
	case 3:
		v.conn.Reset(id, http2.Cancel)
		v.calls[id].reset = true
	case 4:
		_, _, _ = v.conn.Writable()
	case 5:
		v.conn.Release(id)
		delete(v.calls, id)
	}
}

func (v *vandal) on(e http2.Event) {
	v.t.Helper()
	if e.Stream == 0 {
		return
	}
	c := v.calls[e.Stream]
	if e.Kind == http2.EventHeaders && c == nil && !v.client {
		c = new(vandalCall)
		v.calls[e.Stream] = c
	}
	switch {
	case c == nil:
		v.t.Fatalf("%s: of a stream that nobody has", describeEvent(e))
	case c.reset, c.ended && e.Kind != http2.EventReset:
		v.t.Fatalf("%s: after the end, %+v", describeEvent(e), *c)
	case e.Kind == http2.EventData && !c.headed, e.Kind == http2.EventHeaders && c.headed != e.Trailers:
		v.t.Fatalf("%s: in the wrong order, %+v", describeEvent(e), *c)
	}
	c.headed = c.headed || e.Kind == http2.EventHeaders && !e.Interim
	c.ended = c.ended || e.End
	c.reset = e.Kind == http2.EventReset
}
