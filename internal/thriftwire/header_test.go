package thriftwire_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

func header(messageType thriftwire.MessageType, name string, sequence int32) []byte {
	b := make([]byte, thriftwire.AppendedHeaderSize(name))
	thriftwire.PutHeader(b, messageType, name, sequence)
	return b
}

func TestHeader_RoundTrip(t *testing.T) {
	for _, name := range []string{"x", "place", strings.Repeat("n", limits.MethodNameBytes)} {
		for _, sequence := range []int32{0, 7, -1, -2147483648} {
			b := header(thriftwire.Reply, name, sequence)
			got, size, need, err := thriftwire.ParseHeader(append(b, 0xee))
			if err != nil || size != len(b) || need != 0 {
				t.Fatalf("ParseHeader(%q): size %d, need %d, %v", name, size, need, err)
			}
			if got.Type != thriftwire.Reply || string(got.Name) != name || got.Sequence != sequence {
				t.Errorf("ParseHeader = %v %q %d; want reply %q %d", got.Type, got.Name, got.Sequence, name, sequence)
			}
			for have := range b {
				_, size, need, err := thriftwire.ParseHeader(b[:have])
				if size != 0 || err != nil || need <= have || need > len(b) {
					t.Fatalf("ParseHeader of %d bytes: size %d, need %d, %v", have, size, need, err)
				}
			}
		}
	}
}

func TestPutHeader_WritesTheBytesOfTheSpecification(t *testing.T) {
	want := []byte{0x80, 0x01, 0x00, 0x01, 0, 0, 0, 4, 'E', 'c', 'h', 'o', 0, 0, 0, 7}
	if got := header(thriftwire.Call, "Echo", 7); !bytes.Equal(got, want) {
		t.Errorf("PutHeader wrote % x, want % x", got, want)
	}
}

func TestParseHeader_RefusesWhatCannotBe(t *testing.T) {
	badType := header(thriftwire.Call, "m", 1)
	badType[3] = 9
	long := header(thriftwire.Call, strings.Repeat("n", limits.MethodNameBytes+1), 1)
	negative := header(thriftwire.Call, "m", 1)
	negative[4] = 0xff
	cases := map[string]struct {
		bytes []byte
		text  string
		// readable says that the call can still be answered.
		readable bool
	}{
		"other version": {[]byte("GET / HT"), "not with the strict Binary version", false},
		"unknown type":  {badType, "unknown message type 9", true},
		"long name":     {long, fmt.Sprintf("method name of %d bytes (limit %d)", limits.MethodNameBytes+1, limits.MethodNameBytes), false},
		"negative name": {negative, fmt.Sprintf("limit %d", limits.MethodNameBytes), false},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			_, size, _, err := thriftwire.ParseHeader(test.bytes)
			var wireError *thriftwire.Error
			if !errors.As(err, &wireError) || !strings.Contains(err.Error(), test.text) {
				t.Fatalf("ParseHeader: %v; want %q", err, test.text)
			}
			if (size > 0) != test.readable {
				t.Errorf("ParseHeader: size %d with an error; readable should be %v", size, test.readable)
			}
		})
	}
}

