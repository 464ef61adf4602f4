package bare_test

import (
	"bytes"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/bare"
)

// echo is a call as docs/protocol/thrift.md shows it.
var echo = []byte{0x80, 1, 0, 1, 0, 0, 0, 4, 'E', 'c', 'h', 'o', 0, 0, 0, 7,
	0x0b, 0, 1, 0, 0, 0, 2, 'h', 'i', 0}

func TestDecoder_FindsTheEndHoweverBytesArrive(t *testing.T) {
	stream := append(bytes.Clone(echo), echo...)
	for piece := 1; piece <= len(stream); piece++ {
		var decoder bare.Decoder
		found, start := 0, 0
		for have := 0; have < len(stream); {
			have = min(have+piece, len(stream))
			for start < have {
				message, used, need, err := decoder.Next(stream[start:have], limits.DefaultMessage())
				if err != nil || message.Invalid != nil {
					t.Fatalf("pieces of %d: %v, %v", piece, err, message.Invalid)
				}
				if used == 0 {
					if need <= have-start {
						t.Fatalf("pieces of %d: need %d of %d", piece, need, have-start)
					}
					break
				}
				if used != len(echo) || !bytes.Equal(message.Body, echo[16:]) {
					t.Fatalf("pieces of %d: used %d, body % x", piece, used, message.Body)
				}
				found++
				start += used
			}
		}
		if found != 2 {
			t.Errorf("pieces of %d: %d messages, want 2", piece, found)
		}
	}
}

// FuzzDecoder: no input panics; a message ends inside its bytes; a need is
// always more than there is.
func FuzzDecoder(f *testing.F) {
	f.Add(echo)
	f.Add(append(bytes.Clone(echo[:16]), 0x0d, 0, 1, 0x0b, 0x0c, 1, 0x31, 0x2d, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := limits.DefaultMessage()
		m.Bytes = 1000
		var decoder bare.Decoder
		message, used, need, err := decoder.Next(b, m)
		switch {
		case err != nil:
			return
		case used == 0 && need <= len(b):
			t.Fatalf("need %d of %d bytes", need, len(b))
		case used > len(b):
			t.Fatalf("used %d of %d bytes", used, len(b))
		case (message.Invalid != nil) != message.Last:
			t.Fatalf("invalid %v, last %v", message.Invalid, message.Last)
		}
	})
}
