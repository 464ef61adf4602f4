// Package transport is where sockets and frames meet: connections of the event
// loop whose bytes are messages. It pools the connections of a client, keeps
// the order of a server's, enforces how long each may take for what, and drains
// them. It knows neither methods nor message types; it reports to its owner
// through the functions in its configuration.
package transport

import (
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/framed"
)

// outgoing is a message being written: head room, then a body that somebody
// else appends.
type outgoing struct {
	linkbuf.Buffer
	protocol wire.Protocol
	head     []byte
	name     string
	sequence int32
}

// begin reserves the head, so that the body can follow in the same chain.
func (o *outgoing) begin(pool *linkbuf.Pool, protocol wire.Protocol, name string, sequence int32) {
	o.Init(pool)
	o.protocol, o.name, o.sequence = protocol, name, sequence
	o.head = o.Reserve(o.prefix() + thriftwire.AppendedHeaderSize(name))
}

// prefix is the size of what the protocol puts before the message.
func (o *outgoing) prefix() int {
	if o.protocol == wire.Framed {
		return framed.HeaderSize
	}
	return 0
}

// finish fills in the head, once the type and the length are known.
func (o *outgoing) finish(messageType thriftwire.MessageType) {
	prefix := o.prefix()
	if prefix > 0 {
		framed.PutHeader(o.head, o.Len()-prefix)
	}
	thriftwire.PutHeader(o.head[prefix:], messageType, o.name, o.sequence)
}

// finishException drops the body for an application exception.
func (o *outgoing) finishException(exception thriftwire.ApplicationException) {
	o.Truncate(len(o.head))
	exception.Message = thriftwire.CleanMessage(exception.Message)
	exception.Put(o.Reserve(exception.Size()))
	o.finish(thriftwire.Exception)
}
