// Package detect decides from the first bytes of a message which protocol it
// is, among those that a listener allows, and cuts the bytes of a connection
// into messages accordingly.
//
// Source: the first bytes of each protocol, docs/protocol/thrift.md.
package detect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/bare"
	"github.com/fulmar-rpc/fulmar/internal/wire/framed"
)

// Decoder finds messages in the bytes of one connection, each in any of the
// allowed protocols: a peer may change between messages, as Kitex allows too.
// The zero value is not usable; see NewDecoder. Not for concurrent use.
type Decoder struct {
	allowed  wire.Set
	limits   limits.Message
	protocol wire.Protocol
	bare     bare.Decoder
}

// NewDecoder returns a Decoder for a connection on which allowed may be spoken.
func NewDecoder(allowed wire.Set, m limits.Message) Decoder {
	return Decoder{allowed: allowed, limits: m}
}

// Detected reports whether the message in progress is of a known protocol.
func (d *Decoder) Detected() bool { return d.protocol != wire.Unknown }

// Next returns the first message in b and how many bytes it used. used may be
// more than b holds: the rest is to be thrown away as it arrives. With nothing
// to return yet, need is how many bytes b must hold, starting with the same
// bytes, for the next step. An error means that the connection cannot go on.
func (d *Decoder) Next(b []byte) (message wire.Message, used, need int, err error) {
	if d.protocol == wire.Unknown {
		d.protocol, need, err = Detect(b, d.allowed)
		if d.protocol == wire.Unknown {
			return message, 0, need, err
		}
	}
	switch d.protocol {
	case wire.Bare:
		message, used, need, err = d.bare.Next(b, d.limits)
	default:
		message, used, need, err = framed.Next(b, d.limits)
	}
	if used > 0 {
		d.protocol = wire.Unknown
	}
	return message, used, need, err
}

// Refuse returns the message in progress, which b starts with, as one that
// cannot be served for reason, and starts anew. Its header is empty if it has
// not arrived.
func (d *Decoder) Refuse(b []byte, reason error) wire.Message {
	message := wire.Message{Protocol: d.protocol, Invalid: reason, Last: true}
	if d.protocol == wire.Framed {
		b = b[min(len(b), framed.HeaderSize):]
	}
	message.Header, _, _, _ = thriftwire.ParseHeader(b)
	d.protocol, d.bare = wire.Unknown, bare.Decoder{}
	return message
}

// Detect returns the protocol of the message that b starts with, or how many
// bytes it needs to tell. The error, a *wire.Error, names what the bytes look
// like.
func Detect(b []byte, allowed wire.Set) (protocol wire.Protocol, need int, err error) {
	isBare, needBare := bare.Matches(b)
	isFramed, needFramed := framed.Matches(b)
	switch {
	case isBare && allowed.Has(wire.Bare):
		return wire.Bare, 0, nil
	case isFramed && allowed.Has(wire.Framed):
		return wire.Framed, 0, nil
	case isBare || isFramed || needBare+needFramed == 0:
		return wire.Unknown, 0, refuse(b, allowed)
	case needBare > 0 && (needFramed == 0 || needBare < needFramed):
		return wire.Unknown, needBare, nil
	default:
		return wire.Unknown, needFramed, nil
	}
}

// refuse describes bytes that are none of the allowed protocols.
func refuse(b []byte, allowed wire.Set) error {
	e := &wire.Error{Count: min(len(b), 8)}
	copy(e.First[:], b)
	name := foreign(b)
	if name == "HTTP/1.1" {
		e.Answer = httpRefusal
	}
	if name == "" {
		e.Detail = fmt.Sprintf("no protocol that is known here (enabled: %s)", allowed)
	} else {
		e.Detail = fmt.Sprintf("%s, not enabled (enabled: %s)", name, allowed)
	}
	return e
}

const httpRefusal = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 30\r\n\r\nThis port does not speak HTTP\n"

// foreign names a protocol that we know but do not speak here; "" if b is of
// none.
func foreign(b []byte) string {
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
		return "TTHeader"
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
