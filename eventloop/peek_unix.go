//go:build unix && !aix

package eventloop

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// socketPeek looks at the next byte of a socket and leaves it there. One look at
// a time.
type socketPeek struct {
	raw syscall.RawConn
	// attemptFunc is the method of this name, bound once instead of at every
	// look.
	attemptFunc func(fd uintptr)
	first       [1]byte
	n           int
	err         error
}

// newSocketPeek returns nil if the descriptor cannot be reached.
func newSocketPeek(socket syscall.Conn) *socketPeek {
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	p := &socketPeek{raw: raw}
	p.attemptFunc = p.attempt
	return p
}

// look returns nil if a read would have to wait.
func (p *socketPeek) look() error {
	// Control, unlike Read, does not wait for others that read.
	if err := p.raw.Control(p.attemptFunc); err != nil {
		return err
	}
	switch {
	case errors.Is(p.err, syscall.EAGAIN):
		return nil
	case errors.Is(p.err, syscall.ENOTSOCK):
		return nil // a pipe or a terminal: nothing is known
	case p.err != nil:
		return os.NewSyscallError("recvfrom", p.err)
	case p.n == 0:
		return io.EOF
	default:
		return ErrUnread
	}
}

func (p *socketPeek) attempt(fd uintptr) {
	for {
		// A foreign net.Conn may have made its descriptor a blocking one.
		p.n, _, p.err = syscall.Recvfrom(int(fd), p.first[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if p.err != syscall.EINTR {
			return
		}
	}
}
