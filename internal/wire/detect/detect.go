// Package detect decides from the first bytes of a message which protocol it
// is, among those that a listener allows, and cuts the bytes of a connection
// into messages accordingly.
//
// Source: the first bytes of each protocol, docs/protocol/thrift.md, ttheader.md and
// kitex-protobuf.md.
package detect

import (
	"encoding/binary"
	"fmt"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/bare"
	"github.com/fulmar-rpc/fulmar/internal/wire/framed"
	"github.com/fulmar-rpc/fulmar/internal/wire/kitexprotobuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
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

// IsHTTP2 reports whether the peer speaks HTTP/2, for as long as the connection lasts. Its
// bytes are not for the Decoder.
func (d *Decoder) IsHTTP2() bool { return d.protocol == wire.GRPC }

// Restart says that what comes next is the beginning of a message, and what came before was
// for somebody else.
func (d *Decoder) Restart() { d.protocol = wire.Unknown }

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
	case wire.GRPC:
		return message, 0, 0, nil
	case wire.Bare:
		message, used, need, err = d.bare.Next(b, d.limits)
	case wire.TTHeader:
		message, used, need, err = ttheader.Next(b, d.limits)
		if message.Payload == wire.PayloadProtobuf && !d.allowed.Has(wire.KitexProtobuf) {
			message.Invalid = wire.ErrNotEnabled
		}
	default:
		message, used, need, err = framed.Next(b, d.limits)
	}
	if used > 0 {
		d.protocol = wire.Unknown
	}
	return message, used, need, err
}

// Refuse returns the message in progress, which b starts with, as one that
// cannot be served for reason, and starts anew. It has what of its header has
// arrived. used is how long it is, with what is still to come and is to be
// thrown away: the messages behind it can be served. Where that is not known
// yet, or never is (bare), used is 0 and the message Last.
func (d *Decoder) Refuse(b []byte, reason error) (message wire.Message, used int) {
	m := d.limits
	m.Bytes = 0
	switch d.protocol {
	case wire.TTHeader:
		message, used, _, _ = ttheader.Next(b, m)
	case wire.Framed, wire.KitexProtobuf:
		d.protocol = wire.Framed
		message, used, _, _ = framed.Next(b, m)
	default:
		message.Header, _, _, _ = thriftwire.ParseHeader(b)
	}
	message.Protocol, message.Invalid = max(message.Protocol, d.protocol), reason
	if message.Last = message.Last || used == 0; message.Last {
		used = 0
	}
	d.protocol, d.bare = wire.Unknown, bare.Decoder{}
	return message, used
}

// Detect returns the protocol of the message that b starts with, or how many
// bytes it needs to tell. A TTHeader is wire.TTHeader, whichever of the two
// forms is allowed: its payload comes later. The error, a *wire.Error, names
// what the bytes look like.
func Detect(b []byte, allowed wire.Set) (protocol wire.Protocol, need int, err error) {
	isHTTP2, needHTTP2 := false, 0
	if allowed.Has(wire.GRPC) {
		isHTTP2, needHTTP2 = matchesHTTP2(b)
	}
	if isHTTP2 {
		return wire.GRPC, 0, nil
	}
	isBare, needBare := bare.Matches(b)
	isFramed, needFramed := framed.Matches(b)
	isTTHeader, needTTHeader := ttheader.Matches(b)
	isProtobuf, needProtobuf := kitexprotobuf.Matches(b)
	if isFramed || isProtobuf {
		if isTLS, need := wire.IsClientHello(b); isTLS {
			return wire.Unknown, 0, refuse(b, allowed)
		} else if need > 0 {
			return wire.Unknown, need, nil
		}
	}
	switch {
	case isBare && allowed.Has(wire.Bare):
		return wire.Bare, 0, nil
	case isFramed && allowed.Has(wire.Framed):
		return wire.Framed, 0, nil
	case isTTHeader && allowed.ReceivesTTHeader():
		return wire.TTHeader, 0, nil
	case isProtobuf && allowed.Has(wire.KitexProtobuf):
		return wire.KitexProtobuf, 0, nil
	case isBare || isFramed || isTTHeader || isProtobuf:
		return wire.Unknown, 0, refuse(b, allowed)
	}
	for _, n := range [...]int{needHTTP2, needBare, needFramed, needTTHeader, needProtobuf} {
		if n > 0 && (need == 0 || n < need) {
			need = n
		}
	}
	if need == 0 {
		err = refuse(b, allowed)
	}
	return wire.Unknown, need, err
}

// http2Start is what tells HTTP/2 from everything else: the first bytes of its preface.
// As a length of a frame it would be more than any has.
const http2Start = "PRI * HT"

// matchesHTTP2 reports whether b begins with the preface of HTTP/2, or how many bytes it
// takes to know.
func matchesHTTP2(b []byte) (ok bool, need int) {
	n := min(len(b), len(http2Start))
	switch {
	case string(b[:n]) != http2Start[:n]:
		return false, 0
	case n < len(http2Start):
		return false, n + 1
	}
	return true, 0
}

// refuse describes bytes that are none of the allowed protocols.
func refuse(b []byte, allowed wire.Set) error {
	e := &wire.Error{Count: min(len(b), 8)}
	copy(e.First[:], b)
	name := wire.NameOf(b)
	switch name {
	case "HTTP/1.1":
		e.Answer = httpRefusal
	case wire.KitexProtobufName:
		e.Answer = kitexprotobuf.Refusal(b, wire.ErrNotEnabled.Error())
	}
	switch {
	case name == "":
		e.Detail = fmt.Sprintf("no protocol that is known here (enabled: %s)", allowed)
	case name == wire.TTHeaderName && allowed.ReceivesTTHeader():
		// The only reason why it did not match.
		e.Detail = fmt.Sprintf("%s with LENGTH of %d bytes (no frame is longer than %d)", name, binary.BigEndian.Uint32(b), limits.FrameLengthMax)
	default:
		e.Detail = fmt.Sprintf("%s, not enabled (enabled: %s)", name, allowed)
	}
	return e
}

const httpRefusal = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 30\r\n\r\nThis port does not speak HTTP\n"
