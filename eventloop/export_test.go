package eventloop

import "time"

// TreatAsPlain makes a connection write as sockets of the system are written to.
func (c *Conn) TreatAsPlain() { c.outbound.plain = true }

// DropSpare leaves memory that no connection uses to the garbage collector.
func (l *Listener) DropSpare() { l.pool.DropSpare() }

// HoldWriting is a writer that writes nothing, until the returned function is called.
func (c *Conn) HoldWriting() (end func()) {
	c.outbound.lock()
	return c.outbound.unlock
}

// Ending reports whether nothing more is left to others to write.
func (c *Conn) Ending() bool { return c.outbound.ending.Load() }

// InterruptWrite makes a write that waits look whether the peer takes anything,
// as it does when its deadline passes.
func (c *Conn) InterruptWrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	deadlines := c.setDeadlinesLocked()
	deadlines.armed = time.Unix(1, 0)
	_ = c.socket.SetWriteDeadline(deadlines.armed)
}
