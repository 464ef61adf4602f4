package transport

import (
	"errors"
	"net"
	"sync"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// batchWriter writes what the state machine of a connection has to send. Whoever finds
// nobody writing writes, for others as well: what they add meanwhile goes out together. It
// does not wait for the network: what the socket does not take is left to a goroutine.
type batchWriter struct {
	conn   *eventloop.Conn
	source batchSource
	// The lock of the source guards these. writing: somebody writes.
	gathering     gathering
	writing, over bool
	// taken is how many bytes were taken to be written, accepted how many of them the network
	// has.
	taken, accepted int64
	// Only who writes uses these: an empty buffer, and pieces of a full one.
	spare  *linkbuf.Buffer
	pieces [][]byte
}

// batchSource is where a batchWriter gets its bytes.
type batchSource interface {
	sync.Locker
	// waitsLocked reports whether something is to be written.
	waitsLocked() bool
	// swapLocked takes away what waits, and leaves an empty buffer in its place. swapped
	// follows, without the lock.
	swapLocked(empty *linkbuf.Buffer) (full *linkbuf.Buffer)
	swapped()
	// writesLocked is told when the writing begins, rests when nothing waits any more, or
	// nothing more can be written because of err.
	writesLocked()
	rests(err error)
	// crowding returns how many calls are likely to have something to send.
	crowding() int
}

func (w *batchWriter) init(conn *eventloop.Conn, source batchSource, pool *linkbuf.Pool) {
	w.conn, w.source, w.spare = conn, source, linkbuf.New(pool)
}

func (w *batchWriter) idleLocked() bool { return w.writing || w.over || !w.source.waitsLocked() }

// flush writes what waits, if nobody does. It may let others add to it first.
func (w *batchWriter) flush() {
	source := w.source
	crowd := source.crowding()
	source.Lock()
	if w.idleLocked() || !w.gathering.readyLocked(crowd, source) || w.idleLocked() {
		source.Unlock()
		return
	}
	w.beginLocked()
	source.Unlock()
	for range sendRounds {
		full := w.take()
		if full == nil {
			return
		}
		n, err := w.conn.TryWriteBuffers(w.pieces)
		if rest := linkbuf.Advance(w.pieces, n); err == nil && len(rest) > 0 {
			go w.writeWaiting(full, rest, n)
			return
		}
		if !w.wrote(full, n, err) {
			return
		}
	}
	go w.writeWaiting(nil, nil, 0)
}

// flushSoon has a goroutine write what waits, if nobody does. What is sent until that runs
// goes with it.
func (w *batchWriter) flushSoon() {
	w.source.Lock()
	if w.idleLocked() {
		w.source.Unlock()
		return
	}
	w.beginLocked()
	w.source.Unlock()
	go w.writeWaiting(nil, nil, 0)
}

func (w *batchWriter) beginLocked() {
	w.writing = true
	w.source.writesLocked()
}

// writeWaiting writes until nothing waits, waiting for the peer if it must. full is what
// it begins with, of which rest is not written.
func (w *batchWriter) writeWaiting(full *linkbuf.Buffer, rest [][]byte, written int64) {
	for {
		if full == nil {
			if full = w.take(); full == nil {
				return
			}
			rest, written = w.pieces, 0
		}
		n, err := w.conn.WriteRest(rest, written)
		if !w.wrote(full, written+n, err) {
			return
		}
		full = nil
	}
}

// take takes away what waits, into pieces. It returns nil, and the writing has ended, if
// there is nothing.
func (w *batchWriter) take() *linkbuf.Buffer {
	source := w.source
	source.Lock()
	if w.over || !source.waitsLocked() {
		w.endLocked()
		source.Unlock()
		source.rests(nil)
		return nil
	}
	w.gathering.takenLocked()
	full := source.swapLocked(w.spare)
	w.spare = nil
	w.taken += int64(full.Len())
	source.Unlock()
	source.swapped()
	w.pieces = full.Slices(w.pieces[:0])
	return full
}

// wrote follows a write of n bytes of what was taken. It returns false if that was the last
// one.
func (w *batchWriter) wrote(full *linkbuf.Buffer, n int64, err error) bool {
	full.Release()
	clear(w.pieces)
	if cap(w.pieces) > sendKept {
		w.pieces = nil
	}
	source := w.source
	source.Lock()
	w.spare = full
	w.accepted += n
	w.over = w.over || err != nil
	over := w.over
	if over {
		w.endLocked()
	}
	source.Unlock()
	if over {
		if errors.Is(err, net.ErrClosed) {
			err = nil
		}
		source.rests(err)
	}
	return !over
}

// writtenLocked returns how many bytes the peer may have: all of a batch of which nobody has
// said what became of it.
func (w *batchWriter) writtenLocked() int64 {
	if w.writing {
		return w.taken
	}
	return w.accepted
}

func (w *batchWriter) endLocked() {
	w.writing = false
	if w.over {
		w.dropLocked()
	}
}

// closeLocked follows the end of the connection.
func (w *batchWriter) closeLocked() {
	w.over = true
	if !w.writing {
		w.dropLocked()
	}
}

func (w *batchWriter) dropLocked() {
	if w.spare != nil {
		w.spare.Release()
		w.spare = nil
	}
}
