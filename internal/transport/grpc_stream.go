package transport

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// clientMessages is a stream of messages of a call in gRPC, on the side of the caller. The
// lock of the connection guards what is not the caller's.
type clientMessages struct {
	grpcMessages
	conn *grpcConn
	call *muxCall
	streamHeader
	// reply is what headers and trailers say.
	reply grpcReply
	// unwatch ends the watching of the context.
	unwatch func() bool
}

var _ ClientStream = (*clientMessages)(nil)

// openGRPC is Peer.OpenStream for gRPC.
func (g *streamPeer) openGRPC(ctx context.Context, request *Request) (ClientStream, error) {
	request.Buffer.Release()
	p := g.peer
	m := &clientMessages{streamHeader: newStreamHeader()}
	m.init(p.pool.buffers)
	m.limit, m.patience = p.config.Limits.Bytes, p.config.SendTimeout
	m.call, m.packs = &muxCall{request: request, messages: m}, request.grpc.packs
	if _, err := g.do(ctx, request, m); err != nil {
		return nil, err
	}
	return m, nil
}

// openOn implements opener.
func (m *clientMessages) openOn(ctx context.Context, conn streamConn) error {
	c := conn.(*grpcConn)
	parent, deadline := streamSource(ctx)
	call := m.call
	call.began, call.deadline = call.request.now(), deadline
	fields := call.request.grpc.address(ctx, c.scheme, c.peer.peer.config.Authority, call.began)
	m.conn, m.connection, m.flow = c, c, &c.flow
	if err := c.add(call, fields); err != nil {
		return err
	}
	if parent.Done() != nil {
		m.unwatch = context.AfterFunc(parent, func() { m.Cancel(ctx.Err()) })
	}
	c.flushSoon()
	return nil
}

// Lock implements messageCarrier.
func (c *grpcConn) Lock() { c.mu.Lock() }

// Unlock implements messageCarrier.
func (c *grpcConn) Unlock() { c.mu.Unlock() }

// othersLocked implements messageCarrier.
func (c *grpcConn) othersLocked() bool { return c.gathering.othersLocked() }

func (c *grpcConn) flushNow() { c.flush() }

// obeyLocked takes what has come for the stream. It reports whether that was the last.
func (m *clientMessages) obeyLocked(event *http2.Event) (ended bool) {
	err := error(nil)
	switch {
	case event.Kind == http2.EventReset:
		m.settleLocked(resetError(event, m.there))
		return true
	case event.Interim:
		return false
	case event.Kind == http2.EventHeaders:
		err = m.headersLocked(event)
	default:
		err = m.dataLocked(event.Data)
	}
	switch {
	case err == nil && !event.End:
		return false
	case err == nil && !m.reply.status.known && m.reply.business.Status == 0:
		err = &grpc.Error{Code: grpc.Internal, Detail: "the server ended the stream without a status"}
	}
	if err != nil {
		err = &CallError{Phase: PhaseReply, Sent: true, Err: err}
	}
	m.settleLocked(err)
	return true
}

// headersLocked takes headers or trailers.
func (m *clientMessages) headersLocked(event *http2.Event) error {
	first := !m.reply.answered
	err := m.reply.headers(event)
	if first {
		// Whoever receives reads these without the lock, behind the first message.
		if m.encodingName = m.reply.encoding; m.encodingName != "" {
			m.encoding = m.call.request.grpc.encodings.find(strings.ToLower(m.encodingName))
		}
	}
	if first && !event.End && err == nil {
		m.sayLocked(m.reply.pairs)
		m.reply.pairs, m.reply.ahead = nil, 0
	}
	m.headLocked()
	return err
}

// settleLocked ends the stream: without an error the server has said how the call ended.
// What has arrived can still be received.
func (m *clientMessages) settleLocked(err error) {
	if err == nil {
		err = io.EOF
		if m.reply.status.code != uint32(grpc.OK) || m.reply.business.Status != 0 {
			m.arrived = m.arrived[:m.whole] // What the server says counts, not what is missing.
		}
	}
	m.endLocked(err)
	if unfinished := new(grpc.Error); errors.As(m.ended, &unfinished) {
		if failed := new(CallError); !errors.As(m.ended, &failed) {
			m.ended = &CallError{Phase: PhaseReply, Sent: true, Err: m.ended}
		}
	}
	m.headLocked()
	m.closeLocked()
}

// Send implements Stream.
func (m *clientMessages) Send(last bool) error {
	pieces := m.message()
	m.conn.mu.Lock()
	m.conn.gathering.messages++
	done, err := m.sendLocked(pieces, last)
	m.conn.mu.Unlock()
	if err == nil {
		err = m.await(done)
	}
	m.room.Release()
	return err
}

// CloseSend implements Stream.
func (m *clientMessages) CloseSend() error {
	c := m.conn
	c.mu.Lock()
	err := m.broken
	if err == nil && !m.closed {
		// What cannot be sent has an end already.
		_, _ = c.http2.Data(m.id, nil, true)
	}
	c.mu.Unlock()
	c.flush()
	return err
}

// Header implements ClientStream.
func (m *clientMessages) Header() ([]Pair, error) {
	return m.awaitHeader(&m.conn.mu, &m.broken, &m.ended)
}

// End implements ClientStream.
func (m *clientMessages) End() (status *Status, trailer ReplyHead) {
	m.conn.mu.Lock()
	defer m.conn.mu.Unlock()
	r := &m.reply
	trailer = ReplyHead{Executed: r.executed, Trailing: r.pairs}
	if r.business.Status != 0 {
		trailer.Business = &BusinessStatus{Status: r.business.Status, Message: r.status.message, Extra: r.business.Extra}
		return nil, trailer
	}
	if r.status.code != uint32(grpc.OK) {
		status = &Status{Code: r.status.code, Message: r.status.message, Details: r.status.details}
	}
	return status, trailer
}

// Cancel implements ClientStream.
func (m *clientMessages) Cancel(cause error) {
	c := m.conn
	c.mu.Lock()
	if m.ended != nil || m.broken != nil {
		c.mu.Unlock()
		return
	}
	m.breakLocked(&CallError{Phase: PhaseWait, Sent: true, Err: cause})
	m.headLocked()
	last := c.calls[m.id] == m.call && c.removeLocked(m.call, time.Now())
	c.mu.Unlock()
	c.flush()
	c.ended(last)
}

// Release implements ClientStream.
func (m *clientMessages) Release() {
	if m.unwatch != nil {
		m.unwatch()
	}
	m.Cancel(context.Canceled)
	m.conn.mu.Lock()
	defer m.conn.mu.Unlock()
	m.giveUpLocked()
}

// finish gives a call its outcome. Of one that has a stream of messages the lock of the
// connection is held.
func (call *muxCall) finish(outcome muxOutcome) {
	m := call.messages
	switch {
	case m == nil:
		call.outcome <- outcome
	case outcome.expired:
		m.breakLocked(&CallError{Phase: PhaseWait, Sent: true, Err: context.DeadlineExceeded})
		m.headLocked()
	default:
		m.settleLocked(outcome.err)
	}
}
