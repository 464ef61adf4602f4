package wire

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// TTHeaderName is what NameOf calls bytes with the magic number of a TTHeader.
const TTHeaderName = "TTHeader"

// NameOf names the protocol that b looks like, spoken here or not; "" for none
// that is known. It is for texts: Matches of a protocol's package decides.
func NameOf(b []byte) string {
	at4 := uint16(0)
	if len(b) >= 6 {
		at4 = binary.BigEndian.Uint16(b[4:])
	}
	switch {
	case bytes.HasPrefix(b, []byte("PRI ")):
		return "HTTP/2"
	case isHTTP1(b):
		return "HTTP/1.1"
	case len(b) >= 2 && b[0] == 0x16 && b[1] == 3:
		return "TLS"
	case len(b) >= 2 && b[0] == 0xff && b[1] == 0xaf:
		return "Kitex mesh header"
	case len(b) >= 2 && b[0] == 0x80 && b[1] == 0x01:
		return "bare Thrift Binary"
	case at4 == thriftwire.VersionHigh:
		return "framed Thrift Binary"
	case at4 == 0x1000:
		return TTHeaderName
	case at4 == 0x9001:
		return "Kitex Protobuf"
	case at4 == 0x0fff:
		return "Apache THeader"
	case len(b) >= 2 && b[0] == 0x82 && b[1]&0x1f == 1, at4>>8 == 0x82 && at4&0x1f == 1:
		return "Thrift Compact"
	default:
		return ""
	}
}

// isHTTP1 reports whether b starts with a method of HTTP/1.1, as far as it
// goes: four bytes tell them apart from everything else.
func isHTTP1(b []byte) bool {
	if len(b) < 3 {
		return false
	}
	const methods = "GET POST PUT HEAD DELETE OPTIONS PATCH CONNECT TRACE"
	for method := range strings.FieldsSeq(methods) {
		method += " "
		n := min(len(b), len(method))
		if string(b[:n]) == method[:n] {
			return true
		}
	}
	return false
}
