package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/detect"
	"github.com/fulmar-rpc/fulmar/internal/workers"
	"github.com/fulmar-rpc/fulmar/observe"
)

// LocalAddress is what both sides of a local call see of each other.
const LocalAddress = "local"

// localCalls is how a server takes calls of its own process. They behave like
// calls on connections of their own: the message is the same, byte for byte, and is
// checked as one from elsewhere is; but nobody writes, reads or copies it, unless it is
// in pieces.
//
//	unheard -- Listening --> waiting -- Serve --> open -- Shutdown, Close --> closed
//
// Calls are refused while unheard and closed, and wait while waiting, as on a socket.
type localCalls struct {
	server  *Server
	state   atomic.Uint32
	workers *workers.Pool[*localCall]
	// decided is closed when the state is open or closed.
	decided chan struct{}
	once    sync.Once
	// ended is done when the server has ended. That is before the handlers learn of it,
	// whose answers would come by chance.
	ended context.Context
	end   context.CancelFunc
}

const (
	localUnheard uint32 = iota
	localWaiting
	localOpen
	localClosed
)

func (l *localCalls) init(server *Server) {
	l.server, l.decided = server, make(chan struct{})
	l.ended, l.end = context.WithCancel(context.Background())
	// A handler may hang, its caller may not wait for it longer than he wants to: so it
	// never has the caller's goroutine.
	l.workers = workers.New(func(call *localCall) { server.run(&call.ctx, &call.Inbound) })
}

// Listening lets local calls wait for Serve, as connections do that nobody has
// accepted yet.
func (s *Server) Listening() { s.local.state.CompareAndSwap(localUnheard, localWaiting) }

func (l *localCalls) open() {
	if l.state.CompareAndSwap(localUnheard, localOpen) || l.state.CompareAndSwap(localWaiting, localOpen) {
		l.once.Do(func() { close(l.decided) })
	}
}

func (l *localCalls) close() {
	l.state.Store(localClosed)
	l.once.Do(func() { close(l.decided) })
}

// enter counts a call as running, or says why it cannot run. Counted first, so that
// a server that stops either sees the call or is seen by it.
func (l *localCalls) enter(ctx context.Context, ended <-chan struct{}) error {
	for {
		l.server.running.Add(1)
		state := l.state.Load()
		if state == localOpen {
			return nil
		}
		l.server.oneLess()
		if state != localWaiting {
			return &CallError{Phase: PhaseConnect, Refused: true, Err: refused()}
		}
		select {
		case <-l.decided:
		case <-ctx.Done():
			return &CallError{Phase: PhaseConnect, Err: fmt.Errorf("waiting for the server to serve: %w", ctx.Err())}
		case <-ended:
			return &CallError{Phase: PhaseConnect, Err: ErrClosed}
		}
	}
}

