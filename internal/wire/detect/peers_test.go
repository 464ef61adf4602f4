package detect_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/detect"
	"github.com/fulmar-rpc/fulmar/internal/wire/framed"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// captured says which protocol each folder of captured messages has.
// Multiplexed messages are ordinary ones with a flag; the control packet is
// never framed.
func captured(folder, file string) wire.Protocol {
	switch {
	case folder == "mux" && file == "shutdown.reply.hex", folder == "mux-bare":
		return wire.TTHeader
	case folder == "mux":
		return wire.TTHeaderFramed
	}
	for p := wire.Bare; p <= wire.TTHeaderFramed; p++ {
		if p.String() == folder {
			return p
		}
	}
	return wire.Unknown
}

// TestDecoder_ReadsWhatPeersSend: every message captured from Apache Thrift,
// thriftpy2 and Kitex is found, however it is cut in two (S1 of the fault
// scenarios), and its head is the one that we would write.
func TestDecoder_ReadsWhatPeersSend(t *testing.T) {
	files, err := filepath.Glob("../testdata/peers/*/*/*.hex")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captured messages: %v", err)
	}
	seen := map[wire.Protocol]int{}
	for _, file := range files {
		t.Run(strings.TrimPrefix(filepath.ToSlash(file), "../testdata/peers/"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := testkit.Hex(string(text))
			if err != nil {
				t.Fatal(err)
			}
			want := decodeOne(t, whole, len(whole))
			seen[want.Protocol]++
			if protocol := captured(filepath.Base(filepath.Dir(file)), filepath.Base(file)); want.Protocol != protocol {
				t.Errorf("detected %v, captured as %v", want.Protocol, protocol)
			}
			checkHead(t, whole, want)
			for cut := 1; cut < len(whole); cut++ {
				if got := decodeOne(t, whole, cut); describe(got) != describe(want) {
					t.Fatalf("cut at %d: %s, want %s", cut, describe(got), describe(want))
				}
			}
		})
	}
	if len(seen) != 4 {
		t.Errorf("captured messages by protocol: %v; want all four", seen)
	}
}

// decodeOne decodes the one message in whole, of which only the first cut bytes
// are there at first.
func decodeOne(t *testing.T, whole []byte, cut int) wire.Message {
	t.Helper()
	decoder := detect.NewDecoder(allProtocols, limits.DefaultMessage())
	message, used, need, err := decoder.Next(whole[:cut])
	if err == nil && used == 0 && cut < len(whole) {
		if need <= cut || need > len(whole) {
			t.Fatalf("cut at %d of %d: need %d", cut, len(whole), need)
		}
		message, used, _, err = decoder.Next(whole)
	}
	if err != nil || used != len(whole) || message.Invalid != nil {
		t.Fatalf("cut at %d of %d: used %d, %v, invalid %v", cut, len(whole), used, err, message.Invalid)
	}
	return message
}

// checkHead writes the head of a message and compares it with the captured one.
func checkHead(t *testing.T, whole []byte, message wire.Message) {
	t.Helper()
	size := thriftwire.AppendedHeaderSize(string(message.Name))
	payload := size + len(message.Body)
	prefix := 0
	if message.Protocol == wire.Framed || message.Protocol == wire.TTHeaderFramed {
		prefix = framed.HeaderSize
	}
	var head []byte
	if message.Protocol == wire.TTHeader || message.Protocol == wire.TTHeaderFramed {
		// Pairs are written in the order of the capture: Kitex has none.
		header := ttheader.Head{Flags: message.Flags, Sequence: message.HeaderSequence}
		for key, value := range message.Info.Strings() {
			header.Strings = append(header.Strings, ttheader.Pair{Key: string(key), Value: string(value)})
		}
		for key, value := range message.Info.Ints() {
			header.Ints = append(header.Ints, ttheader.IntPair{Key: key, Value: string(value)})
		}
		headerSize, err := header.Size()
		if err != nil {
			t.Fatal(err)
		}
		head = make([]byte, headerSize)
		header.Put(head, prefix+payload)
	}
	if prefix > 0 {
		head = append(head, make([]byte, prefix)...)
		framed.PutHeader(head[len(head)-prefix:], payload)
	}
	header := make([]byte, size)
	thriftwire.PutHeader(header, message.Type, string(message.Name), message.Sequence)
	if head = append(head, header...); !bytes.HasPrefix(whole, head) {
		t.Errorf("we would write\n% x, captured was\n% x", head, whole[:min(len(head), len(whole))])
	}
	if message.Type != thriftwire.Exception {
		return
	}
	if exception, err := thriftwire.ParseApplicationException(message.Body); err != nil || exception.Type == 0 {
		t.Errorf("the exception is %+v, %v", exception, err)
	}
}
