package thrift

// counter is what a Writer writes to that finds out how long a message is: memory that
// is used again and again.
type counter struct {
	// total is how much was written to memory that is used for something else by now.
	total   int
	scratch [counterBytes]byte
	// beside is for pieces that scratch has no room for.
	beside []byte
}

const (
	// counterBytes is small, because every Append makes it.
	counterBytes = 128
	// counterNumbers is how many bytes of numbers are written at once.
	counterNumbers = 4 << 10
)

// room counts b and returns memory with room for n bytes.
func (c *counter) room(b []byte, n int) []byte {
	c.total += len(b)
	switch {
	case n <= len(c.scratch):
		return c.scratch[:0]
	case n > len(c.beside):
		c.beside = make([]byte, n)
	}
	return c.beside[:0]
}

// size returns how many bytes whole has on the wire, as far as that can be known, 0 if
// they are more than it may have. Structs with methods say it in a tenth of the time
// that writing takes.
func (w *Writer) size() int {
	sized, ok := w.whole.(interface{ SizeThrift() int })
	if !ok {
		return w.count()
	}
	size := sized.SizeThrift()
	if size < 0 || size > w.bytes {
		return 0
	}
	return size
}

// count returns how many bytes whole has on the wire, 0 if they are more than it may
// have, or if it cannot be written. It writes it, into next to nothing: half as much
// work as making memory that is too short again and again, and no more than the limit
// of a message, however often values share their parts.
func (w *Writer) count() int {
	before := *w
	w.start, w.depth, w.counter, w.whole = 0, w.maxDepth, &w.tools.counter, nil
	w.counter.total = 0
	b := before.whole.WriteThrift(w, w.counter.scratch[:0])
	size, failed := w.counter.total+len(b), w.err != nil
	*w = before
	if failed {
		return 0
	}
	return size
}

// appending is a Writer with what appendTo needs, in one piece of memory.
type appending struct {
	writer  Writer
	counter counter
}

// measured returns b in memory for the whole message. Room for fields that could come
// next may be more than what does come, so there is some to spare; it is less than the
// allocator's classes round up by.
func (w *Writer) measured(b []byte, n int) []byte {
	const spareMost = 128
	size := w.size()
	w.whole = nil
	return append(make([]byte, 0, max(w.start+size+min(size/8, spareMost), len(b)+n)), b...)
}
