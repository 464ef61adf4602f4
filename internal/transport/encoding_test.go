package transport

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
)

func newGzip(turns int) *encoding {
	known := newEncodings(nil, turns)
	return known.find(gzipName)
}

// packed returns a message in gzip without its prefix.
func packed(c *encoding, message []byte) []byte {
	prefixed := append(make([]byte, grpc.PrefixSize), message...)
	half := len(prefixed) / 2
	if b := c.deflate([][]byte{prefixed[:half], prefixed[half:]}, len(prefixed)); b != nil {
		return b[grpc.PrefixSize:]
	}
	var longer bytes.Buffer
	writer := c.writer(&longer)
	_, _ = writer.Write(message)
	_ = writer.Close()
	return longer.Bytes()
}

// TestEncoding_OnlyWhatGetsShorter: a message that does not is sent as it is.
func TestEncoding_OnlyWhatGetsShorter(t *testing.T) {
	noise := make([]byte, 10_000)
	rand.NewChaCha8([32]byte{}).Read(noise)
	codec := newGzip(0)
	for name, test := range map[string]struct {
		message []byte
		packed  bool
	}{
		"zeros":        {make([]byte, len(noise)), true},
		"noise":        {noise, false},
		"mostly noise": {append(make([]byte, 100), noise...), true},
	} {
		prefixed := append(make([]byte, grpc.PrefixSize), test.message...)
		b := codec.deflate([][]byte{prefixed}, len(prefixed))
		if (b != nil) != test.packed || len(b) >= len(prefixed) {
			t.Errorf("%s: %d bytes became %d", name, len(prefixed), len(b))
		}
	}
}

// inflateAll is inflate where nothing is counted.
func inflateAll(c *encoding, b []byte, limit int, buffers *linkbuf.Pool) ([]byte, error) {
	out, _, err := c.inflate(context.Background(), b, limit, buffers, nil)
	return out, err
}

func TestGzip_RoundTrip(t *testing.T) {
	codec := newGzip(0)
	buffers := linkbuf.NewPool()
	for _, n := range []int{0, 1, 5000, 100_000, 1 << 20, 3 << 20} {
		message := bytes.Repeat([]byte{7}, n)
		got, err := inflateAll(codec, packed(codec, message), n, buffers)
		if err != nil || !bytes.Equal(got, message) {
			t.Errorf("%d bytes: %d, %v", n, len(got), err)
		}
		buffers.Put(got)
		if n == 0 {
			continue
		}
		failed := new(grpc.Error)
		if _, err := inflateAll(codec, packed(codec, message), n-1, buffers); !errors.As(err, &failed) || failed.Code != grpc.ResourceExhausted {
			t.Errorf("%d bytes with a limit below: %v", n, err)
		}
	}
	if n := buffers.Outstanding(); n != 0 {
		t.Errorf("%d pieces of memory not given back", n)
	}
}

// bomb is 600 KiB in gzip, which say that they are 1 byte.
func bomb(c *encoding) []byte {
	b := packed(c, make([]byte, 600<<10))
	copy(b[len(b)-4:], []byte{1, 0, 0, 0})
	return b
}

