package detect_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/detect"
	"github.com/fulmar-rpc/fulmar/internal/wire/kitexprotobuf"
)

// smallLimits make limits easy to reach in a transcript.
func smallLimits() limits.Message {
	return limits.Message{Bytes: 1000, Depth: 4, DecodeBytesMax: limits.DecodeBytesMax}
}

var allProtocols = wire.SetOf(wire.Bare, wire.Framed, wire.TTHeader, wire.TTHeaderFramed, wire.KitexProtobuf)

// TestDecoder_Transcripts plays conversations from testdata: "listen" opens a
// connection on which the named protocols are allowed, "feed" makes bytes
// arrive and prints what comes out.
func TestDecoder_Transcripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			var connection *connection
			testkit.Transcript(t, file, func(command, input string) string {
				words := strings.Fields(command)
				switch words[0] {
				case "listen":
					connection = listen(words[1:])
					return "ok"
				case "feed":
					b, err := testkit.Hex(input)
					if err != nil {
						t.Fatal(err)
					}
					return connection.feed(b)
				}
				t.Fatalf("unknown command %q", command)
				return ""
			})
		})
	}
}

// TestDetect_RefusesInTheWordsOfTheDocument compares the refusal that the
// description of the protocol quotes with the real one.
func TestDetect_RefusesInTheWordsOfTheDocument(t *testing.T) {
	_, _, err := detect.Detect([]byte("GET / HTTP/1.1\r\n"), allProtocols)
	if err == nil {
		t.Fatal("HTTP was accepted")
	}
	const name = "../../../docs/protocol/thrift.md"
	document, readErr := os.ReadFile(name)
	if readErr != nil {
		t.Fatal(readErr)
	}
	if quote := "`" + err.Error() + "`"; !strings.Contains(string(document), quote) {
		t.Errorf("%s does not quote the refusal as it is: %s", name, quote)
	}
}

// connection is a receiver that keeps what its Decoder did not use yet.
type connection struct {
	decoder detect.Decoder
	arrived []byte
}

func listen(protocols []string) *connection {
	var allowed wire.Set
	for _, name := range protocols {
		for p := wire.Bare; allProtocols.Has(p); p++ {
			if p.String() == name {
				allowed |= wire.SetOf(p)
			}
		}
	}
	return &connection{decoder: detect.NewDecoder(allowed, smallLimits())}
}

func (c *connection) feed(b []byte) string {
	c.arrived = append(c.arrived, b...)
	var out strings.Builder
	for len(c.arrived) > 0 {
		message, used, need, err := c.decoder.Next(c.arrived)
		if err != nil {
			fmt.Fprintf(&out, "error: %v\n", err)
			return out.String()
		}
		if used == 0 {
			fmt.Fprintf(&out, "have %d bytes, need %d\n", len(c.arrived), need)
			return out.String()
		}
		out.WriteString(describe(message))
		if used > len(c.arrived) {
			fmt.Fprintf(&out, "  %d bytes to throw away\n", used-len(c.arrived))
		}
		if message.Last {
			fmt.Fprintf(&out, "  last\n")
			return out.String()
		}
		c.arrived = c.arrived[min(used, len(c.arrived)):]
	}
	return out.String()
}

// describe prints a message; what only a TTHeader has, on lines of its own.
func describe(message wire.Message) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%v %v %q, sequence id %d, body % x\n", message.Protocol, message.Type, message.Name, message.Sequence, message.Body)
	if message.Payload != wire.PayloadThrift {
		fmt.Fprintf(&out, "  payload: %v\n", message.Payload)
	}
	if message.Protocol == wire.TTHeader || message.Protocol == wire.TTHeaderFramed {
		fmt.Fprintf(&out, "  header: sequence id %d, flags %#04x\n", message.HeaderSequence, message.Flags)
	}
	for key, value := range message.Info.Strings() {
		fmt.Fprintf(&out, "  %q: %q\n", key, value)
	}
	for key, value := range message.Info.Ints() {
		fmt.Fprintf(&out, "  %d: %q\n", key, value)
	}
	if message.Invalid != nil {
		fmt.Fprintf(&out, "  invalid: %v\n", message.Invalid)
	}
	return out.String()
}

// TestDetect_AllowsWhatIsListed tries the first bytes of each protocol against
// every allow-list. With and without inner frame are one protocol to a receiver.
func TestDetect_AllowsWhatIsListed(t *testing.T) {
	first := map[wire.Protocol][]byte{
		wire.Bare:     {0x80, 1, 0, 1, 0, 0, 0, 4},
		wire.Framed:   {0, 0, 0, 0x1a, 0x80, 1, 0, 1},
		wire.TTHeader: {0, 0, 0, 0x78, 0x10, 0, 0, 0},

		wire.KitexProtobuf: {0, 0, 0, 0x14, 0x90, 1, 0, 1},
	}
	for allowed := wire.Set(0); allowed <= allProtocols; allowed += wire.SetOf(wire.Bare) {
		for protocol, b := range first {
			want := allowed.Has(protocol) || protocol == wire.TTHeader && allowed.Has(wire.TTHeaderFramed)
			got, need, err := detect.Detect(b, allowed)
			switch {
			case need != 0:
				t.Errorf("%v where %q are allowed: %d more bytes needed", protocol, allowed, need)
			case want && (got != protocol || err != nil):
				t.Errorf("%v where %q are allowed: %v, %v", protocol, allowed, got, err)
			case !want && (got != wire.Unknown || err == nil):
				t.Errorf("%v where only %q are allowed: %v, %v; want it refused", protocol, allowed, got, err)
			}
		}
	}
}

