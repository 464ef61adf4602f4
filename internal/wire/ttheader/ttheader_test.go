package ttheader_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/framed"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// echoFrame is the frame of docs/protocol/ttheader.md.
const echoFrame = `
00 00 00 78 10 00 00 00 00 00 00 07 00 14 00 00
01 00 02 00 03 69 73 6e 00 07 45 63 68 6f 53 76 63 00 0d 52 50 43 5f 50 45 52 53 49 53 54 5f 6b 00 01 76
10 00 05 00 03 00 03 63 6c 69 00 06 00 03 73 76 63 00 09 00 04 45 63 68 6f 00 16 00 01 31 00 01 00 06 66 72 61 6d 65 64
00 00 00
00 00 00 1a
80 01 00 01 00 00 00 04 45 63 68 6f 00 00 00 07 0b 00 01 00 00 00 02 68 69 00
`

// echoHead is the header of echoFrame.
func echoHead() *ttheader.Head {
	return &ttheader.Head{
		Sequence: 7,
		Strings:  []ttheader.Pair{{Key: wire.IDLServiceName, Value: "EchoSvc"}, {Prefix: wire.PersistentPrefix, Key: "k", Value: "v"}},
		Ints: []ttheader.IntPair{
			{Key: wire.KeyFromService, Value: "cli"},
			{Key: wire.KeyToService, Value: "svc"},
			{Key: wire.KeyToMethod, Value: "Echo"},
			{Key: wire.KeyMessageType, Value: "1"},
			{Key: wire.KeyTransportType, Value: "framed"},
		},
	}
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := testkit.Hex(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// put writes head in front of payload, into memory that was used before.
func put(t testing.TB, head *ttheader.Head, payload []byte) []byte {
	t.Helper()
	size, err := head.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := bytes.Repeat([]byte{0xaa}, size)
	head.Put(b, len(payload))
	return append(b, payload...)
}

func TestMatches(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		match bool
		need  int
	}{
		"nothing yet":      {"", false, 6},
		"a length":         {"3f ff ff ff", false, 6},
		"half a magic":     {"00 00 00 78 10", false, 6},
		"enough":           {"00 00 00 78 10 00", true, 0},
		"a stream":         {"00 00 00 78 10 00 00 02", true, 0},
		"framed":           {"00 00 00 78 80 01 00 01", false, 0},
		"another magic":    {"00 00 00 78 10 01 00 00", false, 0},
		"no length at all": {"40", false, 0},
		"bare":             {"80 01 00 01 10 00", false, 0},
	} {
		if match, need := ttheader.Matches(unhex(t, test.text)); match != test.match || need != test.need {
			t.Errorf("%s: Matches = %v, %d; want %v, %d", name, match, need, test.match, test.need)
		}
	}
}

// TestNext_EveryTruncation: part of a frame is never a message, and asks for more
// than there is and for no more than the frame.
func TestNext_EveryTruncation(t *testing.T) {
	frame := unhex(t, echoFrame)
	for have := range frame {
		message, used, need, err := ttheader.Next(frame[:have], limits.DefaultMessage())
		if err != nil || used != 0 || message.Invalid != nil || need <= have || need > len(frame) {
			t.Errorf("%d of %d bytes: used %d, need %d, %v, invalid %v", have, len(frame), used, need, err, message.Invalid)
		}
	}
	// What follows changes nothing.
	message, used, _, err := ttheader.Next(append(bytes.Clone(frame), 0xff, 0xff), limits.DefaultMessage())
	if err != nil || used != len(frame) || message.Invalid != nil || len(message.Body) != 10 {
		t.Errorf("Next: used %d, %v, %+v", used, err, message)
	}
}

// TestNext_EveryByteChanged sets each byte of a frame to each value: whatever
// that makes of it, nothing outside of it is returned, and it ends where its
// LENGTH says, or the connection does.
func TestNext_EveryByteChanged(t *testing.T) {
	original := unhex(t, echoFrame)
	m := limits.DefaultMessage()
	m.Bytes = 100
	good, refused, ended := 0, 0, 0
	for i := range original {
		for value := range 256 {
			frame := bytes.Clone(original)
			frame[i] = byte(value)
			message, used, need, err := ttheader.Next(frame, m)
			length := int(binary.BigEndian.Uint32(frame)) + 4
			switch {
			case err != nil:
				ended++
			case used == 0:
				if need <= len(frame) || length <= len(frame) {
					t.Fatalf("byte %d = %#02x: need %d of %d", i, value, need, length)
				}
			case used != length:
				t.Fatalf("byte %d = %#02x: used %d of %d", i, value, used, length)
			case message.Invalid != nil:
				refused++
			default:
				good++
				if end := bytes.Index(frame, message.Body) + len(message.Body); end > used || len(message.Name)+len(message.Body)+framed.HeaderSize > used {
					t.Fatalf("byte %d = %#02x: name %q and body % x in %d bytes", i, value, message.Name, message.Body, used)
				}
			}
		}
	}
	if good == 0 || refused == 0 || ended == 0 {
		t.Errorf("%d good, %d refused and %d hopeless frames; want some of each", good, refused, ended)
	}
}

func TestHead_WritesTheDocumentedBytes(t *testing.T) {
	want := unhex(t, echoFrame)
	if got := put(t, echoHead(), want[len(want)-30:]); !bytes.Equal(got, want) {
		t.Errorf("Put wrote\n% x, want\n% x", got, want)
	}
}

// TestHead_Pads writes headers of every length modulo 4.
func TestHead_Pads(t *testing.T) {
	payload := unhex(t, "80 01 00 02 00 00 00 04 45 63 68 6f 00 00 00 07 00")
	for n := range 9 {
		head := &ttheader.Head{Ints: []ttheader.IntPair{{Key: 3, Value: strings.Repeat("x", n)}}}
		frame := put(t, head, payload)
		if size := len(frame) - len(payload); (size-ttheader.FixedSize)%4 != 0 {
			t.Errorf("value of %d bytes: header of %d", n, size)
		}
		message, used, _, err := ttheader.Next(frame, limits.DefaultMessage())
		if err != nil || used != len(frame) || message.Invalid != nil {
			t.Fatalf("value of %d bytes: used %d of %d, %v, invalid %v", n, used, len(frame), err, message.Invalid)
		}
		if value, _ := message.Info.Int(3); len(value) != n {
			t.Errorf("value of %d bytes: %q is read", n, value)
		}
	}
}

// TestHead_WritesTokensAsTokens: Kitex moves the pair with that key into the
// token's block, where proxies look for it.
func TestHead_WritesTokensAsTokens(t *testing.T) {
	head := &ttheader.Head{
		Token: "mine",
		Strings: []ttheader.Pair{
			{Prefix: wire.TransientPrefix, Key: "gdpr-token", Value: "user's"},
			{Key: wire.TransientPrefix + "gdpr-token", Value: "last"},
		},
	}
	// 2 bytes, blocks of 7, 9 and 7, and 3 of padding.
	want := unhex(t, `00 00 00 26 10 00 00 00 00 00 00 00 00 07 00 00
		11 00 04 6d 69 6e 65  11 00 06 75 73 65 72 27 73  11 00 04 6c 61 73 74  00 00 00`)
	got := put(t, head, nil)
	if !bytes.Equal(got, want) {
		t.Errorf("Put wrote\n% x, want\n% x", got, want)
	}
	info, err := wire.ParseInfo(got[ttheader.FixedSize+2:])
	if token, _ := info.Token(); err != nil || string(token) != "last" || info.Len() != 3 {
		t.Errorf("%d pairs with token %q, %v", info.Len(), token, err)
	}
}

// TestHead_RefusesWhatNoReaderTakes: also when the format could express it.
func TestHead_RefusesWhatNoReaderTakes(t *testing.T) {
	long := strings.Repeat("x", 0x10000)
	pairs := make([]ttheader.Pair, limits.HeaderPairs)
	for name, test := range map[string]struct {
		head ttheader.Head
		text string
	}{
		"token":         {ttheader.Head{Token: long}, "TTHeader token of 65536 bytes (limit 65535)"},
		"key":           {ttheader.Head{Strings: []ttheader.Pair{{Prefix: long[:0x8000], Key: long[:0x8000]}}}, "TTHeader key of 65536 bytes (limit 65535)"},
		"value":         {ttheader.Head{Strings: []ttheader.Pair{{Prefix: "RPC_", Key: "k", Value: long}}}, `TTHeader value of 65536 bytes for key "RPC_k" (limit 65535)`},
		"int value":     {ttheader.Head{Ints: []ttheader.IntPair{{Key: 9, Value: long}}}, "TTHeader value of 65536 bytes for int key 9 (limit 65535)"},
		"strings":       {ttheader.Head{Strings: append(slices.Clone(pairs), ttheader.Pair{})}, "TTHeader with 513 key-value pairs (limit 512)"},
		"token as well": {ttheader.Head{Token: "t", Strings: pairs}, "TTHeader with 513 key-value pairs (limit 512)"},
		"both maps":     {ttheader.Head{Strings: pairs[:400], Ints: make([]ttheader.IntPair, 113)}, "TTHeader with 513 key-value pairs (limit 512)"},
		"together":      {ttheader.Head{Strings: []ttheader.Pair{{Value: long[:0x8000]}, {Value: long[:0x8000]}}}, "TTHeader with header info of 65552 bytes (limit 65536)"},
	} {
		size, err := test.head.Size()
		var found *thriftwire.Error
		if !errors.As(err, &found) || found.Kind != thriftwire.LimitExceeded || !strings.Contains(err.Error(), test.text) || size != 0 {
			t.Errorf("%s: Size = %d, %v; want %q", name, size, err, test.text)
		}
	}
	full := ttheader.Head{Strings: pairs[:256], Ints: make([]ttheader.IntPair, 256)}
	message, _, _, err := ttheader.Next(put(t, &full, unhex(t, "80 01 00 02 00 00 00 00 00 00 00 07 00")), limits.DefaultMessage())
	if err != nil || message.Invalid != nil || message.Info.Len() != limits.HeaderPairs {
		t.Errorf("as many pairs as allowed: %d are read, %v, invalid %v", message.Info.Len(), err, message.Invalid)
	}
	// 13 is what there is besides the two values.
	full = ttheader.Head{Strings: []ttheader.Pair{{Value: long[:0x8000]}, {Value: long[:limits.HeaderInfoBytes-0x8000-13]}}}
	message, _, _, err = ttheader.Next(put(t, &full, unhex(t, "80 01 00 02 00 00 00 00 00 00 00 07 00")), limits.DefaultMessage())
	if size, _ := full.Size(); err != nil || message.Invalid != nil || size != ttheader.FixedSize+limits.HeaderInfoBytes {
		t.Errorf("as long as allowed: %d bytes, %v, invalid %v", size, err, message.Invalid)
	}
}

func TestNextAndPut_DoNotAllocate(t *testing.T) {
	frame := unhex(t, echoFrame)
	m := limits.DefaultMessage()
	body := 0
	if n := testing.AllocsPerRun(100, func() {
		message, _, _, err := ttheader.Next(frame, m)
		if err != nil || message.Invalid != nil {
			t.Fatal(err, message.Invalid)
		}
		body += len(message.Body)
	}); n != 0 || body == 0 {
		t.Errorf("Next: %v allocations", n)
	}
	head := echoHead()
	b := make([]byte, len(frame))
	if n := testing.AllocsPerRun(100, func() {
		size, err := head.Size()
		if err != nil {
			t.Fatal(err)
		}
		head.Put(b[:size], 30)
	}); n != 0 {
		t.Errorf("Size and Put: %v allocations", n)
	}
}

// FuzzNext: no input panics; cut in two the same comes out; nothing outside the
// frame is returned; and a good message's header, written by us, is read alike.
func FuzzNext(f *testing.F) {
	f.Add(unhex(f, echoFrame), 20)
	f.Add(unhex(f, "00 00 00 28 10 00 00 01 00 00 00 08 00 01 00 01 09 00 80 01 00 01 00 00 00 04 45 63 68 6f 00 00 00 08 0b 00 01 00 00 00 02 68 69 00"), 13)
	f.Add(unhex(f, "00 00 10 00 10 00 00 00 00 00 00 07 00 01 00 00 00 00 80 01 00 01 00 00 00 00 00 00 00 07"), 18)
	f.Add(unhex(f, "00 00 00 2b 10 00 00 00 00 00 00 00 00 04 00 00 01 00 01 00 05 63 72 72 73 74 00 01 31 00 80 01 00 02 00 00 00 04 6e 6f 6e 65 00 00 00 00 00"), 5)
	f.Add(unhex(f, "00 00 00 26 10 00 00 00 00 00 00 07 00 01 00 00 00 00 00 00 00 14 90 01 00 01 00 00 00 04 45 63 68 6f 00 00 00 07 0a 02 68 69"), 40)
	f.Add(unhex(f, "00 01 00 20 10 00 00 00 00 00 00 07 40 01"), 14)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		m := limits.DefaultMessage()
		m.Bytes = 1000
		whole := decode(t, b, m, len(b))
		if cut > 0 && cut < len(b) {
			if pieces := decode(t, b, m, cut); pieces != whole {
				t.Fatalf("at once:\n%scut at %d:\n%s", whole, cut, pieces)
			}
		}
		message, used, _, err := ttheader.Next(b, m)
		if err != nil || used == 0 {
			return
		}
		if used < ttheader.FixedSize+4 || message.Info.Size()+len(message.Name)+len(message.Body) > used {
			t.Fatalf("a frame of %d bytes has %d of info, a name of %d and a body of %d", used, message.Info.Size(), len(message.Name), len(message.Body))
		}
		if message.Invalid != nil {
			return
		}
		if message.Last {
			t.Fatal("a good message is the last")
		}
		payload := used - len(message.Body) - 12 - len(message.Name)
		if message.Payload == wire.PayloadProtobuf {
			payload -= framed.HeaderSize // it cannot be without
		}
		again := put(t, headOf(message), b[payload:used])
		copied, _, _, err := ttheader.Next(again, m)
		if err != nil || copied.Invalid != nil || copied.Payload != message.Payload || !samePairs(copied.Info, message.Info) || copied.Flags != message.Flags ||
			copied.HeaderSequence != message.HeaderSequence || !bytes.Equal(copied.Body, message.Body) {
			t.Fatalf("read %+v, written and read again %+v, %v", message, copied, err)
		}
	})
}

