package eventloop

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// cork makes the system keep the last segment of what is written, until the connection
// ends or 200 ms have passed.
func cork(socket net.Conn) {
	conn, ok := socket.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	// It fails for a Unix socket, and for one that is closed.
	_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, 1) })
}