// TestDecoder_RefusesWithWhatHasArrived stops waiting for the rest of a message
// at each of its bytes: what its answer needs is there as soon as it arrived,
// and the next message is understood.
func TestDecoder_RefusesWithWhatHasArrived(t *testing.T) {
	call := []byte{0x80, 1, 0, 1, 0, 0, 0, 4, 'E', 'c', 'h', 'o', 0, 0, 0, 7, 0x0b, 0, 1, 0, 0, 0, 2, 'h', 'i', 0}
	framedCall := append([]byte{0, 0, 0, 26}, call...)
	protobuf := bytes.Clone(framedCall)
	protobuf[4] = 0x90
	header := []byte{0, 0, 0, 0x30, 0x10, 0, 0, 1, 0, 0, 0, 9, 0, 3, 0, 0, 0x11, 0, 1, 's', 0, 0, 0, 0, 0, 0}
	bareHeader := bytes.Clone(header)
	bareHeader[3] = 0x30
	framedHeader := bytes.Clone(header)
	framedHeader[3] = 0x34
	reason := errors.New("no memory")
	for name, test := range map[string]struct {
		whole []byte
		// method is how many bytes hold the header of the message, info those of
		// a TTHeader.
		method, info int
		protocol     wire.Protocol
	}{
		"bare":            {call, 16, 0, wire.Bare},
		"framed":          {framedCall, 20, 0, wire.Framed},
		"ttheader":        {append(bareHeader, call...), len(header) + 16, len(header), wire.TTHeader},
		"ttheader-framed": {append(framedHeader, framedCall...), len(header) + 20, len(header), wire.TTHeaderFramed},
		"protobuf":        {protobuf, 20, 0, wire.Framed},
	} {
		for have := 6; have < len(test.whole); have++ {
			decoder := detect.NewDecoder(allProtocols, limits.DefaultMessage())
			if _, used, need, err := decoder.Next(test.whole[:have]); used != 0 || need == 0 || err != nil {
				t.Fatalf("%s: %d bytes: used %d, need %d, %v", name, have, used, need, err)
			}
			message, used := decoder.Refuse(test.whole[:have], reason)
			known := have >= test.method
			goesOn := known && test.protocol != wire.Bare
			switch {
			case message.Invalid != reason || message.Body != nil:
				t.Errorf("%s: %d bytes: %+v", name, have, message)
			case message.Last == goesOn || (used == len(test.whole)) != goesOn || (used == 0) == goesOn:
				t.Errorf("%s: %d bytes: last %v, %d bytes of %d used; the connection goes on: %v", name, have, message.Last, used, len(test.whole), goesOn)
			case (string(message.Name) == "Echo") != known || (message.Sequence == 7) != known:
				t.Errorf("%s: %d bytes: %q, sequence id %d", name, have, message.Name, message.Sequence)
			case known && message.Protocol != test.protocol:
				t.Errorf("%s: %d bytes: answered in %v", name, have, message.Protocol)
			case test.info > 0 && have >= 14 && (message.HeaderSequence != 9 || message.Flags != wire.FlagOutOfOrder):
				t.Errorf("%s: %d bytes: sequence id %d, flags %#x", name, have, message.HeaderSequence, message.Flags)
			case (message.Info.Len() == 1) != (test.info > 0 && have >= test.info):
				t.Errorf("%s: %d bytes: %d pairs", name, have, message.Info.Len())
			}
			if next, used, _, err := decoder.Next(test.whole); used != len(test.whole) || err != nil || next.Invalid != nil || next.Protocol != test.protocol {
				t.Errorf("%s: %d bytes, then a message: used %d, %v, %+v", name, have, used, err, next)
			}
		}
	}
}