// headOf returns the header that a message had, tokens first.
func headOf(message wire.Message) *ttheader.Head {
	head := &ttheader.Head{Flags: message.Flags, Sequence: message.HeaderSequence}
	for key, value := range message.Info.Strings() {
		head.Strings = append(head.Strings, ttheader.Pair{Key: string(key), Value: string(value)})
	}
	for key, value := range message.Info.Ints() {
		head.Ints = append(head.Ints, ttheader.IntPair{Key: key, Value: string(value)})
	}
	return head
}

// samePairs reports whether every key has the same value in both.
func samePairs(a, b wire.Info) bool {
	same := a.Len() == b.Len()
	for key := range a.Strings() {
		x, _ := a.String(string(key))
		y, ok := b.String(string(key))
		same = same && ok && bytes.Equal(x, y)
	}
	for key := range a.Ints() {
		x, _ := a.Int(key)
		y, ok := b.Int(key)
		same = same && ok && bytes.Equal(x, y)
	}
	return same
}

func BenchmarkNext_TTHeader(b *testing.B) {
	frame := unhex(b, echoFrame)
	m := limits.DefaultMessage()
	b.ReportAllocs()
	for b.Loop() {
		if message, _, _, err := ttheader.Next(frame, m); err != nil || message.Invalid != nil {
			b.Fatal(err, message.Invalid)
		}
	}
}

func BenchmarkHead_Put(b *testing.B) {
	head := echoHead()
	buffer := make([]byte, 256)
	b.ReportAllocs()
	for b.Loop() {
		size, err := head.Size()
		if err != nil {
			b.Fatal(err)
		}
		head.Put(buffer[:size], 30)
	}
}
