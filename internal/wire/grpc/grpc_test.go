package grpc_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

func TestNext_Messages(t *testing.T) {
	for _, c := range []struct {
		name       string
		b          []byte
		payload    string
		compressed bool
		used, need int
		code       grpc.Code
	}{
		{"empty", []byte{0, 0, 0, 0, 0}, "", false, 5, 0, 0},
		{"message", []byte{0, 0, 0, 0, 2, 'a', 'b', 'c'}, "ab", false, 7, 0, 0},
		{"compressed", []byte{1, 0, 0, 0, 1, 'a'}, "a", true, 6, 0, 0},
		{"no prefix", []byte{0, 0, 0, 0}, "", false, 0, 5, 0},
		{"part", []byte{0, 0, 0, 0, 9, 'a'}, "", false, 0, 14, 0},
		{"longest", append([]byte{0, 0, 0, 0, 10}, "0123456789"...), "0123456789", false, 15, 0, 0},
		{"too long", []byte{0, 0, 0, 0, 11}, "", false, 0, 0, grpc.ResourceExhausted},
		{"as long as can be", []byte{0, 255, 255, 255, 255}, "", false, 0, 0, grpc.ResourceExhausted},
		{"unknown flags", []byte{2, 0, 0, 0, 0}, "", false, 0, 0, grpc.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			payload, compressed, used, need, err := grpc.Next(c.b, 10)
			var problem *grpc.Error
			if errors.As(err, &problem) != (c.code != 0) || problem != nil && problem.Code != c.code {
				t.Fatalf("error %v, want code %d", err, c.code)
			}
			if string(payload) != c.payload || compressed != c.compressed || used != c.used || need != c.need {
				t.Fatalf("%q, compressed %v, used %d, need %d", payload, compressed, used, need)
			}
		})
	}
}

func TestTimeout_Texts(t *testing.T) {
	for _, c := range []struct {
		nanoseconds int64
		text        string
	}{
		{-5, "0n"},
		{1, "1n"},
		{99_999_999, "99999999n"},
		{100_000_000, "100000u"},
		{100_000_001, "100001u"},
		{5e9, "5000000u"},
		{100e9, "100000m"},
		{3600e9 * 24 * 365, "31536000S"},
		{math.MaxInt64, "2562048H"},
	} {
		if got := string(grpc.AppendTimeout(nil, c.nanoseconds)); got != c.text {
			t.Errorf("%d is %s, want %s", c.nanoseconds, got, c.text)
		}
	}
	for text, want := range map[string]int64{"1H": 3600e9, "00000002M": 120e9, "3S": 3e9, "4m": 4e6, "99999999H": math.MaxInt64} {
		if got, ok := grpc.ParseTimeout(text); !ok || got != want {
			t.Errorf("%s is %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "S", "5", "-5S", "+5S", "5s", "5 S", "123456789S", "1.5S", "5SS", "\x005S"} {
		if got, ok := grpc.ParseTimeout(text); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestMessage_Texts(t *testing.T) {
	for text, value := range map[string]string{
		"":              "",
		"plain (text)":  "plain (text)",
		"50 %":          "50 %25",
		"a\r\nb":        "a%0D%0Ab",
		"zwölf ✓":       "zw%C3%B6lf %E2%9C%93",
		" both ends ":   "%20both ends%20",
		"broken \xff b": "broken %EF%BF%BD b",
	} {
		if got := grpc.EncodeMessage(text); got != value {
			t.Errorf("%q is %q, want %q", text, got, value)
		}
	}
	for value, text := range map[string]string{
		"%": "%", "%4": "%4", "%zz": "%zz", "%41%4": "A%4", "%e2%9C%93": "✓", "%FF": "\uFFFD", "a%0ab": "a\nb", "%%41": "%A",
	} {
		if got := grpc.DecodeMessage(value); got != text {
			t.Errorf("%q is %q, want %q", value, got, text)
		}
	}
}

func TestBinary_PaddingIsOptional(t *testing.T) {
	for value, want := range map[string]string{"": "", "YQ": "a", "YQ==": "a", "YWI": "ab", "YWI=": "ab", "YWJj": "abc", "+/+/": "\xfb\xff\xbf"} {
		if got, ok := grpc.DecodeBinary(value); !ok || string(got) != want {
			t.Errorf("%q is %q, %v", value, got, ok)
		}
	}
	for _, value := range []string{"Y", "YQ=", "YQ\n==", "-_-_", "YQ==YQ==", "Y Q="} {
		if got, ok := grpc.DecodeBinary(value); ok {
			t.Errorf("%q is %q", value, got)
		}
	}
	if !grpc.IsBinary("grpc-status-details-bin") || grpc.IsBinary("bin") {
		t.Error("keys that end in -bin are binary")
	}
}

func TestContentSubtype_Values(t *testing.T) {
	for value, want := range map[string]string{
		"application/grpc": "", "application/grpc+proto": "proto", "application/grpc+Thrift": "thrift",
		"application/grpc; charset=utf-8": "", "Application/GRPC+json;a=b": "json",
	} {
		if got, ok := grpc.ContentSubtype(value); !ok || got != want {
			t.Errorf("%q is %q, %v", value, got, ok)
		}
	}
	for _, value := range []string{"", "application/json", "application/grpc-web", "application/grpcx", "text/application/grpc"} {
		if got, ok := grpc.ContentSubtype(value); ok {
			t.Errorf("%q is %q", value, got)
		}
	}
}

func TestSplitPath_Names(t *testing.T) {
	if service, method, ok := grpc.SplitPath("/shop.v1.Orders/Place"); !ok || service != "shop.v1.Orders" || method != "Place" {
		t.Errorf("%q, %q, %v", service, method, ok)
	}
	for _, path := range []string{"", "/", "shop.Orders/Place", "/shop.Orders", "/shop.Orders/", "//Place", "/shop.Orders/Place/", "/a/b/c", "*"} {
		if service, method, ok := grpc.SplitPath(path); ok {
			t.Errorf("%q is %q, %q", path, service, method)
		}
	}
}

func TestCodes_Tables(t *testing.T) {
	for value, want := range map[string]grpc.Code{"0": 0, "16": 16, "20": 20, "4294967295": math.MaxUint32} {
		if got, ok := grpc.ParseCode(value); !ok || got != want {
			t.Errorf("%q is %d, %v", value, got, ok)
		}
	}
	for _, value := range []string{"", "-1", "+1", "1 ", "OK", "4294967296"} {
		if got, ok := grpc.ParseCode(value); ok || got != grpc.Unknown {
			t.Errorf("%q is %d, %v", value, got, ok)
		}
	}
	for status, want := range map[int]grpc.Code{400: 13, 401: 16, 403: 7, 404: 12, 429: 14, 502: 14, 503: 14, 504: 14, 500: 2, 200: 2, 0: 2} {
		if got := grpc.CodeOfHTTP(status); got != want {
			t.Errorf("HTTP status %d is %d, want %d", status, got, want)
		}
	}
	for code, want := range map[http2.ErrorCode]grpc.Code{
		http2.NoError: 13, http2.ProtocolError: 13, http2.InternalError: 13, http2.RefusedStream: 14, http2.Cancel: 1,
		http2.EnhanceYourCalm: 8, http2.FlowControlError: 8, http2.InadequateSecurity: 7, 1000: 14, 77: 2,
	} {
		if got := grpc.CodeOfReset(uint32(code)); got != want {
			t.Errorf("%v is %d, want %d", code, got, want)
		}
	}
}

// FuzzNext takes messages from any bytes, cut in two: the same come out.
func FuzzNext(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 2, 'a', 'b', 1, 0, 0, 0, 0}, 6)
	f.Add([]byte{0, 0, 0, 1, 0}, 1)
	f.Add([]byte{3, 0, 0, 0, 0}, 1)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		whole := messages(t, b, len(b))
		if parts := messages(t, b, min(max(cut, 0), len(b))); parts != whole {
			t.Fatalf("cut at %d: %q, want %q", cut, parts, whole)
		}
	})
}

