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
)

// captures are the folders of captured messages that this test reads, by the
// name of the protocol.
var captures = [...]string{"bare", "framed"}

// TestDecoder_ReadsWhatPeersSend: every message captured from Apache Thrift,
// thriftpy2 and Kitex is found, however it is cut in two (S1 of the fault
// scenarios), and its head is the one that we would write.
func TestDecoder_ReadsWhatPeersSend(t *testing.T) {
	var files []string
	for _, protocol := range captures {
		found, err := filepath.Glob("../testdata/peers/*/" + protocol + "/*.hex")
		if err != nil || len(found) == 0 {
			t.Fatalf("no captured messages of %s: %v", protocol, err)
		}
		files = append(files, found...)
	}
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
			if folder := filepath.Base(filepath.Dir(file)); want.Protocol.String() != folder {
				t.Errorf("detected %v, captured as %s", want.Protocol, folder)
			}
			checkHead(t, whole, want)
			for cut := 1; cut < len(whole); cut++ {
				got := decodeOne(t, whole, cut)
				if got.Type != want.Type || got.Sequence != want.Sequence || !bytes.Equal(got.Name, want.Name) || !bytes.Equal(got.Body, want.Body) {
					t.Fatalf("cut at %d: %v %q %d % x", cut, got.Type, got.Name, got.Sequence, got.Body)
				}
			}
		})
	}
}

// decodeOne decodes the one message in whole, of which only the first cut bytes
// are there at first.
func decodeOne(t *testing.T, whole []byte, cut int) wire.Message {
	t.Helper()
	decoder := detect.NewDecoder(bothProtocols, limits.DefaultMessage())
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
	var head []byte
	size := thriftwire.AppendedHeaderSize(string(message.Name))
	if message.Protocol == wire.Framed {
		head = make([]byte, framed.HeaderSize)
		framed.PutHeader(head, size+len(message.Body))
	}
	header := make([]byte, size)
	thriftwire.PutHeader(header, message.Type, string(message.Name), message.Sequence)
	if head = append(head, header...); !bytes.HasPrefix(whole, head) {
		t.Errorf("we would write\n% x, captured was\n% x", head, whole[:len(head)])
	}
	if message.Type != thriftwire.Exception {
		return
	}
	if exception, err := thriftwire.ParseApplicationException(message.Body); err != nil || exception.Type == 0 {
		t.Errorf("the exception is %+v, %v", exception, err)
	}
}
