package transport

import (
	"context"
	"io"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// ttstreamMade is a stream over TTHeader on the side of the caller. The lock of the
// connection guards what is not the caller's.
type ttstreamMade struct {
	ttstreamMessages
	streamHeader
	ctx      context.Context
	deadline time.Time
	conn     *ttstreamConn
	request  ttstream.Request
	// begun is how many bytes of the connection are written when the HEADER is.
	begun int64
	// refused: the server has as many streams on the connection as it takes.
	refused bool
	// status and trailer are how the server ended the call.
	status  *Status
	trailer ReplyHead
	// unwatch ends the watching of the context, and of the deadline.
	unwatch []func() bool
}

var (
	_ ClientStream = (*ttstreamMade)(nil)
	_ opener       = (*ttstreamMade)(nil)
)

// openTTStream is Peer.OpenStream for TTHeader.
func (g *streamPeer) openTTStream(ctx context.Context, request *Request) (ClientStream, error) {
	m := &ttstreamMade{ctx: ctx, streamHeader: newStreamHeader()}
	m.init(g.pool.buffers)
	m.limit, m.patience = g.peer.config.Limits.Bytes, g.peer.config.SendTimeout
	m.request.Method = request.method
	// The first pair says that unary calls can be multiplexed.
	m.request.Pairs = append(m.request.Pairs, request.header.Strings[1:]...)
	for _, pair := range request.header.Ints {
		switch pair.Key {
		case wire.KeyFromService:
			m.request.FromService = pair.Value
		case wire.KeyFromMethod:
			m.request.FromMethod = pair.Value
		}
	}
	defer request.Release()
	if _, err := g.do(ctx, request, m); err != nil {
		return nil, err
	}
	return m, nil
}

// openOn implements opener.
func (m *ttstreamMade) openOn(ctx context.Context, conn streamConn) error {
	c := conn.(*ttstreamConn)
	parent, deadline := streamSource(ctx)
	m.conn, m.connection, m.flow, m.deadline = c, c, &c.flow, deadline
	m.request.Timeout = 0
	if !deadline.IsZero() {
		m.request.Timeout = max(ttstream.Nanoseconds(time.Until(deadline)), 1)
	}
	if err := c.add(m, &m.request); err != nil {
		return err
	}
	if parent.Done() != nil {
		m.unwatch = append(m.unwatch, context.AfterFunc(parent, func() { m.Cancel(ctx.Err()) }))
	}
	if !deadline.IsZero() {
		m.unwatch = append(m.unwatch, time.AfterFunc(time.Until(deadline), func() { m.Cancel(context.DeadlineExceeded) }).Stop)
	}
	c.flushSoon()
	return nil
}

// endLocked takes the TRAILER.
func (m *ttstreamMade) endLocked(event *ttstream.Event) {
	head, _, _, err := readReplyHead(event.Info)
	m.trailer = head
	switch {
	case event.Problem != nil:
		err = &grpc.Error{Code: grpc.Internal, Detail: event.Problem.Error()}
	case event.Failed:
		m.status = statusOfFailure(event.Failure)
	}
	if err != nil {
		err = &CallError{Phase: PhaseReply, Sent: true, Err: err}
	}
	m.settleLocked(err)
}

// statusOfFailure returns what an exception says.
func statusOfFailure(failure ttstream.Failure) *Status {
	return &Status{Message: failure.Message, IsException: true, Exception: failure.Code}
}

// resetError returns why a stream ended before its time, nil if the server says so.
func (m *ttstreamMade) resetError(event *ttstream.Event) error {
	failed := &CallError{Phase: PhaseWait, Sent: !event.NotExecuted}
	switch {
	case event.Problem != nil:
		code := codeOfBreach(event.Problem)
		failed.Phase, failed.Err = PhaseReply, &grpc.Error{Code: code, Detail: event.Problem.Error()}
	case event.NotExecuted:
		failed.Err = &grpc.Error{Code: grpc.Unavailable, Detail: "the server did not look at the call: " + event.Failure.Message}
	case event.Failure.Code == ttstream.CodeStreamTimeout && !m.deadline.IsZero():
		failed.Err = context.DeadlineExceeded
	default:
		head, _, _, _ := readReplyHead(event.Info)
		m.trailer, m.status = head, statusOfFailure(event.Failure)
		if m.status.Exception == 0 {
			m.status.Exception = thriftwire.ExceptionInternalError
		}
		return nil
	}
	return failed
}

// settleLocked ends the stream: without an error the server has said how. What has arrived
// can still be received.
func (m *ttstreamMade) settleLocked(err error) {
	if err == nil {
		err = io.EOF
	}
	m.streamMessages.endLocked(err)
	m.headLocked()
	m.closeLocked()
}

// Send implements Stream.
func (m *ttstreamMade) Send(last bool) error {
	return m.sendRoom(last, func() error {
		m.conn.writer.gathering.messages++
		return nil
	})
}

// CloseSend implements Stream.
func (m *ttstreamMade) CloseSend() error {
	c := m.conn
	c.mu.Lock()
	err := m.broken
	if err == nil && !m.closed {
		// What cannot be sent has an end already.
		_ = c.flow.frames.End(int32(m.id), nil, nil)
	}
	c.mu.Unlock()
	c.flushNow()
	return err
}

// Header implements ClientStream.
func (m *ttstreamMade) Header() ([]Pair, error) {
	return m.awaitHeader(&m.conn.mu, &m.broken, &m.ended)
}

// End implements ClientStream.
func (m *ttstreamMade) End() (status *Status, trailer ReplyHead) {
	m.conn.mu.Lock()
	defer m.conn.mu.Unlock()
	return m.status, m.trailer
}

// Cancel implements ClientStream.
func (m *ttstreamMade) Cancel(cause error) {
	c := m.conn
	c.mu.Lock()
	if m.ended != nil || m.broken != nil {
		c.mu.Unlock()
		return
	}
	if c.err == nil {
		failure := ttstream.Failure{Code: ttstream.CodeCanceled, Message: "canceled by " + m.request.FromService}
		if cause == context.DeadlineExceeded {
			failure = ttstream.Failure{Code: ttstream.CodeStreamTimeout, Message: "the time of the stream is over"}
		}
		c.flow.frames.Reset(int32(m.id), failure, cancelPath(m.ctx, m.request.FromService))
		c.removeLocked(m)
	}
	m.breakLocked(&CallError{Phase: PhaseWait, Sent: true, Err: cause})
	m.headLocked()
	c.mu.Unlock()
	c.flushNow()
	c.peer.roomFree()
	c.finishIfOver()
}

// Release implements ClientStream.
func (m *ttstreamMade) Release() {
	for _, stop := range m.unwatch {
		stop()
	}
	m.Cancel(context.Canceled)
	m.conn.mu.Lock()
	defer m.conn.mu.Unlock()
	m.giveUpLocked()
}
