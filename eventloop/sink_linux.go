package eventloop

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// rawSink writes to a socket without waiting. Not for concurrent use.
type rawSink struct {
	socket  net.Conn
	raw     syscall.RawConn
	buffers [][]byte
	// attempt is the method of this name, bound once instead of at every write.
	attemptFunc func(fd uintptr) bool
	n           int
	err         error
}

func newRawSink(socket net.Conn) sink {
	raw := rawSocket(socket)
	if raw == nil {
		return noSink{}
	}
	s := &rawSink{socket: socket, raw: raw}
	s.attemptFunc = s.attempt
	return s
}

func (s *rawSink) write(buffers [][]byte) (int64, error) {
	s.buffers, s.n, s.err = buffers, 0, nil
	err := s.raw.Write(s.attemptFunc)
	s.buffers = nil
	if err != nil {
		return 0, err
	}
	return int64(s.n), s.err
}

// attempt always returns true: what cannot be written now is the caller's.
func (s *rawSink) attempt(fd uintptr) bool {
	for {
		var err error
		if len(s.buffers) == 1 {
			s.n, err = unix.Write(int(fd), s.buffers[0])
		} else {
			s.n, err = unix.Writev(int(fd), s.buffers)
		}
		s.n = max(s.n, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil && !errors.Is(err, unix.EAGAIN):
			local, remote := s.socket.LocalAddr(), s.socket.RemoteAddr()
			s.err = &net.OpError{Op: "write", Net: local.Network(), Source: local, Addr: remote, Err: os.NewSyscallError("write", err)}
		}
		return true
	}
}
