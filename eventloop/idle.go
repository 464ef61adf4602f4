package eventloop

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// unwrapMax bounds how many connections that wrap each other are looked through:
// TLS over a proxy's header over a socket are three.
const unwrapMax = 8

// CheckIdle returns nil if nothing is unread and the peer has not closed the
// connection, as far as can be seen without waiting. The error is ErrUnread,
// io.EOF, or what a read would return. It is for dialled connections that waited
// in a pool: nobody may read from one meanwhile, and slices that its Reader
// returned before become invalid.
//
// What can be seen depends on the net.Conn:
//
//   - One that has a method CheckIdle() error is asked.
//   - Of TCP and Unix sockets, and whatever else is a syscall.Conn, the socket is
//     looked at, on Linux, macOS and the BSDs.
//   - Of one that wraps another and has a method NetConn, as tls.Conn has it, the
//     other is looked at in these ways. Whatever has arrived there is unread,
//     also if it carries no data, such as a session ticket of TLS that comes
//     after the reply to a call.
//   - A TLS connection may hold bytes that have left the socket already. Those
//     count as unread once a whole record is there. What the handshake brought
//     along is not noticed before the first Read or Write.
//   - Others are taken to be idle.
//
// It allocates nothing, except twice for TLS.
func (c *Conn) CheckIdle() error {
	if c.reader.Len() > 0 {
		return ErrUnread
	}
	// The handler of a served connection holds slices that looking further
	// could overwrite.
	return c.checkSocketIdle(c.served == nil)
}

// idleChecker is a net.Conn that can tell by itself.
type idleChecker interface{ CheckIdle() error }

// secureConn is a *tls.Conn, or one that can stand in for it. Package crypto/tls
// itself would make every program larger that does without TLS.
type secureConn interface {
	NetConn() net.Conn
	HandshakeContext(ctx context.Context) error
}

// idleCheck is how a connection is looked at. It is made at the first look, and
// kept because pools look before every call.
type idleCheck struct {
	// mu lets one look at a time.
	mu sync.Mutex
	// Where the connection's bytes come from. If both are nil, nothing is known.
	checker idleChecker
	peek    *socketPeek
	// secure: the connection is TLS, above something that obeys deadlines.
	secure bool
	first  [1]byte
}

func newIdleCheck(conn net.Conn) *idleCheck {
	check := &idleCheck{}
	_, secure := conn.(secureConn)
	if t, ok := conn.(*tlsConn); ok {
		if t.watched != nil {
			check.checker = t
			return check
		}
		conn, secure = t.Conn, t.session != nil
	}
	for range unwrapMax {
		if checker, ok := conn.(idleChecker); ok {
			check.checker = checker
			check.secure = secure
			break
		}
		if socket, ok := conn.(syscall.Conn); ok {
			switch conn.(type) {
			case *net.TCPConn, *net.UnixConn:
				check.secure = secure
			}
			check.peek = newSocketPeek(socket)
			break
		}
		wrapper, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = wrapper.NetConn()
	}
	return check
}

// checkSocketIdle is CheckIdle without what the Reader holds. If deep is set, it
// may take a byte out of a TLS connection and put it into the Reader. Conn.mu
// must not be held: TLS may write an answer to what it finds.
func (c *Conn) checkSocketIdle(deep bool) error {
	check := c.idle.Load()
	if check == nil {
		c.idle.CompareAndSwap(nil, newIdleCheck(c.socket))
		check = c.idle.Load()
	}
	check.mu.Lock()
	defer check.mu.Unlock()
	if deep && check.secure && c.used.Load() {
		if err := c.probe(check.first[:]); err != nil {
			return err
		}
	}
	switch {
	case check.checker != nil:
		return check.checker.CheckIdle()
	case check.peek != nil:
		return check.peek.look()
	default:
		return nil
	}
}

// probe reads a byte, into first, that the connection holds above its socket. With
// a deadline in the past the read can neither wait nor take anything from the
// socket, and for TLS such a failure is not the end. The handshake must be over,
// because for that it is.
func (c *Conn) probe(first []byte) error {
	c.mu.Lock()
	c.ownsDeadline = true
	err := c.socket.SetReadDeadline(time.Unix(1, 0))
	c.mu.Unlock()
	n := 0
	if err == nil {
		n, err = c.socket.Read(first)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ownsDeadline = false
	if restored := c.socket.SetReadDeadline(c.usersDeadline()); err == nil {
		err = restored
	}
	switch {
	case n > 0:
		c.countRead(n)
		c.reader.room(waitBytes, 1)[0] = first[0]
		c.reader.end++
		if c.served != nil {
			c.served.fresh = true
		}
		return ErrUnread
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	default:
		return err
	}
}
