package simnet

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// errUnread is what CheckIdle returns for a connection with unread bytes.
var errUnread = errors.New("simnet: connection has unread bytes")

// piecesMax is how many pieces a split write arrives in at most.
const piecesMax = 4

// pair is a connection. It is in its link's list until both ends are closed.
type pair struct{ client, server *conn }

// conn is one end of a pair. Everything but its addresses is guarded by the
// link's lock.
type conn struct {
	link          *link
	pair          *pair
	local, remote address
	in, out       *stream

	closed bool
	// abrupt: Close resets the peer in any case.
	abrupt                      bool
	readDeadline, writeDeadline time.Time
	// resetAt is when this end learns of a reset; zero: never.
	resetAt time.Time
}

var _ interface {
	net.Conn
	CloseWrite() error
	CheckIdle() error
	SetLinger(seconds int) error
} = (*conn)(nil)

// stream is one direction.
type stream struct {
	link    *link
	random  *rand.Rand
	packets []packet // in order of arrival
	size    int      // bytes in packets
	last    time.Time
	// finished: the sending end sends nothing more.
	finished bool
	// deaf: the receiving end is closed.
	deaf    bool
	changed event
}

// packet is what arrives at one time. An empty one is the end of the stream.
type packet struct {
	data []byte
	at   time.Time
	// piece: a read ends here even if more has arrived.
	piece bool
}

func (l *link) newPair(number uint64) *pair {
	up := &stream{link: l, random: l.random(2 * number)}
	down := &stream{link: l, random: l.random(2*number + 1)}
	client := address(fmt.Sprintf("client-%d.%s", number, l.address))
	p := &pair{
		client: &conn{link: l, local: client, remote: l.address, in: down, out: up},
		server: &conn{link: l, local: l.address, remote: client, in: up, out: down},
	}
	p.client.pair, p.server.pair = p, p
	return p
}

// --- the sending side of a stream ---

func (s *stream) delay() time.Duration {
	config := s.link.network.config
	delay := config.Delay
	if config.DelayJitter > 0 {
		delay += time.Duration(s.random.Int64N(int64(config.DelayJitter) + 1))
	}
	return delay
}

// send puts a copy of p on its way, in pieces if chance wants it.
func (s *stream) send(p []byte, now time.Time) {
	p = slices.Clone(p)
	s.size += len(p)
	if s.random.IntN(100) < s.link.network.config.SplitPercent {
		for pieces := 2 + s.random.IntN(piecesMax-1); pieces > 1 && len(p) > 1; pieces-- {
			n := 1 + s.random.IntN(len(p)-1)
			s.deliver(packet{data: p[:n], piece: true}, now)
			p = p[n:]
		}
	}
	s.deliver(packet{data: p}, now)
}

func (s *stream) deliver(p packet, now time.Time) {
	p.at = now.Add(s.delay())
	if p.at.Before(s.last) {
		p.at = s.last
	}
	if l := s.link; (l.stalled || l.partitioned) && !p.at.After(l.frozenSince) {
		// Sent in the instant in which it all stopped, which can be long in a bubble, but
		// after that.
		p.at = l.frozenSince.Add(1)
	}
	s.last = p.at
	s.packets = append(s.packets, p)
	s.changed.happened()
}

// finish sends the end of the stream, once.
func (s *stream) finish(now time.Time) {
	if !s.finished {
		s.finished = true
		s.deliver(packet{}, now)
	}
}

// --- the receiving side of a stream ---

// receive copies to p what has arrived. It returns false if nothing has.
func (s *stream) receive(p []byte, now time.Time) (n int, err error, ok bool) {
	for n < len(p) && len(s.packets) > 0 && s.link.delivered(s.packets[0].at, now) {
		first := &s.packets[0]
		if len(first.data) == 0 {
			if n == 0 {
				return 0, io.EOF, true
			}
			break
		}
		copied := copy(p[n:], first.data)
		n += copied
		first.data = first.data[copied:]
		if len(first.data) > 0 {
			break
		}
		piece := first.piece
		*first = packet{} // the slice keeps its array, and that would keep the bytes
		s.packets = s.packets[1:]
		if piece {
			break
		}
	}
	if n > 0 {
		s.size -= n
		s.changed.happened()
	}
	return n, nil, n > 0
}

// nextArrival returns when a read should look again; zero if only a change can
// bring something.
func (s *stream) nextArrival() time.Time {
	if len(s.packets) == 0 {
		return time.Time{}
	}
	return s.link.visible(s.packets[0].at)
}

