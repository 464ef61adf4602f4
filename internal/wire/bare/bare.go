// Package bare cuts bytes into Thrift Binary messages that follow each other
// without a length: the end of a message is found by walking its struct.
//
// Source: TBufferedTransport of Apache Thrift, "PurePayload" of Kitex;
// docs/protocol/thrift.md.
package bare

import (
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// Matches reports whether b starts like a bare strict message, and if fewer
// than 2 bytes cannot tell yet, how many it needs.
func Matches(b []byte) (match bool, need int) {
	const high, low = thriftwire.VersionHigh >> 8, thriftwire.VersionHigh & 0xff
	switch {
	case len(b) == 0:
		return false, 2
	case b[0] != high:
		return false, 0
	case len(b) == 1:
		return false, 2
	}
	return b[1] == low, 0
}

// Decoder finds messages in the bytes of one connection. It remembers how far
// it walked into a message that is still arriving, so bytes are looked at once
// however they are cut. The zero value is ready. Not for concurrent use.
type Decoder struct {
	skipper thriftwire.Skipper
	// body is the offset of the body of the message in progress, 0 if its
	// header has not arrived yet.
	body int
}

// Next returns the first message in b and how many bytes it used, or how many
// bytes b must hold for the next step; b must then start with the same bytes
// again. An error means that the connection cannot go on. A message whose body
// is broken is returned as Invalid and Last: it can be answered, but where the
// next one starts is unknown.
func (d *Decoder) Next(b []byte, m limits.Message) (message wire.Message, used, need int, err error) {
	message.Protocol = wire.Bare
	header, size, need, err := thriftwire.ParseHeader(b)
	if size == 0 {
		return message, 0, need, err
	}
	message.Header = header
	if err != nil {
		return d.broken(message, len(b), err)
	}
	if d.body == 0 {
		d.body = size
		d.skipper.Start(thriftwire.Struct, size, m.Bytes, m.Depth)
	}
	end, need, err := d.skipper.Next(b)
	if err != nil {
		return d.broken(message, len(b), err)
	}
	if end == 0 {
		return message, 0, need, nil
	}
	message.Body = b[d.body:end]
	d.body = 0
	return message, end, 0, nil
}

func (d *Decoder) broken(message wire.Message, size int, err error) (wire.Message, int, int, error) {
	d.body = 0
	message.Invalid, message.Last = err, true
	return message, size, 0, nil
}