// TestDetect_AnswersProtobufInProtobuf where it is not allowed, and behind a TTHeader
// keeps the connection.
func TestDetect_AnswersProtobufInProtobuf(t *testing.T) {
	call := []byte{0, 0, 0, 0x14, 0x90, 1, 0, 1, 0, 0, 0, 4, 'E', 'c', 'h', 'o', 0, 0, 0, 7, 0x0a, 2, 'h', 'i'}
	thriftOnly := allProtocols &^ wire.SetOf(wire.KitexProtobuf)
	_, _, err := detect.Detect(call, thriftOnly)
	refusal, ok := err.(*wire.Error)
	if !ok || refusal.Answer != kitexprotobuf.Refusal(call, wire.ErrNotEnabled.Error()) || !strings.Contains(refusal.Detail, "Kitex-Protobuf, not enabled") {
		t.Errorf("Detect: %#v; want an answer in Protobuf", err)
	}
	behind := append([]byte{0, 0, 0, 0x26, 0x10, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 0, 0, 0}, call...)
	decoder := detect.NewDecoder(thriftOnly, limits.DefaultMessage())
	message, used, _, err := decoder.Next(behind)
	if err != nil || used != len(behind) || message.Invalid != wire.ErrNotEnabled || message.Payload != wire.PayloadProtobuf ||
		message.Last || message.Sequence != 7 || message.HeaderSequence != 9 {
		t.Errorf("behind a TTHeader: used %d, %v, %+v", used, err, message)
	}
}

func TestDetect_AnswersHTTPInHTTP(t *testing.T) {
	_, _, err := detect.Detect([]byte("GET / HTTP/1.1\r\n"), allProtocols)
	refusal, ok := err.(*wire.Error)
	if !ok || !strings.HasPrefix(refusal.Answer, "HTTP/1.1 400 ") {
		t.Fatalf("Detect: %#v; want an answer in HTTP", err)
	}
	head, body, _ := strings.Cut(refusal.Answer, "\r\n\r\n")
	if want := fmt.Sprintf("Content-Length: %d", len(body)); !strings.Contains(head, want) {
		t.Errorf("the answer's body has %d bytes, its head is %q", len(body), head)
	}
}

// FuzzDecoder: whatever arrives, and however it is cut, the same messages come
// out, nothing outside the input is returned, and a need is always more than
// there is.
func FuzzDecoder(f *testing.F) {
	call := []byte{0, 0, 0, 0x1a, 0x80, 1, 0, 1, 0, 0, 0, 4, 'E', 'c', 'h', 'o', 0, 0, 0, 7, 0x0b, 0, 1, 0, 0, 0, 2, 'h', 'i', 0}
	f.Add(append(bytes.Clone(call), call[4:]...), 9)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), 3)
	f.Add([]byte{0, 0, 0, 0x14, 0x90, 1, 0, 1, 0, 0, 0, 4, 'E', 'c', 'h', 'o', 0, 0, 0, 7, 0x0a, 2, 'h', 'i'}, 9)
	f.Add([]byte{0x16, 3, 1, 2, 0, 1, 0}, 4)
	f.Add([]byte{0x16, 3, 1, 2, 0x90, 1, 0, 2, 0x8c, 3, 3}, 8)
	f.Add(append([]byte{0, 0, 0, 0x32, 0x10, 0, 0, 1, 0, 0, 0, 7, 0, 2, 0, 0, 0x11, 0, 1, 's', 0, 0}, call...), 17)
	f.Add(append([]byte{0, 0, 0, 0x28, 0x10, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0, 0, 0, 0}, append(bytes.Clone(call[4:]), call...)...), 50)
	f.Add([]byte{0, 0, 8, 0, 0x10, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 0, 0, 0, 0, 0, 7, 0xea, 0x80, 1, 0, 1, 0, 0, 0, 1, 'x', 0, 0, 0, 9}, 20)
	f.Add([]byte{0, 0, 3, 0xe9, 0x80, 1, 0, 1, 0, 0, 0, 1, 'x', 0, 0, 0, 1}, 8)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		whole := decodeAll(t, b, len(b))
		if cut <= 0 || cut >= len(b) {
			return
		}
		if pieces := decodeAll(t, b, cut); pieces != whole {
			t.Fatalf("at once:\n%scut at %d:\n%s", whole, cut, pieces)
		}
	})
}

// decodeAll feeds b in pieces of the given size and returns a description of
// what came out. A bare message that is broken is only known to be so when the
// broken part has arrived, so what it aliases is left out.
func decodeAll(t *testing.T, b []byte, piece int) string {
	decoder := detect.NewDecoder(allProtocols, smallLimits())
	var out strings.Builder
	start := 0
	for have := min(piece, len(b)); ; have = min(have+piece, len(b)) {
		for start < have {
			arrived := b[start:have]
			message, used, need, err := decoder.Next(arrived)
			if err != nil {
				return out.String() + "error\n"
			}
			if used == 0 {
				if need <= len(arrived) {
					t.Fatalf("have %d bytes, need %d", len(arrived), need)
				}
				break
			}
			if len(message.Body)+len(message.Name) > used {
				t.Fatalf("a message of %d bytes has %d bytes of content", used, len(message.Body)+len(message.Name))
			}
			out.WriteString(describe(message))
			if message.Last {
				return out.String() + "last\n"
			}
			start += used
		}
		if have == len(b) {
			return out.String()
		}
	}
}
