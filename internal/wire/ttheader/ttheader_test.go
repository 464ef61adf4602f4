package ttheader_test

import (
	"bytes"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// echoFrame is the frame of docs/protocol/ttheader.md.
const echoFrame = `
00 00 00 78 10 00 00 00 00 00 00 07 00 14   # LENGTH 120, magic, FLAGS 0, SEQID 7, HEADER SIZE 20 x 4
00 00                                       # PROTOCOL ID 0, no transforms
01 00 02                                    # string map of 2
00 03 69 73 6e 00 07 45 63 68 6f 53 76 63   # isn: EchoSvc
00 0d 52 50 43 5f 50 45 52 53 49 53 54 5f 6b 00 01 76 # RPC_PERSIST_k: v
10 00 05                                    # int map of 5
00 03 00 03 63 6c 69                        # 3, from service: cli
00 06 00 03 73 76 63                        # 6, to service: svc
00 09 00 04 45 63 68 6f                     # 9, to method: Echo
00 16 00 01 31                              # 22, message type: 1
00 01 00 06 66 72 61 6d 65 64               # 1, transport type: framed
00 00 00                                    # padding
00 00 00 1a                                 # inner frame of 26 bytes
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

func TestHead_WritesTheDocumentedBytes(t *testing.T) {
	want := unhex(t, echoFrame)
	const payload = 30
	head := echoHead()
	size, err := head.Size()
	if err != nil || size != len(want)-payload {
		t.Fatalf("Size = %d, %v; want %d", size, err, len(want)-payload)
	}
	got := bytes.Repeat([]byte{0xaa}, size)
	head.Put(got, payload)
	if !bytes.Equal(got, want[:size]) {
		t.Errorf("Put wrote\n% x, want\n% x", got, want[:size])
	}
}

func TestNext_ReadsTheDocumentedBytes(t *testing.T) {
	frame := unhex(t, echoFrame)
	message, used, _, err := ttheader.Next(frame, limits.DefaultMessage())
	if err != nil || used != len(frame) || message.Invalid != nil {
		t.Fatalf("Next: used %d, %v, invalid %v", used, err, message.Invalid)
	}
	if message.Protocol != wire.TTHeaderFramed || string(message.Name) != "Echo" || message.Sequence != 7 || message.HeaderSequence != 7 {
		t.Errorf("Next = %+v", message)
	}
	if service, ok := message.Info.String(wire.IDLServiceName); !ok || string(service) != "EchoSvc" {
		t.Errorf("isn = %q, %v", service, ok)
	}
	if method, ok := message.Info.Int(wire.KeyToMethod); !ok || string(method) != "Echo" || message.Info.Len() != 7 {
		t.Errorf("to method = %q, %v; %d pairs", method, ok, message.Info.Len())
	}
}