// TestGzip_Bombs inflates messages that become longer than they may, or than there is room
// for, and some for which nobody waits any more.
func TestGzip_Bombs(t *testing.T) {
	const limit = 300 << 10
	ended, end := context.WithCancel(context.Background())
	end()
	for name, test := range map[string]struct {
		message func(c *encoding) []byte
		ctx     context.Context
		room    int64
		busy    bool
		code    grpc.Code
		wasted  bool
	}{
		"one that says so":  {func(c *encoding) []byte { return packed(c, make([]byte, 600<<10)) }, ended, 0, true, grpc.ResourceExhausted, false},
		"one that does not": {bomb, context.Background(), 8 << 20, false, grpc.ResourceExhausted, true},
		"without room":      {bomb, context.Background(), 64 << 10, false, 0, false},
		"not its turn":      {bomb, ended, 8 << 20, true, grpc.Canceled, false},
	} {
		codec := newGzip(1)
		message := test.message(codec)
		buffers, held := linkbuf.NewPool(), &budget{limit: test.room}
		if test.busy {
			codec.turns <- struct{}{}
		}
		out, charged, err := codec.inflate(test.ctx, message, limit, buffers, held)
		failed := new(grpc.Error)
		if out != nil || charged != 0 || test.code != 0 && (!errors.As(err, &failed) || failed.Code != test.code) || test.code == 0 && !errors.Is(err, ErrOverloaded) {
			t.Errorf("%s: %d bytes, %d charged, %v", name, len(out), charged, err)
		}
		if _, wasted := errors.AsType[*wastedError](err); wasted != test.wasted {
			t.Errorf("%s: wasted %v", name, wasted)
		}
		if turns := len(codec.turns); turns != boolToInt(test.busy) || held.used.Load() != 0 || buffers.Outstanding() != 0 {
			t.Errorf("%s: %d turns, %d bytes and %d pieces of memory not given back", name, turns, held.used.Load(), buffers.Outstanding())
		}
	}
}

// TestGzip_BombIsMeasured: a message that becomes far more than it is takes no memory before it
// is known that it may; others are kept as they come.
func TestGzip_BombIsMeasured(t *testing.T) {
	const limit, room = 16 << 20, 4 << 20
	random := make([]byte, 256<<10)
	rand.NewChaCha8([32]byte{}).Read(random)
	codec := newGzip(1)
	lie := packed(codec, make([]byte, limit+1))
	copy(lie[len(lie)-4:], []byte{1, 0, 0, 0})
	for name, test := range map[string]struct {
		message []byte
		wasted  bool
	}{
		"more than it may be":     {lie, true},
		"all that it may be":      {packed(codec, make([]byte, limit)), false},
		"no more than 64 times":   {packed(codec, append(random, make([]byte, limit-len(random))...)), false},
		"more than 64 times, cut": {lie[:len(lie)-100], true},
	} {
		buffers, held := linkbuf.NewPool(), &budget{limit: room}
		_, charged, err := codec.inflate(context.Background(), test.message, limit, buffers, held)
		_, wasted := errors.AsType[*wastedError](err)
		if err == nil || wasted != test.wasted || wasted == errors.Is(err, ErrOverloaded) {
			t.Errorf("%s: %v, in vain %v", name, err, wasted)
		}
		if charged != 0 || held.used.Load() != 0 || buffers.Outstanding() != 0 || len(codec.turns) != 0 {
			t.Errorf("%s: %d bytes and %d pieces of memory not given back, %d turns", name, held.used.Load(), buffers.Outstanding(), len(codec.turns))
		}
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestGzip_Counts: what becomes longer than it may be is counted, and the caller has it.
func TestGzip_Counts(t *testing.T) {
	codec := newGzip(1)
	buffers, held := linkbuf.NewPool(), &budget{limit: 8 << 20}
	out, charged, err := codec.inflate(context.Background(), packed(codec, make([]byte, 1<<20)), 1<<20, buffers, held)
	if err != nil || len(out) != 1<<20 || charged < 1<<20 || held.used.Load() != int64(charged) || len(codec.turns) != 0 {
		t.Fatalf("%d bytes, %d charged of %d, %v", len(out), charged, held.used.Load(), err)
	}
	buffers.Put(out)
}

// FuzzInflate: any bytes as a message in gzip are one within the limit, or an error with a
// code, in memory that follows it.
func FuzzInflate(f *testing.F) {
	codec := newGzip(0)
	f.Add(packed(codec, bytes.Repeat([]byte("fulmar"), 1000)), 10_000)
	f.Add([]byte{0x1f, 0x8b, 8, 0}, 10)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		if limit < 0 || limit > 4<<20 {
			return
		}
		codec := newGzip(0)
		buffers := linkbuf.NewPool()
		got, err := inflateAll(codec, b, limit, buffers)
		failed := new(grpc.Error)
		if err != nil && (!errors.As(err, &failed) || got != nil) || len(got) > limit || cap(got) > 4*limit+8<<10+4*len(b) {
			t.Errorf("%d bytes in %d, limit %d: %v", len(got), cap(got), limit, err)
		}
		if err == nil {
			again, err := inflateAll(codec, packed(codec, got), limit, buffers)
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("%d bytes packed again: %d, %v", len(got), len(again), err)
			}
			buffers.Put(got)
			buffers.Put(again)
		}
		if n := buffers.Outstanding(); n != 0 {
			t.Errorf("%d pieces of memory not given back", n)
		}
	})
}

