package http2_test

import (
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// greedy is a client that fills windows, as it sees them, of streams of a server.
type greedy struct {
	*attacked
	// open are the windows by stream, that of the connection with 0.
	open map[uint32]int
}

func newGreedy(t *testing.T, streams int) *greedy {
	t.Helper()
	a := &attacked{writer: http2.NewHeaderWriter(), id: 1}
	a.side = newSide(t, http2.Config{}, nil)
	g := &greedy{a, map[uint32]int{0: 65535}}
	a.now += 10 * millisecond // a round trip
	a.arrive([]byte(http2.Preface))
	a.arrive(frame(http2.FrameSettings, 0, 0))
	a.arrive(frame(http2.FrameSettings, http2.FlagAck, 0))
	for range streams {
		g.open[a.id] = limits.HTTP2StreamWindowBytes
		a.arrive(a.request(0))
	}
	g.obey(t)
	return g
}

// obey takes what the server sends.
func (g *greedy) obey(t *testing.T) {
	t.Helper()
	for b := g.take(); len(b) > 0; {
		f, used, _, err := http2.Next(b, http2.FrameBytesMin)
		if err != nil || used == 0 {
			t.Fatalf("sent % x: %v", b, err)
		}
		if b = b[used:]; f.Type == http2.FrameWindowUpdate {
			g.open[f.Stream] += int(f.Value)
		}
	}
}

// send sends up to n bytes on a stream, of which the server uses a share at once, and returns
// how many the windows had room for.
func (g *greedy) send(t *testing.T, id uint32, n int, used bool) (sent int) {
	t.Helper()
	const most = 16384
	for sent < n {
		size := min(n-sent, most, g.open[id], g.open[0])
		if size == 0 {
			break
		}
		g.open[id] -= size
		g.open[0] -= size
		g.arrive(frame(http2.FrameData, 0, id, make([]byte, size)...))
		if g.err != nil {
			t.Fatal(g.err)
		}
		if used {
			g.conn.Consume(id, size, g.now)
		}
		sent += size
		g.obey(t)
	}
	return sent
}

// Streams that nobody reads hold what their windows allow, and no other stream waits for that.
func TestConn_UnreadStreamsStopNoOthers(t *testing.T) {
	const streams = 100
	g := newGreedy(t, streams+1)
	for i := range uint32(streams) {
		if sent := g.send(t, 2*i+1, 1<<20, false); sent != limits.HTTP2StreamWindowBytes {
			t.Fatalf("stream %d had room for %d bytes", 2*i+1, sent)
		}
	}
	if sent := g.send(t, 2*streams+1, 10<<20, true); sent != 10<<20 {
		t.Errorf("another one had room for %d bytes", sent)
	}
}

// The windows of all streams together grow to a bound, and may do so again when streams are
// gone.
func TestConn_WindowsGrowTogether(t *testing.T) {
	const streams = 8
	g := newGreedy(t, 2*streams)
	// fill lets windows grow as far as they do, and returns how much all streams can send then
	// that nobody reads.
	fill := func(first uint32) (held int) {
		for range 20 {
			for i := range uint32(streams) {
				g.now += millisecond
				g.send(t, first+2*i, g.open[first+2*i]/2+1, true)
			}
		}
		for i := range uint32(streams) {
			held += g.send(t, first+2*i, limits.HTTP2StreamWindowBytesMax+1, false)
		}
		return held
	}
	const most = limits.HTTP2GrownWindowBytes + streams*limits.HTTP2StreamWindowBytes
	if held := fill(1); held > most || held < limits.HTTP2GrownWindowBytes {
		t.Errorf("%d streams hold %d bytes, want %d at most", streams, held, most)
	}
	for i := range uint32(streams) {
		g.conn.Release(2*i + 1)
	}
	g.obey(t)
	if held := fill(2*streams + 1); held > most || held < limits.HTTP2GrownWindowBytes {
		t.Errorf("%d other streams hold %d bytes, want %d at most", streams, held, most)
	}
}

// TestConn_FramesDoNotFollowPieces: frames are as long as they may be, and no byte of a message
// has one of its own because it is apart in memory.
func TestConn_FramesDoNotFollowPieces(t *testing.T) {
	s := newSide(t, http2.Config{Client: true}, nil)
	s.arrive(frame(http2.FrameSettings, 0, 0))
	id, err := s.conn.Open(requestFields(), false, s.now)
	if err != nil {
		t.Fatal(err)
	}
	s.take()
	pieces := [][]byte{make([]byte, 5), make([]byte, 20_000), {}, make([]byte, 1)}
	if rest, err := s.conn.DataPieces(id, pieces, true); len(rest) > 0 || err != nil {
		t.Fatalf("%d pieces are left, %v", len(rest), err)
	}
	var lengths []int
	for sent := s.take(); len(sent) > 0; {
		length := int(sent[0])<<16 | int(sent[1])<<8 | int(sent[2])
		lengths = append(lengths, length)
		sent = sent[http2.FrameHeaderSize+length:]
	}
	if want := []int{16384, 20_006 - 16384}; !slices.Equal(lengths, want) {
		t.Errorf("frames of %d bytes, want %d", lengths, want)
	}
}
