package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	gopkg "github.com/cloudwego/gopkg/protocol/ttheader"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// rounds is how many random frames a test tries. 20,000 take a second.
const rounds = 20000

// payload is a reply without a result.
var payload = []byte{0x80, 1, 0, 2, 0, 0, 0, 4, 'E', 'c', 'h', 'o', 0, 0, 0, 7, 0}

// content is what both sides agree on about a header: maps as the last pair of
// each key makes them, and where the payload is.
type content struct {
	flags        uint16
	sequence     int32
	strings      map[string]string
	ints         map[uint16]string
	header, rest int
}

func (c content) equal(other content) bool {
	return c.flags == other.flags && c.sequence == other.sequence && c.header == other.header && c.rest == other.rest &&
		maps.Equal(c.strings, other.strings) && maps.Equal(c.ints, other.ints)
}

func theirs(param gopkg.DecodeParam) content {
	return content{
		flags: uint16(param.Flags), sequence: param.SeqID, strings: param.StrInfo, ints: param.IntInfo,
		header: param.HeaderLen, rest: param.PayloadLen,
	}
}

// ours returns the same about a message that used so many bytes of b. Every
// value must also be what a look-up finds.
func ours(t *testing.T, b []byte, message wire.Message, used int) content {
	t.Helper()
	header := ttheader.FixedSize + 4*int(binary.BigEndian.Uint16(b[12:]))
	c := content{
		flags: message.Flags, sequence: message.HeaderSequence, strings: map[string]string{}, ints: map[uint16]string{},
		header: header, rest: used - header,
	}
	for key, value := range message.Info.Strings() {
		c.strings[string(key)] = string(value)
	}
	for key, value := range message.Info.Ints() {
		c.ints[key] = string(value)
	}
	for key, want := range c.strings {
		if value, ok := message.Info.String(key); !ok || string(value) != want {
			t.Fatalf("String(%q) = %q, %v; the last pair has %q", key, value, ok, want)
		}
	}
	for key, want := range c.ints {
		if value, ok := message.Info.Int(key); !ok || string(value) != want {
			t.Fatalf("Int(%d) = %q, %v; the last pair has %q", key, value, ok, want)
		}
	}
	return c
}

// verdict is what became of a frame, for counting.
type verdict string

const (
	bothAccept  verdict = "both accept"
	bothRefuse  verdict = "both refuse"
	bothWait    verdict = "both wait for more"
	onlyPayload verdict = "headers agree, and we refuse the payload"
	stricter    verdict = "we are stricter, as documented"
)

// compare gives a frame to both sides and fails the test where they disagree in
// a way that docs/protocol/ttheader.md does not list.
func compare(t *testing.T, b []byte) verdict {
	t.Helper()
	if len(b) >= 6 && binary.BigEndian.Uint16(b[4:]) != ttheader.Magic {
		// Without the magic number both refuse, or it is not a TTHeader at all.
		if _, err := gopkg.DecodeFromBytes(t.Context(), b); err == nil {
			t.Fatalf("% x: without magic number, and they accept", b)
		}
		if message, used, _, err := ttheader.Next(b, limits.DefaultMessage()); err == nil {
			t.Fatalf("% x: without magic number, and we use %d bytes of it: %+v", b, used, message)
		}
		return bothRefuse
	}
	param, theirErr := gopkg.DecodeFromBytes(t.Context(), b)
	message, used, need, ourErr := ttheader.Next(b, limits.DefaultMessage())
	switch {
	case ourErr == nil && used == 0:
		if need <= len(b) {
			t.Fatalf("% x: we have %d bytes and need %d", b, len(b), need)
		}
		// They read the header before the payload is there; we then see the same.
		if theirErr == nil && param.PayloadLen <= len(b)-param.HeaderLen {
			t.Fatalf("% x: we wait for %d bytes, they have all", b, need)
		}
		return bothWait
	case theirErr != nil:
		// For what they see, which is the header.
		if ourErr == nil && (message.Invalid == nil || !aboutHeader(message.Invalid)) {
			t.Fatalf("% x: they say %v, we accept the header, invalid %v", b, theirErr, message.Invalid)
		}
		return bothRefuse
	case ourErr == nil && (message.Invalid == nil || !aboutHeader(message.Invalid)):
		if got, want := ours(t, b, message, used), theirs(param); !got.equal(want) {
			t.Fatalf("% x:\nwe read   %+v\nthey read %+v", b, got, want)
		}
		if message.Invalid == nil {
			return bothAccept
		}
		return onlyPayload
	}
	if reason := stricterThan(b, param); reason == "" {
		t.Fatalf("% x: they accept %+v, we say %v, invalid %v", b, param, ourErr, message.Invalid)
	}
	return stricter
}

