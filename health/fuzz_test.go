package health

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// FuzzMessages: any bytes as either message: one that is written and read again as it was, or
// an error where the library that the bytes are read with has one.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{0x0a, 1, 'x'})
	f.Add([]byte{0x08, 1, 0x08, 2})
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		sound := true
		for rest := in; len(rest) > 0 && sound; {
			_, _, n := protowire.ConsumeField(rest)
			if sound = n > 0; sound {
				rest = rest[n:]
			}
		}
		asked, answer := new(request), new(response)
		_, err := codec{}.ReadBody(in, answer, limits.Message{}, false)
		if (err == nil) != sound {
			t.Errorf("read as a response: %v; sound: %v", err, sound)
		}
		if _, err := (codec{}).ReadBody(in, asked, limits.Message{}, false); err == nil && !sound {
			t.Error("read as a request, although it is broken")
		}
		out := linkbuf.New(linkbuf.NewPool())
		defer out.Release()
		if err := (codec{}).AppendBody(out, asked, limits.Message{}); err != nil {
			t.Fatal(err)
		}
		written, _ := out.Peek(out.Len())
		again := new(request)
		if _, err := (codec{}).ReadBody(written, again, limits.Message{}, false); err != nil || *again != *asked {
			t.Errorf("%+v came back as %+v, %v", asked, again, err)
		}
	})
}
