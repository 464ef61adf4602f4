package eventloop

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn is a connection: a net.Conn with a Reader and a Writer that do not copy.
//
// Methods are safe for concurrent use unless they say otherwise; Close and
// CloseWithError may be called at any time.
type Conn struct {
	socket net.Conn
	config *Config
	// listener is nil for connections that were not accepted by one.
	listener *Listener
	served   *served // nil for dialled connections
	context  atomic.Pointer[any]

	reader Reader
	writer Writer
	// source waits for a socket without holding memory; nil if the socket
	// cannot do that.
	source   *rawSource
	outbound outbound
	idle     atomic.Pointer[idleCheck] // made when it is needed
	// older and younger are its neighbours in the list of the listener.
	older, younger *Conn

	// cause is what OnClose is told.
	cause error
	// deadlines are nil while none is set. While ownsDeadline is set, the socket's
	// for reading is another: the engine interrupts a read, or CheckIdle must not
	// wait.
	deadlines *deadlines
	// drained is closed with the socket, if that is later than closeSocket.
	drained <-chan struct{}

	// mu guards closed, cause, deadlines, ownsDeadline and the fields of served;
	// readMu keeps concurrent calls of Read apart while they take buffered bytes,
	// and is not held while one waits. Small fields stand together: this struct
	// just fits into a class of the allocator's.
	mu, readMu  sync.Mutex
	closeSocket sync.Once
	// stalled: the listener was told that the peer takes nothing.
	stalled atomic.Bool
	// inFlight is served.holds, for those that only look.
	inFlight atomic.Int32
	// used: bytes have been read or written, so a handshake, if there was one, is
	// over.
	used atomic.Bool
	// backlog: it goes on without a handler because more requests are there.
	backlog atomic.Bool
	// aborted: bytes that are not sent yet may be lost.
	aborted      atomic.Bool
	closed       bool
	ownsDeadline bool
}

var _ net.Conn = (*Conn)(nil)

func newConn(socket net.Conn, config *Config) *Conn {
	c := &Conn{socket: socket, config: config}
	c.reader.conn = c
	c.writer.conn = c
	c.outbound.init(c)
	return c
}

// NewConn returns a connection over one that the caller brings and that it must
// not use any more. Of config, only what concerns a single dialled connection
// counts.
func NewConn(conn net.Conn, config Config) *Conn {
	config = config.withDefaults()
	c := newConn(conn, &config)
	if config.OnOpen != nil {
		config.OnOpen(c)
	}
	return c
}

// Reader returns what reads the connection without copying. The methods of the
// Reader, and Read, must not be called at the same time.
func (c *Conn) Reader() *Reader { return &c.reader }

// Writer returns what collects bytes to be written at once.
func (c *Conn) Writer() *Writer { return &c.writer }

// Context returns what SetContext was last called with, or nil: also for a
// connection whose OnOpen has not run yet, which Listener.Connections may yield.
func (c *Conn) Context() any {
	if value := c.context.Load(); value != nil {
		return *value
	}
	return nil
}

// SetContext attaches a value of the user's. What is set in OnOpen is there in
// every call of the handler, OnEOF and OnClose.
func (c *Conn) SetContext(value any) { c.context.Store(&value) }

// Read reads bytes that have arrived, or waits for some. On a served connection
// only the handler may call it, and what it returned is consumed for good, also
// if the handler returns ErrMore.
func (c *Conn) Read(p []byte) (int, error) {
	c.readMu.Lock()
	n := c.reader.read(p)
	c.readMu.Unlock()
	if n > 0 {
		return n, nil
	}
	n, err := c.socket.Read(p)
	c.countRead(n)
	return n, err
}

// fill reads once into the Reader. It returns how many bytes arrived.
func (c *Conn) fill() (int, error) {
	var n int
	var err error
	switch {
	case c.source != nil && c.listener == nil:
		n, err = c.source.fillSpinning()
	case c.source != nil:
		n, err = c.source.fill()
	default:
		room := c.reader.room(waitBytes, 1)
		n, err = c.socket.Read(room)
		c.reader.end += n
		c.reader.filled = n == len(room)
	}
	c.countRead(n)
	return n, err
}

// SpinReads has who reads look again for up to Config.SpinTime before it waits, while that
// often brings something and does not take much of the processor. It is for dialled
// connections on which replies to many calls arrive, and must not be called while somebody
// reads. It does nothing for TLS and on other systems than Linux.
func (c *Conn) SpinReads() {
	if c.listener == nil && c.source == nil {
		c.source = newSpinningSource(c)
	}
}

func (c *Conn) countRead(n int) {
	c.markUsed(n > 0)
	if c.listener != nil {
		c.listener.stats.bytesRead.Add(uint64(n))
	}
}

