package eventloop

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acceptor accepts sockets that package net never sees: it would watch them too,
// and be woken for every message.
type acceptor struct {
	engine *epollEngine
	socket net.Listener
	// file is a descriptor of its own for socket: package net lets nobody else
	// wait for the one that it has.
	file *os.File
	raw  syscall.RawConn
	// unixLocal, or fixed, is the local address of all connections; neither if
	// each has its own.
	unixLocal *net.UnixAddr
	fixed     *netip.AddrPort

	// attempt is try, bound once instead of at every accept.
	attempt func(fd uintptr) bool
	fd      int
	peer    unix.Sockaddr
	err     error
}

// newAcceptor returns what accepts in place of socket, which nobody else may be
// able to close: that would not be noticed. It returns nil if socket is not a
// plain stream socket.
func newAcceptor(socket net.Listener, engine *epollEngine) (*acceptor, error) {
	a := &acceptor{engine: engine, socket: socket}
	a.attempt = a.try
	var err error
	switch socket := socket.(type) {
	case *net.TCPListener:
		if address := socket.Addr().(*net.TCPAddr).AddrPort(); !address.Addr().IsUnspecified() {
			address = unmapped(address)
			a.fixed = &address
		}
		a.file, err = socket.File()
	case *net.UnixListener:
		a.unixLocal = socket.Addr().(*net.UnixAddr)
		a.file, err = socket.File()
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	a.raw, err = a.file.SyscallConn()
	if err == nil && a.unixLocal == nil {
		err = a.prepare()
	}
	if err != nil {
		_ = a.file.Close()
		return nil, err
	}
	return a, nil
}

// Addr returns the address that is listened on.
func (a *acceptor) Addr() net.Addr { return a.socket.Addr() }

// SetDeadline makes Accept fail when it has passed and there is no connection.
func (a *acceptor) SetDeadline(deadline time.Time) error { return a.file.SetReadDeadline(deadline) }

// atOnce accepts what is there.
func (a *acceptor) atOnce(listening uintptr) { a.try(listening) }

// Close ends Accept, with net.ErrClosed.
func (a *acceptor) Close() error {
	return errors.Join(a.socket.Close(), a.file.Close())
}

// prepare sets what accepted sockets inherit on Linux, so that it costs nothing
// for each of them: no delay, and keep-alive.
func (a *acceptor) prepare() (err error) {
	keepAlive := a.engine.listener.config.keepAlive()
	controlErr := a.raw.Control(func(fd uintptr) {
		set := func(level, option, value int) {
			err = errors.Join(err, unix.SetsockoptInt(int(fd), level, option, value))
		}
		set(unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		if !keepAlive.Enable {
			set(unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0)
			return
		}
		set(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, wholeSeconds(keepAlive.Idle))
		set(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, wholeSeconds(keepAlive.Interval))
		set(unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAlive.Count)
		set(unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	})
	return errors.Join(controlErr, err)
}

// wholeSeconds rounds up, as package net does.
func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// Accept waits for a connection.
func (a *acceptor) Accept() (net.Conn, error) {
	switch err := a.raw.Read(a.attempt); {
	case err == nil:
	case !errors.Is(err, os.ErrDeadlineExceeded) || a.raw.Control(a.atOnce) != nil:
		// Nothing else makes it fail; package os has an error of its own for it.
		return nil, a.failure(net.ErrClosed)
	case a.err == unix.EAGAIN:
		return nil, a.failure(os.ErrDeadlineExceeded)
	}
	if a.err != nil {
		return nil, a.failure(os.NewSyscallError("accept4", a.err))
	}
	s, err := a.engine.adopt(a.fd)
	if err != nil {
		return nil, err
	}
	if a.unixLocal != nil {
		s.unix = &unixAddresses{local: a.unixLocal, remote: &net.UnixAddr{Net: "unix"}}
		if peer, ok := a.peer.(*unix.SockaddrUnix); ok {
			s.unix.remote.Name = peer.Name
		}
		return s, nil
	}
	s.remote, s.local = addressOf(a.peer), a.fixed
	if s.local == nil {
		s.local = &netip.AddrPort{}
		if local, err := unix.Getsockname(a.fd); err == nil {
			*s.local = addressOf(local)
		}
	}
	return s, nil
}

func (a *acceptor) failure(err error) error {
	return &net.OpError{Op: "accept", Net: a.Addr().Network(), Addr: a.Addr(), Err: err}
}

func (a *acceptor) try(listening uintptr) bool {
	// Who has the descriptor of Listener.File may have made it wait, as package
	// os/exec does for a child: the flag is the socket's, and Close could not end an
	// accept that waits in the kernel. To look costs 0.2 us, an accept 10.
	if err := unix.SetNonblock(int(listening), true); err != nil {
		a.err = err
		return true
	}
	for {
		a.fd, a.peer, a.err = unix.Accept4(int(listening), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch a.err {
		case unix.EAGAIN:
			return false
		case unix.EINTR, unix.ECONNABORTED:
		default:
			return true
		}
	}
}

func addressOf(address unix.Sockaddr) netip.AddrPort {
	switch address := address.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(address.Addr), uint16(address.Port))
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(address.Addr)
		if address.ZoneId != 0 {
			zone := strconv.FormatUint(uint64(address.ZoneId), 10)
			if device, err := net.InterfaceByIndex(int(address.ZoneId)); err == nil {
				zone = device.Name
			}
			ip = ip.WithZone(zone)
		}
		return unmapped(netip.AddrPortFrom(ip, uint16(address.Port)))
	default:
		return netip.AddrPort{}
	}
}

// unmapped returns an address of IPv4 as such, also if it came in IPv6.
func unmapped(address netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
}

// converter accepts from a listener that somebody else may close, and takes over
// plain sockets that package net has accepted.
type converter struct {
	net.Listener
	engine *epollEngine
}

// Accept waits for a connection.
func (v converter) Accept() (net.Conn, error) {
	conn, err := v.Listener.Accept()
	if err != nil {
		return nil, err
	}
	raw := rawSocket(conn)
	if raw == nil {
		return conn, nil
	}
	fd := -1
	if err := raw.Control(func(original uintptr) {
		fd, err = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil || fd < 0 {
		// Such as no free descriptor: it can do without.
		return conn, nil
	}
	s, err := v.engine.adopt(fd)
	if err != nil {
		return conn, nil
	}
	switch remote := conn.RemoteAddr().(type) {
	case *net.UnixAddr:
		s.unix = &unixAddresses{local: conn.LocalAddr().(*net.UnixAddr), remote: remote}
	case *net.TCPAddr:
		local := unmapped(conn.LocalAddr().(*net.TCPAddr).AddrPort())
		s.local, s.remote = &local, unmapped(remote.AddrPort())
	}
	// The socket stays open through its other descriptor.
	_ = conn.Close()
	return s, nil
}

// SetDeadline makes Accept fail when it has passed.
func (v converter) SetDeadline(deadline time.Time) error {
	return setAcceptDeadline(v.Listener, deadline)
}
