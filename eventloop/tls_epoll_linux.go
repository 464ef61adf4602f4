package eventloop

import (
	"io"
	"time"

	"golang.org/x/sys/unix"
)

var _ watchedSocket = (*socket)(nil)

// awaitRead waits until a read may return something.
func (s *socket) awaitRead() error { return s.failure("read", s.wait(&s.in)) }

// forgetDeadlines gives back what past deadlines have taken.
func (s *socket) forgetDeadlines() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range []*direction{&s.in, &s.out} {
		if d.expiry != nil && d.expiry.due.IsZero() {
			d.expiry = nil
		}
	}
}

// readFailure is what a read of the socket means to the connection: nothing to read
// is no failure.
func (s *socket) readFailure(err error) error {
	if err == nil || err == unix.EAGAIN || err == (wouldBlock{}) {
		return nil
	}
	if err == io.EOF {
		return err
	}
	return s.failure("read", err)
}

// readSecure reads what is there of a TLS connection.
func (e *epollEngine) readSecure(c *Conn, t *tlsConn, room []byte) (n int, drained bool, err error) {
	n, drained, err = t.tryRead(room)
	c.outbound.answer(t)
	return n, drained, err
}

// handshake goes on with a connection whose first bytes are there, on a goroutine that
// may wait. It reports whether that owns the connection still: it does not when too
// many others make their handshakes.
func (e *epollEngine) handshake(c *Conn) (owned bool) {
	t := c.tlsOf()
	if !t.started.admitted {
		plaintext, err := t.sniff()
		switch {
		case err == unix.EAGAIN:
			c.mu.Lock()
			c.served.drained = true
			c.mu.Unlock()
			return true
		case err != nil:
			e.shaken(c, c.sniffFailed(err))
			return true
		case plaintext:
			c.speaksPlainly(t)
			e.shaken(c, nil)
			return true
		}
		t.started.grant = func() { e.workers.Do(epollJob{conn: c, action: actionHandshake}) }
		if !c.listener.handshakes.enter(t.started, c.config.MaxHandshakes) {
			return false
		}
	}
	err := error(&HandshakeError{Err: errEndedGoroutine})
	defer func() { e.shaken(c, err) }()
	err = c.shake()
	return true
}

// shaken records how the handshake ended.
func (e *epollEngine) shaken(c *Conn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served.drained = false
	c.handshakeEnded(0, err)
}

// interruptHandshake makes one that goes on fail, because nobody waits for it when the
// listener is closing. It is called with Conn.mu held.
func (e *epollEngine) interruptHandshake(c *Conn) {
	if !c.listener.draining.Load() || !c.served.owned {
		return
	}
	if t := c.tlsOf(); t != nil && t.started != nil {
		_ = t.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// secureGoesOn reports whether TLS may hold something to read that is not in the socket
// any more.
func (c *Conn) secureGoesOn(turnOver bool) bool {
	t := c.tlsOf()
	return t != nil && t.session != nil && (t.more || turnOver && !c.served.drained)
}