// markUsed looks before it writes: other processors hold the line as well.
func (c *Conn) markUsed(carried bool) {
	if carried && !c.used.Load() {
		c.used.Store(true)
	}
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.socket.LocalAddr() }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.socket.RemoteAddr() }

// SyscallConn gives access to the descriptor, for options that have no method
// here. Who reads or writes through it gets in the way of the Reader and of
// other writers. The error is errors.ErrUnsupported if there is none.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	socket, ok := c.socket.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("eventloop: descriptor of %T: %w", c.socket, errors.ErrUnsupported)
	}
	return socket.SyscallConn()
}

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// usersDeadline returns the user's for reading. Conn.mu is held.
func (c *Conn) usersDeadline() time.Time {
	if c.deadlines == nil {
		return time.Time{}
	}
	return c.deadlines.read
}

// SetReadDeadline bounds reads, also those that wait already. The zero time ends
// it. A served connection that waits for bytes at that time, or later, is closed,
// held or not and without OnEOF, with an error for which errors.Is(err,
// os.ErrDeadlineExceeded) holds. The deadline is a time and not a duration: bytes
// that arrive do not move it. A handler that has got a message sets the one for
// the next, or none.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadlines != nil || !t.IsZero() {
		c.setDeadlinesLocked().read = t
	}
	if c.ownsDeadline {
		return nil
	}
	return c.socket.SetReadDeadline(t)
}

// SetWriteDeadline bounds writes, also those that wait already. The zero time
// ends it. It applies in addition to Config.WriteStallTimeout. What handlers have
// left in the Writer of a served connection and cannot leave in time closes it: the
// next reply would be taken for the one that is lost. The error is net.ErrClosed
// when the connection is closed.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.outbound.setDeadline(t, false)
}

// Close closes the connection at once. Bytes that were written are still sent,
// those that wait in the Writer are not, and writes in progress fail. Bytes that
// were copied for another writer are waited for in the background, for at most
// 500 ms (LingerTimeout). If received bytes are unread, TCP resets the
// connection, and the peer may lose what it has not read; a handler whose last
// words must arrive returns an error instead. Further calls do nothing.
//
// It does not wait for a handler that runs: OnClose is called after that.
func (c *Conn) Close() error { return c.CloseWithError(nil) }

// Abort is Close, but the peer is told at once that nobody reads any more: TCP
// resets the connection, and bytes that were not delivered yet are lost. What
// else has a method SetLinger, as net.TCPConn has it, does the same.
func (c *Conn) Abort() error {
	c.aborted.Store(true)
	if socket, ok := c.socket.(interface{ SetLinger(seconds int) error }); ok {
		// An error means that the socket is closed already.
		_ = socket.SetLinger(0)
	}
	return c.Close()
}

// CloseWithError is Close, with the error that OnClose is told. The first reason
// counts: an error that the handler has returned, or an earlier call, stays.
func (c *Conn) CloseWithError(err error) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	if c.served == nil || !c.served.failed { // else the handler's error stays
		c.cause = err
	}
	if c.served != nil {
		c.served.ending.Store(true)
		c.engine().poke(c)
	}
	c.mu.Unlock()
	closeErr := c.shutSocket()
	if c.served == nil && c.config.OnClose != nil {
		c.config.OnClose(c, err)
	}
	return closeErr
}

// CloseGently closes a served connection as an error of its handler does: the peer is told
// that nothing follows, and what it still sends is thrown away until it has closed too, or for
// 500 ms (LingerTimeout) or 256 KiB (LingerBytes). Close would reset the connection for that,
// and the peer could lose what it has not read. err is what OnClose is told, nil if all is
// well. It does not wait. On a dialled connection it is CloseWithError.
func (c *Conn) CloseGently(err error) {
	if c.served == nil {
		c.CloseWithError(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.failLocked(err)
		c.engine().poke(c)
	}
}

// shutSocket closes the socket unless that has happened.
func (c *Conn) shutSocket() (err error) {
	c.closeSocket.Do(func() {
		c.outbound.ending.Store(true)
		if c.aborted.Load() {
			err = c.socket.Close()
			return
		}
		c.drained, err = c.outbound.close()
	})
	return err
}

// CloseWrite tells the peer that nothing more will be sent, after what is being
// written now, for which it waits. Later writes fail; what is in the Writer is
// not flushed before. Reading goes on, and the connection closes as usual when
// the peer stops sending. The error is errors.ErrUnsupported if the connection
// has no such thing.
func (c *Conn) CloseWrite() error {
	socket, ok := c.socket.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("eventloop: close write on %T: %w", c.socket, errors.ErrUnsupported)
	}
	c.outbound.lock()
	defer c.outbound.unlock()
	c.outbound.ending.Store(true)
	return socket.CloseWrite()
}
