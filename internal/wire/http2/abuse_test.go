package http2_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// attacked is a server with a peer that does the same again and again, and never
// breaks a rule that ends the connection at once. No handler of it returns.
type attacked struct {
	*side
	writer   *http2.HeaderWriter
	handlers int
	id       uint32
}

func newAttacked(t testing.TB) *attacked {
	t.Helper()
	a := &attacked{writer: http2.NewHeaderWriter(), id: 1}
	a.side = newSide(t, http2.Config{}, func(e http2.Event) {
		if e.Kind == http2.EventHeaders && !e.Trailers {
			a.handlers++
		}
	})
	a.arrive([]byte(http2.Preface))
	a.arrive(frame(http2.FrameSettings, 0, 0))
	a.arrive(frame(http2.FrameSettings, http2.FlagAck, 0))
	return a
}

// request returns HEADERS of a new stream.
func (a *attacked) request(flags http2.Flags) []byte {
	defer func() { a.id += 2 }()
	return frame(http2.FrameHeaders, flags|http2.FlagEndHeaders, a.id, a.writer.Write(requestFields())...)
}

func requestFields() []http2.Field {
	return []http2.Field{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: "/a"}}
}

// attack is what a peer does again and again.
type attack struct {
	name string
	// before comes once, attack until the end.
	before func(a *attacked) []byte
	attack func(a *attacked) []byte
	most   int
	code   http2.ErrorCode
	// handlers that may have begun, kilobytes that may have been allocated, with a copy
	// of each frame that the test makes.
	handlers, kilobytes int
}

// attacksWithStreams are those that begin or end streams.
func attacksWithStreams() []attack {
	return []attack{
		{"rapid reset", nothing, func(a *attacked) (b []byte) {
			for range 100 {
				id := a.id
				b = append(append(b, a.request(0)...), frame(http2.FrameRSTStream, 0, id, 0, 0, 0, 8)...)
			}
			return b
		}, 2*limits.HTTP2Resets/100 + 1, http2.EnhanceYourCalm, limits.HTTP2Streams, 600},
		{"rapid reset of handlers that end", nothing, func(a *attacked) (b []byte) {
			for range 100 {
				id := a.id
				a.conn.Release(id - 200)
				b = append(append(b, a.request(0)...), frame(http2.FrameRSTStream, 0, id, 0, 0, 0, 8)...)
			}
			return b
		}, 2*limits.HTTP2Resets/100 + 1, http2.EnhanceYourCalm, 2*limits.HTTP2Resets + 1, 3000},
		{"streams beyond the limit", nothing, func(a *attacked) (b []byte) {
			for range 100 {
				b = append(b, a.request(0)...)
			}
			return b
		}, (limits.HTTP2Streams+limits.HTTP2Refusals)/100 + 1, http2.EnhanceYourCalm, limits.HTTP2Streams, 3000},
		{"streams that make us reset them", nothing, func(a *attacked) []byte {
			id := a.id
			return append(a.request(0), frame(http2.FrameWindowUpdate, 0, id, 0, 0, 0, 0)...)
		}, limits.HTTP2PeerErrors + 1, http2.EnhanceYourCalm, limits.HTTP2PeerErrors + 1, 600},
		{"data behind the end", nothing, func(a *attacked) []byte {
			id := a.id
			return append(a.request(http2.FlagEndStream), frame(http2.FrameData, 0, id, 'x')...)
		}, limits.HTTP2PeerErrors + 1, http2.EnhanceYourCalm, limits.HTTP2PeerErrors + 1, 600},
		{"malformed requests", nothing, func(a *attacked) []byte {
			a.id += 2
			return frame(http2.FrameHeaders, http2.FlagEndHeaders, a.id-2, 0x83)
		}, limits.HTTP2PeerErrors + 1, http2.EnhanceYourCalm, 0, 200},
		{"headers without name", nothing, func(a *attacked) []byte {
			a.id += 2
			return frame(http2.FrameHeaders, http2.FlagEndHeaders, a.id-2, 0x83, 0x86, 0x84, 0, 0, 0)
		}, limits.HTTP2PeerErrors + 1, http2.EnhanceYourCalm, 0, 200},
		{"long lists with headers without name", nothing, func(a *attacked) []byte {
			a.id += 2
			return frame(http2.FrameHeaders, http2.FlagEndHeaders, a.id-2, slices.Concat([]byte{0x83, 0x86, 0x84, 0, 0, 0},
				bytes.Repeat(append([]byte{0, 1, 'k', 100}, bytes.Repeat([]byte{'v'}, 100)...), 150))...)
		}, limits.HTTP2PeerErrors + 1, http2.EnhanceYourCalm, 0, 10_000},
		{"streams behind the last GOAWAY", func(a *attacked) []byte {
			a.conn.Shutdown(a.now)
			a.now += http2.Nanoseconds(limits.StopGrace)
			_, _ = a.conn.Tick(a.now)
			return nil
		}, func(a *attacked) (b []byte) {
			for range 100 {
				b = append(b, a.request(0)...)
			}
			return b
		}, limits.HTTP2Refusals/100 + 1, http2.EnhanceYourCalm, 0, 3000},
		{"one header again and again", func(a *attacked) []byte {
			return frame(http2.FrameHeaders, http2.FlagEndHeaders, 99, a.writer.Write([]http2.Field{{Name: "a", Value: string(make([]byte, 4000))}})...)
		}, func(a *attacked) []byte {
			a.id += 2
			return frame(http2.FrameHeaders, http2.FlagEndHeaders, a.id+98, bytes.Repeat([]byte{0x80 | 62}, 16000)...)
		}, 1, http2.EnhanceYourCalm, 0, 100},
		{"lists that are too long", nothing, func(a *attacked) []byte {
			a.conn.Release(a.id - 2)
			a.id += 2
			return frame(http2.FrameHeaders, http2.FlagEndHeaders, a.id-2, append([]byte{0x83, 0x86, 0x84}, bytes.Repeat(append([]byte{0, 1, 'k', 100}, bytes.Repeat([]byte{'v'}, 100)...), 150)...)...)
		}, 2*limits.HTTP2LongLists + 1, http2.EnhanceYourCalm, 2*limits.HTTP2LongLists + 1, 30_000},
	}
}

