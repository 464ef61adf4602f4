package eventloop

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// stallSteps divides the stall timeout. A deadline is set at most once in two
// steps for each connection, since setting one costs as much as writing to a
// pipe; in return a stall is noticed up to two steps, a quarter, late.
const stallSteps = 8

// pieceBytes bounds what is written at once to a connection that is no plain
// socket, and what is copied together for it: a TLS record. Written one by one,
// a header and its message would become two records.
const pieceBytes = 16 << 10

// scratchKept is how long a list of pieces a connection keeps, 3 KiB.
const scratchKept = 128

// outbound is the writing side of a connection.
type outbound struct {
	conn *Conn
	// polled: sink is a polledSocket, whose writes need no deadlines.
	polled bool
	// plain: it is a socket of the system. That writes many pieces with one
	// call, and a write whose deadline has passed can go on where it stopped.
	// With others, such as TLS, a write that timed out is the last one.
	plain bool
	// secure: it is TLS, of this package.
	secure bool
	// ending: nothing is left to others any more, because what is written now may
	// fail with the socket: each writer has to see for itself.
	ending atomic.Bool
	// sink writes without waiting. For sockets of package net the first such
	// write makes it.
	sink sink
	// locked holds a token while someone writes. It is a channel because in a
	// bubble of testing/synctest time must go on while others wait for a writer
	// that waits for its peer; it stands still while one waits for a Mutex. Where the
	// socket is one of the system, for which time stands still there as well, it is nil
	// and mutex in its place: 112 bytes less for each.
	locked chan struct{}
	mutex  sync.Mutex

	// rest is what is left of a write that could not be done at once, for who
	// has the token. Polled sockets have none between such writes.
	rest *rest
	// combined takes what others write meanwhile. Many connections never need it:
	// nil until goroutines write at the same time.
	combined atomic.Pointer[combined]
	// broken is why nothing more can be written, set when a piece was written
	// in part.
	broken error
}

// rest is what is still to be written, pending, a view into scratch.
type rest struct {
	pending net.Buffers
	scratch [][]byte
}

// deadlines of a connection: the user's, and the one by which the writer next
// looks whether the peer takes anything.
type deadlines struct{ read, write, armed time.Time }

// polledSocket is a socket that the engine watches.
type polledSocket interface {
	sink
	// writeBuffers writes until the deadline, and removes from buffers what it
	// has written.
	writeBuffers(buffers *[][]byte) (int64, error)
	// waits is told that the goroutine is going to wait for other writers.
	waits()
}

func (o *outbound) init(conn *Conn) {
	o.conn = conn
	switch socket := conn.socket.(type) {
	case *tlsConn:
		o.plain, o.secure = true, true
		if socket.watched != nil {
			o.polled, o.sink = true, socket
		}
	case *net.TCPConn, *net.UnixConn:
		o.plain = true
	case polledSocket:
		o.plain, o.polled, o.sink = true, true, socket
	}
	if !o.polled && (o.secure || !o.plain) { // TLS may be over anything
		o.locked = make(chan struct{}, 1)
	}
}

// setDeadlinesLocked returns the deadlines, for who is going to set one.
func (c *Conn) setDeadlinesLocked() *deadlines {
	if c.deadlines == nil {
		c.deadlines = &deadlines{}
	}
	return c.deadlines
}

func (o *outbound) lock() {
	switch {
	case o.locked != nil:
		o.locked <- struct{}{}
	case o.mutex.TryLock():
	case o.polled:
		// Who has the lock may wait for an event that this goroutine would poll.
		o.sink.(polledSocket).waits()
		o.mutex.Lock()
	default:
		o.mutex.Lock()
	}
}

func (o *outbound) tryLock() bool {
	if o.locked == nil {
		return o.mutex.TryLock()
	}
	select {
	case o.locked <- struct{}{}:
		return true
	default:
		return false
	}
}

func (o *outbound) unlock() {
	if o.locked == nil {
		o.mutex.Unlock()
		return
	}
	<-o.locked
}

// Write writes p, and waits for the peer to take it as WriteBuffers does.
// Concurrent calls of Write and WriteBuffers do not mix their bytes. Unlike
// WriteBuffers it does not close the connection when it has written a part of p,
// unless the peer has stalled: the caller may go on with the rest.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.outbound.write([][]byte{p}, false)
	c.countWritten(n)
	if errors.Is(err, ErrWriteStalled) {
		// Nobody else would notice it.
		c.closeStalled(err)
	}
	return int(n), err
}

