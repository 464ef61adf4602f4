package transport

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// Request is a request whose body the caller appends before Peer.Do. Release
// must follow in the end, after which it belongs to the Peer. It may be sent again
// after a failure.
type Request struct {
	outgoing
	// method is the method's name without a service.
	method string
	oneway bool
	// keeps: whoever gets the body of the response keeps it.
	keeps bool

	// told is how many milliseconds the header says that the caller waits, toldAt
	// where in the int map; 0 if it does not say.
	told   int64
	toldAt int
	// at is what time it was when the request was made, until the call has waited for
	// something or has used it: looking at the clock takes 50 ns of a call's 4 us.
	at time.Time
	// full is the string map with the capabilities, which come first.
	full []Pair
	// maps is memory for the maps of the header: most need no more.
	maps headerMaps
	// call is how the request waits on a shared connection, response what comes back.
	call     muxCall
	response Response
	// local is what a call to a server of this process needs besides.
	local localRequest
	// grpc is what a request in gRPC has besides; nil in the other protocols.
	grpc *grpcCall
	// parts is memory for what is written: most requests are in fewer pieces.
	parts [8][]byte
}

// headerMaps are arrays for the maps of a header.
type headerMaps struct {
	strings [4]Pair
	ints    [6]ttheader.IntPair
}

// Method is what a request calls.
type Method struct {
	// Name is the method's name, Qualified what a message calls it: the same, or
	// "Service:method".
	Name      string
	Qualified string
	Oneway    bool
	// Path is what gRPC calls it, "/Service/Name", if somebody knows that already.
	Path string
	// Payload is what the body is encoded in. PayloadProtobuf cannot be sent bare.
	Payload wire.Payload
	// Streams: the request begins a stream, and has no body.
	Streams bool
	// KeepsReply: the body of the response is going to be kept, with KeepBody.
	KeepsReply bool
	// LikelyBytes is about how long the body will be, 0 if nobody knows.
	LikelyBytes int
}

// NewRequest returns a request of a method. The error is about a head that is
// too long, or that has metadata which cannot be sent, or about a payload that the
// protocol cannot carry.
func (p *Peer) NewRequest(method Method, head RequestHead) (*Request, error) {
	protocol := p.config.Protocol
	if head.Encoding != "" {
		if err := p.encodings.check(protocol, head.Encoding); err != nil {
			return nil, err
		}
	}
	if method.Payload == wire.PayloadProtobuf {
		switch protocol {
		case wire.Bare:
			return nil, errors.New("bare messages have no length, and those in Protobuf need one: use framed or TTHeader")
		case wire.TTHeader:
			protocol = wire.TTHeaderFramed
		}
	}
	r, ok := p.requests.Get().(*Request)
	if !ok {
		r = new(Request)
		r.call.request, r.call.outcome = r, make(chan muxOutcome, 1)
		pool := p.requests // and not the peer, which may be gone while others use the request
		r.recycle = func() { r.giveBack(pool) }
	}
	r.method, r.oneway, r.keeps, r.at = method.Name, method.Oneway, method.KeepsReply, head.At
	r.protocol, r.payload, r.name = protocol, method.Payload, method.Qualified
	if hasTTHeader(r.protocol) {
		if err := head.put(r); err != nil {
			r.recycle()
			return nil, err
		}
		r.full = r.header.Strings
	}
	if r.protocol == wire.GRPC {
		if r.grpc == nil {
			r.grpc = &grpcCall{encodings: &p.encodings}
		}
		if err := r.grpc.prepare(method, head, method.Payload); err != nil {
			r.recycle()
			return nil, err
		}
	}
	if err := r.begin(p.pool.buffers, method.LikelyBytes); err != nil {
		r.recycle()
		return nil, err
	}
	return r, nil
}

// giveBack keeps a request for another call: it has 800 bytes, and its parts took a
// quarter of the allocations of a call. What it refers to is let go of.
func (r *Request) giveBack(pool *sync.Pool) {
	r.outgoing.reset()
	r.method, r.full, r.maps = "", nil, headerMaps{}
	r.told, r.toldAt = 0, 0
	r.response = Response{}
	clear(r.parts[:])
	r.call.behind, r.call.first = nil, false
	if r.grpc != nil {
		r.grpc.reset()
	}
	pool.Put(r)
}

// Body is where the body goes.
func (r *Request) Body() *linkbuf.Buffer { return &r.Buffer }

// Release gives the memory back, that of the response as well.
func (r *Request) Release() { r.release() }

// address makes the request the one with this sequence id on a connection.
// claim adds what this side can do.
func (r *Request) address(sequence int32, flags uint16, claim bool) {
	r.sequence = sequence
	if hasTTHeader(r.protocol) {
		r.header.Sequence, r.header.Flags = sequence, flags
		r.header.Strings = r.full
		if !claim {
			r.header.Strings = r.full[1:]
		}
	}
	messageType := thriftwire.Call
	if r.oneway {
		messageType = thriftwire.Oneway
	}
	r.finish(messageType)
}

// now returns what time it is.
func (r *Request) now() time.Time {
	at := r.at
	if r.at = (time.Time{}); at.IsZero() {
		return time.Now()
	}
	return at
}

