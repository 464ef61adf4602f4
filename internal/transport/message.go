// Package transport is where sockets and frames meet: connections of the event
// loop whose bytes are messages. It shares and pools the connections of a
// client, keeps what order a server has to keep, enforces how long each may
// take for what, and drains them. It knows neither methods nor message types;
// it reports to its owner through the functions in its configuration.
package transport

import (
	"sync/atomic"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/framed"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/kitexprotobuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// outgoing is a message being written: room for the head, then a body that
// somebody else appends.
type outgoing struct {
	linkbuf.Buffer
	protocol wire.Protocol
	payload  wire.Payload
	name     string
	sequence int32
	// header is what the TTHeader says; not used by the other protocols. Between
	// begin and finish it may become shorter, never longer.
	header ttheader.Head
	// room is where the head goes, unused how much of it is left over in front.
	room   []byte
	unused int
	// state is how far a sender has come with it.
	state atomic.Uint32
	// owners counts who still needs the bytes: whoever made the message, and the
	// sender that has it. A peer may answer before it has read everything.
	owners atomic.Int32
	// after, if set, is called when a sender is done with the message.
	after func()
	// observed is for who observes a call.
	observed
	// recycle, if set, takes the message back for another one. A message that was
	// withdrawn may still be in a sender's queue, and is left to the garbage collector.
	recycle func()
}

// roomMost is how long head and body may be to get room together. Of what is longer much may
// be sent from where it is, and getting a second chunk takes no time beside copying it. With
// both in one chunk echoes of 2 and 4 KB took 4.4 and 2.8 % less of the server's processor
// (bench/results/view-chunk-before.json).
const roomMost = 16 << 10

// begin reserves room for the head, so that the body can follow in the same
// chain, and in the same chunk if it is short and about as long as likely says. The
// error is about a header that is too long.
func (o *outgoing) begin(pool *linkbuf.Pool, likely int) error {
	o.Init(pool)
	o.owners.Store(1)
	size, err := o.headSize()
	if err != nil {
		return err
	}
	if likely <= roomMost-size { // a sum might not fit an int of 32 bits
		o.Room(size + likely)
	}
	o.room = o.Reserve(size)
	return nil
}

// headSize returns the size of everything in front of the body.
func (o *outgoing) headSize() (int, error) {
	if o.protocol == wire.GRPC {
		return grpc.PrefixSize, nil
	}
	size := thriftwire.AppendedHeaderSize(o.name) // that of Kitex-Protobuf is as long
	if o.protocol == wire.Framed || o.protocol == wire.TTHeaderFramed {
		size += framed.HeaderSize
	}
	if hasTTHeader(o.protocol) {
		header, err := o.header.Size()
		return size + header, err
	}
	return size, nil
}

// finish fills in the head, once everything is known.
func (o *outgoing) finish(messageType thriftwire.MessageType) {
	if o.protocol == wire.GRPC {
		grpc.PutPrefix(o.room, o.Len()-grpc.PrefixSize, false)
		return
	}
	// It was within the limits when it was longer.
	size, _ := o.headSize()
	o.unused = len(o.room) - size
	head := o.room[o.unused:]
	message := thriftwire.AppendedHeaderSize(o.name)
	if o.payload == wire.PayloadProtobuf {
		kitexprotobuf.PutHeader(head[size-message:], messageType, o.name, o.sequence)
	} else {
		thriftwire.PutHeader(head[size-message:], messageType, o.name, o.sequence)
	}
	head = head[:size-message]
	length := o.Len() - len(o.room) + message
	if o.protocol == wire.Framed || o.protocol == wire.TTHeaderFramed {
		inner := head[len(head)-framed.HeaderSize:]
		framed.PutHeader(inner, length)
		length += framed.HeaderSize
		head = head[:len(head)-framed.HeaderSize]
	}
	if hasTTHeader(o.protocol) {
		o.header.Put(head, length)
	}
}

// length returns how many bytes will be sent, after finish.
func (o *outgoing) length() int { return o.Len() - o.unused }

// slices appends what will be sent to dst, after finish. It is valid until
// release.
func (o *outgoing) slices(dst [][]byte) [][]byte {
	first := len(dst)
	dst = o.Slices(dst)
	dst[first] = dst[first][o.unused:]
	return dst
}

// shared reports whether a sender still has the message. It may not be sent by
// another one then.
func (o *outgoing) shared() bool { return o.owners.Load() > 1 }

// release gives the memory back once nobody needs it, and never again before begin: two
// calls would share what is recycled twice.
func (o *outgoing) release() {
	if o.owners.Add(-1) != 0 {
		return
	}
	o.Buffer.Release()
	if o.recycle != nil && o.state.Load() != stateWithdrawn {
		o.recycle()
	}
}

// reset lets go of what a message refers to that nobody needs any more.
func (o *outgoing) reset() {
	o.name, o.room, o.unused, o.after = "", nil, 0, nil
	o.payload = wire.PayloadThrift
	o.header = ttheader.Head{}
	o.state.Store(stateQueued)
	o.forget()
}

// ReadBufferBytes is how much the buffer of a connection must hold: the longest
// message, which is decoded in one piece, with the longest header, and what may
// arrive behind it.
func ReadBufferBytes(m limits.Message) int {
	return ttheader.FixedSize + limits.HeaderInfoBytes + framed.HeaderSize + m.Bytes + limits.ReadAheadBytes
}

func hasTTHeader(p wire.Protocol) bool { return p == wire.TTHeader || p == wire.TTHeaderFramed }

// What a message on its way to the network can be; the zero value is queued.
const (
	// stateQueued: it waits for its turn.
	stateQueued uint32 = iota
	// stateTaken: it is being written; whether the peer has it is not known.
	stateTaken
	// stateSent: the network has accepted every byte of it.
	stateSent
	// stateDropped: not all of it was written before the connection failed. The
	// peer cannot execute it.
	stateDropped
	// stateWithdrawn: its owner took it back before its turn came, and the sender
	// is done with it.
	stateWithdrawn
)
