package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/observe"
)

// localStream is a call of a streaming method of a server of this process. Messages are
// copied once, into a queue for each direction that holds one message, or more if they
// are short.
type localStream struct {
	call *localCall
	peer *localPeer
	mu   sync.Mutex
	// up is what the client sends, down what the server does.
	up, down localQueue
	streamHeader
	// over: the handler has ended the call, and status and trailer say how.
	over    bool
	status  *Status
	trailer ReplyHead
	// client and server are why either side goes on no more.
	client, server error
	counted        bool
	unwatch        []func() bool
}

// localQueue holds messages in one direction. The lock of the stream guards it, but room
// and timer, which are of who sends and who receives.
type localQueue struct {
	stream *localStream
	pool   *linkbuf.Pool
	// limit is how long messages may be that the receiver takes.
	limit int
	// patience is how long who sends waits while nothing is received, 0 for ever. taken
	// counts what was.
	patience time.Duration
	taken    uint64
	messages [][]byte
	bytes    int
	// closed: no message follows. stopped: nor may one, because the server stops. stalled: one
	// could not be sent, so none may follow.
	closed, stopped, stalled bool
	readable, writable       chan struct{}

	// received is the message that was received last. kept: somebody has its memory.
	received []byte
	kept     bool
	room     linkbuf.Buffer
	timer    *time.Timer
}

func (q *localQueue) init(stream *localStream, pool *linkbuf.Pool, limit int, patience time.Duration) {
	q.stream, q.pool, q.limit, q.patience = stream, pool, limit, patience
	q.readable, q.writable = make(chan struct{}, 1), make(chan struct{}, 1)
	q.room.Init(pool)
}

// open begins a stream.
func (p *localPeer) open(ctx context.Context, request *Request) (ClientStream, error) {
	defer request.Release()
	if p.peer.pool.closing.Err() != nil {
		return nil, &CallError{Phase: PhaseAcquire, Err: ErrClosed}
	}
	if waiting := p.waiting.Add(1); waiting > int64(p.peer.config.Waiting) {
		p.waiting.Add(-1)
		return nil, &CallError{Phase: PhaseAcquire, Err: fmt.Errorf("%d calls already wait: %w", waiting-1, ErrExhausted)}
	}
	if err := p.server.local.enter(ctx, p.peer.pool.closing.Done()); err != nil {
		p.waiting.Add(-1)
		return nil, err
	}
	given := false
	defer func() {
		if !given {
			p.server.oneLess()
			p.waiting.Add(-1)
		}
	}()
	request.begun(observe.UseLocal) // may end the goroutine
	call, err := p.begin(ctx, request)
	if err != nil {
		return nil, err
	}
	s := &localStream{call: call, peer: p, streamHeader: newStreamHeader(), counted: true}
	s.up.init(s, p.server.buffers, p.server.config.Limits.Bytes, p.peer.config.SendTimeout)
	s.down.init(s, p.peer.pool.buffers, p.peer.config.Limits.Bytes, p.server.config.SendTimeout)
	call.DropBody()
	call.stream, call.outcome = s, nil // that is the request's, which others will use
	if call.invalid == nil && call.Target == nil {
		call.Target, call.invalid = p.server.config.unknownStream(call.Head.Service, call.Name, call.Payload)
	}
	if call.invalid == nil && call.Target != nil && p.server.config.Streams != nil && p.server.config.Streams(call.Target) {
		call.Inbound.Stream = (*localServerStream)(s)
	}
	client := (*localClientStream)(s)
	parent, deadline := streamSource(ctx)
	s.watch(context.AfterFunc(p.cut, func() {
		cause := errServerGone()
		if p.peer.pool.closing.Err() != nil {
			cause = ErrClosed
		}
		client.Cancel(cause)
	}))
	if parent.Done() != nil {
		s.watch(context.AfterFunc(parent, func() { client.Cancel(ctx.Err()) }))
	}
	if !deadline.IsZero() {
		s.watch(time.AfterFunc(time.Until(deadline), func() { client.Cancel(context.DeadlineExceeded) }).Stop)
	}
	given = true
	p.server.local.workers.Do(call)
	return client, nil
}

// watch keeps what ends the watching of something that ends the stream.
func (s *localStream) watch(stop func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch = append(s.unwatch, stop)
}

