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
	PhaseHandshake
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
	// Refused is true if no connection could be opened, or none takes calls, and that is
	// the address's doing: not the caller's, who may have given up, nor this process's.
	Refused bool
	Err     error
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

func replyError(exception thriftwire.ExceptionType, format string, arguments ...any) error {
	return &ReplyError{Exception: exception, Detail: fmt.Sprintf(format, arguments...)}
}

// ClientConn is a connection that is lent to one call. After carry the
// reply's bytes are valid until Release or Discard, one of which must follow.
type ClientConn struct {
	pool      *Pool
	conn      *eventloop.Conn
	decoder   detect.Decoder
	sequence  int32
	reused    bool
	idleSince time.Time
	// expires is when it is too old for new calls; zero for never.
	expires time.Time
	// used is the size of the reply that the caller is looking at; -1 if the
	// connection cannot be used again.
	used int
	// claimed: the peer was told what this side can do. mux: it can do the same.
	claimed bool
	mux     bool
	// answered: a reply has come.
	answered bool
	// leaving: the server has said that it stops.
	leaving bool
	// shared is how calls share it, nil if they do not; the pool's lock guards that.
	shared sharing
	// replaceable: another may be opened in its place; the pool's lock guards that too.
	replaceable bool
	// deadline is the call's, armed the socket's for reading. That is not later, zero
	// if there is none, and often earlier: it is set again when it has passed, not for
	// every call.
	deadline, armed time.Time
	// waited: its call had to wait for it. opened is when, broke why it is closed.
	waited bool
	opened time.Time
	broke  error
}

// Reused reports whether another call used the connection before.
func (c *ClientConn) Reused() bool { return c.reused }

// isWaitedFor reports whether a call waits for an answer on a connection that is not
// idle. Where calls share it, the end of it also ends oneway calls that nobody waits
// for, and a reset those that are on their way: they were handed over, so the connection
// is closed in good order then. The pool's lock is held.
func (c *ClientConn) isWaitedFor() bool {
	return c.shared == nil || c.shared.waitedFor()
}

// sharing is how calls share a connection.
type sharing interface {
	// waitedFor reports whether it is to be reset when the client is closed.
	waitedFor() bool
}

func (c *muxConn) waitedFor() bool { return c.waiting.Load() > 0 && !c.oneway.Load() }

// old reports whether no new call may use the connection.
func (c *ClientConn) old(now time.Time) bool { return !c.expires.IsZero() && now.After(c.expires) }

// carry sends the request and waits for its reply, until ctx ends, for an attempt that
// begins here. A oneway request returns as soon as it is sent, with an empty response. It
// fails with a *CallError.
func (c *ClientConn) carry(ctx context.Context, request *Request) (response *Response, err error) {
	// The connection is not lost where an observer ends the goroutine.
	returned := false
	defer func() {
		if !returned {
			c.Discard()
		}
	}()
	request.begun(c.use())
	stop := c.watch(ctx)
	message, failed := c.exchange(ctx, request)
	if !stop() && failed == nil {
		// interrupt may hit the next user of the connection: do not have one.
		c.used = -1
	}
	response, err = c.end(ctx, request, &message, failed)
	returned = true
	return response, err
}

// end returns what an exchange ended in.
func (c *ClientConn) end(ctx context.Context, request *Request, message *wire.Message, err *CallError) (*Response, error) {
	if err == nil {
		response := &request.response
		*response = Response{conn: c, Type: message.Type, Payload: message.Payload, Body: message.Body}
		request.tellReply()
		var closing bool
		var headErr error
		var mux bool
		response.Head, mux, closing, headErr = readReplyHead(message.Info)
		c.mux = c.mux || mux
		if closing {
			c.used = -1
		}
		if headErr == nil {
			return response, nil
		}
		err = &CallError{Phase: PhaseReply, Sent: true, Err: headErr}
	}
	request.tellWritten()
	cause := ctx.Err()
	if cause == nil && errors.Is(err.Err, os.ErrDeadlineExceeded) {
		// The socket's clock was ahead of the context's.
		cause = context.DeadlineExceeded
	}
	if cause != nil {
		err.Err = fmt.Errorf("%w (%v)", cause, err.Err)
	}
	return nil, err
}