// aboutHeader reports whether a message is invalid for its header: what is
// wrong with a payload, the other side does not see.
func aboutHeader(err error) bool {
	var found *thriftwire.Error
	if !errors.As(err, &found) {
		return false
	}
	text := found.Detail
	return strings.Contains(text, "TTHeader") && !strings.Contains(text, "behind TTHeader") && !strings.Contains(text, "with a payload")
}

// stricterThan returns which of the documented rules refuses a frame that the
// other side accepts; "" for none.
func stricterThan(b []byte, param gopkg.DecodeParam) string {
	length := binary.BigEndian.Uint32(b)
	info := param.HeaderLen - ttheader.FixedSize
	switch {
	case length > limits.FrameLengthMax:
		return "LENGTH above the longest frame"
	case length < 14:
		return "LENGTH below the shortest header"
	case param.PayloadLen < 0:
		return "HEADER SIZE beyond LENGTH"
	case param.Flags&gopkg.HeaderFlagsStreaming != 0, param.ProtocolID == gopkg.ProtocolIDThriftStruct, param.ProtocolID == gopkg.ProtocolIDProtobufStruct:
		return "a frame of a stream"
	case info > limits.HeaderInfoBytes:
		return "header info above the limit"
	case int(b[15]) > limits.HeaderTransforms:
		return "transforms above the limit"
	case pairs(b[16+int(b[15]):param.HeaderLen]) > limits.HeaderPairs:
		return "pairs above the limit"
	}
	return ""
}

// pairs counts what blocks that are known to be good declare; an empty map
// counts as one.
func pairs(blocks []byte) int {
	count := 0
	text := func() { blocks = blocks[2+int(binary.BigEndian.Uint16(blocks)):] }
	for len(blocks) > 0 {
		id := blocks[0]
		blocks = blocks[1:]
		switch id {
		case 0x11:
			text()
			count++
		case 1, 0x10:
			n := int(binary.BigEndian.Uint16(blocks))
			blocks = blocks[2:]
			count += max(n, 1)
			for range n {
				if id == 1 {
					text()
				} else {
					blocks = blocks[2:]
				}
				text()
			}
		}
	}
	return count
}

// TestTTHeader_BothReadTheSame gives random frames to both sides: blocks in any
// order, repeated keys, padding, tokens, transforms, all payloads; and then
// damaged ones, with bytes changed, removed and added.
func TestTTHeader_BothReadTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 16))
	counts := map[verdict]int{}
	for range rounds {
		frame := randomFrame(random)
		if random.IntN(2) == 0 {
			frame = damage(random, frame)
		}
		counts[compare(t, frame)]++
	}
	t.Log(counts)
	for _, v := range []verdict{bothAccept, bothRefuse, bothWait, onlyPayload, stricter} {
		if counts[v] < rounds/200 {
			t.Errorf("%q came up %d times in %d frames: the comparison says little about it", v, counts[v], rounds)
		}
	}
}

// TestTTHeader_WeWriteTheyRead, with random headers.
func TestTTHeader_WeWriteTheyRead(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 16))
	for range rounds / 4 {
		head := ttheader.Head{Flags: uint16(random.Uint32()), Sequence: int32(random.Uint32())}
		want := content{flags: head.Flags, sequence: head.Sequence, strings: map[string]string{}, ints: map[uint16]string{}, rest: len(payload)}
		if random.IntN(3) == 0 {
			head.Token = "t" + randomText(random)
			want.strings[gopkg.GDPRToken] = head.Token
		}
		for range random.IntN(6) {
			key, value := randomKey(random), randomText(random)
			cut := random.IntN(len(key) + 1)
			head.Strings = append(head.Strings, ttheader.Pair{Prefix: key[:cut], Key: key[cut:], Value: value})
			want.strings[key] = value
		}
		for range random.IntN(6) {
			key, value := uint16(random.IntN(30)), randomText(random)
			head.Ints = append(head.Ints, ttheader.IntPair{Key: key, Value: value})
			want.ints[key] = value
		}
		size, err := head.Size()
		if err != nil {
			t.Fatal(err)
		}
		b := append(make([]byte, size), payload...)
		head.Put(b[:size], len(payload))
		param, err := gopkg.DecodeFromBytes(t.Context(), b)
		want.header = size
		if got := theirs(param); err != nil || !got.equal(want) {
			t.Fatalf("% x:\nthey read %+v, %v\nwe wrote  %+v", b, got, err, want)
		}
	}
}