// refused is the error that a socket gives when nobody listens.
func refused() error {
	return &net.OpError{Op: "dial", Net: LocalAddress, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// errServerGone is the error of calls whose server has ended, as of those whose
// connection it has closed.
func errServerGone() error { return readError(io.EOF) }

// --- the client's side ---

// localPeer makes the calls of a Peer to a server of this process.
type localPeer struct {
	peer   *Peer
	server *Server
	// waiting counts calls that wait for their replies.
	waiting atomic.Int64
	// cut is done when the server has ended, or the client is closed.
	cut context.Context
	// ends are those of its calls.
	ends *Ends
}

// localRequest is the part of a Request that local calls need.
type localRequest struct {
	// timer is for the deadline. It is made once for many calls.
	timer *time.Timer
	names callerNames
}

func newLocalPeer(peer *Peer, server *Server) *localPeer {
	cut, end := context.WithCancel(server.local.ended)
	context.AfterFunc(peer.pool.closing, end)
	return &localPeer{peer: peer, server: server, cut: cut, ends: &Ends{Peer: LocalAddress, Local: LocalAddress}}
}

// What a call has come to; who changes that from localPending decides how it ends.
const (
	localPending uint32 = iota
	localAnswered
	localGivenUp
)

// localCall is a call that a server of this process serves.
type localCall struct {
	Inbound
	ctx   localContext
	peer  *Peer
	state atomic.Uint32
	// outcome is told when the call has been answered: then reply is the answer, unless
	// err says why there is none.
	outcome chan muxOutcome
	reply   *outgoing
	// request is what Body lies in: the caller's message, or whole if that was in
	// pieces. Both are nil when it was dropped.
	request *outgoing
	whole   []byte
	// stream is what a call of a streaming method, or one as if of it, has come with.
	stream *localStream
}

var _ answerer = (*localCall)(nil)

// call makes one call, as Peer.Do does.
func (p *localPeer) call(ctx context.Context, request *Request) (*Response, error) {
	if p.peer.pool.closing.Err() != nil {
		return nil, &CallError{Phase: PhaseAcquire, Err: ErrClosed}
	}
	if waiting := p.waiting.Add(1); waiting > int64(p.peer.config.Waiting) {
		p.waiting.Add(-1)
		return nil, &CallError{Phase: PhaseAcquire, Err: fmt.Errorf("%d calls already wait: %w", waiting-1, ErrExhausted)}
	}
	defer p.waiting.Add(-1)
	if err := p.server.local.enter(ctx, p.peer.pool.closing.Done()); err != nil {
		return nil, err
	}
	given := false
	defer func() {
		if !given {
			p.server.oneLess()
		}
	}()
	request.begun(observe.UseLocal) // may end the goroutine
	call, err := p.begin(ctx, request)
	if err != nil {
		return nil, err
	}
	call.Head.Timeout = min(call.Head.Timeout, limits.PeerTimeout)
	if request.teller != nil {
		request.written.Store(int64(request.elapsed()))
	}
	given = true
	p.server.local.workers.Do(call)
	returned := false
	defer func() {
		if !returned {
			call.abandon(request)
		}
	}()
	response, err := p.finish(ctx, call, request)
	returned = true
	return response, err
}

// finish is what the caller does while the server has the call, and afterwards.
func (p *localPeer) finish(ctx context.Context, call *localCall, request *Request) (*Response, error) {
	request.tellWritten()
	if request.oneway {
		request.response = Response{}
		return &request.response, nil
	}
	return p.await(ctx, call, request)
}

// abandon ends a call whose goroutine an observer has ended, so that no other call gets
// its outcome.
func (c *localCall) abandon(request *Request) {
	switch {
	case request.oneway:
	case request.call.taken:
		request.response.Release()
	case c.state.CompareAndSwap(localPending, localGivenUp):
		c.ctx.end(context.Canceled)
	default:
		if outcome := <-c.outcome; outcome.err == nil {
			c.reply.release()
		}
	}
}

// begin makes what the server gets, of the bytes that it would get.
func (p *localPeer) begin(ctx context.Context, request *Request) (*localCall, error) {
	const sequence = 1
	now := time.Now()
	request.hurry(ctx, now)
	request.address(sequence, wire.FlagOutOfOrder, false)
	call := &localCall{peer: p.peer, outcome: request.call.outcome}
	request.call.taken = false
	if request.oneway {
		// Nobody waits; an answer to it would be another call's.
		call.state.Store(localGivenUp)
	}
	bytes, whole := contiguous(&request.outgoing, p.server.buffers)
	if call.whole = whole; whole == nil {
		request.owners.Add(1)
		call.request = &request.outgoing
	}
	decoder := detect.NewDecoder(p.server.config.Allowed, p.server.config.Limits)
	message, used, _, err := decoder.Next(bytes)
	if err != nil || used == 0 {
		// A socket would be closed without an answer.
		p.server.log.Warn("local call refused: wrong bytes", "reason", fmt.Sprint(err))
		call.dropRequest()
		return nil, &CallError{Phase: PhaseWait, Sent: true, Err: errServerGone()}
	}
	call.Inbound = Inbound{
		Protocol:       message.Protocol,
		Payload:        message.Payload,
		Type:           message.Type,
		Sequence:       message.Sequence,
		Ends:           p.ends,
		Arrived:        now,
		server:         p.server,
		conn:           call,
		local:          call,
		headerSequence: message.HeaderSequence,
		invalid:        message.Invalid,
		fulmar:         true,
	}
	if p.server.config.Observed {
		call.stamps = &Stamps{FirstByte: now, Complete: now, BytesIn: len(bytes)}
	}
	call.ctx.server = p.server.ctx
	head := request.local.names.read(message.Info)
	p.server.admit(&call.Inbound, &message, &head)
	if call.invalid == nil {
		call.Body = message.Body
	}
	return call, nil
}

// contiguous returns the bytes of a finished message in one piece: where they are, or,
// if they are in several, in whole, which is of the pool.
func contiguous(o *outgoing, buffers *linkbuf.Pool) (bytes, whole []byte) {
	var some [8][]byte
	pieces := o.slices(some[:0])
	if len(pieces) == 1 {
		return pieces[0], nil
	}
	whole = buffers.Get(o.length())
	for _, piece := range pieces {
		whole = append(whole, piece...)
	}
	return whole, whole
}

// await waits for the answer of a call until ctx ends.
func (p *localPeer) await(ctx context.Context, call *localCall, request *Request) (*Response, error) {
	parent, deadline := source(ctx)
	var late <-chan time.Time
	if !deadline.IsZero() {
		late = request.local.start(time.Until(deadline))
		defer request.local.timer.Stop()
	}
	var cause error
	select {
	case outcome := <-call.outcome:
		return p.end(call, request, outcome)
	case <-late:
		cause = context.DeadlineExceeded
	case <-parent.Done():
		cause = ctx.Err()
	case <-p.cut.Done():
		cause = errServerGone()
		if p.peer.pool.closing.Err() != nil {
			cause = ErrClosed
		}
	}
	if !call.state.CompareAndSwap(localPending, localGivenUp) {
		// It was answered first.
		return p.end(call, request, <-call.outcome)
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		call.ctx.end(context.DeadlineExceeded)
	} else {
		call.ctx.end(context.Canceled)
	}
	return nil, &CallError{Phase: PhaseWait, Sent: true, Err: cause}
}

// start makes the timer fire after d, unless it is stopped before.
func (r *localRequest) start(d time.Duration) <-chan time.Time {
	if r.timer == nil {
		r.timer = time.NewTimer(d)
	} else {
		r.timer.Reset(d)
	}
	return r.timer.C
}

// end returns what a call ended in.
func (p *localPeer) end(call *localCall, request *Request, outcome muxOutcome) (*Response, error) {
	request.call.taken = true
	if outcome.err != nil {
		return nil, outcome.err
	}
	response := &request.response
	*response = Response{local: localReply{outgoing: call.reply, buffers: p.peer.pool.buffers}}
	bytes, whole := contiguous(call.reply, p.peer.pool.buffers)
	if whole != nil {
		call.reply.release()
		response.local.outgoing, response.local.whole = nil, whole
	}
	decoder := detect.NewDecoder(replies(p.peer.config.Protocol), p.peer.config.Limits)
	message, _, _, err := decoder.Next(bytes)
	request.heard(len(bytes), 0)
	request.tellReply()
	if err == nil {
		response.Type, response.Payload, response.Body = message.Type, message.Payload, message.Body
		response.Head, _, _, err = readReplyHead(message.Info)
		if wrong := checkReply(request.name, request.sequence, request.payload, &message); wrong != nil {
			err = wrong
		}
	}
	if err != nil {
		response.Release()
		return nil, &CallError{Phase: PhaseReply, Sent: true, Err: err}
	}
	return response, nil
}

// localReply is what the body of a Response lies in: the server's message, or whole if
// that was in pieces.
type localReply struct {
	outgoing *outgoing
	whole    []byte
	buffers  *linkbuf.Pool
}

func (r *localReply) used() bool { return r.outgoing != nil || r.whole != nil }

func (r *localReply) drop() {
	if r.whole != nil {
		r.buffers.Put(r.whole)
	} else {
		r.outgoing.release()
	}
	*r = localReply{}
}

// keep returns a body that lies in it, for somebody who keeps that.
func (r *localReply) keep(body []byte) []byte {
	if r.whole == nil {
		return slices.Clone(body)
	}
	r.buffers.Forget(r.whole)
	*r = localReply{}
	return body
}

// --- the server's side ---

// dropRequest lets go of the memory that Body lies in.
func (c *localCall) dropRequest() {
	if c.whole != nil {
		c.server.buffers.Put(c.whole)
	}
	if c.request != nil {
		c.request.release()
	}
	c.whole, c.request = nil, nil
}

// keepRequest reports whether Body is in memory that its owner may keep, and no more
// of the pool.
func (c *localCall) keepRequest() bool {
	if c.whole == nil {
		return false
	}
	c.server.buffers.Forget(c.whole)
	c.whole = nil
	return true
}

// send gives the answer to the caller. It refers to the caller's Request no more
// afterwards, who may have given it back by then.
func (c *localCall) send(_ *Inbound, o *outgoing) error {
	if c.server.local.ended.Err() != nil {
		return net.ErrClosed
	}
	if !c.state.CompareAndSwap(localPending, localAnswered) {
		if c.state.Load() == localGivenUp {
			c.peer.late.Add(1)
		}
		return nil
	}
	if c.stamps != nil {
		c.stamps.BytesOut = o.length()
	}
	o.owners.Add(1)
	c.reply = o
	c.outcome <- muxOutcome{}
	return nil
}

// done ends the call's context. A caller who would wait for ever learns that there is
// no answer, as if his connection had been closed.
func (c *localCall) done(*Inbound) {
	if c.stream != nil {
		c.stream.returned()
		c.ctx.end(context.Canceled)
		return
	}
	c.ctx.end(context.Canceled)
	if c.state.CompareAndSwap(localPending, localAnswered) {
		c.outcome <- muxOutcome{err: &CallError{Phase: PhaseWait, Sent: true, Err: errServerGone()}}
	}
}

func (c *localCall) closing() bool { return false }
