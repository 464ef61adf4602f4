package transport

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/observe"
)

// Teller is told how a request gets on, on the goroutine of Peer.Do. An event
// without a time is of now.
type Teller interface{ Tell(event observe.Event) }

// observed is what a message keeps for who observes its call. Where nobody does,
// teller is nil, and nothing else is used.
type observed struct {
	teller Teller
	start  time.Time
	// written is when the network had accepted the message, counted from start; 0
	// before. A sender sets it, on any goroutine.
	written atomic.Int64
	// reported: the teller knows of that.
	reported bool
	// first and complete are when the reply came, size is its length. Whoever reads
	// the connection sets them before it hands the reply over.
	first, complete time.Duration
	size            int
}

// Observe makes teller hear of the request, with times counted from start. It must
// come before Do.
func (r *Request) Observe(teller Teller, start time.Time) { r.teller, r.start = teller, start }

// elapsed returns how long after start it is, but not 0.
func (o *observed) elapsed() time.Duration { return max(time.Since(o.start), 1) }

// begun starts an attempt over a connection.
func (r *Request) begun(use observe.Use) {
	if r.teller == nil {
		return
	}
	r.reported, r.first, r.complete, r.size = false, 0, 0, 0
	r.written.Store(0)
	r.teller.Tell(observe.Event{Phase: observe.PhaseConnected, Connection: use})
}

// tellWritten tells that the request is written, if it is and that was not told.
func (r *Request) tellWritten() {
	if r.teller == nil || r.reported {
		return
	}
	if at := r.written.Load(); at != 0 {
		r.reported = true
		r.teller.Tell(observe.Event{Phase: observe.PhaseWritten, At: time.Duration(at), Bytes: r.length()})
	}
}

// tellReply tells of a reply. It shows that the request was written, though the
// sender may not have come to say so.
func (r *Request) tellReply() {
	if r.teller == nil {
		return
	}
	if r.complete == 0 {
		r.tellWritten()
		return
	}
	if r.written.Load() == 0 {
		r.written.CompareAndSwap(0, int64(r.first))
	}
	r.tellWritten()
	// A reply can be read before its sender has looked at the clock.
	r.first = max(r.first, time.Duration(r.written.Load()))
	r.complete = max(r.complete, r.first)
	r.teller.Tell(observe.Event{Phase: observe.PhaseFirstByte, At: r.first})
	r.teller.Tell(observe.Event{Phase: observe.PhaseReceived, At: r.complete, Bytes: r.size})
}

// tellRetried tells that Do tries again.
func (r *Request) tellRetried(err error) {
	if r.teller != nil {
		r.teller.Tell(observe.Event{Phase: observe.PhaseRetried, Err: err})
	}
}

// heard notes when a reply of size bytes came whose first byte was read before so
// much time.
func (o *observed) heard(size int, before time.Duration) {
	if o.teller == nil {
		return
	}
	o.complete = o.elapsed()
	o.first, o.size = max(o.complete-max(before, 0), 1), size
}

// forget lets go of everything, for a message that is used again.
func (o *observed) forget() {
	if o.teller == nil {
		return
	}
	o.teller, o.reported = nil, false
	o.written.Store(0)
}

// use returns how a call came to a connection of its own.
func (c *ClientConn) use() observe.Use {
	switch {
	case !c.reused:
		return observe.UseDialled
	case c.waited:
		return observe.UseQueued
	}
	return observe.UsePooled
}

// tellDialled tells of a connection that was opened, or could not be, at the end of d.
func (p *Pool) tellDialled(d *dialling, err error) {
	switch tell := p.config.Connection; {
	case tell == nil:
	case err == nil:
		tell(observe.Connection{Kind: observe.ConnectionOpened, Took: time.Since(d.began)})
	case !errors.Is(err, ErrClosed):
		tell(observe.Connection{Kind: observe.ConnectionFailed, Took: time.Since(d.began), Err: err})
	}
}

// tellClosed tells that a connection is gone, and why if that is not as it should
// be.
func (p *Pool) tellClosed(conn *ClientConn, why error) {
	if p.config.Connection == nil {
		return
	}
	if errors.Is(why, errLeaving) || errors.Is(why, ErrClosed) {
		why = nil
	}
	p.config.Connection(observe.Connection{Kind: observe.ConnectionClosed, Took: time.Since(conn.opened), Err: why})
}

// Stamps are when a message came, for a server that is observed.
type Stamps struct {
	// FirstByte and Complete are when its first and its last byte were read.
	FirstByte time.Time
	Complete  time.Time
	// BytesIn is its length, BytesOut that of its answer.
	BytesIn  int
	BytesOut int
}

// Stamps returns when the message came; nil if the server is not observed.
func (in *Inbound) Stamps() *Stamps { return in.stamps }

// newInbound returns an empty message; began is when its first byte was read, arrived
// when the last one was. began may be zero for the same.
func (c *serverConn) newInbound(began, arrived time.Time, size int) *Inbound {
	if !c.server.config.Observed {
		call, ok := c.server.inbounds.Get().(*Inbound)
		if !ok {
			call = new(Inbound)
		}
		call.Arrived = arrived
		return call
	}
	both := &struct {
		Inbound
		Stamps
	}{}
	if began.IsZero() || began.After(arrived) {
		// A poller's clock may be some calls behind this side's.
		began = arrived
	}
	both.Arrived = arrived
	both.Stamps = Stamps{FirstByte: began, Complete: arrived, BytesIn: size}
	both.stamps = &both.Stamps
	return &both.Inbound
}

// tell tells of the connection, if somebody wants to know.
func (c *serverConn) tell(kind observe.ConnectionKind, took time.Duration, err error) {
	if tell := c.server.config.Connection; tell != nil {
		tell(observe.Connection{Kind: kind, Side: observe.Server, Peer: c.Peer, Took: took, Err: err})
	}
}
