package transport

import "time"

// Rest starts no more calls of the connection for a while, and reads from it only
// what there is room for: TCP tells its peer to slow down. A local caller has none,
// and pays for its refusals itself.
func (in *Inbound) Rest(d time.Duration) {
	c, ok := in.conn.(*serverConn)
	if !ok {
		return
	}
	c.mu.Lock()
	rests := c.rests || c.gone
	c.rests = true
	c.mu.Unlock()
	if rests {
		return
	}
	c.conn.Hold()
	time.AfterFunc(d, func() {
		c.mu.Lock()
		c.rests = false
		c.changedLocked()
		c.mu.Unlock()
		c.conn.Release()
	})
}
