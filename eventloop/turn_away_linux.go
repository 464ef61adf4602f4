package eventloop

import (
	"math"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// noInterface is the index of no network interface.
const noInterface = math.MaxInt32

// turnAway keeps further connections out of a listening socket that nobody else has.
// What it has got can still be accepted, and no connection comes between the last
// accept and the end of the socket, which would reset it.
//
// A TCP socket is bound to an interface that does not exist: the system finds nobody
// who listens when a connection begins, and says so to the peer at once. Handshakes
// that have begun do not look for the listener any more. The system must be Linux 5.0
// or later, and 5.7 for a process without rights. Sockets that share their port
// (ReusePort) still get connections.
func turnAway(socket net.Listener) {
	conn, ok := socket.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_, isUnix := socket.(*net.UnixListener)
	// If it fails, some connection may be reset, as without it.
	_ = raw.Control(func(fd uintptr) {
		if isUnix {
			_ = unix.Shutdown(int(fd), unix.SHUT_RD)
			return
		}
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, noInterface)
	})
}

// someoneWaits reports whether a listening socket has a connection to accept, and
// whether that can be told: a Unix socket that turns peers away has always something to
// read, and if that is no connection, Accept waits nevertheless (Linux 6.18).
func someoneWaits(socket net.Listener) (waits, known bool) {
	conn, ok := socket.(syscall.Conn)
	if !ok {
		return false, true
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false, true
	}
	events := []unix.PollFd{{Events: unix.POLLIN | unix.POLLRDHUP}}
	_ = raw.Control(func(fd uintptr) {
		events[0].Fd = int32(fd)
		_, err = unix.Poll(events, 0)
	})
	known = events[0].Revents&unix.POLLRDHUP == 0
	return known && err == nil && events[0].Revents != 0, known
}