// watch makes the exchange fail when ctx ends. If it can it leaves the deadline
// to the socket, which needs no timer of its own for it.
func (c *ClientConn) watch(ctx context.Context) (stop func() bool) {
	ctx, c.deadline = source(ctx)
	if c.armed.IsZero() != c.deadline.IsZero() || c.armed.After(c.deadline) {
		c.arm()
	}
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, c.interrupt)
}

// arm sets the socket's deadline for reading to the call's.
func (c *ClientConn) arm() {
	// An error means that the socket is closed; the exchange will say so.
	_ = c.conn.SetReadDeadline(c.deadline)
	c.armed = c.deadline
}

// early reports whether err says that the socket's deadline has passed although the
// call's has not, nor was it interrupted, and sets the socket's to that.
func (c *ClientConn) early(ctx context.Context, err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Before(c.deadline) {
		return false
	}
	c.arm()
	// What interrupts the call does so after this, or ctx has ended by now.
	return ctx.Err() == nil
}

// source returns what makes ctx end: another context, and a deadline, zero for none.
// Who heeds the deadline by itself needs no timer of its own for each call.
func source(ctx context.Context) (parent context.Context, deadline time.Time) {
	if call, ok := ctx.(interface {
		Source() (context.Context, time.Time)
	}); ok {
		return call.Source()
	}
	return ctx, time.Time{}
}

// streamSource is source for streams, of which the server is told the deadline also if an
// interceptor, or opening a stream again, has made another context of the call's.
func streamSource(ctx context.Context) (parent context.Context, deadline time.Time) {
	if parent, deadline = source(ctx); deadline.IsZero() {
		deadline, _ = ctx.Deadline()
	}
	return parent, deadline
}

// interrupt makes the exchange in progress fail at once.
func (c *ClientConn) interrupt() { _ = c.conn.SetDeadline(time.Unix(1, 0)) }

func (c *ClientConn) exchange(ctx context.Context, request *Request) (wire.Message, *CallError) {
	c.sequence++
	if c.sequence == 0 {
		c.sequence = 1
	}
	if request.told > 0 { // else it does not matter what time it is
		request.hurry(ctx, time.Now())
	}
	request.address(c.sequence, 0, !c.claimed)
	c.claimed = true
	n, err := c.send(ctx, request)
	c.used = 0
	if err == nil && request.teller != nil {
		request.written.Store(int64(request.elapsed()))
		request.tellWritten()
	}
	switch {
	case err == nil && request.oneway:
		return wire.Message{}, nil
	case err == nil:
		return c.await(ctx, request)
	case errors.Is(err, errStale):
		return wire.Message{}, &CallError{Phase: PhaseAcquire, Err: err}
	case n == int64(request.length()) && !request.oneway:
		return wire.Message{}, &CallError{Phase: PhaseWait, Sent: true, Err: readError(err)}
	}
	message, refused := c.lastWords(ctx, request)
	switch {
	case refused == nil:
		return message, nil
	case refused.Phase == PhaseHandshake:
		return wire.Message{}, refused
	}
	return wire.Message{}, &CallError{Phase: PhaseWrite, Sent: n == int64(request.length()), Err: err}
}

// errStale is the error of an exchange on a connection that its peer has closed since
// its last call, or on which something arrived that nobody asked for. Nothing was
// sent.
var errStale = errors.New("the connection was closed while it was idle")

// stale reports whether a connection that was idle is of no use any more.
func (c *ClientConn) stale() bool { return c.reused && c.conn.CheckIdle() != nil }

// send writes a request. For one that is answered it waits for the first bytes of
// the answer, if the request could be written at once; an error after the whole
// request was written is one of that.
func (c *ClientConn) send(ctx context.Context, request *Request) (n int64, err error) {
	parts := request.slices(request.parts[:0])
	if !request.oneway && request.teller == nil { // Ask does not say when the write was done
		if n, err = c.ask(ctx, parts); err != nil || n == int64(request.length()) {
			return n, err
		}
	}
	if n == 0 && c.stale() {
		return 0, errStale
	}
	if err := c.conn.SetWriteDeadline(c.deadline); err != nil {
		return n, err
	}
	if err := ctx.Err(); err != nil {
		// The deadline by which this was to be interrupted may be gone.
		return n, err
	}
	rest, err := c.conn.WriteBuffers(linkbuf.Advance(parts, n))
	return n + rest, err
}

