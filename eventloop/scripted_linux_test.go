package eventloop

import (
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// scriptedSocket is a polled socket whose kernel does what a test says: a system
// call lasts until then. It treats its end and deadlines as socket does.
type scriptedSocket struct {
	net.Conn // nil; reading is not scripted

	mu                              sync.Mutex
	changed                         *sync.Cond
	shut, shutWrite, reset, expired bool
	// inCall: write(2) has been called with pending bytes, waiting: for room.
	inCall, waiting bool
	pending         int
	// does is the next step of the kernel, "" while there is none; full: it took
	// nothing.
	does string
	full bool
	wire []byte
	// turns counts how often somebody had to wait for the token.
	turns int
}

func newScriptedSocket() *scriptedSocket {
	s := &scriptedSocket{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// change lets something happen to the socket.
func (s *scriptedSocket) change(what func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
	s.changed.Broadcast()
}

func (s *scriptedSocket) unusableLocked() error {
	switch {
	case s.shut:
		return net.ErrClosed
	case s.expired:
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}

func (s *scriptedSocket) write(buffers [][]byte) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.unusableLocked(); err != nil {
		return 0, err
	}
	s.inCall, s.pending = true, int(lengthOf(buffers))
	for s.does == "" && !s.reset && !s.shutWrite {
		s.changed.Wait()
	}
	does := s.does
	s.inCall, s.pending, s.does = false, 0, ""
	switch {
	case s.reset:
		return 0, unix.ECONNRESET
	case s.shutWrite:
		return 0, unix.EPIPE
	case does == "the kernel takes nothing":
		s.full = true
		return 0, nil
	}
	taken := 0
	for _, b := range buffers {
		if taken > 0 && does == "the kernel takes a part" {
			break
		}
		if does == "the kernel takes a part" {
			b = b[:1]
		}
		taken += len(b)
		s.wire = append(s.wire, b...)
	}
	return int64(taken), nil
}

func (s *scriptedSocket) writeBuffers(buffers *[][]byte) (written int64, err error) {
	for len(*buffers) > 0 {
		if err := s.waitForRoom(); err != nil {
			return written, err
		}
		n, err := s.write(*buffers)
		written += n
		if *buffers = linkbuf.Advance(*buffers, n); err != nil {
			return written, err
		}
	}
	return written, nil
}

func (s *scriptedSocket) waitForRoom() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.full && !s.reset && s.unusableLocked() == nil {
		s.waiting = true
		s.changed.Wait()
	}
	s.full, s.waiting = false, false
	return s.unusableLocked()
}

func (s *scriptedSocket) waits() { s.change(func() { s.turns++ }) }

func (s *scriptedSocket) Close() error {
	err := net.ErrClosed
	s.change(func() {
		if !s.shut {
			s.shut, err = true, nil
		}
	})
	return err
}

func (s *scriptedSocket) CloseWrite() error {
	s.change(func() { s.shutWrite = !s.shut })
	return nil
}

func (s *scriptedSocket) SetWriteDeadline(t time.Time) error {
	var err error
	s.change(func() {
		if s.shut {
			err = net.ErrClosed
			return
		}
		s.expired = !t.IsZero() && !t.After(time.Now())
	})
	return err
}

// scriptedConn returns a served connection with two calls in flight.
func scriptedConn(l *Listener) (*Conn, *scriptedSocket) {
	socket := newScriptedSocket()
	c := newConn(socket, &l.config)
	c.listener = l
	c.served = &served{owned: true, holds: 2}
	c.inFlight.Store(2)
	return c, socket
}

func (s *scriptedSocket) RemoteAddr() net.Addr { return &net.TCPAddr{} } // for the log
