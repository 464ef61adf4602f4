package eventloop

import (
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// Writer collects bytes for one vectored write. It belongs to one goroutine at
// a time, on a served connection to the handler. What the handler leaves in it
// is flushed when the handler has returned and is not called again at once, so
// the replies to requests that arrived together leave together. Other goroutines
// use Conn.WriteBuffers; their bytes come before or after a flush.
//
// OnOpen and OnEOF may use it too, and must call Flush themselves. It has no
// limit of its own: a handler whose replies to one message are long calls Flush
// in between.
//
// Whoever writes to it on a dialled connection must call Flush, which gives the
// memory back also when it fails.
type Writer struct {
	conn   *Conn
	buffer linkbuf.Buffer
	slices [][]byte
}

// Append adds a copy of p.
func (w *Writer) Append(p []byte) { w.buffer.Append(p) }

// AppendString adds a copy of s.
func (w *Writer) AppendString(s string) { w.buffer.AppendString(s) }

// Reserve adds n bytes, at least 0, and returns them, to be filled in before
// Flush, all of them: they may hold anything.
func (w *Writer) Reserve(n int) []byte { return w.buffer.Reserve(n) }

// Insert adds p itself, without copying. It stays the caller's, who must not
// change it before it was flushed, that is until Flush has returned or Len is 0.
// Slices of the Reader are valid until the handler returns, so whoever inserts
// one must call Flush before that.
func (w *Writer) Insert(p []byte) { w.buffer.Insert(p) }

// InsertString adds s itself, without copying. Since strings never change, that
// is always right; s stays in memory until it was flushed.
func (w *Writer) InsertString(s string) { w.buffer.InsertString(s) }

// Len returns how many bytes wait for Flush.
func (w *Writer) Len() int { return w.buffer.Len() }

// Flush writes everything, as Conn.WriteBuffers does, and waits as that does. The
// Writer is empty afterwards, also after an error. A handler returns such an
// error, or ignores it if the connection has closed.
func (w *Writer) Flush() error {
	if w.buffer.Len() == 0 {
		return nil
	}
	w.slices = w.buffer.Slices(w.slices[:0])
	_, err := w.conn.WriteBuffers(w.slices)
	clear(w.slices)
	if cap(w.slices) > scratchKept {
		w.slices = nil
	}
	w.buffer.Release()
	return err
}
