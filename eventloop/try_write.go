package eventloop

import (
	"errors"
	"os"
	"time"
)

// TryWriteBuffers writes as much of buffers as the socket takes at once, in
// order, and returns how many bytes that were: fewer than there are, without an
// error, if the rest would have to wait. If it wrote a part, WriteRest must follow,
// also when the connection has closed: until then other writers wait. It may write
// nothing, because another write is in progress or because the connection cannot do
// this: it is for TCP and Unix sockets on Linux. After an error nothing more can be
// written. It keeps and changes neither the buffers nor the slice that lists them.
func (c *Conn) TryWriteBuffers(buffers [][]byte) (int64, error) {
	n, err := c.outbound.tryWrite(buffers)
	c.countWritten(n)
	if err != nil && c.served != nil {
		c.CloseWithError(err)
	}
	return n, err
}

func (o *outbound) tryWrite(buffers [][]byte) (int64, error) {
	if !o.tryLock() {
		return 0, nil
	}
	if o.secure {
		return o.trySecure(buffers)
	}
	if o.broken != nil || !o.plain {
		defer o.unlock()
		return 0, o.broken
	}
	sink := o.sink
	if !o.polled {
		sink = o.atOnce()
		// A deadline that passed long ago, when nothing was being written, would
		// fail this write.
		o.arm(time.Now())
	}
	n, err := o.tried(sink.write(buffers))
	if err != nil || n == 0 || n == lengthOf(buffers) {
		o.unlock()
	}
	return n, err
}

// WriteRest goes on, on any goroutine, where TryWriteBuffers has stopped that wrote so
// many bytes, fewer than there are. It writes the rest as WriteBuffers does; if some of
// it is lost a served connection closes.
func (c *Conn) WriteRest(rest [][]byte, written int64) (int64, error) {
	if written == 0 {
		return c.WriteBuffers(rest)
	}
	n, err := c.outbound.writeInTurn(rest, true, written)
	c.countWritten(n)
	if errors.Is(err, ErrWriteStalled) {
		c.closeStalled(err)
	} else if err != nil && (c.served != nil || errors.Is(err, os.ErrDeadlineExceeded)) {
		c.CloseWithError(err)
	}
	return n, err
}

// atOnce returns the sink of a socket of package net, for who has the turn.
func (o *outbound) atOnce() sink {
	if o.sink == nil {
		o.sink = newRawSink(o.conn.socket, o.conn)
	}
	return o.sink
}

// tried notes a write that has left a gap.
func (o *outbound) tried(n int64, err error) (int64, error) {
	if err != nil && gap(n, err) {
		o.broken = err
	}
	return n, err
}

// sink is what tryWrite writes to.
type sink interface {
	write(buffers [][]byte) (int64, error)
}

// noSink takes nothing, so that the caller goes on with a write that waits.
type noSink struct{}

func (noSink) write([][]byte) (int64, error) { return 0, nil }
