package ttstream_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// samples are conversations as bytes, legal ones and others.
func samples() [][]byte {
	message := []byte{11, 0, 1, 0, 0, 0, 2, 'h', 'i', 0}
	legal := bytes.Join([][]byte{
		frame(1, "2", "chat", nil, "isn", "Chat", "fulmar-window", "1000", "fulmar-message", "500"),
		frame(1, "3", "chat", message), frame(1, "1", "chat", nil, "fulmar-window", "74"),
		frame(-2, "2", "list", nil), frame(-2, "4", "list", nil, "biz-status", "7"),
		frame(0, "1", "", nil, "fulmar-window", "99", "crrst", "1"),
		frame(1, "4", "chat", nil), frame(-2, "5", "list", nil, "ttscp", "a,b"),
	}, nil)
	return [][]byte{
		legal,
		append(frame(1, "2", "m", nil), frame(1, "3", "m", make([]byte, 300))...),
		append(frame(1, "2", "m", nil), frame(1, "4", "m", []byte("\x80\x01\x00\x03\x00\x00\x00\x01m\x00\x00\x00\x01\x08\x00\x02\x00\x00\x2e\xe7\x00"))...),
		append(frame(1, "2", "m", nil), frame(1, "9", "m", nil)...),
		append(frame(1, "3", "m", message), frame(5, "3", "m", message)...),
	}
}

func FuzzNext(f *testing.F) {
	for _, sample := range samples() {
		f.Add(sample)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		found, used, need, err := ttstream.Next(b, 200)
		switch {
		case err != nil:
			if used != 0 || need != 0 {
				t.Fatalf("%v, but %d bytes used and %d needed", err, used, need)
			}
			return
		case need > 0:
			if need <= len(b) || used != 0 {
				t.Fatalf("needs %d bytes of %d, used %d", need, len(b), used)
			}
			return
		}
		if found.Type < ttstream.FrameMeta || found.Type > ttstream.FrameReset || len(found.Payload) > 200 {
			t.Fatalf("type %v with %d bytes", found.Type, len(found.Payload))
		}
		// What was read is written, in the order of its pairs, and read again alike.
		var texts []string
		for key, value := range found.Info.Strings() {
			texts = append(texts, string(key), string(value))
		}
		kind := string('0' + byte(found.Type))
		again, _, need, err := ttstream.Next(frame(found.Stream, kind, string(found.Method), found.Payload, texts...), 200)
		if err != nil || need > 0 || again.Stream != found.Stream || again.Type != found.Type ||
			string(again.Method) != string(found.Method) || !bytes.Equal(again.Payload, found.Payload) {
			t.Fatalf("%+v became %+v (%v, needs %d)", found, again, err, need)
		}
		for i := 0; i < len(texts); i += 2 {
			want, _ := found.Info.String(texts[i])
			if got, ok := again.Info.String(texts[i]); texts[i] != wire.TokenKey && (!ok || !bytes.Equal(got, want)) {
				t.Fatalf("%q became %q", want, got)
			}
		}
	})
}

// play gives a connection bytes in pieces and returns all that comes of it.
func play(t testing.TB, client bool, pieces ...[]byte) string {
	t.Helper()
	s := newSide(t, ttstream.Config{Client: client, Streams: 4, MessageBytes: 200, Window: 400, BufferBytes: 500, ConnectionBytes: 1500})
	if client {
		s.open("chat")
		s.open("list")
		s.sent()
	}
	for _, piece := range pieces {
		s.arrive(piece)
	}
	if s.conn.Streams() > 4 {
		t.Fatalf("%d streams of 4", s.conn.Streams())
	}
	return strings.Join(s.events, "\n") + "\n" + strings.Join(typesOf(t, s.sent()), " ")
}

// typesOf returns the types of frames.
func typesOf(t testing.TB, b []byte) (all []string) {
	t.Helper()
	for len(b) > 0 {
		f, used, need, err := ttstream.Next(b, 1<<20)
		if err != nil || need > 0 {
			t.Fatalf("what was sent cannot be read: %v, needs %d", err, need)
		}
		all = append(all, f.Type.String())
		b = b[used:]
	}
	return all
}

func single(b []byte) (pieces [][]byte) {
	for i := range b {
		pieces = append(pieces, b[i:i+1])
	}
	return pieces
}

func FuzzConn(f *testing.F) {
	for _, sample := range samples() {
		f.Add(sample, false)
		f.Add(sample, true)
	}
	f.Fuzz(func(t *testing.T, b []byte, client bool) {
		b = b[:min(len(b), 4096)]
		if whole, pieces := play(t, client, b), play(t, client, single(b)...); whole != pieces {
			t.Fatalf("one byte at a time:\n%s\nin one piece:\n%s", pieces, whole)
		}
	})
}

// TestConn_Cuts gives frames in random order, good and bad, in pieces of random length:
// the same comes of them. Not with a fixed seed, so that each run tries others.
func TestConn_Cuts(t *testing.T) {
	for range 200 {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 1))
		var b []byte
		for range 30 {
			kind := string('0' + byte(1+random.IntN(5)))
			texts := [][]string{nil, {"fulmar-window", "100"}, {"ttscp", "a"}, {"biz-status", "5"}, {"crrst", "1"}}[random.IntN(5)]
			b = append(b, frame(int32(random.IntN(5)-1), kind, "m", make([]byte, random.IntN(4)*random.IntN(100)), texts...)...)
		}
		client := random.IntN(2) == 0
		var pieces [][]byte
		for rest := b; len(rest) > 0; {
			n := 1 + random.IntN(min(len(rest), 90))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if whole, cut := play(t, client, b), play(t, client, pieces...); whole != cut {
			t.Fatalf("seed %d: in pieces:\n%s\nin one:\n%s", seed, cut, whole)
		}
	}
}

// TestConn_NoMemoryBeforeBytes announces the longest of everything: nothing is taken for it.
func TestConn_NoMemoryBeforeBytes(t *testing.T) {
	s := newSide(t, ttstream.Config{})
	long := frame(1, "3", "m", nil)
	copy(long, []byte{0x01, 0, 0, 0}) // LENGTH of 16 MiB and a little less for the message
	least := -1.0
	for range 5 {
		if n := testing.AllocsPerRun(10, func() { _, _, _, _ = s.conn.Next(long, 0) }); least < 0 || n < least {
			least = n
		}
	}
	if _, used, need, err := s.conn.Next(long, 0); used != 0 || need != 1<<24+4 || err != nil || least != 0 {
		t.Errorf("%v allocations; used %d, need %d, %v", least, used, need, err)
	}
}