// --- net.Conn ---

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) Read(p []byte) (int, error) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	for {
		now := time.Now()
		if err := c.unusable(c.readDeadline, now); err != nil {
			return 0, c.failure("read", err)
		}
		if len(p) == 0 {
			return 0, nil
		}
		n, err, ok := c.in.receive(p, now)
		if ok {
			return n, err // io.EOF must not be wrapped
		}
		c.in.changed.wait(&c.link.mu, earliest(c.readDeadline, c.in.nextArrival(), c.link.visible(c.resetAt)), nil)
	}
}

func (c *conn) Write(p []byte) (written int, err error) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	for {
		now := time.Now()
		if err := c.unusable(c.writeDeadline, now); err != nil {
			return written, c.failure("write", err)
		}
		if c.out.finished {
			return written, c.failure("write", syscall.EPIPE)
		}
		if len(p) == 0 {
			return written, nil
		}
		if c.out.deaf {
			// TCP takes the bytes and learns a round trip later that nobody
			// is there.
			if c.resetAt.IsZero() {
				c.reset(now.Add(c.out.delay() + c.in.delay()))
			}
			return written + len(p), nil
		}
		if room := c.link.network.config.BufferBytes - c.out.size; room > 0 {
			n := min(room, len(p))
			c.out.send(p[:n], now)
			written += n
			p = p[n:]
			continue
		}
		c.out.changed.wait(&c.link.mu, earliest(c.writeDeadline, c.link.visible(c.resetAt)), nil)
	}
}

// unusable returns why nothing can be read or written now.
func (c *conn) unusable(deadline, now time.Time) error {
	switch {
	case c.closed:
		return net.ErrClosed
	case !deadline.IsZero() && !now.Before(deadline):
		return os.ErrDeadlineExceeded
	case !c.resetAt.IsZero() && c.link.delivered(c.resetAt, now):
		return syscall.ECONNRESET
	default:
		return nil
	}
}

func (c *conn) failure(operation string, err error) error {
	return &net.OpError{Op: operation, Net: networkName, Source: c.local, Addr: c.remote, Err: err}
}

// reset makes this end learn of a reset at a time.
func (c *conn) reset(at time.Time) {
	c.resetAt = at
	c.in.changed.happened()
	c.out.changed.happened()
}

func (c *conn) peer() *conn {
	if c == c.pair.client {
		return c.pair.server
	}
	return c.pair.client
}

// Close ends both directions. If anything is unread or still on its way here,
// the peer is reset.
func (c *conn) Close() error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return c.failure("close", net.ErrClosed)
	}
	now := time.Now()
	if c.in.size > 0 || c.abrupt {
		c.abort(now)
	} else {
		c.out.finish(now)
		c.discard()
	}
	return nil
}

// SetLinger is that of net.TCPConn: with 0, Close resets the peer, and what was sent and
// has not arrived is lost. Other numbers make no difference, because Close never waits.
func (c *conn) SetLinger(seconds int) error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return c.failure("set", net.ErrClosed)
	}
	c.abrupt = seconds == 0
	return nil
}

// abort closes this end and resets the peer.
func (c *conn) abort(now time.Time) {
	c.out.finished = true
	c.peer().reset(now.Add(c.out.delay()))
	c.discard()
}

// discard closes this end.
func (c *conn) discard() {
	c.closed = true
	c.in.deaf = true
	c.in.packets, c.in.size = nil, 0
	c.in.changed.happened()
	c.out.changed.happened()
	if c.peer().closed {
		delete(c.link.pairs, c.pair)
	}
}

// CloseWrite ends this end's sending; it can still receive.
func (c *conn) CloseWrite() error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return c.failure("close", net.ErrClosed)
	}
	c.out.finish(time.Now())
	return nil
}

// CheckIdle returns nil if the peer has not closed and nothing is unread.
func (c *conn) CheckIdle() error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	now := time.Now()
	if err := c.unusable(time.Time{}, now); err != nil {
		return c.failure("check", err)
	}
	if len(c.in.packets) == 0 || !c.link.delivered(c.in.packets[0].at, now) {
		return nil
	}
	if len(c.in.packets[0].data) == 0 {
		return io.EOF
	}
	return errUnread
}

func (c *conn) SetDeadline(t time.Time) error {
	return cmp.Or(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) SetReadDeadline(t time.Time) error {
	return c.setDeadline(&c.readDeadline, c.in, t)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(&c.writeDeadline, c.out, t)
}

func (c *conn) setDeadline(deadline *time.Time, s *stream, t time.Time) error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return c.failure("set", net.ErrClosed)
	}
	*deadline = t
	s.changed.happened()
	return nil
}

// earliest returns the first of some times, zero if all are.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}
