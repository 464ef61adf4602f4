package kitexprotobuf_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/framed"
	"github.com/fulmar-rpc/fulmar/internal/wire/kitexprotobuf"
)

// echo is a call as docs/protocol/kitex-protobuf.md shows it.
var echo = []byte{0, 0, 0, 0x14, 0x90, 1, 0, 1, 0, 0, 0, 4, 'E', 'c', 'h', 'o', 0, 0, 0, 7, 0x0a, 2, 'h', 'i'}

func TestParseHeader_Table(t *testing.T) {
	for name, test := range map[string]struct {
		b          []byte
		size, need int
		kind       thriftwire.Kind
		text       string
		header     thriftwire.Header
	}{
		"call":            {echo[4:], 16, 0, 0, "", thriftwire.Header{Type: thriftwire.Call, Name: []byte("Echo"), Sequence: 7}},
		"empty name":      {[]byte{0x90, 1, 0, 4, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, 12, 0, 0, "", thriftwire.Header{Type: thriftwire.Oneway, Name: []byte{}, Sequence: -1}},
		"nothing":         {nil, 0, 8, 0, "", thriftwire.Header{}},
		"the length only": {echo[4:12], 0, 16, 0, "", thriftwire.Header{}},
		"not all of it":   {echo[4:19], 0, 16, 0, "", thriftwire.Header{}},
		"Thrift":          {[]byte{0x80, 1, 0, 1, 0, 0, 0, 0}, 0, 0, thriftwire.Malformed, "80 01", thriftwire.Header{}},
		"a long name":     {[]byte{0x90, 1, 0, 1, 0, 0, 4, 1}, 0, 0, thriftwire.LimitExceeded, "method name of 1025 bytes (limit 1024)", thriftwire.Header{}},
		"a negative name": {[]byte{0x90, 1, 0, 1, 0xff, 0xff, 0xff, 0xff}, 0, 0, thriftwire.LimitExceeded, "4294967295", thriftwire.Header{}},
		"type 0": {[]byte{0x90, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}, 12, 0, thriftwire.BadType, "unknown message type 0",
			thriftwire.Header{Name: []byte{}, Sequence: 9}},
		"type 5": {[]byte{0x90, 1, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9}, 12, 0, thriftwire.BadType, "unknown message type 5",
			thriftwire.Header{Name: []byte{}, Sequence: 9}},
		// Kitex takes all 16 bits of the type, unlike those of Thrift.
		"type 257": {[]byte{0x90, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 9}, 12, 0, thriftwire.BadType, "unknown message type 257",
			thriftwire.Header{Name: []byte{}, Sequence: 9}},
	} {
		header, size, need, err := kitexprotobuf.ParseHeader(test.b)
		if size != test.size || need != test.need || header.Type != test.header.Type || !bytes.Equal(header.Name, test.header.Name) || header.Sequence != test.header.Sequence {
			t.Errorf("%s: %+v, size %d, need %d", name, header, size, need)
		}
		var found *thriftwire.Error
		if (err != nil) != (test.kind != 0) || err != nil && (!errors.As(err, &found) || found.Kind != test.kind || !strings.Contains(found.Detail, test.text)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPutHeader_IsRead(t *testing.T) {
	b := make([]byte, kitexprotobuf.HeaderSize("Echo"))
	kitexprotobuf.PutHeader(b, thriftwire.Call, "Echo", 7)
	if !bytes.Equal(b, echo[4:20]) {
		t.Errorf("% x, want % x", b, echo[4:20])
	}
}

// TestFramed_NeedsExactlyTheFrame: a message in a frame is found at once and in pieces,
// an empty one too.
func TestFramed_NeedsExactlyTheFrame(t *testing.T) {
	empty := append([]byte{0, 0, 0, 0x10}, echo[4:20]...)
	for _, whole := range [][]byte{echo, empty} {
		for have := range whole {
			if _, used, need, err := framed.Next(whole[:have], limits.DefaultMessage()); used != 0 || need <= have || need > len(whole) || err != nil {
				t.Fatalf("%d bytes: used %d, need %d, %v", have, used, need, err)
			}
			match, need := kitexprotobuf.Matches(whole[:have])
			if match != (have >= 6) || need > 0 != (have < 6) {
				t.Errorf("%d bytes: matches %v, need %d", have, match, need)
			}
		}
		message, used, _, err := framed.Next(append(bytes.Clone(whole), echo...), limits.DefaultMessage())
		if err != nil || used != len(whole) || message.Invalid != nil || message.Payload != wire.PayloadProtobuf || message.Protocol != wire.Framed {
			t.Fatalf("used %d, %v, %+v", used, err, message)
		}
		if string(message.Name) != "Echo" || !bytes.Equal(message.Body, whole[20:]) {
			t.Errorf("%q, body % x", message.Name, message.Body)
		}
	}
	if match, need := kitexprotobuf.Matches([]byte{0x40}); match || need != 0 {
		t.Error("a frame of more than a gigabyte matches")
	}
}

// TestFramed_RefusesWhatIsTooLong: with what its answer needs.
func TestFramed_RefusesWhatIsTooLong(t *testing.T) {
	m := limits.DefaultMessage()
	m.Bytes = 18
	message, used, _, err := framed.Next(echo[:20], m)
	if err != nil || used != len(echo) || message.Invalid == nil || message.Payload != wire.PayloadProtobuf || message.Sequence != 7 {
		t.Errorf("used %d, %v, %+v", used, err, message)
	}
}

func TestParseException_Table(t *testing.T) {
	long := strings.Repeat("x", limits.ErrorMessageBytes+1)
	for name, test := range map[string]struct {
		b     string
		want  thriftwire.ApplicationException
		fails string
	}{
		"empty":              {"", thriftwire.ApplicationException{}, ""},
		"both":               {"\x08\x06\x12\x03bad", thriftwire.ApplicationException{Type: 6, Message: "bad"}, ""},
		"the other way":      {"\x12\x03bad\x08\x06", thriftwire.ApplicationException{Type: 6, Message: "bad"}, ""},
		"the last counts":    {"\x08\x06\x08\x01", thriftwire.ApplicationException{Type: 1}, ""},
		"negative":           {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", thriftwire.ApplicationException{Type: -1}, ""},
		"unknown fields":     {"\x18\x01\x21" + "12345678" + "\x2d1234\x32\x01x\x08\x06", thriftwire.ApplicationException{Type: 6}, ""},
		"other wire types":   {"\x0a\x01\x07\x10\x07", thriftwire.ApplicationException{}, ""},
		"control characters": {"\x12\x02a\x00", thriftwire.ApplicationException{Message: "a\uFFFD"}, ""},
		"a long text":        {"\x12\x81\x20" + long, thriftwire.ApplicationException{Message: long[1:]}, ""},
		"a tag cut off":      {"\x88", thriftwire.ApplicationException{}, "no field tag"},
		"field 0":            {"\x00", thriftwire.ApplicationException{}, "no field tag"},
		"a number cut off":   {"\x08", thriftwire.ApplicationException{}, "no varint"},
		"a number too long":  {"\x08" + strings.Repeat("\xff", 10) + "\x01", thriftwire.ApplicationException{}, "no varint"},
		"a text cut off":     {"\x12\x04bad", thriftwire.ApplicationException{}, "ends inside a field"},
		"a huge text":        {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f", thriftwire.ApplicationException{}, "no length"},
		"fixed64 cut off":    {"\x21" + "1234567", thriftwire.ApplicationException{}, "ends inside a field"},
		"a group":            {"\x0b\x0c", thriftwire.ApplicationException{}, "wire type 3"},
	} {
		got, err := kitexprotobuf.ParseException([]byte(test.b))
		if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: %v, want %q", name, err, test.fails)
		}
		if err == nil && got != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestPutException_IsRead(t *testing.T) {
	for _, want := range []thriftwire.ApplicationException{
		{}, {Type: 6, Message: "bad"}, {Type: math.MinInt32}, {Type: math.MaxInt32, Message: strings.Repeat("ä", 200)},
	} {
		b := make([]byte, kitexprotobuf.ExceptionSize(want))
		kitexprotobuf.PutException(b, want)
		if got, err := kitexprotobuf.ParseException(b); got != want || err != nil {
			t.Errorf("% x: %+v, %v, want %+v", b, got, err, want)
		}
	}
}

// TestRefusal_AnswersWhatHasArrived of a call, but no oneway one.
func TestRefusal_AnswersWhatHasArrived(t *testing.T) {
	for have := 6; have <= len(echo); have++ {
		answer := kitexprotobuf.Refusal(echo[:have], "no")
		message, used, _, err := framed.Next([]byte(answer), limits.DefaultMessage())
		if err != nil || used != len(answer) || message.Invalid != nil || message.Type != thriftwire.Exception {
			t.Fatalf("%d bytes: % x: %+v, %v", have, answer, message, err)
		}
		if known := have >= 20; (message.Sequence == 7) != known || (string(message.Name) == "Echo") != known {
			t.Errorf("%d bytes: answered %q, sequence id %d", have, message.Name, message.Sequence)
		}
		want := thriftwire.ApplicationException{Type: thriftwire.ExceptionInvalidProtocol, Message: "no"}
		if exception, err := kitexprotobuf.ParseException(message.Body); exception != want || err != nil {
			t.Errorf("%d bytes: %+v, %v", have, exception, err)
		}
	}
	oneway := bytes.Clone(echo)
	oneway[7] = 4
	if answer := kitexprotobuf.Refusal(oneway, "no"); answer != "" {
		t.Errorf("a oneway call is answered with % x", answer)
	}
}

// FuzzMessage: any bytes as a frame and, behind that, as an exception. Nothing
// outside is returned; what was read is written and read again alike.
func FuzzMessage(f *testing.F) {
	f.Add(echo)
	f.Add([]byte("\x00\x00\x00\x17\x90\x01\x00\x03\x00\x00\x00\x04Echo\x00\x00\x00\x07\x08\x06\x12\x03bad"))
	f.Add([]byte("\x00\x00\x00\x14\x90\x01\x00\x03\x00\x00\x00\x00\x00\x00\x00\x07\x32\x01x\x2d1234"))
	f.Add([]byte("\x3f\xff\xff\xff\x90\x01\x00\x01\x00\x00\x04\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := limits.DefaultMessage()
		m.Bytes = 1000
		message, used, need, err := framed.Next(b, m)
		if err != nil || used == 0 {
			if err == nil && need <= len(b) {
				t.Fatalf("need %d of %d bytes", need, len(b))
			}
			return
		}
		if len(message.Name)+len(message.Body)+framed.HeaderSize > used {
			t.Fatalf("a frame of %d bytes has a name of %d and a body of %d", used, len(message.Name), len(message.Body))
		}
		if message.Invalid != nil || message.Payload != wire.PayloadProtobuf {
			return
		}
		head := make([]byte, framed.HeaderSize+kitexprotobuf.HeaderSize(string(message.Name)))
		framed.PutHeader(head, used-framed.HeaderSize)
		kitexprotobuf.PutHeader(head[framed.HeaderSize:], message.Type, string(message.Name), message.Sequence)
		if again := append(head, message.Body...); !bytes.Equal(again, b[:used]) {
			t.Fatalf("read % x, wrote % x", b[:used], again)
		}
		exception, err := kitexprotobuf.ParseException(message.Body)
		if err != nil {
			return
		}
		body := make([]byte, kitexprotobuf.ExceptionSize(exception))
		kitexprotobuf.PutException(body, exception)
		if again, err := kitexprotobuf.ParseException(body); again != exception || err != nil {
			t.Fatalf("read %+v, wrote % x, read again %+v, %v", exception, body, again, err)
		}
	})
}
