package framed_test

import (
	"bytes"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/framed"
)

// echo is a call as docs/protocol/thrift.md shows it.
var echo = []byte{0, 0, 0, 0x1a, 0x80, 1, 0, 1, 0, 0, 0, 4, 'E', 'c', 'h', 'o', 0, 0, 0, 7,
	0x0b, 0, 1, 0, 0, 0, 2, 'h', 'i', 0}

func TestNext_NeedsExactlyTheFrame(t *testing.T) {
	for have := range echo {
		_, used, need, err := framed.Next(echo[:have], limits.DefaultMessage())
		if used != 0 || err != nil || need <= have || need > len(echo) {
			t.Fatalf("Next of %d bytes: used %d, need %d, %v", have, used, need, err)
		}
	}
	message, used, _, err := framed.Next(append(bytes.Clone(echo), echo...), limits.DefaultMessage())
	if err != nil || used != len(echo) || message.Invalid != nil {
		t.Fatalf("Next: used %d, %v, invalid %v", used, err, message.Invalid)
	}
	if string(message.Name) != "Echo" || message.Sequence != 7 || !bytes.Equal(message.Body, echo[20:]) {
		t.Errorf("Next = %q %d % x", message.Name, message.Sequence, message.Body)
	}
}

// TestNext_DoesNotLookBeyondTheMessage: the header of a refused message declares
// a name that is longer than the message. What follows is not part of it, so it
// is the same whether that has arrived or not.
func TestNext_DoesNotLookBeyondTheMessage(t *testing.T) {
	m := limits.DefaultMessage()
	m.Bytes = 20
	b := append([]byte{0, 0, 0, 25, 0x80, 1, 0, 1, 0, 0, 0, 30}, bytes.Repeat([]byte{'x'}, 100)...)
	for have := 12; have <= len(b); have++ {
		message, used, need, err := framed.Next(b[:have], m)
		if err != nil || used != 29 || need != 0 || message.Invalid == nil || message.Name != nil {
			t.Fatalf("%d bytes: used %d, need %d, name %q, %v, invalid %v", have, used, need, message.Name, err, message.Invalid)
		}
	}
}

// FuzzNext: no input panics, nothing outside the frame is returned, and a need
// is always more than there is.
func FuzzNext(f *testing.F) {
	f.Add(echo)
	f.Add([]byte{0x3f, 0xff, 0xff, 0xff, 0x80, 1, 0, 1, 0, 0, 0, 1, 'x', 0, 0, 0, 1})
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m := limits.DefaultMessage()
		m.Bytes = 1000
		message, used, need, err := framed.Next(b, m)
		switch {
		case err != nil:
			if b[0] <= limits.FrameLengthMax>>24 {
				t.Fatalf("a frame of plausible length always has an end, but: %v", err)
			}
		case used == 0 && need <= len(b):
			t.Fatalf("need %d of %d bytes", need, len(b))
		case used > len(b) && message.Invalid == nil:
			t.Fatalf("a good message used %d of %d bytes", used, len(b))
		case message.Last && message.Invalid == nil:
			t.Fatal("a good message is the last")
		case used > 0 && len(message.Name)+len(message.Body)+framed.HeaderSize > used:
			t.Fatalf("a frame of %d bytes has a name of %d and a body of %d", used, len(message.Name), len(message.Body))
		}
	})
}