// TestTTHeader_TheyWriteWeRead, with random headers.
func TestTTHeader_TheyWriteWeRead(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 16))
	for range rounds / 4 {
		param := gopkg.EncodeParam{
			Flags: gopkg.HeaderFlags(random.Uint32()) &^ gopkg.HeaderFlagsStreaming,
			SeqID: int32(random.Uint32()), StrInfo: map[string]string{}, IntInfo: map[uint16]string{},
		}
		for range random.IntN(8) {
			param.StrInfo[randomKey(random)] = randomText(random)
		}
		for range random.IntN(8) {
			param.IntInfo[uint16(random.IntN(30))] = randomText(random)
		}
		b, err := gopkg.EncodeToBytes(t.Context(), param)
		if err != nil {
			t.Fatal(err)
		}
		want := content{flags: uint16(param.Flags), sequence: param.SeqID, strings: param.StrInfo, ints: param.IntInfo, header: len(b), rest: len(payload)}
		b = append(b, payload...)
		binary.BigEndian.PutUint32(b, uint32(len(b)-4))
		message, used, _, err := ttheader.Next(b, limits.DefaultMessage())
		if err != nil || used != len(b) || message.Invalid != nil || !bytes.Equal(message.Body, payload[len(payload)-1:]) {
			t.Fatalf("% x: used %d, %v, invalid %v", b, used, err, message.Invalid)
		}
		if got := ours(t, b, message, used); !got.equal(want) {
			t.Fatalf("% x:\nwe read    %+v\nthey wrote %+v", b, got, want)
		}
	}
}

// TestTTHeader_StrictnessIsDocumented: one frame for each rule by which we refuse
// what gopkg takes, so that a rule that nothing needs is noticed.
func TestTTHeader_StrictnessIsDocumented(t *testing.T) {
	frame := func(length uint32, flags uint16, protocol, transforms byte, blocks string, rest []byte) []byte {
		info := append([]byte{protocol, transforms}, blocks...)
		info = append(info, make([]byte, (4-len(info)%4)%4)...)
		b := binary.BigEndian.AppendUint32(nil, length)
		if length == 0 {
			binary.BigEndian.PutUint32(b, uint32(10+len(info)+len(rest)))
		}
		b = binary.BigEndian.AppendUint16(b, ttheader.Magic)
		b = binary.BigEndian.AppendUint16(b, flags)
		b = binary.BigEndian.AppendUint32(b, 7)
		b = binary.BigEndian.AppendUint16(b, uint16(len(info)/4))
		return append(append(b, info...), rest...)
	}
	for name, b := range map[string][]byte{
		"LENGTH above the longest frame":   frame(0x40000000, 0, 0, 0, "", payload),
		"LENGTH below the shortest header": frame(13, 0, 0, 0, "", payload),
		"HEADER SIZE beyond LENGTH":        frame(20, 0, 0, 0, strings.Repeat("\x00", 10), payload),
		"a frame of a stream":              frame(0, 2, 0, 0, "", payload),
		"header info above the limit":      frame(0, 0, 0, 0, strings.Repeat("\x00", 0x10000), payload),
		"transforms above the limit":       frame(0, 0, 0, 17, strings.Repeat("\xff", 17), payload),
		"pairs above the limit":            frame(0, 0, 0, 0, strings.Repeat("\x10\x00\x00", 513), payload),
	} {
		param, err := gopkg.DecodeFromBytes(t.Context(), b)
		if err != nil {
			t.Errorf("%s: they refuse it as well: %v", name, err)
			continue
		}
		if got := compare(t, b); got != stricter {
			t.Errorf("%s: %s", name, got)
		}
		if reason := stricterThan(b, param); reason != name {
			t.Errorf("%s: refused for %q", name, reason)
		}
	}
}