// attacksWithFrames are the others.
func attacksWithFrames() []attack {
	return []attack{
		{"continuations", func(*attacked) []byte { return frame(http2.FrameHeaders, 0, 1, 0x83) }, func(*attacked) []byte {
			return frame(http2.FrameContinuation, 0, 1)
		}, limits.HTTP2Continuations + 1, http2.EnhanceYourCalm, 0, 60},
		{"long continuations", func(*attacked) []byte { return frame(http2.FrameHeaders, 0, 1, 0x83) }, func(*attacked) []byte {
			return frame(http2.FrameContinuation, 0, 1, make([]byte, 16000)...)
		}, 5, http2.EnhanceYourCalm, 0, 600},
		{"pings", nothing, func(*attacked) []byte { return frame(http2.FramePing, 0, 0, make([]byte, 8)...) }, 4, http2.EnhanceYourCalm, 0, 60},
		{"settings", nothing, func(*attacked) []byte { return frame(http2.FrameSettings, 0, 0) }, limits.HTTP2OtherFrames + 1, http2.EnhanceYourCalm, 0, 600},
		{"long settings", nothing, func(*attacked) []byte {
			return frame(http2.FrameSettings, 0, 0, make([]byte, 6*(limits.HTTP2Settings+1))...)
		}, 1, http2.EnhanceYourCalm, 0, 60},
		{"priorities", nothing, func(*attacked) []byte {
			return frame(http2.FramePriority, 0, 7, 0, 0, 0, 1, 0)
		}, limits.HTTP2OtherFrames + 1, http2.EnhanceYourCalm, 0, 600},
		{"unknown frames", nothing, func(*attacked) []byte { return frame(0xf0, 0, 7) }, limits.HTTP2OtherFrames + 1, http2.EnhanceYourCalm, 0, 600},
		{"answers to nothing", nothing, func(*attacked) []byte {
			return frame(http2.FramePing, http2.FlagAck, 0, make([]byte, 8)...)
		}, limits.HTTP2OtherFrames + 1, http2.EnhanceYourCalm, 0, 600},
		{"window updates", nothing, func(*attacked) []byte {
			return frame(http2.FrameWindowUpdate, 0, 0, 0, 0, 0, 1)
		}, limits.HTTP2WindowUpdates + 1, http2.EnhanceYourCalm, 0, 600},
		{"empty data", (*attacked).open, func(*attacked) []byte { return frame(http2.FrameData, 0, 1) }, limits.HTTP2EmptyData + 1, http2.EnhanceYourCalm, 1, 100},
		{"padding only", (*attacked).open, func(*attacked) []byte {
			return frame(http2.FrameData, http2.FlagPadded, 1, append([]byte{200}, make([]byte, 200)...)...)
		}, limits.HTTP2EmptyData + 1, http2.EnhanceYourCalm, 1, 200},
		{"data byte by byte", (*attacked).open, func(*attacked) []byte {
			return frame(http2.FrameData, 0, 1, 'x')
		}, limits.HTTP2TinyData + 1, http2.EnhanceYourCalm, 1, 600},
		{"data behind a reset", func(a *attacked) []byte {
			a.arrive(a.request(0))
			a.conn.Release(1)
			return nil
		}, func(*attacked) []byte {
			return frame(http2.FrameData, 0, 1, make([]byte, 16_000)...)
		}, 2*limits.HTTP2ConnectionWindowBytes/16_000 + 1, http2.EnhanceYourCalm, 1, 2300},
		{"data beyond windows", nothing, func(a *attacked) []byte {
			id := a.id
			b := a.request(0)
			for range 7 {
				b = append(b, frame(http2.FrameData, 0, id, make([]byte, 10_000)...)...)
			}
			return b
		}, limits.HTTP2PeerErrors + 1, http2.EnhanceYourCalm, limits.HTTP2PeerErrors + 1, 8_000},
	}
}

