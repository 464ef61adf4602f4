//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package eventloop

import (
	"os"

	"golang.org/x/sys/unix"
)

const canReusePort = true

func setReusePort(fd uintptr) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
}
