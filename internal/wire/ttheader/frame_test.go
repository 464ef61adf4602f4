package ttheader_test

import (
	"bytes"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

func streamFrame(t *testing.T, protocol byte, flags uint16, payload int) []byte {
	t.Helper()
	head := ttheader.Head{Flags: flags, Sequence: -3, Protocol: protocol, Ints: []ttheader.IntPair{{Key: wire.KeyStreamFrameType, Value: "3"}}}
	size, err := head.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size+payload)
	head.Put(b[:size], payload)
	return b
}

func TestNextFrame(t *testing.T) {
	beyond := streamFrame(t, 0, wire.FlagStreaming, 5)
	beyond[13] = 9 // HEADER SIZE
	cases := []struct {
		name string
		b    []byte
		most int
		// payload is -1 if it is too long.
		payload int
		err     bool
	}{
		{"whole", streamFrame(t, ttheader.ProtocolStruct, wire.FlagStreaming, 5), 5, 5, false},
		{"empty", streamFrame(t, ttheader.ProtocolStruct, wire.FlagStreaming, 0), 5, 0, false},
		{"id of Binary", streamFrame(t, 0, wire.FlagStreaming, 5), 5, 5, false},
		{"struct in Protobuf", streamFrame(t, 0x11, wire.FlagStreaming, 5), 5, 0, true},
		{"too long", streamFrame(t, ttheader.ProtocolStruct, wire.FlagStreaming, 6), 5, -1, false},
		{"much too long", streamFrame(t, ttheader.ProtocolStruct, wire.FlagStreaming, 21), 5, 0, true},
		{"a message", streamFrame(t, 0, 0, 5), 5, 0, true},
		{"header beyond its length", beyond, 5, 0, true},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			// Byte by byte, as many as are asked for at least.
			n := 0
			for {
				frame, used, need, err := ttheader.NextFrame(test.b[:n], test.most)
				switch {
				case (err != nil) && test.err:
					return
				case err != nil:
					t.Fatal(err)
				case need > len(test.b) || used == 0 && need <= n:
					t.Fatalf("%d of %d bytes: used %d, needs %d", n, len(test.b), used, need)
				case need > 0:
					n = need
					continue
				case test.err:
					t.Fatal("taken")
				}
				if used != len(test.b) || frame.Sequence != -3 || frame.Info.Len() != 1 {
					t.Errorf("used %d of %d, stream %d, %d pairs", used, len(test.b), frame.Sequence, frame.Info.Len())
				}
				if test.payload < 0 && (frame.Payload != nil || frame.Length != 6 || n == len(test.b)) {
					t.Errorf("too long a payload was waited for: %d bytes", len(frame.Payload))
				}
				if test.payload >= 0 && !bytes.Equal(frame.Payload, make([]byte, test.payload)) {
					t.Errorf("payload % x", frame.Payload)
				}
				return
			}
		})
	}
}

func TestIsFrame(t *testing.T) {
	for flags, want := range map[uint16]bool{0: false, wire.FlagOutOfOrder: false, wire.FlagStreaming: true, wire.FlagStreaming | wire.FlagOutOfOrder: true} {
		b := streamFrame(t, 0, flags, 0)
		if got, need := ttheader.IsFrame(b[:8]); got != want || need != 0 {
			t.Errorf("flags %d: %v, needs %d", flags, got, need)
		}
		if _, need := ttheader.IsFrame(b[:7]); need != 8 {
			t.Errorf("needs %d", need)
		}
	}
}