// FuzzTTHeader compares both sides on whatever the fuzzer makes of good frames.
func FuzzTTHeader(f *testing.F) {
	random := rand.New(rand.NewPCG(6, 16))
	for range 8 {
		f.Add(randomFrame(random))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		compare(t, b)
	})
}

// randomFrame returns a frame that is good but for its payload, which is any.
func randomFrame(random *rand.Rand) []byte {
	info := []byte{[]byte{0, 0, 0, 3, 4, 2, 0x10}[random.IntN(7)], 0}
	if random.IntN(8) == 0 {
		info[1] = byte(random.IntN(20))
		for range info[1] {
			info = append(info, byte(random.Uint32()))
		}
	}
	for range random.IntN(6) {
		info = append(info, randomBlock(random)...)
	}
	info = append(info, make([]byte, (4-len(info)%4)%4)...)
	rest := randomPayload(random)
	b := binary.BigEndian.AppendUint32(nil, uint32(10+len(info)+len(rest)))
	b = binary.BigEndian.AppendUint16(b, ttheader.Magic)
	flags := uint16(random.Uint32())
	if random.IntN(20) > 0 {
		flags &^= wire.FlagStreaming
	}
	b = binary.BigEndian.AppendUint16(b, flags)
	b = binary.BigEndian.AppendUint32(b, random.Uint32())
	b = binary.BigEndian.AppendUint16(b, uint16(len(info)/4))
	return append(append(b, info...), rest...)
}

func randomBlock(random *rand.Rand) []byte {
	switch random.IntN(6) {
	case 0:
		return make([]byte, random.IntN(20))
	case 1:
		return appendText([]byte{0x11}, randomText(random))
	case 2:
		count := random.IntN(4)
		if random.IntN(40) == 0 {
			count = 600
		}
		block := binary.BigEndian.AppendUint16([]byte{0x10}, uint16(count))
		for range count {
			block = appendText(binary.BigEndian.AppendUint16(block, uint16(random.IntN(30))), randomText(random))
		}
		return block
	default:
		count := random.IntN(4)
		block := binary.BigEndian.AppendUint16([]byte{1}, uint16(count))
		for range count {
			block = appendText(appendText(block, randomKey(random)), randomText(random))
		}
		return block
	}
}

func randomPayload(random *rand.Rand) []byte {
	switch random.IntN(8) {
	case 0:
		return nil
	case 1:
		junk := make([]byte, random.IntN(40))
		for i := range junk {
			junk[i] = byte(random.Uint32())
		}
		return junk
	case 2:
		return append([]byte{0, 0, 0, 20, 0x90, 1, 0, 1, 0, 0, 0, 4}, "Echo\x00\x00\x00\x07\x0a\x02hi"...)
	case 3, 4:
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
	default:
		return payload
	}
}

// randomKey returns one of a few keys, so that they repeat.
func randomKey(random *rand.Rand) string {
	keys := []string{"", "isn", "crrst", "biz-status", "RPC_PERSIST_k", "RPC_TRANSIT_k", "RPC_TRANSIT_gdpr-token", "RPC_TRANSIT_gdpr-tokem", "Key", "key", "\x00\xff"}
	return keys[random.IntN(len(keys))]
}

func randomText(random *rand.Rand) string {
	switch random.IntN(8) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%0*d", random.IntN(300), random.Uint32())
	default:
		return fmt.Sprint(random.IntN(1000))
	}
}

func appendText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(text))), text...)
}

// damage changes, removes or adds a few bytes, mostly near the front.
func damage(random *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + random.IntN(3) {
		if len(b) == 0 {
			break
		}
		at := random.IntN(len(b))
		if random.IntN(2) == 0 {
			at = min(at, random.IntN(20))
		}
		switch random.IntN(5) {
		case 0:
			b = b[:at]
		case 1:
			b = append(b[:at], b[at+1:]...)
		case 2:
			b = append(b[:at], append([]byte{byte(random.Uint32())}, b[at:]...)...)
		case 3:
			b[at] ^= 1 << random.IntN(8)
		default:
			b[at] = []byte{0, 1, 0x10, 0x11, 0x7f, 0x80, 0xff}[random.IntN(7)]
		}
	}
	return b
}
