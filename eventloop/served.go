package eventloop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Replies leave while there are more requests, so that the peer has something to
// do meanwhile: the first firstFlushCalls and firstFlushBytes if at least earlyUnreadBytes
// of requests are left, then flushBytes at a time. With the first ones at once instead of after
// 16 KiB, shared-128-64 of suite net went from 0.97 to 1.17 million calls a second
// and pipeline-128-16x16 from 1.44 to 1.57, shared-128-512 from 5.4 to 4.7 (9
// interleaved runs each); all of them after 4 KiB cost that one two thirds. A system call
// for the first reply of 1 KiB alone took mux-1k-c100 of suite rpc 5 % of the server's time.
const (
	firstFlushCalls  = 8
	firstFlushBytes  = 1 << 10
	earlyUnreadBytes = 2 << 10
	flushBytes       = 16 << 10
)

// Handler is called when a connection has bytes to read, on a goroutine of the
// engine and one call at a time for each connection. It should consume what it
// can from conn.Reader; one message a call is enough.
//
// After nil, it is called again at once if it consumed something and bytes are
// left, else when more have arrived. ErrMore, or an error that wraps it, means
// that the unread bytes are not a whole message yet: reading goes back to where
// the call began, or to the last Reader.Commit, and it is called again when
// more have arrived. What else the call has done, such as writing, stays done.
// ErrMore while Config.ReadBufferBytes are unread closes the connection with an
// error, because nothing more will be read: a handler that wants to tell the
// peer looks at Reader.Len before that. After Conn.Wake it is called even if
// nothing arrived, and maybe nothing is unread.
//
// A handler whose requests need not wait for each other lets go of the connection
// when it has read one: see Conn.Detach.
//
// Any other error closes the connection, held or not, after what was written to
// conn.Writer has been flushed and the peer had a moment to read it, as the
// package documentation says; Config.OnClose gets the error as it is. A panic is
// such an error too, without what this call has written; it is logged and does
// not reach other connections.
//
// What the handler leaves in conn.Writer is flushed when the handler has
// returned and is not called again at once, or the Writer holds 16 KiB; the first
// replies to much that arrived together are flushed early. The flush waits for the
// peer as a write does, and the connection is not read meanwhile.
type Handler func(conn *Conn) error

// served is the state of a served connection that decides what to do next,
// guarded by Conn.mu. No step waits for another: each event is a flag that stays
// until next has seen it, so none can be lost between a look and a wait.
//
//	          fill              handle
//	waiting -------> arrived ----------> waiting, again, or failed
//	   ^                                    |        |
//	   |  Wake, ResumeReading, Release      |        v
//	   +------------------------------------+     linger, finish
type served struct {
	std  *stdState
	loop loopState
	// handshake is that of TLS; nil when it is over, or there is none.
	handshake func(context.Context) error
	readErr   error // other than EOF
	// readAt is when the last bytes were read.
	readAt time.Time

	// Small fields stand together: this struct just fits into a class of the
	// allocator's.
	holds int32
	// left counts calls that the connection has gone on without.
	left int32
	// turn numbers who owns the connection, in steps of two. It is odd while its
	// handler has let go of it and nobody has taken it: see Detach.
	turn atomic.Uint32
	// beside: it runs on stdEngine, although the listener's is another.
	beside bool
	// handling: the handler is called, by who owns the connection.
	handling bool

	fresh bool // bytes arrived that the handler has not been shown
	again bool // the handler left bytes and wants another call at once
	wake  bool // Wake was called
	// released: the last hold ended after the peer stopped sending.
	released bool
	// Those of epollEngine. owned: a goroutine runs the connection. drained: the
	// last read took everything there was.
	owned, drained bool
	// flushed: the first replies to the requests that are there have left. calls is how
	// many calls of the handler they are of, firstFlushCalls at most.
	flushed bool
	calls   uint8
	// handles counts handlers, for the sample that is measured.
	handles uint8

	// looked: look was called for this decision of next, and saw idle.
	looked, idle bool

	paused  bool
	eof     bool
	eofTold bool
	failed  bool // the handler wants the connection closed
	// poked: something has happened that the poller does not report any more, since
	// the connection last waited. Of epollEngine.
	poked atomic.Bool
	// ending: failed, or Conn.closed, for who has not locked Conn.mu.
	ending atomic.Bool
}

// engine returns what runs the connection.
func (c *Conn) engine() engine {
	if c.served.beside {
		return c.listener.std
	}
	return c.listener.engine
}

// Hold says that work is in progress for a served connection: it stays open
// when the peer stops sending, and Listener.Shutdown waits for it. Each Hold
// needs one Release, also when the connection has closed meanwhile.
//
// It takes effect for sure in the handler, in OnOpen and OnEOF, and while another
// hold lasts. Any other goroutine may come too late for a connection that is
// closing; then its writes fail. The number of holds is also how many writers
// are to be expected: with two or more, their writes leave together. On a dialled
// connection it does nothing.
func (c *Conn) Hold() {
	if c.served == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holdLocked()
}