func TestCheckName_RefusesWhatNoTableHas(t *testing.T) {
	for _, name := range []string{"", "a\x00b", "a\nb", "\x7f", "\xff\xfe"} {
		if thriftwire.CheckName([]byte(name)) == nil {
			t.Errorf("CheckName(%q) = nil, want an error", name)
		}
	}
	for _, name := range []string{"place", "Orders:place", "größe", "//"} {
		if err := thriftwire.CheckName([]byte(name)); err != nil {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
}

func TestApplicationException_WritesTheBytesOfTheSpecification(t *testing.T) {
	exception := thriftwire.ApplicationException{Type: thriftwire.ExceptionInternalError, Message: "bad"}
	want := []byte{0x0b, 0, 1, 0, 0, 0, 3, 'b', 'a', 'd', 8, 0, 2, 0, 0, 0, 6, 0}
	got := make([]byte, exception.Size())
	exception.Put(got)
	if !bytes.Equal(got, want) {
		t.Errorf("Put wrote % x, want % x", got, want)
	}
	back, err := thriftwire.ParseApplicationException(got)
	if err != nil || back != exception {
		t.Errorf("ParseApplicationException = %+v, %v; want %+v", back, err, exception)
	}
	for have := range got {
		if _, err := thriftwire.ParseApplicationException(got[:have]); err == nil {
			t.Errorf("ParseApplicationException of %d of %d bytes succeeded", have, len(got))
		}
	}
}

func TestParseApplicationException_IsLiberal(t *testing.T) {
	// The type first, an unknown field, a message of the wrong type, no message.
	b := field(thriftwire.I32, 2).u32(1).
		raw(field(thriftwire.List, 9)).u8(typ(thriftwire.I8)).u32(2).u8(1, 2).
		raw(field(thriftwire.I64, 1)).zeros(8).u8(0)
	got, err := thriftwire.ParseApplicationException(b)
	if want := (thriftwire.ApplicationException{Type: thriftwire.ExceptionUnknownMethod}); err != nil || got != want {
		t.Errorf("ParseApplicationException = %+v, %v; want %+v", got, err, want)
	}
	long := thriftwire.ApplicationException{Message: strings.Repeat("x", 1<<20)}
	b = make([]byte, long.Size())
	long.Put(b)
	if got, err := thriftwire.ParseApplicationException(b); err != nil || len(got.Message) != limits.ErrorMessageBytes {
		t.Errorf("a message of 1 MiB was read as %d bytes, %v; want %d", len(got.Message), err, limits.ErrorMessageBytes)
	}
}

func TestCleanMessage_FitsToLeave(t *testing.T) {
	if got := thriftwire.CleanMessage("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("CleanMessage = %q", got)
	}
	for _, part := range []string{"x", "ä", "aä", "\xff", "\x01", "a\x01", "€"} {
		for _, times := range []int{limits.ErrorMessageBytes / 3, limits.ErrorMessageBytes, 2 * limits.ErrorMessageBytes} {
			got := thriftwire.CleanMessage(strings.Repeat(part, times))
			if len(got) > limits.ErrorMessageBytes || !utf8.ValidString(got) || thriftwire.CleanMessage(got) != got {
				t.Errorf("CleanMessage returned %d bytes of %q, want at most %d that stay as they are", len(got), part, limits.ErrorMessageBytes)
			}
			whole := len(strings.Repeat(thriftwire.CleanMessage(part), times)) <= limits.ErrorMessageBytes
			if utf8.ValidString(part) && whole == strings.HasSuffix(got, "(cut)") {
				t.Errorf("CleanMessage of %d times %q ends in %q", times, part, got[len(got)-10:])
			}
		}
	}
}

func TestCutMessage_KeepsWhatFits(t *testing.T) {
	for _, test := range []struct {
		text string
		most int
		want string
	}{
		{"a\r\x00b", 4, "a\r\x00b"},
		{"a\xffb", 5, "a\uFFFDb"},
		{"a\xffbcdefghijk", 12, "a... (cut)"},
		{strings.Repeat("€", 10), 15, "€€... (cut)"},
		{strings.Repeat("€", 10), 14, "€... (cut)"},
		{strings.Repeat("😀", 10), 12, "... (cut)"},
		{strings.Repeat("\x80", 100), 14, "\uFFFD... (cut)"},
		{strings.Repeat("x", 10), 8, ""},
		{"x", 0, ""},
		{"", 0, ""},
	} {
		if got := thriftwire.CutMessage(test.text, test.most); got != test.want {
			t.Errorf("CutMessage(%q, %d) = %q, want %q", test.text, test.most, got, test.want)
		}
	}
}

// FuzzHeader: no input panics or reads past its end, and what is accepted can
// be written again to the same bytes.
func FuzzHeader(f *testing.F) {
	f.Add(header(thriftwire.Call, "place", 1))
	f.Add([]byte("GET / HTTP/1.1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, size, need, err := thriftwire.ParseHeader(b)
		if err != nil || size == 0 {
			if err == nil && need <= len(b) {
				t.Fatalf("nothing, and need %d of %d bytes", need, len(b))
			}
			return
		}
		again := header(got.Type, string(got.Name), got.Sequence)
		again[2] = b[2]
		if !bytes.Equal(again, b[:size]) {
			t.Fatalf("% x was read and written as % x", b[:size], again)
		}
	})
}

// FuzzApplicationException: no input panics, and what is accepted fits the
// limits and reads back after being written.
func FuzzApplicationException(f *testing.F) {
	f.Add([]byte{0x0b, 0, 1, 0, 0, 0, 3, 'b', 'a', 'd', 8, 0, 2, 0, 0, 0, 6, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := thriftwire.ParseApplicationException(b)
		if err != nil {
			return
		}
		again := make([]byte, got.Size())
		got.Put(again)
		if back, err := thriftwire.ParseApplicationException(again); err != nil || back != got {
			t.Fatalf("%+v was read back as %+v, %v", got, back, err)
		}
	})
}
