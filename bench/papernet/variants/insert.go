//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/eventloop"
)

const (
	// Around the piece there is what else a message has.
	beforeBytes, afterBytes = 64, 16
	// queuedBytes of pieces are written before the other end reads them. A socket
	// takes 208 KiB by default, in which small messages count three times.
	queuedBytes = 32 << 10
	// Pieces come from that much memory in turn: more than the first cache, less
	// than the last, as those have which a handler has just made.
	sourceBytes = 1 << 20
)

// writer sends messages with a piece of a size to the other end of a Unix socket,
// through eventloop's Writer. The same goroutine reads them, while no time is
// taken: a thread that did would take turns with it, or wake it, at random.
type writer struct {
	conn   *eventloop.Conn
	other  int
	size   int
	insert bool
	source []byte
	at     int
	sink   []byte
}

func writing(size int, insert bool) (contestant.Repeat, error) {
	w, err := newWriter(size, insert)
	if err != nil {
		return contestant.Repeat{}, err
	}
	return contestant.Repeat{Times: w.times, Close: w.close}, nil
}

func newWriter(size int, insert bool) (*writer, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	file := os.NewFile(uintptr(ends[0]), "socketpair")
	conn, err := net.FileConn(file) // It has a descriptor of its own.
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, errors.Join(err, unix.Close(ends[1]))
	}
	return &writer{
		conn: eventloop.NewConn(conn, eventloop.Config{}), other: ends[1],
		size: size, insert: insert, source: make([]byte, sourceBytes), sink: make([]byte, 256<<10),
	}, nil
}

func (w *writer) close() error { return errors.Join(w.conn.Close(), unix.Close(w.other)) }

func (w *writer) times(n int) (took time.Duration, err error) {
	together := max(1, queuedBytes/w.size)
	for n > 0 {
		batch := min(n, together)
		n -= batch
		begun := time.Now()
		for range batch {
			if err := w.send(); err != nil {
				return 0, err
			}
		}
		took += time.Since(begun)
		if err := w.drain(batch * w.messageBytes()); err != nil {
			return 0, err
		}
	}
	return took, nil
}

func (w *writer) messageBytes() int { return beforeBytes + w.size + afterBytes }

func (w *writer) send() error {
	if w.at+w.size > len(w.source) {
		w.at = 0
	}
	piece := w.source[w.at : w.at+w.size]
	w.at += w.size
	out := w.conn.Writer()
	out.Append(w.source[:beforeBytes])
	if w.insert {
		out.Insert(piece)
	} else {
		out.Append(piece)
	}
	out.Append(w.source[:afterBytes])
	return out.Flush()
}

// drain reads what was sent.
func (w *writer) drain(size int) error {
	for size > 0 {
		n, err := unix.Read(w.other, w.sink)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return os.NewSyscallError("read", err)
		case n == 0 || n > size:
			return fmt.Errorf("%d bytes arrived where %d were sent", n, size)
		default:
			size -= n
		}
	}
	return nil
}