func (c *Conn) holdLocked() {
	c.served.holds++
	c.inFlight.Store(c.served.holds)
}

// Release ends a Hold. If the peer has stopped sending and it was the last one,
// the handler is called once more if bytes are unread, and then the connection
// closes. If Listener.Shutdown was called, a connection without unread bytes
// closes too.
func (c *Conn) Release() {
	s := c.served
	if s == nil {
		return
	}
	if !c.release() {
		assert.That(false, "eventloop: Release without Hold")
		// Not with mu locked: what a log does takes as long as it likes.
		c.listener.log.Warn("eventloop: Release without Hold", "peer", text(c.RemoteAddr()))
	}
}

// release reports whether there was a hold to release.
func (c *Conn) release() bool {
	s := c.served
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.holds == 0 {
		return false // below 0 the connection could never close
	}
	s.holds--
	c.inFlight.Store(s.holds)
	if s.holds == 0 {
		s.released = s.eof
		// Without this, Shutdown would wait until the peer sends something.
		if s.eof || c.listener.draining.Load() {
			c.engine().poke(c)
		}
	}
	return true
}

// Wake makes the engine call the handler once even if no bytes arrive, as soon
// as it is not running; after a Wake from inside of the handler that is when it
// has returned. Several calls may become one. A connection that is closing calls
// it no more. On a dialled connection Wake does nothing.
func (c *Conn) Wake() {
	c.change(func(s *served) { s.wake = true })
}

// PauseReading stops reading from a served connection, at the latest when a
// read that is in progress has returned. What has arrived is kept, and handled
// as usual. Nobody notices then that the peer closes the connection, and the
// read deadline has no effect. A peer that goes on sending may take a pause of
// more than its 20 s (UserTimeout) for the end of this process. On a dialled
// connection it does nothing.
func (c *Conn) PauseReading() {
	c.change(func(s *served) { s.paused = true })
}

// ResumeReading ends PauseReading, however often that was called.
func (c *Conn) ResumeReading() {
	c.change(func(s *served) { s.paused = false })
}

func (c *Conn) change(set func(*served)) {
	if c.served == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	set(c.served)
	c.engine().poke(c)
}

// --- what engines call ---

// next returns what to do now. It is called with c.mu held, by the goroutine
// that runs the connection.
func (c *Conn) next() action {
	s := c.served
	unread := c.reader.Len()
	full := int(s.left) >= c.config.MaxDetached
	quiet := unread == 0 && s.holds == 0 && c.listener.draining.Load()
	// A handler would not know the peer, and wait for the handshake to write.
	wake := s.wake && (s.handshake == nil || c.tlsOf() == nil)
	// What was seen is old when something else happens first.
	looked, idle := s.looked, s.idle
	s.looked, s.idle = false, false
	switch {
	case c.closed:
		return actionFinish
	case s.failed:
		return actionLinger
	case full && (s.fresh || s.again || wake || s.released && unread > 0):
		return actionWait
	case s.fresh, s.again, wake, s.released && unread > 0:
		s.fresh, s.again, s.wake, s.released = false, false, false, false
		return actionHandle
	case s.readErr != nil:
		c.closed, c.cause = true, s.readErr
		return actionFinish
	case s.eof && !s.eofTold:
		s.eofTold = true
		return actionEOF
	case s.eof && s.holds == 0:
		c.closed = true
		if unread > 0 {
			c.cause = io.ErrUnexpectedEOF
		}
		return actionFinish
	case quiet && !looked && s.handshake == nil:
		return actionLook
	case quiet && (idle || s.handshake != nil): // nothing was asked before the end of a handshake
		c.closed = true
		return actionFinish
	case s.eof, s.paused, full, unread >= c.config.ReadBufferBytes:
		return actionWait
	case s.handshake != nil:
		return actionHandshake
	default:
		return actionRead
	}
}

// arrived records what fill returned. It is called with c.mu held.
func (s *served) arrived(n int, err error) {
	s.fresh = s.fresh || n > 0
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		s.eof = true
	default:
		s.readErr = err
	}
}

// shake makes the handshake.
func (c *Conn) shake() (err error) {
	// It calls functions of the user's tls.Config.
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("eventloop: handshake panicked: %v", value)
			c.listener.panicked(c, err)
		}
	}()
	// A context that can end would cost a goroutine. Whoever thinks that it takes
	// too long closes the connection.
	err = c.served.handshake(context.Background())
	if err == nil && c.tlsOf() == nil {
		c.markUsed(true)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.served.handshake = nil
	}
	return err
}

