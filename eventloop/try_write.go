package eventloop

import "time"

// TryWriteBuffers writes as much of buffers as the socket takes at once, in
// order, and returns how many bytes that were: fewer than there are, without an
// error, if the rest would have to wait. The caller continues with
// WriteBuffers, and must not let others write in between. It may write nothing,
// because another write is in progress or because the connection cannot do
// this: it is for TCP and Unix sockets on Linux. After an error nothing more
// can be written. It keeps and changes neither the buffers nor the slice that
// lists them.
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
	defer o.unlock()
	if o.broken != nil {
		return 0, o.broken
	}
	if !o.plain {
		return 0, nil
	}
	if o.polled {
		return o.tried(o.sink.write(buffers))
	}
	sink := o.atOnce()
	// A deadline that passed long ago, when nothing was being written, would
	// fail this write.
	o.arm(time.Now())
	return o.tried(sink.write(buffers))
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
