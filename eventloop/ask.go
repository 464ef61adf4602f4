package eventloop

// Ask writes buffers and, if the socket takes them all at once, waits for the first
// bytes that come back, which go to the Reader. It returns how many bytes were
// written: fewer than there are, without an error, if the rest would have to wait.
// Then nothing was waited for, and the caller continues with WriteBuffers and the
// Reader. So it does where this is not possible: it is for dialled TCP and Unix
// sockets on Linux, and elsewhere writes nothing.
//
// A connection on which something has arrived already, or whose peer has closed it,
// is not written to: the error is the one that CheckIdle returns. An error after all bytes were written is one of reading, as the Reader returns
// them; any other is one of writing, as from TryWriteBuffers. The read deadline
// counts for both: if it has passed before, nothing is written.
//
// CheckIdle, WriteBuffers and a call of the Reader that waits take a system call more,
// and more of package net around each. Ask keeps and changes neither the buffers nor the slice that lists them. The Reader
// must not be used at the same time.
func (c *Conn) Ask(buffers [][]byte) (int64, error) {
	if c.served != nil || !c.outbound.plain {
		return 0, nil
	}
	if c.reader.Len() > 0 {
		return 0, ErrUnread
	}
	c.outbound.lock()
	asker, ok := c.outbound.atOnce().(asker)
	if c.outbound.broken != nil || !ok {
		defer c.outbound.unlock()
		return 0, c.outbound.broken
	}
	c.reader.settle()
	written, read, err := asker.ask(buffers)
	c.countWritten(written)
	c.countRead(read)
	return written, err
}

// asker is a sink that can wait for answers.
type asker interface {
	// ask ends the caller's turn to write.
	ask(buffers [][]byte) (written int64, read int, err error)
}