// TestConn_CutsOffAttackers counts how often an attack may be repeated until the
// connection ends, how many handlers run then, and how much memory it took.
func TestConn_CutsOffAttackers(t *testing.T) {
	for _, c := range slices.Concat(attacksWithStreams(), attacksWithFrames()) {
		t.Run(c.name, func(t *testing.T) {
			a, times, allocated := c.run(t)
			switch {
			case codeOf(a.err) != int(c.code):
				t.Errorf("after %d times: %v", times, a.err)
			case times > c.most || a.handlers > c.handlers:
				t.Errorf("%d times, %d handlers; at most %d and %d", times, a.handlers, c.most, c.handlers)
			case times < c.most*9/10:
				t.Errorf("cut off after %d times already, of %d", times, c.most)
			}
			for range 4 { // the least of five: others allocate meanwhile
				if int(allocated>>10) > c.kilobytes {
					_, _, again := c.run(t)
					allocated = min(allocated, again)
				}
			}
			if kilobytes := int(allocated >> 10); kilobytes > c.kilobytes {
				t.Errorf("%d KiB were allocated, at most %d", kilobytes, c.kilobytes)
			}
		})
	}
}

// run repeats the attack until the connection ends, and returns how often that was and
// what the connection allocated.
func (c attack) run(t *testing.T) (a *attacked, times int, allocated uint64) {
	a = newAttacked(t)
	a.arrive(c.before(a))
	a.take()
	for ; a.err == nil && times <= c.most; times++ {
		b := c.attack(a)
		allocated += allocatedBy(func() { a.arrive(b) })
		a.take()
	}
	return a, times, allocated
}

func nothing(*attacked) []byte { return nil }

func (a *attacked) open() []byte { return a.request(0) }

