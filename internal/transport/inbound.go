package transport

import (
	"slices"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/kitexprotobuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// Ends says between whom the calls of a connection are. Nobody changes it.
type Ends struct {
	// Peer and Local are addresses.
	Peer, Local string
	// Identity is what ServerConfig.Identify returned.
	Identity any
}

// Inbound is one message from a client. Its fields are its own but Body, and Ends, which
// nobody changes; it may be used as long as anybody likes, unless Forget was called, but
// answered only until Handle returns.
type Inbound struct {
	Protocol wire.Protocol
	// Payload is what Body is encoded in, and the answer has to be.
	Payload wire.Payload
	Type    thriftwire.MessageType
	// Target is what Lookup returned. Without one, Name is the method that the
	// message names, and Head.Service the service.
	Target   any
	Name     string
	Sequence int32
	Head     RequestHead
	// Body is the arguments, until DropBody, or until Handle returns.
	Body []byte
	*Ends
	// Arrived is when the last byte of the message was read. Deadlines count from it.
	Arrived time.Time
	// Stream is what a call of a streaming method sends and receives, nil for others.
	Stream ServerStream

	server *Server
	conn   answerer
	// local is the call itself if its caller is in this process.
	local *localCall
	// here: the call runs where its message was read. free: the connection goes on
	// without it, and detached knows. attached: the call has taken the connection back
	// for its answer, or never let go.
	here, free, attached bool
	detached             eventloop.Detached
	headerSequence       int32
	// counted is how much of the budget Body takes. copied: it is from the pool, not
	// the event loop's.
	counted int
	copied  bool
	// headBytes is how much of the budget Head takes, until the call ends.
	headBytes int
	invalid   error
	// ordered: nothing else may be answered before it.
	ordered bool
	// claims: the peer wants to know what this side can do. fulmar: it is one of
	// ours, and knows all keys.
	claims bool
	fulmar bool
	// Behind: it had to wait behind other messages of its connection.
	Behind bool
	// ping: the transport answers it.
	ping bool
	// forgotten: the Server may use the memory for another message.
	forgotten bool
	// stream is what the call came in if its connection has streams, nil otherwise.
	stream callStream
	// stamps is nil unless the server is observed.
	stamps *Stamps
}

// callStream is a call that has a part of its connection to itself, a stream.
type callStream interface {
	// keepHead is told what goes with the message that send is about to answer with.
	keepHead(head ReplyHead)
	send(call *Inbound, o *outgoing) error
	sendException(call *Inbound, name string, exception thriftwire.ApplicationException, head ReplyHead) error
	// finish ends the call of a streaming method that has not failed.
	finish(call *Inbound, head ReplyHead) error
	// finished is told when the call has ended, whether it was answered or not.
	finished(call *Inbound)
}

// answerer is what a call came by, and its answer goes by.
type answerer interface {
	send(call *Inbound, o *outgoing) error
	// done is told when the call has ended, whether it was answered or not.
	done(call *Inbound)
	// closing reports whether no further call should come that way.
	closing() bool
}

// admit finds out what a message calls, and makes the budget count it.
func (s *Server) admit(call *Inbound, message *wire.Message, head *requestHead) {
	call.Head = head.RequestHead
	if call.invalid == nil {
		call.Target = s.config.Lookup(head.service, message.Name, message.Payload)
	}
	call.ping = call.Target == nil && call.invalid == nil && isPing(message, head.service)
	if call.Target == nil {
		call.Name, call.Head.Service = string(message.Name), string(head.service)
	}
	if call.invalid == nil && call.Target == nil {
		call.invalid = thriftwire.CheckName(message.Name)
	}
	if call.invalid != nil {
		return
	}
	size := message.Info.Size()
	if call.invalid = s.budget.take(len(message.Body) + size); call.invalid == nil {
		call.headBytes, call.counted = size, len(message.Body)
	}
}

// DropBody lets go of Body, once it has been decoded or will not be.
func (in *Inbound) DropBody() {
	in.server.budget.give(in.counted)
	switch {
	case in.copied:
		in.server.buffers.Put(in.Body)
	case in.local != nil:
		in.local.dropRequest()
	default:
		in.leaveBody()
	}
	in.Body, in.counted, in.copied = nil, 0, false
}

// KeepBody returns Body for somebody who keeps it for as long as he likes. It is
// copied only if it lies where the connection reads, and is not most of long memory there, of
// which a third may go with it. The budget counts Body until the call ends, or DropBody.
func (in *Inbound) KeepBody() []byte {
	body := in.Body
	switch {
	case in.copied:
		in.server.buffers.Forget(body)
	case in.local != nil && in.local.keepRequest():
	case in.keepsMemory():
		body = body[:len(body):len(body)] // other messages may follow it
	default:
		body = slices.Clone(body)
		in.leaveBody()
	}
	in.Body, in.copied = nil, false
	return body
}

// keepsMemory makes the memory in which Body lies the caller's, if the event loop gives it away.
// With 10 MiB a copy and what it does to the caches took a third of a server's time
// (bench/results/view-10m.json).
func (in *Inbound) keepsMemory() bool {
	c, ok := in.conn.(*serverConn)
	switch {
	case !ok || !in.here:
		return false
	case !in.free:
		return c.conn.Reader().Keep(len(in.Body))
	default:
		return in.detached.Keep(len(in.Body))
	}
}

// leaveBody lets the event loop use memory again that Body lies in, before the call ends.
func (in *Inbound) leaveBody() {
	c, ok := in.conn.(*serverConn)
	switch {
	case !ok || !in.here:
	case !in.free:
		c.conn.Reader().Done()
	case len(in.Body) >= limits.LinkedStringBytes:
		in.detached.Done()
	}
}

// shortMost is up to what length a body is read before LetGo, for which others on the
// connection wait: 5 us at most, by small-20k-decode of suite codec (11.8 us for 20 KB).
const shortMost = 8 << 10

// Short reports whether Body lies where the connection reads, and is to be read before LetGo,
// which copies it otherwise.
func (in *Inbound) Short() bool { return in.lies() && len(in.Body) <= shortMost }

// lies reports whether Body lies where the connection reads.
func (in *Inbound) lies() bool { return !in.copied && in.here && !in.free }

// copyBody copies Body to memory of its own.
func (in *Inbound) copyBody() {
	in.Body = append(in.server.buffers.Get(len(in.Body)), in.Body...)
	in.copied = true
}

// EndsGoroutine says that the goroutine of Handle is about to end, which the
// connection must survive: it goes on elsewhere.
func (in *Inbound) EndsGoroutine() {
	if c, ok := in.conn.(*serverConn); ok && in.here && (in.attached || !in.free) {
		// The answer may be in the connection's writer, and would be lost with it.
		in.attached, in.free = false, true
		c.conn.Detach()
	}
	in.here = false
}

// LetGo lets the connection go on without the call, which is to be done before anything
// that takes time. A call that is answered without has its answer leave with those before
// and behind it. Only the goroutine of Handle may call it; again has no effect.
func (in *Inbound) LetGo() {
	if c, ok := in.conn.(*serverConn); ok && in.here && !in.free {
		if in.lies() && len(in.Body) > 0 && len(in.Body) < aliasedLeast {
			in.copyBody()
			c.conn.Reader().Done()
		}
		in.detached, in.free = c.conn.Detach(), true
	}
}

// attach takes the connection back for an answer of so many bytes that is short, so that
// it leaves with others. If the connection has gone on the call writes its answer by itself,
// which is not the handler's time: inline it would not. Who writes long answers would, too.
func (in *Inbound) attach(length int) bool {
	in.attached = false
	if length <= corkedMost && in.here {
		if in.attached = in.detached.Attach(); !in.attached {
			in.detached.Answers()
		}
	}
	return in.attached
}

// WillWait says that the call is going to wait for something. It may be called from
// any goroutine, until Handle returns.
func (in *Inbound) WillWait() { in.detached.WillWait() }

// Detached returns what tells the event loop that the call waits, for somebody who may
// have it longer than the Inbound.
func (in *Inbound) Detached() eventloop.Detached { return in.detached }

// Forget says that nobody is going to use the Inbound once Handle has returned: the next
// message takes its memory.
func (in *Inbound) Forget() { in.forgotten = in.local == nil && in.stamps == nil }

// HasHeader reports whether an answer can carry a ReplyHead.
func (in *Inbound) HasHeader() bool { return hasTTHeader(in.Protocol) || in.stream != nil }

// Invalid returns why the message cannot be served, nil if it can. It must be
// answered by an exception.
func (in *Inbound) Invalid() error { return in.invalid }

// Reply is an answer that is being written. Release must follow in the end, after which
// it belongs to the Server.
type Reply struct {
	outgoing
	call *Inbound
	maps replyMaps
}

// replyMaps are to replies what headerMaps are to requests.
type replyMaps struct {
	strings [2]Pair
	ints    [1]ttheader.IntPair
}

// NewReply starts the answer for a method of that name, which is what Thrift
// peers compare with their call's. The error is about a head that is too long.
func (in *Inbound) NewReply(name string, head ReplyHead) (*Reply, error) {
	return in.newReply(name, head, thriftwire.Reply)
}

func (in *Inbound) newReply(name string, head ReplyHead, messageType thriftwire.MessageType) (*Reply, error) {
	server := in.server
	r, ok := server.replies.Get().(*Reply)
	if !ok {
		r = new(Reply)
		r.recycle = func() { server.recycle(r) }
	}
	r.call = in
	r.protocol, r.payload, r.name, r.sequence = in.Protocol, in.Payload, name, in.Sequence
	if in.stream != nil {
		in.stream.keepHead(head)
	}
	if hasTTHeader(r.protocol) {
		if !in.fulmar {
			head.leaveOut()
		}
		if err := head.put(r, messageType); err != nil {
			server.recycle(r)
			return nil, err
		}
		r.header.Sequence = in.headerSequence
		if in.claims {
			r.header.Strings = append(r.header.Strings, Pair{Key: wire.Capabilities, Value: capabilityMux})
		}
		if in.conn.closing() {
			r.header.Strings = append(r.header.Strings, Pair{Key: wire.CloseConnection, Value: wire.CloseConnectionValue})
		}
	}
	if err := r.begin(server.buffers, head.LikelyBytes); err != nil {
		r.release()
		return nil, err
	}
	return r, nil
}

// recycle keeps a reply for another call, without what it refers to.
func (s *Server) recycle(r *Reply) {
	r.call = nil
	r.outgoing.reset()
	r.maps = replyMaps{}
	s.replies.Put(r)
}

// Body is where the body goes.
func (r *Reply) Body() *linkbuf.Buffer { return &r.Buffer }

// Release gives the memory back.
func (r *Reply) Release() { r.release() }

// Send hands the reply with its body to the connection.
func (r *Reply) Send() error {
	r.finish(thriftwire.Reply)
	return r.call.conn.send(r.call, &r.outgoing)
}

// FinishStream ends a call of a streaming method that has not failed, but may have ended in
// a business error. Only metadata and that count of head. A grpc.Error says that the call has
// failed after all, and that the caller is told so.
func (in *Inbound) FinishStream(head ReplyHead) error {
	if in.local != nil {
		return in.local.stream.finish(nil, head)
	}
	return in.stream.finish(in, head)
}

// SendException answers with an application exception.
func (in *Inbound) SendException(name string, exception thriftwire.ApplicationException, head ReplyHead) error {
	switch {
	case in.stream != nil:
		return in.stream.sendException(in, name, exception, head)
	case in.local != nil && in.local.stream != nil:
		return in.local.stream.fail(exception.Message, head)
	}
	r, err := in.newReply(name, head, thriftwire.Exception)
	if err != nil {
		// Better without metadata than not at all.
		r, err = in.newReply(name, ReplyHead{Executed: head.Executed, Code: head.Code}, thriftwire.Exception)
	}
	if err != nil {
		return err
	}
	defer r.Release()
	exception.Message = thriftwire.CleanMessage(exception.Message)
	if in.Payload == wire.PayloadProtobuf {
		kitexprotobuf.PutException(r.Reserve(kitexprotobuf.ExceptionSize(exception)), exception)
	} else {
		exception.Put(r.Reserve(exception.Size()))
	}
	r.finish(thriftwire.Exception)
	return in.conn.send(in, &r.outgoing)
}
