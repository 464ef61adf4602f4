package eventloop

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// What outbound does for TLS: a record that was encrypted has to be sent, whoever
// wanted it.

// unflushed reports whether bytes that count as written wait all the same.
func (o *outbound) unflushed() bool { return o.secure && o.conn.tlsOf().unflushed() }

// passed counts the bytes of records that the socket has taken.
func (o *outbound) passed() int64 {
	if !o.secure {
		return 0
	}
	return o.conn.tlsOf().passed
}

// trySecure is tryWrite for TLS. If everything was encrypted, what the socket does not
// take of it is left to a goroutine, with the token: others must not write in between.
// Its caller has the token.
func (o *outbound) trySecure(buffers [][]byte) (int64, error) {
	t := o.conn.tlsOf()
	if o.broken != nil || !t.canTry() {
		defer o.unlock()
		return 0, o.broken
	}
	if !o.polled {
		o.arm(time.Now())
	}
	n, err := o.tried(t.write(buffers))
	switch {
	case err == nil && 0 < n && n < lengthOf(buffers):
		return n, nil
	case err != nil || !t.unflushed():
		o.unlock()
		return n, err
	}
	t.mu.Lock()
	t.leaving = true
	t.mu.Unlock()
	go o.flushRest(t)
	return n, nil
}

// flushRest sends what was encrypted, and gives the token back. Nobody waits for it:
// if it fails, the connection closes.
func (o *outbound) flushRest(t *tlsConn) {
	if o.rest == nil {
		o.rest = &rest{}
	}
	_, err := o.writePending()
	o.disarm()
	if o.polled {
		o.rest = nil
	}
	if err != nil {
		o.broken = err
	}
	t.mu.Lock()
	t.leaving = false
	closing := t.closing
	if closing == nil {
		// Before anybody sees that leaving is over: a Close that found the token taken
		// then would send no notice.
		o.unlock()
	}
	t.mu.Unlock()
	if closing != nil {
		closing()
		o.unlock()
	}
	switch {
	case err == nil:
	case errors.Is(err, ErrWriteStalled):
		o.conn.closeStalled(err)
	case o.conn.served != nil || errors.Is(err, os.ErrDeadlineExceeded):
		o.conn.CloseWithError(err)
	}
}

// closeSecure closes the socket of a TLS connection behind a notice for the peer,
// unless somebody is writing: then the peer takes nothing. An alert is sent behind what
// is written, because it says why. ended is not nil if that is not done yet.
func (o *outbound) closeSecure() (ended <-chan struct{}, err error) {
	t := o.conn.tlsOf()
	t.mu.Lock()
	if t.leaving {
		done := make(chan struct{})
		t.closing = func() {
			_ = t.farewell()
			close(done)
		}
		t.mu.Unlock()
		return done, nil
	}
	t.mu.Unlock()
	if !o.tryLock() {
		if t.failing.Load() {
			return o.farewellBehind(t), nil
		}
		return nil, t.Conn.Close()
	}
	if t.session != nil && !t.shaking && !t.canTry() {
		return o.farewellLater(t), nil
	}
	defer o.unlock()
	return nil, t.farewell()
}

// farewellLater is farewell for a connection where every write may wait. Its caller
// has the token.
func (o *outbound) farewellLater(t *tlsConn) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer o.unlock()
		_ = t.Conn.SetWriteDeadline(time.Now().Add(limits.LingerTimeout))
		// It fails behind another alert, which is to be sent as well.
		_ = t.session.CloseWrite()
		_ = t.flushAll()
		_ = t.farewell()
	}()
	return done
}

// farewellBehind is farewell when the writers of now are done, for whom close sets a
// deadline.
func (o *outbound) farewellBehind(t *tlsConn) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.lock()
		defer o.unlock()
		_ = t.farewell()
	}()
	return done
}

// drop gives the memory of a served connection back when it has ended. What others
// still write fails before it takes any.
func (o *outbound) drop() {
	if !o.secure {
		return
	}
	o.conn.endHandshake()
	o.lock()
	defer o.unlock()
	if o.broken == nil {
		o.broken = net.ErrClosed
	}
	o.conn.tlsOf().forget()
}

// answer sends what TLS has to say by itself, as far as that is possible without
// waiting for anything. Else it goes out with what is written next.
func (o *outbound) answer(t *tlsConn) {
	if !t.hasAnswers() || !t.canTry() || !o.tryLock() {
		return
	}
	defer o.unlock()
	if o.broken == nil {
		// An error shows in the next write, or read.
		_, _ = t.flush()
	}
}

// fillAny is fill for what is thrown away, also if that cannot be decrypted.
func (c *Conn) fillAny() (int, error) {
	t := c.tlsOf()
	if t == nil || !t.told {
		return c.fill()
	}
	room := c.reader.room(waitBytes, 1)
	n, err := t.Conn.Read(room)
	c.reader.end += n
	return n, err
}
