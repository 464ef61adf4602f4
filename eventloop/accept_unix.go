//go:build unix

package eventloop

import (
	"errors"
	"slices"
	"syscall"
)

// temporaryErrno reports whether an accept failed because of something that
// passes: a lack of descriptors or memory, or a connection that was gone or
// broken before it was accepted. Linux hands out errors of the network that are
// pending for such a connection, see accept(2), and EPERM if a firewall forbids
// it.
func temporaryErrno(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains([]syscall.Errno{
		syscall.EINTR, syscall.EAGAIN,
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EPERM, syscall.EPROTO, syscall.ENOPROTOOPT,
		syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.ETIMEDOUT,
	}, errno)
}