// hurry makes the header say what is left of the caller's time at now: the call
// may have waited for a connection.
func (r *Request) hurry(ctx context.Context, now time.Time) {
	deadline, ok := ctx.Deadline()
	if r.told == 0 || !ok {
		return
	}
	// Never more than there is room for.
	if left := milliseconds(deadline.Sub(now)); left < r.told {
		r.told = left
		r.header.Ints[r.toldAt].Value = strconv.FormatInt(left, 10)
	}
}

// Response is what came back for a request. Its body is valid until Release,
// which must follow, and come before that of the request.
type Response struct {
	// Type is Reply or Exception; 0 for a oneway call.
	Type thriftwire.MessageType
	// Payload is what Body is encoded in: an exception may be in another than the
	// request was.
	Payload wire.Payload
	Body    []byte
	Head    ReplyHead
	// Status is how a call in gRPC failed, nil if it did not.
	Status *Status
	// conn is the connection that the call had to itself, and that Body lies
	// in; nil if the connection is shared. Then Body belongs to buffers, or to
	// whoever keeps it if there are none.
	conn    *ClientConn
	buffers *linkbuf.Pool
	// local is the reply that Body lies in, of a server of this process.
	local localReply
}

// Release gives back what the response holds: its memory, and the connection if
// the call had one to itself.
func (r *Response) Release() {
	switch {
	case r.local.used():
		r.local.drop()
	case r.conn != nil:
		r.conn.Release()
	case r.buffers != nil:
		r.buffers.Put(r.Body)
	}
	r.conn, r.buffers, r.Body = nil, nil, nil
}

// KeepBody returns Body for somebody who keeps it for as long as he likes. It is
// copied if that has not happened already.
func (r *Response) KeepBody() []byte {
	if r.local.used() {
		return r.local.keep(r.Body)
	}
	if r.conn == nil && r.buffers == nil {
		return r.Body
	}
	return slices.Clone(r.Body)
}

// take copies the body of a response out of what a connection has read, to memory of
// the pool that it returns, or to some that is not pooled if the caller keeps it.
func (r *Request) take(body []byte, buffers *linkbuf.Pool) ([]byte, *linkbuf.Pool) {
	if r.keeps {
		return slices.Clone(body), nil
	}
	return append(buffers.Get(len(body)), body...), buffers
}

// leave takes the body out of the connection that the call had to itself, so
// that the connection can be used for others.
func (r *Response) leave(request *Request, buffers *linkbuf.Pool) {
	conn := r.conn
	r.conn = nil
	r.Body, r.buffers = request.take(r.Body, buffers)
	conn.Release()
}

// replies returns what may arrive where requests are sent with a protocol. Whether the
// payload is the one of the request is for checkReply.
func replies(protocol wire.Protocol) wire.Set {
	if protocol == wire.Bare {
		return wire.SetOf(protocol)
	}
	return wire.SetOf(protocol, wire.KitexProtobuf)
}

// nextReply is decoder.Next where requests are sent with a protocol. Before the first
// reply it looks whether the server wants TLS. Detection looks at
// each message alone, so it takes one in Kitex-Protobuf that lacks the TTHeader of all
// others: nobody can tell whose it is.
func (c *ClientConn) nextReply(b []byte) (message wire.Message, used, need int, err error) {
	protocol := c.pool.config.Protocol
	if !c.answered {
		if need, err = checkAlert(b); need > 0 || err != nil {
			return message, 0, need, err
		}
	}
	message, used, need, err = c.decoder.Next(b)
	c.answered = c.answered || used > 0
	if err == nil && used > 0 && hasTTHeader(message.Protocol) != hasTTHeader(protocol) {
		err = replyError(thriftwire.ExceptionInvalidProtocol, "a message in %v arrived without a TTHeader", message.Payload)
	}
	return message, used, need, err
}

// checkReply returns what is wrong with a message as the reply to the request of
// a name, a sequence id and a payload. The name of an exception does not count, and its sequence id may be 0: a peer
// that could not read the request knows neither, and proxies make exceptions
// without it.
func checkReply(name string, sequence int32, payload wire.Payload, message *wire.Message) error {
	isException := message.Type == thriftwire.Exception
	switch {
	case message.Invalid != nil:
		return message.Invalid
	case isException && message.Sequence == 0:
		return nil
	case !isException && message.Type != thriftwire.Reply:
		return replyError(thriftwire.ExceptionInvalidMessageType, "a %v arrived instead of a reply", message.Type)
	case message.Sequence != sequence:
		return replyError(thriftwire.ExceptionBadSequenceID, "the %v has sequence id %d, the call %d",
			message.Type, message.Sequence, sequence)
	case !isException && message.Payload != payload:
		return replyError(thriftwire.ExceptionInvalidProtocol, "the reply is in %v, the call was in %v", message.Payload, payload)
	case !isException && !names(message.Name, name):
		return replyError(thriftwire.ExceptionWrongMethodName, "the reply is for method %q, the call was %q",
			message.Name, name)
	}
	return nil
}
