package wire_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// TestNameOf_NamesWhatIsNotSpoken has the first bytes of protocols, as whole as
// one read may bring them, and what comes close to them and is none.
func TestNameOf_NamesWhatIsNotSpoken(t *testing.T) {
	const frame = "\x00\x00\x00\x1b"
	for b, want := range map[string]string{
		"PRI * HTTP/2.0":                           "HTTP/2",
		"GET / HTTP/1.1":                           "HTTP/1.1",
		"HEAD / HTTP":                              "HTTP/1.1",
		"HTTP/1.1 400 Bad Request\r\n":             "HTTP/1.1 response",
		"HTTP/1.0 200 OK":                          "HTTP/1.1 response",
		"HTTP":                                     "HTTP/1.1 response",
		"HTTP/3":                                   "",
		"HTTX":                                     "",
		`[1,"flipI32",1,0,{}]`:                     "Thrift JSON",
		"[1":                                       "Thrift JSON",
		frame + `[1,"flipI32",1,0,{}]`:             "Thrift JSON",
		`[2,"flipI32",1,0,{}]`:                     "",
		`[1, 2]`:                                   "",
		"\x00\x00\x00\x07flipI32\x01\x00\x00":      "bare Thrift Binary, non-strict",
		"\x00\x00\x00\x07fl":                       "bare Thrift Binary, non-strict",
		"\x00\x00\x00\x0aLibrary:go\x01":           "bare Thrift Binary, non-strict",
		"\x00\x00\x00\x07fl\n":                     "",
		"\x00\x00\x00\x00flipI32":                  "",
		"\x00\x00\x10\x00flipI32":                  "",
		frame + "\x00\x00\x00\x07flipI32\x01":      "framed Thrift Binary, non-strict",
		frame + "\x00\x00\x00\x07f":                "framed Thrift Binary, non-strict",
		frame + "\x00\x00\x00\x07":                 "",
		frame + "\x00\x00\x00\x00flipI32":          "",
		frame + "\x80\x01\x00\x01\x00\x00\x00\x07": "framed Thrift Binary",
		"\x80\x01\x00\x01\x00\x00\x00\x07":         "bare Thrift Binary",
		"":                                         "",
	} {
		if got := wire.NameOf([]byte(b)); got != want {
			t.Errorf("%q: %q, want %q", b, got, want)
		}
	}
}
