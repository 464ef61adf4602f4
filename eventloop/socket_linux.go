package eventloop

import (
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// socket is a connected stream socket that a poller watches. It is a net.Conn:
// Read and Write wait, in their goroutine, until the poller says that they can
// go on. The engine uses the parts that do not wait.
type socket struct {
	fd     int
	poller *poller
	// token is what the kernel's events for this socket carry.
	token token
	// conn is whose bytes these are; set before the socket is watched.
	conn *Conn
	// The addresses, those of TCP without the memory that a net.Addr takes; most
	// connections of a listener have the same local one.
	unix   *unixAddresses
	local  *netip.AddrPort
	remote netip.AddrPort

	// state counts those who use fd; closedSocket is added once it is closed. The
	// last of them closes fd: before that its number could name another socket. It
	// has inExpired and outExpired as well, which are set with mu held.
	state atomic.Int64

	// mu guards what follows.
	mu sync.Mutex
	// watched are the events that the poller reports now; 0 if it has forgotten
	// the socket.
	watched uint32
	// reported: what arrives is for whoever serves the connection. Set with mu held.
	reported atomic.Bool
	in, out  direction
}

type unixAddresses struct{ local, remote *net.UnixAddr }

// Parts of socket.state. closedSocket is negative, whatever is added to it. The
// others say that the deadline of a direction has passed.
const (
	closedSocket = math.MinInt64
	inExpired    = 1 << 61
	outExpired   = 1 << 62
)

// direction is one of the two of a socket.
type direction struct {
	// changed is closed when those who wait have to look again; nil while nobody
	// waits.
	changed chan struct{}
	// expiry is that of the deadline; nil until there is one.
	expiry *expiry
}

// expiry is the timer of a deadline, for all that its direction will have: one that
// is set for each message takes no memory then.
type expiry struct {
	socket    *socket
	direction *direction
	timer     *time.Timer
	// due is the deadline, by the clock that timers go by; zero if there is none or
	// it has passed.
	due time.Time
}

var (
	_ net.Conn     = (*socket)(nil)
	_ syscall.Conn = (*socket)(nil)
	_ idleChecker  = (*socket)(nil)
)

// --- who may use the descriptor ---

// acquire makes sure that fd stays this socket until release. The error is why
// nothing can be done with it: it is closed, or the deadline has passed if expired
// is inExpired or outExpired.
func (s *socket) acquire(expired int64) error {
	for {
		state := s.state.Load()
		if err := unusable(state, expired); err != nil {
			return err
		}
		if s.state.CompareAndSwap(state, state+1) {
			return nil
		}
	}
}

func unusable(state, expired int64) error {
	switch {
	case state < 0:
		return net.ErrClosed
	case state&expired != 0:
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}

func (s *socket) release() {
	if s.state.Add(-1)&^(inExpired|outExpired) == closedSocket {
		s.destroy()
	}
}

// Close makes all calls fail, also those that wait.
func (s *socket) Close() error {
	for {
		state := s.state.Load()
		if state < 0 {
			return net.ErrClosed
		}
		// One use for this function, so that nobody else destroys it meanwhile.
		if s.state.CompareAndSwap(state, closedSocket+state+1) {
			break
		}
	}
	s.mu.Lock()
	s.unwatchLocked(s.watched)
	for _, d := range []*direction{&s.in, &s.out} {
		d.wakeLocked()
		d.stopLocked()
	}
	s.mu.Unlock()
	s.poller.slots.remove(s.token)
	s.release()
	return nil
}

// destroy runs once, when nobody uses fd any more.
func (s *socket) destroy() {
	// Whatever is wrong with it, the descriptor is gone.
	_ = unix.Close(s.fd)
}

// --- waiting ---

// watchLocked makes the poller report these events also. The error means that
// the kernel has no memory for it, or that the limit of the user's watches is
// reached: then they are not reported.
func (s *socket) watchLocked(events uint32) error {
	return s.setWatchedLocked(s.watched | events)
}

// unwatchLocked makes the poller not report these events any more.
func (s *socket) unwatchLocked(events uint32) {
	// The socket is watched, and this needs no memory.
	_ = s.setWatchedLocked(s.watched &^ events)
}

func (s *socket) setWatchedLocked(events uint32) error {
	if s.watched != events {
		if err := s.poller.watch(s, s.watched, events); err != nil && events&^s.watched != 0 {
			return os.NewSyscallError("epoll_ctl", err)
		}
		s.watched = events
	}
	s.reported.Store(events&readEvents != 0 && s.in.changed == nil)
	return nil
}

// watchReads makes the poller report that bytes have arrived. The error is why
// nothing will be reported, or not to be waited for.
func (s *socket) watchReads() error {
	if err := s.unusable(&s.in); err != nil || s.reported.Load() {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.unusable(&s.in); err != nil {
		return err
	}
	return s.watchLocked(readEvents)
}

// unwatchReads makes the poller not report them, unless somebody waits in Read.
func (s *socket) unwatchReads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Load() >= 0 && s.in.changed == nil {
		s.unwatchLocked(readEvents)
	}
}

// event takes a report of the poller. It returns true if bytes, or the end, are
// there for whoever serves the connection.
func (s *socket) event(events uint32) bool {
	if events&^readEvents == 0 && s.reported.Load() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	const ended = unix.EPOLLERR | unix.EPOLLHUP
	if events&(unix.EPOLLOUT|ended) != 0 && s.watched&unix.EPOLLOUT != 0 {
		s.out.wakeLocked()
		s.unwatchLocked(unix.EPOLLOUT)
	}
	if events&(readEvents|ended) == 0 {
		return false
	}
	if s.in.changed != nil {
		// Whoever waits is told, and reads what it likes. The connection has to be told
		// too: nothing more is reported, and its handler may let go of it before it
		// looks again, or nobody may own it.
		s.in.wakeLocked()
		s.unwatchLocked(readEvents)
		return s.conn != nil
	}
	if s.watched&readEvents == 0 {
		// An error that nobody asked for is reported as long as the socket is
		// watched at all.
		s.unwatchLocked(s.watched)
		return false
	}
	return true
}

func (d *direction) wakeLocked() {
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

// waits lets another goroutine poll if this one does.
func (s *socket) waits() {
	if s.conn != nil {
		s.conn.waits()
	}
}

// wait returns when it may be possible to go on, or with the error that says
// that it will not be.
func (s *socket) wait(d *direction) error {
	s.waits()
	s.mu.Lock()
	if err := s.unusable(d); err != nil {
		s.mu.Unlock()
		return err
	}
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	changed := d.changed
	event := uint32(unix.EPOLLOUT)
	if d == &s.in {
		event = readEvents
	}
	err := s.watchLocked(event)
	if err != nil {
		d.wakeLocked()
	}
	s.mu.Unlock()
	<-changed
	return err
}

// expired is what the state has when the deadline of d has passed.
func (s *socket) expired(d *direction) int64 {
	if d == &s.in {
		return inExpired
	}
	return outExpired
}

// unusable returns why nothing can be read or written now, nil if it may be.
func (s *socket) unusable(d *direction) error {
	return unusable(s.state.Load(), s.expired(d))
}

// --- reading and writing ---

// tryRead reads once. The error is EAGAIN if nothing is there, io.EOF at the end.
func (s *socket) tryRead(p []byte) (n int, err error) {
	if err := s.acquire(inExpired); err != nil {
		return 0, err
	}
	s.poller.engine.listener.stats.reads.Add(1)
	n, err = retryRead(s.fd, p)
	s.release()
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

// tryWrite writes once. It writes nothing if the socket takes nothing.
func (s *socket) tryWrite(buffers [][]byte) (n int, err error) {
	if err := s.acquire(outExpired); err != nil {
		return 0, err
	}
	s.poller.engine.listener.stats.writes.Add(1)
	for {
		if n, err = sendOnce(s.fd, buffers); err != unix.EINTR {
			break
		}
	}
	s.release()
	if err == unix.EAGAIN {
		err = nil
	}
	return n, err
}

// Read waits for bytes and returns them.
func (s *socket) Read(p []byte) (int, error) {
	for {
		n, err := s.tryRead(p)
		if err == unix.EAGAIN {
			if err = s.wait(&s.in); err == nil {
				continue
			}
		}
		return n, s.failure("read", err)
	}
}

// Write writes all of p.
func (s *socket) Write(p []byte) (int, error) {
	buffers := [][]byte{p}
	n, err := s.writeBuffers(&buffers)
	return int(n), err
}

// writeBuffers writes all of buffers, in calls that the kernel accepts, and
// removes from them what it has written.
func (s *socket) writeBuffers(buffers *[][]byte) (written int64, err error) {
	for {
		n, err := s.write(*buffers)
		written += n
		*buffers = linkbuf.Advance(*buffers, n)
		if err != nil || len(*buffers) == 0 {
			return written, err
		}
		if n > 0 {
			continue
		}
		if err := s.wait(&s.out); err != nil {
			return written, s.failure("write", err)
		}
	}
}

// write makes one system call. It writes nothing if the socket takes
// nothing.
func (s *socket) write(buffers [][]byte) (int64, error) {
	if buffers = linkbuf.Vector(buffers); len(buffers) == 0 {
		return 0, s.failure("write", s.unusable(&s.out))
	}
	n, err := s.tryWrite(buffers)
	return int64(n), s.failure("write", err)
}

// failure says in the words of package net what went wrong.
func (s *socket) failure(operation string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		err = os.NewSyscallError(operation, errno)
	}
	local := s.LocalAddr()
	return &net.OpError{Op: operation, Net: local.Network(), Source: local, Addr: s.RemoteAddr(), Err: err}
}

// --- deadlines ---

// SetDeadline sets both deadlines.
func (s *socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline bounds reads. The engine is told when it passes.
func (s *socket) SetReadDeadline(t time.Time) error { return s.setDeadline(&s.in, t) }

// SetWriteDeadline bounds writes.
func (s *socket) SetWriteDeadline(t time.Time) error { return s.setDeadline(&s.out, t) }

func (s *socket) setDeadline(d *direction, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Load() < 0 {
		return s.failure("set", net.ErrClosed)
	}
	d.stopLocked()
	s.state.And(^s.expired(d))
	if t.IsZero() {
		return nil
	}
	now := time.Now()
	left := t.Sub(now)
	if left <= 0 {
		s.expireLocked(d)
		return nil
	}
	if d.expiry == nil {
		d.expiry = &expiry{socket: s, direction: d}
	}
	// Not t, which may say what time it is on the wall: that clock can be set.
	d.expiry.due = now.Add(left)
	if d.expiry.timer == nil {
		d.expiry.timer = time.AfterFunc(left, d.expiry.fire)
	} else {
		d.expiry.timer.Reset(left)
	}
	return nil
}

// stopLocked forgets the deadline.
func (d *direction) stopLocked() {
	if d.expiry != nil {
		d.expiry.timer.Stop()
		d.expiry.due = time.Time{}
	}
}

// fire is called when the timer's time is over. It may come late, for a deadline
// that has been replaced meanwhile: then it is up to the timer of the new one,
// unless that has passed too.
func (e *expiry) fire() {
	e.socket.mu.Lock()
	defer e.socket.mu.Unlock()
	if e.due.IsZero() || time.Until(e.due) > 0 {
		return
	}
	e.due = time.Time{}
	e.socket.expireLocked(e.direction)
}

func (s *socket) expireLocked(d *direction) {
	s.state.Or(s.expired(d))
	d.wakeLocked()
	if d == &s.in && s.conn != nil {
		// Not here: whoever set the deadline may hold Conn.mu.
		go s.conn.readExpired()
	}
}

// --- the rest of a connection ---

// LocalAddr returns the address of this end.
func (s *socket) LocalAddr() net.Addr {
	if s.unix != nil {
		return s.unix.local
	}
	if s.local == nil {
		return &net.TCPAddr{}
	}
	return net.TCPAddrFromAddrPort(*s.local)
}

// RemoteAddr returns the address of the peer.
func (s *socket) RemoteAddr() net.Addr {
	if s.unix != nil {
		return s.unix.remote
	}
	return net.TCPAddrFromAddrPort(s.remote)
}

// CloseWrite tells the peer that nothing more will be sent.
func (s *socket) CloseWrite() error {
	return s.control("shutdown", func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) })
}

// SetLinger decides what Close does with bytes that are not sent: 0 throws them
// away and resets the connection, a negative number sends them.
func (s *socket) SetLinger(seconds int) error {
	linger := unix.Linger{Onoff: 1, Linger: int32(seconds)}
	if seconds < 0 {
		linger = unix.Linger{}
	}
	return s.control("setsockopt", func(fd int) error { return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &linger) })
}

// CheckIdle looks whether bytes wait, or the end.
func (s *socket) CheckIdle() error {
	var first [1]byte
	n := 0
	err := s.control("recvfrom", func(fd int) (err error) {
		n, _, err = unix.Recvfrom(fd, first[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return err
	})
	switch {
	case errors.Is(err, unix.EAGAIN):
		return nil
	case err != nil:
		return err
	case n == 0:
		return io.EOF
	default:
		return ErrUnread
	}
}

// control calls what takes the descriptor, again when a signal interrupts it.
func (s *socket) control(operation string, call func(fd int) error) error {
	if err := s.acquire(0); err != nil {
		return s.failure(operation, err)
	}
	defer s.release()
	for {
		if err := call(s.fd); err != unix.EINTR {
			return s.failure(operation, err)
		}
	}
}

// SyscallConn gives access to the descriptor, which is non-blocking.
func (s *socket) SyscallConn() (syscall.RawConn, error) { return rawSocketConn{s}, nil }

// rawSocketConn is the syscall.RawConn of a socket.
type rawSocketConn struct{ s *socket }

func (r rawSocketConn) Control(call func(fd uintptr)) error {
	return r.s.control("control", func(fd int) error { call(uintptr(fd)); return nil })
}

func (r rawSocketConn) Read(call func(fd uintptr) (done bool)) error {
	return r.repeat("read", &r.s.in, call)
}

func (r rawSocketConn) Write(call func(fd uintptr) (done bool)) error {
	return r.repeat("write", &r.s.out, call)
}

func (r rawSocketConn) repeat(operation string, d *direction, call func(fd uintptr) (done bool)) error {
	for {
		if err := r.s.unusable(d); err != nil {
			return r.s.failure(operation, err)
		}
		done := false
		if err := r.s.control(operation, func(fd int) error { done = call(uintptr(fd)); return nil }); err != nil || done {
			return err
		}
		if err := r.s.wait(d); err != nil {
			return r.s.failure(operation, err)
		}
	}
}