func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// shortFields are so many values for one name.
func shortFields(n int) (fields []http2.Field) {
	for i := range n {
		fields = append(fields, http2.Field{Name: "id", Value: strconv.Itoa(i)})
	}
	return fields
}

// TestConn_LongListsEndTheirStream: headers of up to 64 KiB are read, also if one alone is so
// long, and what follows finds the table as it should be.
func TestConn_LongListsEndTheirStream(t *testing.T) {
	a := newAttacked(t)
	long := 0
	a.event = func(e http2.Event) {
		if e.TooLarge {
			long++
		}
	}
	for name, fields := range map[string][]http2.Field{
		"one field":   {{Name: "token", Value: strings.Repeat("\xff", 20<<10)}},
		"many fields": slices.Repeat([]http2.Field{{Name: "key", Value: strings.Repeat("v", 100), Sensitive: true}}, 500),
		"short ones":  shortFields(600),
		"half of 3":   slices.Repeat([]http2.Field{{Name: "token", Value: strings.Repeat("&", 12<<10)}}, 3),
	} {
		for range limits.HTTP2LongLists / 4 {
			block := a.writer.Write(append(requestFields(), fields...))
			if len(block) > limits.HTTP2HeaderListBytes {
				first := block[:16000]
				a.arrive(frame(http2.FrameHeaders, 0, a.id, first...))
				for block = block[16000:]; len(block) > 16000; block = block[16000:] {
					a.arrive(frame(http2.FrameContinuation, 0, a.id, block[:16000]...))
				}
				a.arrive(frame(http2.FrameContinuation, http2.FlagEndHeaders, a.id, block...))
			} else {
				a.arrive(frame(http2.FrameHeaders, http2.FlagEndHeaders, a.id, block...))
			}
			a.conn.Release(a.id)
			a.id += 2
			a.arrive(a.request(http2.FlagEndStream))
			a.conn.Release(a.id - 2)
		}
		if a.err != nil {
			t.Fatalf("%s: %v", name, a.err)
		}
	}
	if want := limits.HTTP2LongLists / 4 * 4; long != want {
		t.Errorf("%d lists were too long, want %d", long, want)
	}
}

// TestConn_LongListsMustBeWellFormed: that a list is too long excuses what is missing in it, and
// nothing of what is there.
func TestConn_LongListsMustBeWellFormed(t *testing.T) {
	long := slices.Repeat([]http2.Field{{Name: "key", Value: strings.Repeat("v", 100), Sensitive: true}}, 200)
	for name, c := range map[string]struct {
		fields []http2.Field
		told   bool
	}{
		"well-formed":                {requestFields(), true},
		"pseudo-headers left out":    {nil, true},
		"no name":                    {append(requestFields(), http2.Field{Value: "x"}), false},
		"upper case":                 {append(requestFields(), http2.Field{Name: "Key", Value: "x"}), false},
		"end of a line":              {append(requestFields(), http2.Field{Name: "key", Value: "a\r\nb"}), false},
		"unknown pseudo-header":      {append(requestFields(), http2.Field{Name: ":key", Value: "x"}), false},
		"header of connections":      {append(requestFields(), http2.Field{Name: "connection", Value: "close"}), false},
		"content-length that is not": {append(requestFields(), http2.Field{Name: "content-length", Value: "many"}), false},
	} {
		a := newAttacked(t)
		told := false
		a.event = func(e http2.Event) { told = told || e.Kind == http2.EventHeaders && e.TooLarge }
		a.take()
		block := a.writer.Write(append(c.fields, long...))
		a.arrive(frame(http2.FrameHeaders, 0, a.id, block[:16_000]...))
		a.arrive(frame(http2.FrameContinuation, http2.FlagEndHeaders, a.id, block[16_000:]...))
		reset := bytes.Equal(a.take(), frame(http2.FrameRSTStream, 0, a.id, 0, 0, 0, byte(http2.ProtocolError)))
		if a.err != nil || told != c.told || reset == c.told {
			t.Errorf("%s: told %t, reset %t, error %v; want it told: %t, or else reset", name, told, reset, a.err, c.told)
		}
	}
}