// look finds out whether bytes have arrived that are not read yet.
func (c *Conn) look() {
	err := c.checkSocketIdle(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served.looked, c.served.idle = true, err == nil
}

// open calls OnOpen.
func (c *Conn) open() {
	if c.config.OnOpen != nil {
		_ = c.isolate("OnOpen", func(c *Conn) error { c.config.OnOpen(c); return nil })
	}
}

// tellEOF calls OnEOF.
func (c *Conn) tellEOF() {
	if c.config.OnEOF != nil {
		_ = c.isolate("OnEOF", func(c *Conn) error { c.config.OnEOF(c); return nil })
	}
}

// handle calls the handler and does what it asks for. It reports whether the
// handler is to be called again at once, and whether its caller owns the connection
// still.
func (c *Conn) handle() (again, owned bool) { return c.handleWith(c.listener.handler) }

// handleAgain makes next call the handler.
func (c *Conn) handleAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served.again = true
}

func (c *Conn) handleWith(handler Handler) (again, owned bool) {
	r := &c.reader
	began := r.start
	r.Commit()
	r.done, r.progress = false, false
	turn := c.served.turn.Load()
	c.served.handling = true
	err := c.isolate("handler", handler)
	if !c.reattach(turn) {
		c.leave(turn, err)
		return false, false
	}
	c.served.handling = false
	more := errors.Is(err, ErrMore)
	if more {
		r.start = r.mark
	}
	again = err == nil && r.start != began && r.Len() > 0
	if c.served.calls < firstFlushCalls {
		c.served.calls++
	}
	if !again || c.flushesEarly() {
		c.flushReplies()
		c.served.flushed = again
	}
	if !again {
		c.served.calls = 0
		r.settle()
	}
	if more && r.Len() >= c.config.ReadBufferBytes {
		err, more = fmt.Errorf("eventloop: %w (limit %d)", errTooLong, c.config.ReadBufferBytes), false
	}
	if err != nil && !more {
		c.fail(err)
	}
	return again, true
}

// flushReplies writes what handlers have left. If that fails, also for a deadline
// that has passed before the first byte, replies are lost, and what would follow
// would be taken for them: then it closes the connection.
func (c *Conn) flushReplies() {
	if err := c.writer.Flush(); err != nil {
		_ = c.CloseWithError(err)
	}
}

// flushesEarly reports whether replies leave although the handler is called again
// at once.
func (c *Conn) flushesEarly() bool {
	n := c.writer.Len()
	return n >= flushBytes || n >= firstFlushBytes && c.served.calls == firstFlushCalls && !c.served.flushed && c.reader.Len() >= earlyUnreadBytes
}

// fail makes the engine close the connection, after a moment for the peer to
// read what was sent to it.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(err)
}

func (c *Conn) failLocked(err error) {
	if !c.served.failed && !c.closed {
		c.cause = err
	}
	c.served.failed = true
	c.served.ending.Store(true)
}

// linger tells the peer that nothing more will come, and reads until it has
// closed its side or LingerTimeout or LingerBytes are used up. Closing with
// unread bytes would reset the connection, and the peer could lose the reply
// that says what it did wrong.
func (c *Conn) linger() {
	// The call that failed may be one that was left, after others have replied.
	c.flushReplies()
	if c.CloseWrite() != nil {
		return
	}
	c.mu.Lock()
	c.ownsDeadline = true
	_ = c.socket.SetReadDeadline(time.Now().Add(limits.LingerTimeout))
	c.mu.Unlock()
	for thrown := 0; thrown < limits.LingerBytes; {
		c.reader.release()
		n, err := c.fillAny()
		if err != nil {
			return
		}
		thrown += n
	}
}

// finish closes the socket, calls OnClose and gives all memory back. It is the
// last thing that happens to a connection.
func (c *Conn) finish() {
	// Deferred, because OnClose may end the goroutine.
	defer c.listener.remove(c)
	defer c.reader.release()
	defer c.writer.drop()
	_ = c.shutSocket()
	if c.drained != nil {
		c.waits()
		<-c.drained
	}
	c.outbound.drop()
	c.mu.Lock()
	c.closed = true
	cause := c.cause
	c.mu.Unlock()
	if c.config.OnClose != nil {
		_ = c.isolate("OnClose", func(c *Conn) error { c.config.OnClose(c, cause); return nil })
	}
}

// isolate calls what a user wrote. If it panics or ends its goroutine, only this
// connection fails, and only what this call has written is dropped: the Writer
// may hold replies of earlier calls.
func (c *Conn) isolate(what string, call func(*Conn) error) (err error) {
	c.writer.begin()
	turn := c.served.turn.Load()
	returned := false
	defer func() {
		if returned {
			return
		}
		// Nothing to recover means runtime.Goexit: the goroutine ends, and
		// nobody gets err, but the connection has failed all the same.
		value := recover()
		if value == nil {
			c.goOn() // if the call has let go
			err = fmt.Errorf("eventloop: %s ended its goroutine", what)
		} else {
			err = fmt.Errorf("eventloop: %s panicked: %v", what, value)
		}
		c.listener.panicked(c, err)
		if !c.reattach(turn) {
			if value == nil {
				c.leave(turn, nil) // whoever called isolate gets no chance to
			}
			return
		}
		c.served.handling = false
		c.writer.rollBack()
		c.flushReplies()
		c.fail(err)
	}()
	err = call(c)
	returned = true
	return err
}