// WriteBuffers writes all buffers, in order and as one piece: the bytes of
// other writers come before or after. It waits until the system has taken them,
// or copies them for a writer that is there, as the package documentation says.
// Waiting ends with the deadline, with ErrWriteStalled when the peer takes
// nothing for Config.WriteStallTimeout or Config.UserTimeout, and when the
// connection closes.
//
// It returns how many bytes were written; if some were but not all, or the
// socket failed, it closes the connection, because a stream with a gap is of no
// use. After a deadline that passed before the first byte the connection stays
// usable. So does a dialled one whose peer has closed, for reading the peer's
// last words. It keeps and changes neither the buffers nor the slice that lists
// them: the same buffers can be written to many connections.
func (c *Conn) WriteBuffers(buffers [][]byte) (int64, error) {
	n, err := c.outbound.write(buffers, true)
	c.countWritten(n)
	if errors.Is(err, ErrWriteStalled) {
		c.closeStalled(err)
	} else if err != nil && gap(n, err) && (c.served != nil || errors.Is(err, os.ErrDeadlineExceeded)) {
		c.CloseWithError(err)
	}
	return n, err
}

// closeStalled closes a connection whose peer takes nothing. Writers that wait
// behind the one that noticed it get the same error; it is one stall.
func (c *Conn) closeStalled(err error) {
	if c.listener != nil && c.stalled.CompareAndSwap(false, true) {
		c.listener.stalled(c, err)
	}
	c.CloseWithError(err)
}

// gap tells whether a write of a whole piece that failed leaves the stream
// unusable. It does not if the user's deadline passed before the first byte.
func gap(written int64, err error) bool {
	return written > 0 || !errors.Is(err, os.ErrDeadlineExceeded)
}

func (c *Conn) countWritten(n int64) {
	c.markUsed(n > 0)
	if c.listener != nil {
		c.listener.stats.bytesWritten.Add(uint64(n))
	}
}

// write writes buffers. If whole is set, a gap makes all later writes fail.
func (o *outbound) write(buffers [][]byte, whole bool) (int64, error) {
	if combined := o.combined.Load(); combined != nil {
		if n, ok := combined.leave(buffers); ok {
			return n, nil
		}
	} else if o.polled && o.conn.inFlight.Load() > 1 {
		o.combined.CompareAndSwap(nil, newCombined(o.conn))
	}
	o.lock()
	return o.writeInTurn(buffers, whole, 0)
}

// writeInTurn is write for who has the turn, which ends with it; before is how many
// bytes of the piece have been written already.
func (o *outbound) writeInTurn(buffers [][]byte, whole bool, before int64) (int64, error) {
	if o.broken != nil {
		defer o.unlock()
		return 0, o.broken
	}
	if o.combined.Load() != nil {
		return o.writeCombined(buffers, whole, before)
	}
	defer o.unlock()
	n, err := o.writeAll(buffers)
	if err != nil && whole && gap(before+n, err) {
		o.broken = err
	}
	return n, err
}

// writeAll writes buffers, which may be scratch. A polled socket takes them at
// once as a rule: then nothing is copied, and nobody looks at a clock.
func (o *outbound) writeAll(buffers [][]byte) (n int64, err error) {
	if o.polled {
		n, err = o.sink.write(buffers)
		if err != nil || n == lengthOf(buffers) && !o.unflushed() {
			return n, err
		}
	}
	if o.rest == nil {
		o.rest = &rest{}
	}
	o.rest.scratch = append(o.rest.scratch[:0], buffers...)
	if !o.plain {
		o.rest.gather()
	}
	o.rest.pending = linkbuf.Advance(o.rest.scratch, n)
	later, err := o.writePending()
	o.disarm()
	o.rest.pending = nil
	clear(o.rest.scratch)
	if cap(o.rest.scratch) > scratchKept || o.polled {
		o.rest = nil
	}
	return n + later, err
}

func lengthOf(buffers [][]byte) (n int64) {
	for _, b := range buffers {
		n += int64(len(b))
	}
	return n
}

// gather copies short pieces together.
func (r *rest) gather() {
	length := lengthOf(r.scratch)
	if len(r.scratch) < 2 || length > pieceBytes {
		return
	}
	joined := make([]byte, 0, length)
	for _, b := range r.scratch {
		joined = append(joined, b...)
	}
	clear(r.scratch)
	r.scratch = append(r.scratch[:0], joined)
}

