package eventloop

import (
	"errors"
	"slices"
	"syscall"
)

// Errors of Winsock that package syscall has no names for.
const (
	errnoTooManyFiles syscall.Errno = 10024 // WSAEMFILE
	errnoNoBuffers    syscall.Errno = 10055 // WSAENOBUFS
)

// temporaryErrno reports whether an accept failed because of something that
// passes: a lack of handles or memory, or a connection that was gone before it
// was accepted.
func temporaryErrno(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains([]syscall.Errno{
		errnoTooManyFiles, errnoNoBuffers, syscall.WSAECONNABORTED, syscall.WSAECONNRESET,
	}, errno)
}