// TestConn_GivingUpIsHonest: callers may give up as often as they like when something has come,
// or when they have waited, and may have more streams than there is room for.
func TestConn_GivingUpIsHonest(t *testing.T) {
	const calls = 3 * limits.HTTP2Resets
	for name, wait := range map[string]func(a *attacked, open []uint32){
		"behind an answer": func(a *attacked, open []uint32) {
			for _, id := range open {
				if err := a.conn.Headers(id, []http2.Field{{Name: ":status", Value: "200"}}, false); err != nil {
					t.Fatal(err)
				}
			}
		},
		"after a while": func(a *attacked, _ []uint32) { a.now += http2.Nanoseconds(limits.HTTP2ResetSoon) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttacked(t)
			var open []uint32
			for range calls {
				id := a.id
				a.arrive(a.request(0))
				if open = append(open, id); len(open) == 200 {
					wait(a, open)
					for _, id := range open {
						a.arrive(frame(http2.FrameRSTStream, 0, id, 0, 0, 0, 8))
						a.conn.Release(id)
					}
					open = open[:0]
				}
				a.take()
			}
			if a.err != nil || a.handlers != calls {
				t.Errorf("%d calls: %v", a.handlers, a.err)
			}
		})
	}
	t.Run("beyond the limit", func(t *testing.T) {
		a := newAttacked(t)
		for range limits.HTTP2Streams + limits.HTTP2Refusals {
			a.arrive(a.request(0))
			a.take()
		}
		if a.err != nil || a.handlers != limits.HTTP2Streams {
			t.Errorf("%d calls: %v", a.handlers, a.err)
		}
	})
}

// TestConn_Blame: work in vain counts as streams with errors, of the same period.
func TestConn_Blame(t *testing.T) {
	a := newAttacked(t)
	for range limits.HTTP2PeerErrors / 10 {
		if err := a.conn.Blame(10, a.now); err != nil {
			t.Fatal(err)
		}
	}
	a.now += http2.Nanoseconds(limits.HTTP2Period)
	if err := a.conn.Blame(limits.HTTP2PeerErrors, a.now); err != nil {
		t.Fatalf("in the next period: %v", err)
	}
	a.take()
	if err := a.conn.Blame(1, a.now); codeOf(err) != int(http2.EnhanceYourCalm) || a.conn.Unsent() == 0 {
		t.Fatalf("beyond the limit: %v, %d bytes of a GOAWAY", err, a.conn.Unsent())
	}
}

// TestConn_StopsReading wants a peer that reads nothing to be read no more, and what
// waits for it to have a limit.
func TestConn_StopsReading(t *testing.T) {
	t.Run("control frames", func(t *testing.T) {
		a := newAttacked(t)
		a.take()
		frames := 0
		for ; !a.congested && frames < 1000; frames++ {
			a.arrive(frame(http2.FrameSettings, 0, 0))
		}
		if frames != limits.HTTP2ControlFrames || a.conn.Unsent() > 2000 || a.err != nil {
			t.Fatalf("%d frames were read, %d bytes wait: %v", frames, a.conn.Unsent(), a.err)
		}
		// Once they are on their way it goes on.
		a.take()
		a.read()
		if a.congested || len(a.arrived) != 0 {
			t.Fatalf("%d bytes are not read, congested %v", len(a.arrived), a.congested)
		}
	})
	t.Run("data", func(t *testing.T) {
		a := newAttacked(t)
		a.arrive(frame(http2.FrameSettings, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff))
		a.arrive(frame(http2.FrameWindowUpdate, 0, 0, 0x7f, 0xff, 0, 0))
		a.arrive(a.request(http2.FlagEndStream))
		a.take()
		if err := a.conn.Headers(1, []http2.Field{{Name: ":status", Value: "200"}}, false); err != nil {
			t.Fatal(err)
		}
		n, err := a.conn.Data(1, make([]byte, 10<<20), true)
		if err != nil || a.conn.Unsent() > limits.UnsentBytes+http2.FrameBytesMin+http2.FrameHeaderSize || n < limits.UnsentBytes*9/10 {
			t.Fatalf("took %d bytes, %d wait: %v", n, a.conn.Unsent(), err)
		}
		a.arrive(frame(http2.FramePing, 0, 0, make([]byte, 8)...))
		if !a.congested {
			t.Fatal("more is read while so much waits")
		}
	})
}