// writePending writes until everything is written, the user's deadline passes,
// the peer takes nothing for the stall timeout, or less than WriteBytesPerSecond
// beyond it. That the system gives the peer up while it waits is a stall too.
func (o *outbound) writePending() (written int64, err error) {
	stall := o.conn.config.WriteStallTimeout // 0: off
	var progress time.Time                   // since when the peer has taken nothing
	first := time.Now()
	tooSlow := func(now time.Time) bool {
		return stall > 0 && now.Sub(first) > stall+time.Duration(written)*(time.Second/limits.WriteBytesPerSecond)
	}
	stalled := func() error {
		return fmt.Errorf("eventloop: %w (limit %v, %d bytes written)", ErrWriteStalled, stall, written)
	}
	// The sink of a polled socket has been full before.
	for began, waited := first, o.polled; ; began, waited = time.Now(), true {
		if progress.IsZero() || !o.plain {
			progress = began
		}
		o.arm(began)
		passed := o.passed()
		n, err := o.writeSome()
		written += n
		moved := n > 0 || o.passed() > passed
		if err == nil {
			if o.plain || len(o.rest.pending) == 0 {
				return written, nil
			}
			if tooSlow(time.Now()) {
				return written, stalled()
			}
			continue
		}
		now := time.Now()
		switch {
		case errors.Is(err, syscall.ETIMEDOUT) && (waited || moved || now.Sub(began) >= writeStallTimeoutMin): // else it was refused at once
			return written, fmt.Errorf("eventloop: %w (given up by the system, %d bytes written): %w", ErrWriteStalled, written, err)
		case stall == 0, !errors.Is(err, os.ErrDeadlineExceeded), o.userDeadlinePassed(now):
			return written, err
		case o.plain && moved && !tooSlow(now):
			progress = now
		case now.Sub(progress) >= stall, tooSlow(now):
			return written, stalled()
		case !o.plain:
			// It was the user's deadline, and has been moved since.
			return written, err
		}
	}
}

// writeSome writes all of a plain socket's pending bytes, or one piece to
// another connection, unless a deadline passes.
func (o *outbound) writeSome() (int64, error) {
	if o.polled {
		return o.sink.(polledSocket).writeBuffers((*[][]byte)(&o.rest.pending))
	}
	if o.secure {
		return o.conn.tlsOf().writeBuffers((*[][]byte)(&o.rest.pending))
	}
	if o.plain && len(o.rest.pending) != 1 {
		return o.rest.pending.WriteTo(o.conn.socket)
	}
	if len(o.rest.pending) == 0 {
		return 0, nil
	}
	piece := o.rest.pending[0]
	if !o.plain {
		piece = piece[:min(len(piece), pieceBytes)]
	}
	n, err := o.conn.socket.Write(piece)
	if n < len(o.rest.pending[0]) {
		o.rest.pending[0] = o.rest.pending[0][n:]
	} else {
		o.rest.pending = o.rest.pending[1:]
	}
	return int64(n), err
}

// arm sets a deadline for what is written now, unless the one that is set will
// do. A plain socket's write only has to return once in a while, to see whether
// the peer takes anything; elsewhere a piece has all of the stall timeout.
func (o *outbound) arm(now time.Time) {
	stall := o.conn.config.WriteStallTimeout
	if stall == 0 {
		return
	}
	step := stall / stallSteps
	earliest := now.Add(step)
	if !o.plain {
		earliest = now.Add(stall)
	}
	o.conn.mu.Lock()
	defer o.conn.mu.Unlock()
	deadlines := o.conn.setDeadlinesLocked()
	if deadlines.armed.Before(earliest) {
		deadlines.armed = earliest.Add(step)
		// An error means that the socket is closed; the write will say so.
		_ = o.conn.socket.SetWriteDeadline(deadlines.nextWrite())
	}
}

// disarm leaves a polled socket the user's deadline only, as writeAtOnce needs
// it.
func (o *outbound) disarm() {
	if !o.polled {
		return
	}
	o.conn.mu.Lock()
	defer o.conn.mu.Unlock()
	d := o.conn.deadlines
	if d == nil || d.armed.IsZero() {
		return
	}
	d.armed = time.Time{}
	if *d == (deadlines{}) {
		o.conn.deadlines = nil
	}
	// An error means that the socket is closed, as the next write will say.
	_ = o.conn.socket.SetWriteDeadline(d.write)
}

// setDeadline sets the user's. When the connection is closed the last one stays:
// what others have left must be written by then.
func (o *outbound) setDeadline(t time.Time, closing bool) error {
	o.conn.mu.Lock()
	defer o.conn.mu.Unlock()
	if o.conn.closed && !closing {
		return net.ErrClosed
	}
	deadlines := o.conn.setDeadlinesLocked()
	deadlines.write = t
	return o.conn.socket.SetWriteDeadline(deadlines.nextWrite())
}

// nextWrite returns the deadline for writing that comes first, zero if there is
// none.
func (d *deadlines) nextWrite() time.Time {
	if d.write.IsZero() || !d.armed.IsZero() && d.armed.Before(d.write) {
		return d.armed
	}
	return d.write
}

func (o *outbound) userDeadlinePassed(now time.Time) bool {
	o.conn.mu.Lock()
	defer o.conn.mu.Unlock()
	deadlines := o.conn.deadlines
	return deadlines != nil && !deadlines.write.IsZero() && !now.Before(deadlines.write)
}