// readerFunc reads as a function says.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestEncoding_OfSomebodyElse: what its code does fails its message, and nothing else.
func TestEncoding_OfSomebodyElse(t *testing.T) {
	reads := func(read func(p []byte) (int, error)) func(io.Reader) (io.Reader, error) {
		return func(io.Reader) (io.Reader, error) { return readerFunc(read), nil }
	}
	for name, test := range map[string]struct {
		reader func(io.Reader) (io.Reader, error)
		code   grpc.Code
		detail string
	}{
		"panics":        {reads(func([]byte) (int, error) { panic("a secret") }), grpc.Internal, "no other: panic: a secret"},
		"reads nothing": {reads(func([]byte) (int, error) { return 0, nil }), grpc.Internal, io.ErrNoProgress.Error()},
		"has no end":    {reads(func(p []byte) (int, error) { return len(p), nil }), grpc.ResourceExhausted, "limit 100000"},
		"refuses":       {func(io.Reader) (io.Reader, error) { return nil, errors.New("not mine") }, grpc.Internal, "not mine"},
	} {
		known := newEncodings([]Encoding{{Name: "other", NewReader: test.reader}}, 1)
		codec, buffers := known.find("other"), linkbuf.NewPool()
		for range 2 {
			out, err := inflateAll(codec, []byte("message"), 100_000, buffers)
			failed := new(grpc.Error)
			if out != nil || !errors.As(err, &failed) || failed.Code != test.code || !strings.Contains(failed.Detail, test.detail) {
				t.Errorf("%s: %d bytes, %v", name, len(out), err)
			}
		}
		if len(codec.turns) != 0 || buffers.Outstanding() != 0 {
			t.Errorf("%s: %d turns, %d pieces of memory not given back", name, len(codec.turns), buffers.Outstanding())
		}
	}
	for name, writer := range map[string]func(io.Writer) io.WriteCloser{
		"panics": func(io.Writer) io.WriteCloser { panic("a secret") },
		"fails":  func(io.Writer) io.WriteCloser { w, _ := flate.NewWriter(failingWriter{}, 1); return w },
	} {
		known := newEncodings([]Encoding{{Name: "other", NewWriter: writer}}, 0)
		message := make([]byte, 1<<20)
		if b := known.find("other").deflate([][]byte{message}, len(message)); b != nil {
			t.Errorf("a writer that %s made %d bytes", name, len(b))
		}
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestEncoding_WithoutReset: what cannot be used again is made anew.
func TestEncoding_WithoutReset(t *testing.T) {
	made := 0
	known := newEncodings([]Encoding{{
		Name:      "other",
		NewWriter: func(w io.Writer) io.WriteCloser { made++; return struct{ io.WriteCloser }{mustFlate(w)} },
		NewReader: func(r io.Reader) (io.Reader, error) { made++; return struct{ io.Reader }{flate.NewReader(r)}, nil },
	}}, 0)
	codec, buffers := known.find("other"), linkbuf.NewPool()
	for i := range 3 {
		message := bytes.Repeat([]byte{byte(i)}, 10_000)
		out, err := inflateAll(codec, packed(codec, message), len(message), buffers)
		if err != nil || !bytes.Equal(out, message) {
			t.Errorf("%d bytes, %v", len(out), err)
		}
		buffers.Put(out)
	}
	if made != 6 {
		t.Errorf("made %d readers and writers for three messages", made)
	}
}

func mustFlate(w io.Writer) io.WriteCloser {
	made, err := flate.NewWriter(w, flate.BestSpeed)
	if err != nil {
		panic(err)
	}
	return made
}
