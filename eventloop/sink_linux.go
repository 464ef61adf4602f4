package eventloop

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// rawSink writes to a socket of package net without waiting, and asks.
type rawSink struct {
	socket net.Conn
	raw    syscall.RawConn
	// conn is who asks, nil if nobody does.
	conn *Conn
	// writeFunc and askFunc are methods, bound once instead of at every use.
	writeFunc, askFunc func(fd uintptr) bool

	// These belong to whoever has the turn to write.
	buffers [][]byte
	n       int
	err     error

	// question belongs to who asks.
	question question
}

// question is what one call of ask writes and reads.
type question struct {
	buffers [][]byte
	length  int64
	// turn: the turn to write has not ended. sent: writing has been tried.
	turn, sent bool
	written    int64
	read       int
	err        error
}

func newRawSink(socket net.Conn, conn *Conn) sink {
	raw := rawSocket(socket)
	if raw == nil {
		return noSink{}
	}
	s := &rawSink{socket: socket, raw: raw, conn: conn}
	s.writeFunc, s.askFunc = s.tryWrite, s.tryAsk
	return s
}

func (s *rawSink) write(buffers [][]byte) (int64, error) {
	s.buffers, s.n, s.err = buffers, 0, nil
	err := s.raw.Write(s.writeFunc)
	s.buffers = nil
	if err != nil {
		return 0, err
	}
	return int64(s.n), s.err
}

// tryWrite always returns true: what cannot be written now is the caller's.
func (s *rawSink) tryWrite(fd uintptr) bool {
	s.n, s.err = s.send(fd, s.buffers)
	return true
}

// send writes what the socket takes at once.
func (s *rawSink) send(fd uintptr, buffers [][]byte) (int, error) {
	for {
		switch n, err := sendOnce(int(fd), linkbuf.Vector(buffers)); {
		case err == nil, errors.Is(err, unix.EAGAIN):
			return n, nil
		case !errors.Is(err, unix.EINTR):
			return 0, s.failed("write", err)
		}
	}
}

// ask writes buffers and, once the socket has taken all of them, waits for bytes to
// read, and takes them. The caller has the turn to write, which ends with the write.
//
// The poller forgets what it knows of the socket when raw.Read begins, and the
// question leaves after that. So what it reports then is news, also if that comes
// before anybody waits, and there is no need to try a read first, in vain, as package
// net does.
func (s *rawSink) ask(buffers [][]byte) (written int64, read int, err error) {
	q := &s.question
	*q = question{buffers: buffers, length: lengthOf(buffers), turn: true}
	err = s.raw.Read(s.askFunc)
	s.endTurn()
	q.buffers = nil
	if err == nil {
		err = q.err
	}
	return q.written, q.read, err
}

func (s *rawSink) endTurn() {
	if s.question.turn {
		s.question.turn = false
		s.conn.outbound.unlock()
	}
}

// tryAsk returns false while there is nothing to be read.
func (s *rawSink) tryAsk(fd uintptr) bool {
	q := &s.question
	if q.sent {
		return s.receive(fd)
	}
	q.sent = true
	if q.err = s.lookAt(fd); q.err != nil {
		s.endTurn()
		return true
	}
	n, err := s.send(fd, q.buffers)
	q.written, q.err = s.conn.outbound.tried(int64(n), err)
	s.endTurn()
	return q.written < q.length
}

// lookAt returns nil if nothing is unread and the peer has not closed, as CheckIdle.
func (s *rawSink) lookAt(fd uintptr) error {
	for {
		switch n, err := peekOnce(int(fd)); {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return s.failed("read", err)
		case n == 0:
			return io.EOF
		default:
			return ErrUnread
		}
	}
}

func (s *rawSink) receive(fd uintptr) bool {
	q, reader := &s.question, &s.conn.reader
	room := reader.room(waitBytes, 1)
	n, err := retryRead(int(fd), room)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return false
	case err != nil:
		q.err = s.failed("read", err)
	case n == 0:
		q.err = io.EOF
	}
	q.read = n
	reader.end += n
	reader.filled = n == len(room)
	return true
}

func (s *rawSink) failed(operation string, err error) error {
	local, remote := s.socket.LocalAddr(), s.socket.RemoteAddr()
	return &net.OpError{Op: operation, Net: local.Network(), Source: local, Addr: remote, Err: os.NewSyscallError(operation, err)}
}
