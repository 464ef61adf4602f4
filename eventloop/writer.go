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
	conn *Conn
	// content is nil while a served connection has nothing to write.
	content *content
}

// content is what a Writer collects, and the list of its pieces. Those of served
// connections are shared, so that an idle one has none: 144 bytes less.
type content struct {
	linkbuf.Buffer
	slices [][]byte
	// mark is how much of it is from earlier calls than the one that runs.
	mark int
}

// collect returns where the next bytes go.
func (w *Writer) collect() *content {
	if w.content == nil {
		w.content = w.conn.newContent()
	}
	return w.content
}

func (c *Conn) newContent() *content {
	if c.served == nil {
		// Not with each connection: many that were dialled have no use for it, and
		// an empty pool takes 1 KiB.
		collected := &content{}
		if c.config.Memory != nil {
			collected.Init(&c.config.Memory.pool)
		} else {
			collected.Init(linkbuf.NewPool())
		}
		return collected
	}
	if collected, ok := c.listener.contents.Get().(*content); ok {
		return collected
	}
	collected := &content{}
	collected.Init(&c.listener.pool)
	return collected
}

// drop removes everything.
func (w *Writer) drop() {
	collected := w.content
	if collected == nil {
		return
	}
	clear(collected.slices)
	if cap(collected.slices) > scratchKept {
		collected.slices = nil
	}
	collected.Release()
	collected.mark = 0
	if w.conn.served != nil {
		w.content = nil
		w.conn.listener.contents.Put(collected)
	}
}

// begin says that a call of the user begins.
func (w *Writer) begin() {
	if w.content != nil {
		w.content.mark = w.content.Len()
	}
}

// rollBack removes what the call that has begun last has written, and has not
// flushed.
func (w *Writer) rollBack() {
	if w.content != nil {
		w.content.Truncate(w.content.mark)
	}
}

// Append adds a copy of p.
func (w *Writer) Append(p []byte) { w.collect().Append(p) }

// AppendString adds a copy of s.
func (w *Writer) AppendString(s string) { w.collect().AppendString(s) }

// Reserve adds n bytes, at least 0, and returns them, to be filled in before
// Flush, all of them: they may hold anything.
func (w *Writer) Reserve(n int) []byte { return w.collect().Reserve(n) }

// Insert adds p itself, without copying. It stays the caller's, who must not
// change it before it was flushed, that is until Flush has returned or Len is 0.
// Slices of the Reader are valid until the handler returns, so whoever inserts
// one must call Flush before that.
func (w *Writer) Insert(p []byte) { w.collect().Insert(p) }

// InsertString adds s itself, without copying. Since strings never change, that
// is always right; s stays in memory until it was flushed.
func (w *Writer) InsertString(s string) { w.collect().InsertString(s) }

// Len returns how many bytes wait for Flush.
func (w *Writer) Len() int {
	if w.content == nil {
		return 0
	}
	return w.content.Len()
}

// Flush writes everything, as Conn.WriteBuffers does, and waits as that does. The
// Writer is empty afterwards, also after an error. A handler returns such an
// error, or ignores it if the connection has closed.
func (w *Writer) Flush() error {
	if w.Len() == 0 {
		return nil
	}
	w.content.slices = w.content.Slices(w.content.slices[:0])
	_, err := w.conn.WriteBuffers(w.content.slices)
	w.drop()
	return err
}