// TestConn_WindowsByteByByte has a peer take an answer byte by byte (CVE-2019-9511): each
// makes a frame of ours.
func TestConn_WindowsByteByByte(t *testing.T) {
	a := newAttacked(t)
	a.arrive(frame(http2.FrameSettings, 0, 0, 0, 4, 0, 0, 0, 0))
	a.arrive(a.request(http2.FlagEndStream))
	if n, err := a.conn.Data(1, make([]byte, 100_000), true); err != nil || n != 0 {
		t.Fatalf("took %d bytes: %v", n, err)
	}
	sent := 0
	for a.err == nil && sent <= limits.HTTP2WindowUpdates {
		a.take()
		a.arrive(frame(http2.FrameWindowUpdate, 0, 1, 0, 0, 0, 1))
		if _, _, ok := a.conn.Writable(); ok {
			n, err := a.conn.Data(1, make([]byte, 100_000-sent), true)
			if err != nil {
				t.Fatal(err)
			}
			sent += n
		}
	}
	if codeOf(a.err) != int(http2.EnhanceYourCalm) || sent < limits.HTTP2WindowUpdates {
		t.Fatalf("%d bytes were sent one by one: %v", sent, a.err)
	}
}

// TestConn_LetsHonestPeersDo does much of what attackers do, for good reasons.
func TestConn_LetsHonestPeersDo(t *testing.T) {
	t.Run("cancel", func(t *testing.T) {
		// 5,000 calls, half of them cancelled, within the same period.
		a := newAttacked(t)
		for i := range 5000 {
			id := a.id
			a.arrive(a.request(http2.FlagEndStream))
			if i%2 == 0 {
				a.arrive(frame(http2.FrameRSTStream, 0, id, 0, 0, 0, 8))
			}
			a.conn.Release(id)
			a.take()
		}
		if a.err != nil || a.handlers != 5000 {
			t.Fatalf("%d handlers: %v", a.handlers, a.err)
		}
	})
	t.Run("again in the next period", func(t *testing.T) {
		a := newAttacked(t)
		for range 20 {
			for range limits.HTTP2OtherFrames {
				a.arrive(frame(http2.FramePriority, 0, 7, 0, 0, 0, 1, 0))
			}
			a.now += http2.Nanoseconds(limits.HTTP2Period)
		}
		if a.err != nil {
			t.Fatal(a.err)
		}
	})
	t.Run("download", func(t *testing.T) {
		// 100 MiB, with two updates for each 4 KiB.
		a := newAttacked(t)
		a.arrive(a.request(http2.FlagEndStream))
		for sent := 0; sent < 100<<20; sent += 4 << 10 {
			if n, err := a.conn.Data(1, make([]byte, 4<<10), false); err != nil || n != 4<<10 {
				t.Fatalf("sent %d: took %d, %v", sent, n, err)
			}
			a.take()
			a.arrive(frame(http2.FrameWindowUpdate, 0, 0, 0, 0, 16, 0))
			a.arrive(frame(http2.FrameWindowUpdate, 0, 1, 0, 0, 16, 0))
			if a.err != nil {
				t.Fatalf("sent %d: %v", sent, a.err)
			}
		}
	})
}

