package eventloop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// HandshakeError says why a connection of Config.TLS could not begin.
type HandshakeError struct {
	// First is what a peer began with that does not speak TLS, the few bytes that
	// were read of it; nil in all other cases.
	First []byte
	Err   error
}

func (e *HandshakeError) Error() string { return "eventloop: TLS handshake: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *HandshakeError) Unwrap() error { return e.Err }

// ErrPlaintext is the cause of a HandshakeError when the peer does not speak TLS.
var ErrPlaintext = errors.New("the peer does not speak TLS")

var (
	errHandshakeCrowd = fmt.Errorf("the peer took longer than %v, or was silent for half of that, while others waited (HandshakePatience)", limits.HandshakePatience)
	errDraining       = errors.New("the listener is closing")
	// errLeft: the peer has opened and closed a connection, as those do who look
	// whether the server is there.
	errLeft           = errors.New("the peer has said nothing")
	errEndedGoroutine = errors.New("a function of Config.TLS ended its goroutine")
)

// handshakeByte is what the first record of a client begins with: the type of
// handshakes. No protocol of package wire begins with it.
const handshakeByte = 0x16

// plaintextAlert is what a peer without TLS is told: the record of a fatal alert,
// unexpected_message. It is TLS and no other protocol, and says which: a reset could
// mean anything.
const plaintextAlert = "\x15\x03\x03\x00\x02\x02\x0a"

// firstBytes is how much is read to tell TLS from other protocols, and to name those.
const firstBytes = 64

// refusal reports whether an error is the alert of a peer that refused the handshake,
// which none sends later: about certificates, or what both sides can do. Package
// crypto/tls keeps its type for them to itself, but not the number.
func refusal(err error) bool {
	var remote *net.OpError
	if !errors.As(err, &remote) || remote.Op != "remote error" {
		return false
	}
	return slices.Contains([]string{"40", "42", "43", "44", "45", "46", "48", "49", "70", "71", "116", "120"}, fmt.Sprintf("%d", remote.Err))
}

// --- dialled connections ---

// NewTLSConn makes the handshake of a client, as config.TLS says, over a connection
// that the caller brings and must not use any more. It takes no longer than ctx and
// Config.HandshakeTimeout allow, and then closes conn. It fails with a
// *HandshakeError. Unless Config.TLS switches the check off, it must say what name
// the certificate of the server has to have.
func NewTLSConn(ctx context.Context, conn net.Conn, config Config) (*Conn, error) {
	if err := config.Validate(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if config.TLS == nil {
		_ = conn.Close()
		return nil, errors.New("eventloop: new TLS connection: Config.TLS is not set")
	}
	config = config.withDefaults()
	if dialled, ok := conn.(*Conn); ok && dialled.served == nil && !dialled.used.Load() {
		conn = dialled.socket // of Dial, perhaps: TLS does better on the socket itself
	}
	t := newTLSConn(conn, &config, nil)
	timeout := config.HandshakeTimeout
	if timeout > 0 {
		_ = conn.SetDeadline(time.Now().Add(timeout))
	}
	err := t.session.HandshakeContext(ctx)
	if err == nil {
		err = t.flushAll()
	}
	if err != nil {
		_ = t.flushAll() // the alert
		_ = conn.Close()
		return nil, t.handshakeFailed(err, timeout)
	}
	t.shaking = false
	t.made.Store(true)
	if timeout > 0 {
		_ = conn.SetDeadline(time.Time{})
	}
	c := newConn(t, &config)
	c.markUsed(true) // whatever the handshake brought along is looked at
	if config.OnOpen != nil {
		config.OnOpen(c)
	}
	return c, nil
}

func (t *tlsConn) handshakeFailed(err error, timeout time.Duration) error {
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		// Not EOF, which would be an end in good order.
		err = fmt.Errorf("the peer closed the connection: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("not complete after %v (HandshakeTimeout): %w", timeout, err)
	case errors.As(err, &record) && record.Conn != nil:
		return &HandshakeError{First: record.RecordHeader[:], Err: fmt.Errorf("%w (its first bytes: %x)", ErrPlaintext, record.RecordHeader)}
	}
	return &HandshakeError{Err: err}
}

// --- served connections ---

// startingTLS is what a served connection has until its handshake is over.
type startingTLS struct {
	conn *Conn
	// admitted: it is one of those that may make their handshakes.
	admitted bool
	// since is when that was.
	since time.Time
	// grant lets a connection begin that had to wait for others.
	grant func()
}

// isSilent reports whether the handshake has waited for the peer for so long. A peer whose
// answer waits for the processor, as in a crowd of honest clients, is not silent.
func (s *startingTLS) isSilent(long time.Duration) bool {
	t := s.conn.tlsOf()
	since := t.silentSince.Load()
	return since != nil && time.Since(*since) >= long && (t.watched == nil || t.watched.CheckIdle() == nil)
}

// expectHandshake begins the time that the peer has, before its connection is known to
// anybody.
func (c *Conn) expectHandshake() {
	t := c.tlsOf()
	if t == nil {
		return
	}
	if timeout := c.config.HandshakeTimeout; timeout > 0 {
		_ = t.Conn.SetDeadline(time.Now().Add(timeout))
	}
}

// sniff reads the first bytes of a connection. It returns wouldBlock where nothing
// is there yet, and the read does not wait. plaintext says that the peer may speak
// without TLS, and does.
func (t *tlsConn) sniff() (plaintext bool, err error) {
	if t.early != nil {
		return false, nil
	}
	first := make([]byte, firstBytes)
	var n int
	if t.watched != nil {
		t.dry = false
		n, err = t.watched.tryRead(first)
	} else {
		n, err = t.Conn.Read(first)
	}
	if n == 0 {
		return false, err
	}
	t.early = first[:n]
	switch {
	case first[0] == handshakeByte:
		return false, nil
	case t.started.conn.config.AllowPlaintext:
		return true, nil
	}
	return false, &HandshakeError{First: t.early, Err: fmt.Errorf("%w (its first bytes: %x)", ErrPlaintext, t.early[:min(n, 8)])}
}

// secure makes the handshake of a served connection that may.
func (c *Conn) secure() error {
	t := c.tlsOf()
	if err := t.shakeHands(c.listener); err != nil {
		return err
	}
	c.listener.stats.handshakes.Add(1)
	c.secured(t)
	return nil
}

// shakeHands is the handshake of a server, with a place among those that go on.
func (t *tlsConn) shakeHands(l *Listener) error {
	defer l.handshakes.leave(t.started)
	if l.draining.Load() {
		return errDraining
	}
	// A context that can end would cost a goroutine. Closing the connection ends it too.
	err := t.session.HandshakeContext(context.Background())
	if err == nil {
		err = t.flushAll()
	}
	if err != nil {
		before := t.passed
		t.told = t.flushAll() == nil && t.passed > before // an alert
		return t.handshakeFailed(err, l.config.HandshakeTimeout)
	}
	return nil
}

// secureBeside is secure for a goroutine that may wait for all of it.
func (c *Conn) secureBeside(t *tlsConn) error {
	if !t.started.admitted {
		plaintext, err := t.sniff()
		switch {
		case err != nil:
			return c.sniffFailed(err)
		case plaintext:
			c.speaksPlainly(t)
			return nil
		}
		granted := make(chan struct{})
		t.started.grant = func() { close(granted) }
		if !c.listener.handshakes.enter(t.started, c.config.MaxHandshakes) {
			<-granted
		}
	}
	return c.secure()
}

// sniffFailed is what an error of sniff means.
func (c *Conn) sniffFailed(err error) error {
	var failed *HandshakeError
	switch {
	case errors.Is(err, io.EOF):
		return errLeft
	case errors.As(err, &failed):
		_, alert := c.tlsOf().Conn.Write([]byte(plaintextAlert))
		c.tlsOf().told = alert == nil
		return err
	}
	return c.tlsOf().handshakeFailed(err, c.config.HandshakeTimeout)
}

// speaksPlainly lets a connection go on without TLS.
func (c *Conn) speaksPlainly(t *tlsConn) {
	t.session = nil
	c.reader.end += copy(c.reader.room(len(t.early), len(t.early)), t.early)
	c.countRead(len(t.early))
	c.mu.Lock()
	c.served.fresh = true
	c.mu.Unlock()
	c.secured(t)
}

// secured ends the handshake, which has succeeded or was not necessary.
func (c *Conn) secured(t *tlsConn) {
	c.markUsed(true)
	c.mu.Lock()
	t.early, t.started, t.shaking = nil, nil, false
	t.made.Store(t.session != nil)
	c.served.handshake = nil
	if !c.ownsDeadline {
		_ = t.Conn.SetReadDeadline(c.usersDeadline())
	}
	_ = t.Conn.SetWriteDeadline(c.setDeadlinesLocked().nextWrite())
	if *c.deadlines == (deadlines{}) {
		c.deadlines = nil
		if t.watched != nil {
			t.watched.forgetDeadlines()
		}
	}
	c.mu.Unlock()
	c.outbound.unlock()
	c.open()
}

// handshakeEnded records what arrived, or how the handshake ended. It is called with
// Conn.mu held.
func (c *Conn) handshakeEnded(n int, err error) {
	if t := c.tlsOf(); t != nil && t.started != nil && err != nil {
		c.endHandshakeLocked(err)
		switch {
		case errors.Is(err, errLeft):
			c.closed, err = true, nil
		case c.listener.draining.Load():
			err = nil // nobody waits for it any more
		case t.told:
			// With TLS 1.3 the client may have sent more by now, and a reset would take
			// the alert from it.
			c.failLocked(err)
			err = nil
		}
	}
	c.served.arrived(n, err)
}

// endHandshake ends what waits for the handshake of a connection that is closed.
func (c *Conn) endHandshake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endHandshakeLocked(errLeft)
}

func (c *Conn) endHandshakeLocked(err error) {
	t := c.tlsOf()
	if t == nil || t.started == nil {
		return
	}
	if closing := c.closed && c.cause == nil || c.listener.draining.Load(); !closing && !errors.Is(err, errLeft) {
		c.listener.stats.handshakeErrors.Add(1)
	}
	t.started = nil
	c.outbound.broken = net.ErrClosed
	c.outbound.unlock()
}

// --- how many at once ---

// handshakes bounds the handshakes of a listener that go on at the same time. Others
// wait for their turn, without a goroutine. While some do, who takes longer than
// HandshakePatience loses his place: a crowd of peers that begin and do not go on
// delays others by so much, not by HandshakeTimeout. If twice as many wait as may begin
// (crowdTimes), who is silent for half of that loses it too, and the turn is that of the
// oldest and of the newest alternately: behind 3,300 that do not go on, of whom 256 lost
// their places each second, a client waited for longer than its own timeout.
type handshakes struct {
	mu      sync.Mutex
	running map[*startingTLS]struct{}
	waiting []*startingTLS // the oldest first
	newest  bool           // whether the last turn was that of the newest
	timer   *time.Timer
}

// crowdTimes is how many times as many wait as may begin, in a crowd.
const crowdTimes = 2

// enter reports whether a connection may begin. If not, its grant is called later.
func (h *handshakes) enter(s *startingTLS, most int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == nil {
		h.running = map[*startingTLS]struct{}{}
	}
	if len(h.running) < most {
		h.runLocked(s)
		return true
	}
	h.waiting = append(h.waiting, s)
	if h.timer == nil {
		h.timer = time.AfterFunc(limits.HandshakePatience/2, h.hurry)
	}
	return false
}

func (h *handshakes) runLocked(s *startingTLS) {
	s.admitted, s.since = true, time.Now()
	h.running[s] = struct{}{}
}

// leave ends a handshake, and lets the next connection begin.
func (h *handshakes) leave(s *startingTLS) {
	h.mu.Lock()
	delete(h.running, s)
	next := h.nextLocked()
	if next != nil {
		h.runLocked(next)
	}
	h.mu.Unlock()
	if next != nil {
		next.grant()
	}
}

// nextLocked takes the one whose turn it is from those that wait, nil if nobody does.
func (h *handshakes) nextLocked() (next *startingTLS) {
	n := len(h.waiting)
	if n == 0 {
		h.waiting = nil
		return nil
	}
	if h.newest = !h.newest; h.newest {
		next, h.waiting[n-1] = h.waiting[n-1], nil
		h.waiting = h.waiting[:n-1]
		return next
	}
	next, h.waiting[0] = h.waiting[0], nil
	h.waiting = h.waiting[1:]
	return next
}

// hurry closes those that take too long for the others.
func (h *handshakes) hurry() {
	h.mu.Lock()
	h.timer = nil
	var slow []*startingTLS
	crowd := len(h.waiting) > crowdTimes*len(h.running)
	for s := range h.running {
		if len(slow) < len(h.waiting) && s.isSlow(crowd) {
			slow = append(slow, s)
		}
	}
	if len(h.waiting) > 0 {
		h.timer = time.AfterFunc(limits.HandshakePatience/8, h.hurry)
	}
	h.mu.Unlock()
	for _, s := range slow {
		if h.runs(s) { // meanwhile it may have ended
			_ = s.conn.CloseWithError(&HandshakeError{Err: errHandshakeCrowd})
		}
	}
}

func (h *handshakes) runs(s *startingTLS) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, is := h.running[s]
	return is
}

// isSlow reports whether a handshake takes too long while others wait.
func (s *startingTLS) isSlow(crowd bool) bool {
	return time.Since(s.since) >= limits.HandshakePatience || crowd && s.isSilent(limits.HandshakePatience/2)
}