// ask writes as much of a request as the connection takes at once, and waits if that
// is all of it.
func (c *ClientConn) ask(ctx context.Context, parts [][]byte) (int64, error) {
	for {
		n, err := c.conn.Ask(parts)
		switch {
		case err == nil:
			return n, nil
		case c.early(ctx, err):
			if n > 0 {
				return n, nil
			}
		case n == 0 && c.reused && !errors.Is(err, os.ErrDeadlineExceeded):
			return 0, errStale
		default:
			return n, err
		}
	}
}

// lastWords returns the exception with which the peer refused a request that
// it did not read to its end, if it sent one before it closed the connection, or why
// it did not.
func (c *ClientConn) lastWords(ctx context.Context, request *Request) (wire.Message, *CallError) {
	none := &CallError{Phase: PhaseReply}
	if ctx.Err() != nil {
		return wire.Message{}, none
	}
	wait := time.Now().Add(limits.LastWordsTimeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(wait) {
		wait = deadline
	}
	c.deadline = wait
	c.arm()
	// What interrupts the call does so after this, or ctx has ended by now.
	if ctx.Err() != nil {
		return wire.Message{}, none
	}
	message, err := c.await(ctx, request)
	if err != nil || message.Type != thriftwire.Exception {
		if err == nil {
			err = none
		}
		return wire.Message{}, err
	}
	c.used = -1
	return message, nil
}

// await reads the reply and checks that it belongs to the request.
func (c *ClientConn) await(ctx context.Context, request *Request) (wire.Message, *CallError) {
	reader := c.conn.Reader()
	var first time.Duration
	for {
		buffered := reader.Buffered()
		if request.teller != nil && first == 0 && len(buffered) > 0 {
			first = request.elapsed()
		}
		message, used, need, err := c.nextReply(buffered)
		switch {
		case err == nil && used == 0:
			if _, err = reader.Peek(need); err == nil || c.early(ctx, err) {
				continue
			}
			phase := PhaseWait
			if reader.Len() > 0 {
				phase = PhaseReply
			}
			return wire.Message{}, waitFailed(phase, readError(err))
		case err == nil && isControl(&message) && used <= len(buffered):
			// The server stops; the reply may still come.
			c.leaving = true
			if err = reader.Skip(used); err == nil {
				continue
			}
		case err == nil:
			c.used = used
			if used > len(buffered) || message.Last || c.leaving {
				c.used = -1
			}
			if request.teller != nil {
				request.heard(used, request.elapsed()-first)
			}
			err = c.check(request, &message)
		}
		if err != nil {
			return wire.Message{}, waitFailed(PhaseReply, err)
		}
		return message, nil
	}
}

// isControl reports whether a message is the one by which a server says on a
// multiplexed connection that it stops.
func isControl(message *wire.Message) bool {
	return hasTTHeader(message.Protocol) && message.HeaderSequence == wire.ControlSequence && string(message.Name) == wire.ControlMethod
}

// check returns what is wrong with a message as the reply to request, and
// decides whether the connection can be used afterwards.
func (c *ClientConn) check(request *Request, message *wire.Message) error {
	err := checkReply(request.name, request.sequence, request.payload, message)
	if err == nil && message.Type == thriftwire.Exception && (message.Sequence == 0 || c.pool.config.Protocol == wire.Bare) {
		// It may be a late answer to something else, so nothing after it is
		// trusted; and a server that could not read a bare message closes.
		c.used = -1
	}
	return err
}

// names reports whether a reply of that name answers a call of method. A call
// of "Service:method" is answered with the name alone by Apache Thrift.
func names(reply []byte, method string) bool {
	_, plain, _ := strings.Cut(method, ":")
	return string(reply) == method || plain != "" && string(reply) == plain
}

// Release gives the connection back for other calls, after a carry that
// succeeded.
func (c *ClientConn) Release() {
	if c.used < 0 || c.conn.Reader().Skip(c.used) != nil || c.conn.Reader().Len() > 0 {
		// What follows a reply that nobody asked for cannot be understood.
		c.pool.discard(c)
		return
	}
	// One large reply must not cost an idle connection its size for ever.
	c.conn.Reader().Shrink()
	switch {
	case !c.mux || c.pool.config.Share == nil:
		c.pool.release(c)
	case !c.pool.config.Share(c):
		c.pool.discard(c)
	}
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