// TestConn_LetsHonestPeersMeasure has peers that send something for each of our frames.
func TestConn_LetsHonestPeersMeasure(t *testing.T) {
	t.Run("two updates for each small message", func(t *testing.T) {
		a := newAttacked(t)
		a.arrive(a.request(http2.FlagEndStream))
		for range 50_000 {
			if n, err := a.conn.Data(1, make([]byte, 10), false); err != nil || n != 10 {
				t.Fatalf("took %d bytes: %v", n, err)
			}
			a.take()
			a.arrive(frame(http2.FrameWindowUpdate, 0, 0, 0, 0, 0, 10))
			a.arrive(frame(http2.FrameWindowUpdate, 0, 1, 0, 0, 0, 10))
		}
		if a.err != nil {
			t.Fatal(a.err)
		}
	})
	t.Run("measure while a burst arrives", func(t *testing.T) {
		// 640 KiB go out at once. grpc-go sends a ping with the first frame that it gets
		// after the answer to the last one.
		a := newAttacked(t)
		a.arrive(frame(http2.FrameSettings, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff))
		a.arrive(frame(http2.FrameWindowUpdate, 0, 0, 0x7f, 0xff, 0, 0))
		a.arrive(a.request(http2.FlagEndStream))
		if n, err := a.conn.Data(1, make([]byte, 640<<10), false); err != nil || n != 640<<10 {
			t.Fatalf("took %d bytes: %v", n, err)
		}
		for range 40 {
			a.take()
			a.arrive(frame(http2.FramePing, 0, 0, make([]byte, 8)...))
		}
		if a.err != nil {
			t.Fatal(a.err)
		}
	})
	t.Run("stream of small messages", func(t *testing.T) {
		// 100,000 messages of 5 bytes, and pings that follow what we send.
		a := newAttacked(t)
		a.arrive(a.request(0))
		for i := range 100_000 {
			a.arrive(frame(http2.FrameData, 0, 1, 0, 0, 0, 0, 0))
			a.conn.Consume(1, 5, a.now)
			if i%10 == 0 {
				if _, err := a.conn.Data(1, []byte{0}, false); err != nil {
					break // The window of the peer is used up.
				}
				a.arrive(frame(http2.FramePing, 0, 0, make([]byte, 8)...))
			}
			a.take()
		}
		if a.err != nil {
			t.Fatal(a.err)
		}
	})
}

// TestConn_WindowsGrow wants the window of a stream to follow a fast peer, to its
// maximum and not for a slow one, and the memory for it to be what is not consumed.
func TestConn_WindowsGrow(t *testing.T) {
	for _, c := range []struct {
		name string
		// pause is how long half a window takes, where a round trip takes 10 ms.
		pause http2.Nanoseconds
		want  string
	}{
		{"fast", 5 * millisecond, "4194304"},
		{"slow", 25 * millisecond, "65536"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &attacked{writer: http2.NewHeaderWriter(), id: 1}
			a.side = newSide(t, http2.Config{}, nil)
			a.now += 10 * millisecond
			a.arrive([]byte(http2.Preface))
			a.arrive(frame(http2.FrameSettings, 0, 0))
			a.arrive(frame(http2.FrameSettings, http2.FlagAck, 0))
			a.arrive(a.request(0))
			a.take()
			// open is the window as the peer sees it.
			open, largest := 65536, 0
			reader := http2.NewHeaderReader(1000)
			for range 100 {
				a.now += c.pause
				largest = max(largest, open)
				for half := open / 2; half > 0 && a.err == nil; half -= min(half, 16384) {
					n := min(half, 16384)
					open -= n
					a.arrive(frame(http2.FrameData, 0, 1, make([]byte, n)...))
					a.conn.Consume(1, n, a.now)
				}
				for _, line := range frames(t, a.take(), reader) {
					var n int
					if _, err := fmt.Sscanf(line, "sent WINDOW_UPDATE 1 %d", &n); err == nil {
						open += n
					}
				}
			}
			if got := fmt.Sprint(largest); got != c.want || a.err != nil {
				t.Errorf("window grew to %s, want %s: %v", got, c.want, a.err)
			}
		})
	}
}
