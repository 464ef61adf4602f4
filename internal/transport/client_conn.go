package transport

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/detect"
)

// Phase is how far a call had come when it failed.
type Phase uint8

// The phases, in order.
const (
	PhaseEncode Phase = iota + 1
	PhaseAcquire
	PhaseConnect
	PhaseWrite
	PhaseWait
	PhaseReply
)

// CallError says in which phase an exchange failed, and whether the whole
// request had been handed to the network.
type CallError struct {
	Phase Phase
	// Sent is true once every byte of the request was accepted by the network.
	// The peer cannot have executed a call of which it has only a part.
	Sent bool
	Err  error
}

func (e *CallError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// ReplyError says that a peer's reply does not belong to the call; exchanges on
// that connection cannot be trusted any more.
type ReplyError struct {
	// Exception is the type that Thrift gives the mismatch.
	Exception thriftwire.ExceptionType
	Detail    string
}

func (e *ReplyError) Error() string { return e.Detail }

// ClientConn is a connection that is lent to one call. After Exchange the
// reply's bytes are valid until Release or Discard, one of which must follow.
type ClientConn struct {
	pool      *Pool
	conn      *eventloop.Conn
	decoder   detect.Decoder
	sequence  int32
	reused    bool
	idleSince time.Time
	// used is the size of the reply that the caller is looking at.
	used int
}

// Request is a request whose body the caller appends before Exchange.
type Request struct {
	outgoing
	oneway bool
}

// NewRequest returns a request of a method. Release must be called.
func (p *Pool) NewRequest(method string, oneway bool) *Request {
	r := &Request{oneway: oneway}
	// The sequence id belongs to the connection; it is set by Exchange.
	r.begin(p.buffers, p.config.Protocol, method, 0)
	return r
}

// Body is where the body goes.
func (r *Request) Body() *linkbuf.Buffer { return &r.Buffer }

// Reused reports whether another call used the connection before.
func (c *ClientConn) Reused() bool { return c.reused }

// Exchange sends the request and waits for its reply, until ctx ends. A oneway
// request returns as soon as it is sent, with no message. It fails with a
// *CallError.
func (c *ClientConn) Exchange(ctx context.Context, request *Request) (wire.Message, error) {
	deadline, _ := ctx.Deadline()
	if err := c.conn.SetDeadline(deadline); err != nil {
		return wire.Message{}, &CallError{Phase: PhaseWrite, Err: err}
	}
	stop := context.AfterFunc(ctx, c.interrupt)
	message, err := c.exchange(ctx, request)
	if !stop() && err == nil {
		// interrupt may hit the next user of the connection: do not have one.
		c.used = -1
	}
	if err == nil {
		return message, nil
	}
	cause := ctx.Err()
	if cause == nil && errors.Is(err.Err, os.ErrDeadlineExceeded) {
		// The socket's clock was ahead of the context's.
		cause = context.DeadlineExceeded
	}
	if cause != nil {
		err.Err = fmt.Errorf("%w (%v)", cause, err.Err)
	}
	return wire.Message{}, err
}

// interrupt makes the exchange in progress fail at once.
func (c *ClientConn) interrupt() { _ = c.conn.SetDeadline(time.Unix(1, 0)) }

func (c *ClientConn) exchange(ctx context.Context, request *Request) (wire.Message, *CallError) {
	c.sequence++
	if c.sequence == 0 {
		c.sequence = 1
	}
	request.sequence = c.sequence
	messageType := thriftwire.Call
	if request.oneway {
		messageType = thriftwire.Oneway
	}
	request.finish(messageType)
	var parts [8][]byte
	n, err := c.conn.WriteBuffers(request.Slices(parts[:0]))
	c.used = 0
	if err != nil {
		if message, ok := c.lastWords(ctx, request); ok {
			return message, nil
		}
		return wire.Message{}, &CallError{Phase: PhaseWrite, Sent: n == int64(request.Len()), Err: err}
	}
	if request.oneway {
		return wire.Message{}, nil
	}
	return c.await(request)
}

// lastWords returns the exception with which the peer refused a request that
// it did not read to its end, if it sent one before it closed the connection.
func (c *ClientConn) lastWords(ctx context.Context, request *Request) (wire.Message, bool) {
	if ctx.Err() != nil {
		return wire.Message{}, false
	}
	wait := time.Now().Add(limits.LastWordsTimeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(wait) {
		wait = deadline
	}
	// What interrupts the call does so after this, or ctx has ended by now.
	if c.conn.SetReadDeadline(wait) != nil || ctx.Err() != nil {
		return wire.Message{}, false
	}
	message, err := c.await(request)
	if err != nil || message.Type != thriftwire.Exception {
		return wire.Message{}, false
	}
	c.used = -1
	return message, true
}

// await reads the reply and checks that it belongs to the request.
func (c *ClientConn) await(request *Request) (wire.Message, *CallError) {
	reader := c.conn.Reader()
	for {
		buffered := reader.Buffered()
		message, used, need, err := c.decoder.Next(buffered)
		switch {
		case err == nil && used == 0:
			if _, err = reader.Peek(need); err == nil {
				continue
			}
			phase := PhaseWait
			if reader.Len() > 0 {
				phase = PhaseReply
			}
			return wire.Message{}, &CallError{Phase: phase, Sent: true, Err: err}
		case err == nil:
			c.used = used
			if used > len(buffered) || message.Last {
				c.used = -1
			}
			err = c.check(request, &message)
		}
		if err != nil {
			return wire.Message{}, &CallError{Phase: PhaseReply, Sent: true, Err: err}
		}
		return message, nil
	}
}

// check returns what is wrong with a message as the reply to request. The name
// of an exception does not count, and its sequence id may be 0: a peer that
// could not read the request knows neither.
func (c *ClientConn) check(request *Request, message *wire.Message) error {
	isException := message.Type == thriftwire.Exception
	switch {
	case message.Invalid != nil:
		return message.Invalid
	case isException && message.Sequence == 0:
		// Perhaps from a peer that could not read the call. It may as well be a
		// late answer to something else, so nothing after it is trusted.
		c.used = -1
		return nil
	case !isException && message.Type != thriftwire.Reply:
		return &ReplyError{Exception: thriftwire.ExceptionInvalidMessageType, Detail: fmt.Sprintf(
			"a %v arrived instead of a reply", message.Type)}
	case isException && message.Sequence == request.sequence && c.pool.config.Protocol == wire.Bare:
		// A server that could not read a bare message closes after its answer.
		c.used = -1
		return nil
	case message.Sequence != request.sequence:
		return &ReplyError{Exception: thriftwire.ExceptionBadSequenceID, Detail: fmt.Sprintf(
			"the %v has sequence id %d, the call %d", message.Type, message.Sequence, request.sequence)}
	case !isException && !names(message.Name, request.name):
		return &ReplyError{Exception: thriftwire.ExceptionWrongMethodName, Detail: fmt.Sprintf(
			"the reply is for method %q, the call was %q", message.Name, request.name)}
	}
	return nil
}

// names reports whether a reply of that name answers a call of method. A call
// of "Service:method" is answered with the name alone by Apache Thrift.
func names(reply []byte, method string) bool {
	_, plain, _ := strings.Cut(method, ":")
	return string(reply) == method || plain != "" && string(reply) == plain
}

// Release gives the connection back for other calls, after an Exchange that
// succeeded.
func (c *ClientConn) Release() {
	if c.used < 0 || c.conn.Reader().Skip(c.used) != nil || c.conn.Reader().Len() > 0 {
		// What follows a reply that nobody asked for cannot be understood.
		c.pool.discard(c)
		return
	}
	// One large reply must not cost an idle connection its size for ever.
	c.conn.Reader().Shrink()
	c.pool.release(c)
}

// Discard closes the connection, for a call that was not answered. The peer
// learns of it at once, where the network can tell it (a reset), and may stop
// working on the call.
func (c *ClientConn) Discard() {
	_ = c.conn.Abort()
	c.pool.discard(c)
}

// Retire closes the connection in good order. It follows a oneway call: with
// protocols that answer in order, the next call on it would wait until that
// call has been executed.
func (c *ClientConn) Retire() { c.pool.discard(c) }
