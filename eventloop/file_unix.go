//go:build unix

package eventloop

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// withoutBlocking returns a file of the same socket whose descriptor stays as it is when
// somebody asks for it, and closes file. The method Fd of what package net returns, which
// os/exec calls for a child, makes the socket block, and with it every other descriptor of
// it: an accept that began at that moment waited in the kernel, where Close does not reach
// it, and the process never ended (1 of 12 runs of TestEventloop_HandOver).
func withoutBlocking(file *os.File) (*os.File, error) {
	defer file.Close()
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, dupErr := -1, error(nil)
	err = raw.Control(func(original uintptr) {
		fd, dupErr = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err = errors.Join(err, os.NewSyscallError("fcntl", dupErr)); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}
