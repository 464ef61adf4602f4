//go:build unix

package eventloop

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// rawSource reads a socket with memory that is taken when the socket is
// readable, so a connection that waits holds none.
type rawSource struct {
	socket net.Conn
	raw    syscall.RawConn
	reader *Reader
	// attempt is the method of this name, bound once instead of at every read.
	attemptFunc func(fd uintptr) bool
	n           int
	err         error
	// spin is for connections whose reader looks again before it waits; nil for others.
	spin *readSpin
}

// newRawSource returns nil if socket is not a plain socket.
func newRawSource(socket net.Conn, reader *Reader) *rawSource {
	raw := rawSocket(socket)
	if raw == nil {
		return nil
	}
	s := &rawSource{socket: socket, raw: raw, reader: reader}
	s.attemptFunc = s.attempt
	return s
}

// newSpinningSource returns the source of a dialled connection that spins, nil if it should not.
func newSpinningSource(c *Conn) *rawSource {
	spin := newReadSpin(c.config)
	if spin == nil {
		return nil
	}
	source := newRawSource(c.socket, &c.reader)
	if source != nil {
		source.attemptFunc, source.spin = source.attemptSpinning, spin
	}
	return source
}

// fill reads once into the Reader.
func (s *rawSource) fill() (int, error) {
	s.n, s.err = 0, nil
	if err := s.raw.Read(s.attemptFunc); err != nil {
		return 0, err
	}
	return s.n, s.err
}

// fillSpinning is fill for a dialled connection that spins. Like others of those it keeps its
// memory while it waits, and says what went wrong as they do.
func (s *rawSource) fillSpinning() (int, error) {
	s.spin.room = s.reader.room(waitBytes, 1)
	n, err := s.fill()
	s.reader.filled = n == len(s.spin.room)
	s.spin.room = nil
	s.spin.over()
	if failed, ok := err.(*net.OpError); ok {
		failed.Op = "read"
	}
	return n, err
}

// attempt returns false if nothing can be read yet.
func (s *rawSource) attempt(fd uintptr) bool {
	n, err := retryRead(int(fd), s.reader.room(readBytes, readBytesMin))
	if errors.Is(err, syscall.EAGAIN) {
		s.reader.settle()
		return false
	}
	s.took(n, err)
	return true
}

// attemptSpinning is attempt for fillSpinning.
func (s *rawSource) attemptSpinning(fd uintptr) bool {
	n, err := retryRead(int(fd), s.spin.room)
	if err == syscall.EAGAIN {
		n, err = s.spin.again(int(fd), s.spin.room)
	}
	if err == syscall.EAGAIN {
		return false
	}
	s.took(n, err)
	return true
}

// took notes what a read has brought.
func (s *rawSource) took(n int, err error) {
	switch {
	case err != nil:
		s.err = s.readError(err)
	case n == 0:
		s.err = io.EOF
	default:
		s.n = n
		s.reader.end += n
	}
}

func (s *rawSource) readError(err error) error {
	local, remote := s.socket.LocalAddr(), s.socket.RemoteAddr()
	return &net.OpError{Op: "read", Net: local.Network(), Source: local, Addr: remote, Err: os.NewSyscallError("read", err)}
}

// rawSocket returns access to the descriptor of a stream socket, nil for
// everything else. It looks for exact types: a type that embeds one of these
// has the method SyscallConn too, but may read something else than the socket.
func rawSocket(conn net.Conn) syscall.RawConn {
	var raw syscall.RawConn
	var err error
	switch conn := conn.(type) {
	case *net.TCPConn:
		raw, err = conn.SyscallConn()
	case *net.UnixConn:
		if conn.LocalAddr().Network() != "unix" { // unixpacket keeps message boundaries
			return nil
		}
		raw, err = conn.SyscallConn()
	}
	if err != nil {
		return nil
	}
	return raw
}