// messages returns all messages in b, of which the first bytes arrive before the others.
func messages(t *testing.T, b []byte, first int) string {
	t.Helper()
	var out strings.Builder
	for end := first; ; end = len(b) {
		for {
			payload, compressed, used, need, err := grpc.Next(b[:end], 100)
			if err != nil {
				return out.String() + err.Error()
			}
			if used == 0 {
				if need <= end || need > grpc.PrefixSize+100 {
					t.Fatalf("need %d of %d bytes", need, end)
				}
				break
			}
			written := make([]byte, grpc.PrefixSize)
			grpc.PutPrefix(written, len(payload), compressed)
			if !bytes.Equal(append(written, payload...), b[:used]) {
				t.Fatalf("% x, written again % x", b[:used], written)
			}
			out.WriteString("[" + string(payload) + "]")
			b, end = b[used:], end-used
		}
		if end == len(b) {
			return out.String()
		}
	}
}

// FuzzTimeout wants what was read to be written so that at least as much is read again,
// and any time to be rounded by less than one of its last digits.
func FuzzTimeout(f *testing.F) {
	f.Add("5S", int64(5e9))
	f.Add("99999999H", int64(math.MaxInt64))
	f.Add("100000001n", int64(100_000_001))
	f.Fuzz(func(t *testing.T, text string, nanoseconds int64) {
		if got, ok := grpc.ParseTimeout(text); ok {
			again, ok := grpc.ParseTimeout(string(grpc.AppendTimeout(nil, got)))
			if !ok || again < got || got < 0 {
				t.Fatalf("%q is %d, and %d when written again", text, got, again)
			}
		}
		written := string(grpc.AppendTimeout(nil, nanoseconds))
		got, ok := grpc.ParseTimeout(written)
		if want := max(nanoseconds, 0); !ok || got < want || float64(got-want) > 1e-5*float64(want) {
			t.Fatalf("%d is %q, which is %d, %v", nanoseconds, written, got, ok)
		}
	})
}

// FuzzTexts wants texts and bytes to come back as they were, values to be good for a
// header, and anything as a value to become a text.
func FuzzTexts(f *testing.F) {
	f.Add("zwölf %41\n ")
	f.Add("%E2%9C%93")
	f.Add("YQ==")
	f.Add("\xff%")
	f.Fuzz(func(t *testing.T, text string) {
		value := grpc.EncodeMessage(text)
		for i := range len(value) {
			if value[i] < ' ' || value[i] > '~' {
				t.Fatalf("%q is %q", text, value)
			}
		}
		if value != strings.TrimSpace(value) {
			t.Fatalf("%q is %q, with white space around it", text, value)
		}
		if got, want := grpc.DecodeMessage(value), strings.ToValidUTF8(text, "\uFFFD"); got != want {
			t.Fatalf("%q came back as %q", text, got)
		}
		if got := grpc.DecodeMessage(text); !utf8.ValidString(got) || len(got) > 3*len(text) {
			t.Fatalf("%q is the text %q", text, got)
		}
		if got, ok := grpc.DecodeBinary(grpc.EncodeBinary([]byte(text))); !ok || string(got) != text {
			t.Fatalf("%q came back as %q, %v", text, got, ok)
		}
		if b, ok := grpc.DecodeBinary(text); ok && len(b) > len(text) {
			t.Fatalf("%q is %q", text, b)
		}
	})
}