// wakeLocked lets all look who wait.
func (s *localStream) wakeLocked() {
	for _, q := range []*localQueue{&s.up, &s.down} {
		wake(q.readable)
		wake(q.writable)
	}
}

// endedLocked follows the end of the stream for the client.
func (s *localStream) endedLocked() {
	if s.counted {
		s.counted = false
		s.peer.waiting.Add(-1)
	}
	for _, stop := range s.unwatch {
		stop()
	}
	s.unwatch = nil
	s.headLocked()
	s.wakeLocked()
}

// finish is how the handler ends the call.
func (s *localStream) finish(status *Status, trailer ReplyHead) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.client != nil {
		return context.Canceled
	}
	var err error
	if s.down.stalled && status == nil && trailer.Business == nil {
		why := lacksMessage()
		status, err = &Status{Code: uint32(why.Code), Message: why.Detail}, why
	}
	s.over, s.status, s.trailer = true, status, trailer
	s.said = true // how it ended, which endedLocked tells
	s.down.closed = true
	s.endedLocked()
	return err
}

// fail is finish for a call that has failed.
func (s *localStream) fail(message string, head ReplyHead) error {
	code := head.Code
	if code == 0 {
		code = uint32(grpc.Internal)
	}
	status := &Status{Code: code, Message: message, Details: head.Details}
	return s.finish(status, ReplyHead{Executed: head.Executed, Metadata: head.Metadata, Trailing: head.Trailing})
}

// returned follows the handler.
func (s *localStream) returned() {
	_ = s.fail("the call ended without an answer", ReplyHead{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		s.server = errStreamGivenUp
	}
	s.up.dropLocked()
	s.wakeLocked()
}

// --- the queues ---

// dropLocked gives the memory back of what nobody will receive.
func (q *localQueue) dropLocked() {
	for _, message := range q.messages {
		q.pool.Put(message)
	}
	q.messages, q.bytes, q.closed = nil, 0, true
	q.keepLocked() // somebody may still use it, who should not
}

// send adds what is in room, when there is a place for it. broken says why it should not.
func (q *localQueue) send(last bool, broken func() error) error {
	message := q.pool.Get(q.room.Len())
	for _, piece := range q.room.Slices(nil) {
		message = append(message, piece...)
	}
	q.room.Release()
	var stalled <-chan time.Time
	var waited uint64
	for {
		q.stream.mu.Lock()
		err := broken()
		if err == nil && (q.closed || q.stalled) {
			err = io.EOF
		}
		if err != nil {
			q.pool.Put(message)
			q.stream.mu.Unlock()
			return err
		}
		if q.bytes < limits.StreamWindowBytes {
			q.messages = append(q.messages, message)
			q.bytes += len(message) + localMessageBytes
			q.closed = last
			wake(q.readable)
			q.stream.mu.Unlock()
			return nil
		}
		if stalled == nil && q.patience > 0 {
			timer := time.NewTimer(q.patience)
			defer timer.Stop()
			stalled, waited = timer.C, q.taken
		}
		q.stream.mu.Unlock()
		select {
		case <-q.writable:
		case <-stalled:
			q.stream.mu.Lock()
			still := q.taken == waited
			q.stalled = q.stalled || still
			q.stream.mu.Unlock()
			if stalled = nil; still {
				q.pool.Put(message)
				return stalledError(q.patience)
			}
		}
	}
}

// localMessageBytes is what a message counts besides its bytes, or empty ones would be free.
const localMessageBytes = 64

// receive returns the next message.
func (q *localQueue) receive(timeout time.Duration, broken func() error) ([]byte, error) {
	var late <-chan time.Time
	for {
		q.stream.mu.Lock()
		if q.received != nil && !q.kept {
			q.pool.Put(q.received)
		}
		q.received, q.kept = nil, false
		err := broken()
		if err == nil && len(q.messages) > 0 {
			message := q.messages[0]
			q.messages[0] = nil
			if q.messages = q.messages[1:]; len(q.messages) == 0 {
				q.messages = nil
			}
			q.bytes -= len(message) + localMessageBytes
			q.taken++
			wake(q.writable)
			q.received = message
			q.stream.mu.Unlock()
			if len(message) > q.limit {
				return nil, &grpc.Error{Code: grpc.ResourceExhausted, Detail: fmt.Sprintf("message of %d bytes (limit %d)", len(message), q.limit)}
			}
			return message[:len(message):len(message)], nil
		}
		if err == nil && q.closed {
			if err = io.EOF; q.stopped {
				err = ErrStopping
			}
		}
		q.stream.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if timeout > 0 && late == nil {
			if q.timer == nil {
				q.timer = time.NewTimer(timeout)
			} else {
				q.timer.Reset(timeout)
			}
			defer q.timer.Stop()
			late = q.timer.C
		}
		select {
		case <-q.readable:
		case <-late:
			return nil, os.ErrDeadlineExceeded
		}
	}
}

func (q *localQueue) keep() {
	q.stream.mu.Lock()
	defer q.stream.mu.Unlock()
	q.keepLocked()
}

func (q *localQueue) keepLocked() {
	if q.received != nil && !q.kept {
		q.pool.Forget(q.received)
		q.kept = true
	}
}

func (q *localQueue) newRoom() *linkbuf.Buffer {
	q.room.Release()
	return &q.room
}

// --- the client's side ---

// localClientStream is the stream as the caller has it.
type localClientStream localStream

var _ ClientStream = (*localClientStream)(nil)

func (s *localClientStream) broken() error { return s.client }

// Room implements Stream.
func (s *localClientStream) Room() *linkbuf.Buffer { return s.up.newRoom() }

// Send implements Stream.
func (s *localClientStream) Send(last bool) error {
	return s.up.send(last, func() error {
		if s.client == nil && s.over {
			return io.EOF
		}
		return s.client
	})
}

// CloseSend implements Stream.
func (s *localClientStream) CloseSend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up.closed = true
	wake(s.up.readable)
	return s.client
}

