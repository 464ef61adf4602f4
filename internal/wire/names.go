package wire

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// TTHeaderName is what NameOf calls bytes with the magic number of a TTHeader.
const TTHeaderName = "TTHeader"

// KitexProtobufName is what NameOf calls messages of Kitex in Protobuf.
const KitexProtobufName = "Kitex-Protobuf"

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
	case startsWith(b, "HTTP/1.", 4):
		return "HTTP/1.1 response"
	case startsWith(b, `[1,"`, 2), len(b) > 4 && startsWith(b[4:], `[1,"`, 2):
		return "Thrift JSON"
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
		return KitexProtobufName
	case at4 == 0x0fff:
		return "Apache THeader"
	case len(b) >= 2 && b[0] == 0x82 && b[1]&0x1f == 1, at4>>8 == 0x82 && at4&0x1f == 1:
		return "Thrift Compact"
	case startsWithName(b):
		return "bare Thrift Binary, non-strict"
	case len(b) > 4 && startsWithName(b[4:]):
		return "framed Thrift Binary, non-strict"
	default:
		return ""
	}
}

// startsWith reports whether b starts with text, or text with b and that is at
// least enough bytes.
func startsWith(b []byte, text string, enough int) bool {
	n := min(len(b), len(text))
	return n >= enough && string(b[:n]) == text[:n]
}

// startsWithName reports whether b starts with the length of a method's name and
// what of that name has arrived, as the non-strict header does: letters, digits
// and what joins services and methods.
func startsWithName(b []byte) bool {
	if len(b) < 5 {
		return false
	}
	length := binary.BigEndian.Uint32(b)
	if length == 0 || length > limits.MethodNameBytes {
		return false
	}
	name := b[4:min(len(b), 4+int(length))]
	for _, c := range name {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != ':' && c != '.' {
			return false
		}
	}
	return true
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

// IsClientHello reports whether b, which could start a frame with a strict header, is the
// beginning of a TLS connection, and if it has too few bytes to tell, how many it needs. A
// record whose length ends in the high byte of a version looks like such a header. But a
// ClientHello is a record of its own, and says its length once more: where a Thrift
// message would have a name of gigabytes.
func IsClientHello(b []byte) (is bool, need int) {
	const recordHeader, messageHeader = 5, 4
	if len(b) < 2 || b[0] != 0x16 || b[1] != 3 {
		return false, 0
	}
	if len(b) < recordHeader+messageHeader {
		return false, recordHeader + messageHeader
	}
	record := uint32(binary.BigEndian.Uint16(b[3:]))
	return b[5] == 1 && binary.BigEndian.Uint32(b[5:])&0xffffff+messageHeader == record, 0
}