// Receive implements Stream.
func (s *localClientStream) Receive(timeout time.Duration) ([]byte, error) {
	return s.down.receive(timeout, s.broken)
}

// KeepBody implements Stream.
func (s *localClientStream) KeepBody() { s.down.keep() }

// Header implements ClientStream.
func (s *localClientStream) Header() ([]Pair, error) {
	return s.awaitHeader(&s.mu, &s.client, &s.client)
}

// End implements ClientStream.
func (s *localClientStream) End() (*Status, ReplyHead) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status, s.trailer
}

// Cancel implements ClientStream.
func (s *localClientStream) Cancel(cause error) {
	s.mu.Lock()
	if s.over || s.client != nil {
		s.mu.Unlock()
		return
	}
	s.client = &CallError{Phase: PhaseWait, Sent: true, Err: cause}
	ended := context.Canceled
	if errors.Is(cause, context.DeadlineExceeded) {
		ended = context.DeadlineExceeded
	}
	if s.server == nil {
		s.server = ended
	}
	(*localStream)(s).endedLocked()
	s.mu.Unlock()
	s.call.ctx.end(ended)
}

// Release implements ClientStream.
func (s *localClientStream) Release() {
	s.Cancel(context.Canceled)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		s.client = errStreamGivenUp
	}
	s.down.dropLocked()
	s.wakeBoth()
}

func (s *localClientStream) wakeBoth() { (*localStream)(s).wakeLocked() }

// --- the server's side ---

// localServerStream is the stream as the handler has it.
type localServerStream localStream

var _ ServerStream = (*localServerStream)(nil)

func (s *localServerStream) broken() error { return s.server }

// Room implements Stream.
func (s *localServerStream) Room() *linkbuf.Buffer { return s.down.newRoom() }

// Send implements Stream.
func (s *localServerStream) Send(bool) error {
	return s.down.send(false, func() error {
		if s.server == nil {
			s.sayLocked(nil)
		}
		return s.server
	})
}

// CloseSend implements Stream. The end of a handler is the end of what it sends.
func (s *localServerStream) CloseSend() error { return nil }

// Receive implements Stream.
func (s *localServerStream) Receive(timeout time.Duration) ([]byte, error) {
	return s.up.receive(timeout, s.broken)
}

// KeepBody implements Stream.
func (s *localServerStream) KeepBody() { s.up.keep() }

// SendHeader implements ServerStream.
func (s *localServerStream) SendHeader(metadata []Pair) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.server != nil:
		return s.server
	case s.there:
		return errHeaderSent
	}
	s.sayLocked(metadata)
	return nil
}

// EndReceiving implements ServerStream.
func (s *localServerStream) EndReceiving() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up.stopped = !s.up.closed
	s.up.closed = true
	wake(s.up.readable)
	wake(s.up.writable)
}
