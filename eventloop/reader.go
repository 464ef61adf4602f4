package eventloop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

const (
	// waitBytes is the room in which a connection waits that can only wait
	// inside a read: enough for a 1 KiB message and its headers, and cheap
	// enough for 10,000 idle connections, 20 MB.
	waitBytes = 2 << 10

	// readBytes is the room for one read of a socket that is known to be
	// readable, and readBytesMin what must be left of it before more is taken.
	// A loopback read of 64 KiB costs twice one of 1 byte; more does not make
	// it cheaper.
	readBytes    = 64 << 10
	readBytesMin = 16 << 10

	// keepBytes is what a dialled connection keeps when it waits.
	keepBytes = 64 << 10
)

// Reader reads what has arrived on a connection, without copying it. The slices
// that it returns are valid until the handler returns; on a dialled connection
// until the next call that consumes or waits. They must not be written to. Keep makes an
// exception.
//
// On a served connection a Reader never waits: it returns ErrMore if too few
// bytes are there. It belongs to the handler: no other goroutine may use it, not
// even while the handler waits for that one. On a dialled connection it waits
// until the read deadline and belongs to one goroutine at a time.
//
// Whoever asks for more than Config.ReadBufferBytes, which are not there, gets
// another error than ErrMore: Peek, Next and Skip for such a number of bytes,
// Until if so many are there and the delimiter is not. One read may bring more
// than that, so a handler with a shorter limit of its own needs both: ErrMore with
// Len at that limit, and every other error, say that a message is too long.
//
// A method that fails has consumed nothing.
type Reader struct {
	conn *Conn

	// borrowed: buf belongs to the goroutine that polls. shared: handlers that have
	// let go of the connection look into it, so it is not used again.
	borrowed, shared bool
	// done: the handler does not look any more into what it has read. progress: it
	// has consumed something, for good.
	done, progress bool
	// filled: the last read of a dialled connection took all the room there was.
	filled bool
	// buf[start:end] is what arrived and was not consumed.
	buf        []byte
	start, end int

	// mark is where the handler continues after ErrMore: start when it was
	// called, or at the last Commit.
	mark int

	// want is how many bytes the handler needs to go on, if more than there are.
	want int

	// offset is the position of buf[0] in the stream, by which a search
	// recognises what it has seen before; searched is nil before the first one in
	// vain.
	offset   uint64
	searched *search
}

// search remembers that delimiter is not among the length bytes at offset.
// Without it a peer that sends a long line byte by byte would make the handler
// look at every byte again for each new one.
type search struct {
	offset    uint64
	length    int
	delimiter byte
}

// Len returns how many bytes can be read without waiting.
func (r *Reader) Len() int { return r.end - r.start }

// Arrived returns when the last of the bytes that are there were read: not when the
// handler is called, which may have waited for a processor. A poller looks at the clock
// once for several connections, eight handlers before at most. Bytes that the handler
// has left may be older. It is zero on a dialled
// connection, and before the first byte.
func (r *Reader) Arrived() time.Time {
	if s := r.conn.served; s != nil {
		return s.readAt
	}
	return time.Time{}
}

// Buffered returns all bytes that can be read without waiting, and consumes
// none.
func (r *Reader) Buffered() []byte { return r.buf[r.start:r.end:r.end] }

// Peek returns the next n bytes and does not consume them. On a dialled
// connection the error is io.EOF if the peer closed it and nothing is left,
// io.ErrUnexpectedEOF if less than n bytes are left.
func (r *Reader) Peek(n int) ([]byte, error) {
	if err := r.require(n); err != nil {
		return nil, err
	}
	return r.buf[r.start : r.start+n : r.start+n], nil
}

// Next returns the next n bytes and consumes them. It fails as Peek does.
func (r *Reader) Next(n int) ([]byte, error) {
	next, err := r.Peek(n)
	r.start += len(next)
	if err == nil {
		r.want = 0
	}
	return next, err
}

// Skip consumes the next n bytes. It fails as Peek does.
func (r *Reader) Skip(n int) error {
	_, err := r.Next(n)
	return err
}

// Until returns the bytes up to and including the first delimiter, and consumes
// them. It fails as Peek does. Bytes that it has searched in vain are not
// searched again when more have arrived. What it returns may be longer than
// Config.ReadBufferBytes, by what one read brings.
func (r *Reader) Until(delimiter byte) ([]byte, error) {
	for {
		seen := 0
		if s := r.searched; s != nil && s.delimiter == delimiter && s.offset == r.offset+uint64(r.start) {
			seen = s.length
		}
		if i := bytes.IndexByte(r.buf[r.start+seen:r.end], delimiter); i >= 0 {
			return r.Next(seen + i + 1)
		}
		if r.searched == nil {
			r.searched = new(search)
		}
		*r.searched = search{r.offset + uint64(r.start), r.Len(), delimiter}
		if err := r.require(r.Len() + 1); err != nil {
			return nil, err
		}
	}
}

// Expect says that nothing can be done before n bytes are there, as a method does
// that wants so many and fails with ErrMore. The Reader may then make room for
// them at once, but never more than eight times what has arrived.
func (r *Reader) Expect(n int) { r.want = n }

// Commit makes what was consumed so far consumed for good, also if the handler
// returns ErrMore.
func (r *Reader) Commit() {
	if r.start != r.mark {
		r.mark, r.progress = r.start, true
	}
}

// Done says that the handler has copied what it needs of what it has read, and reads
// no more in this call. A call that lets go of its connection (Conn.Detach) then
// keeps no memory of the connection's.
func (r *Reader) Done() { r.done = true }

// Keep leaves the memory of the n bytes that the handler read last to the handler for good, to
// look at and to change, and reports whether it did: if they are three quarters of memory that
// would not be used again, as of messages beyond 2 MiB. Else they have to be copied to be kept
// beyond the call. What is kept is consumed, and Done is not for who has kept something. On a
// dialled connection nothing can be kept like that.
func (r *Reader) Keep(n int) bool {
	if r.conn.listener == nil || r.borrowed || n > r.start || !worthKeeping(n, len(r.buf)) {
		return false
	}
	r.Commit()
	r.shared = true
	return true
}

// keepShare is the share of what is kept that may be wasted with it: a third.
const keepShare = 3

// worthKeeping reports whether memory of that size may go with n bytes of it. Memory that is
// used again may not: to make it anew takes longer than to copy what is in it.
func worthKeeping(n, size int) bool {
	return n <= size && size-n <= n/keepShare && !linkbuf.Recycles(size)
}

// require makes sure that n bytes are there, or tells why they are not.
func (r *Reader) require(n int) error {
	switch {
	case n < 0:
		return fmt.Errorf("eventloop reader: negative length (got %d)", n)
	case n <= r.Len():
		return nil
	case n > r.conn.config.ReadBufferBytes:
		return fmt.Errorf("eventloop reader: %w (limit %d, got %d)", errTooLong, r.conn.config.ReadBufferBytes, n)
	case r.conn.served != nil:
		r.want = n
		return ErrMore
	}
	r.want = n
	for r.Len() < n {
		r.settle()
		_, err := r.conn.fill()
		if err != nil && r.Len() < n {
			if errors.Is(err, io.EOF) && r.Len() > 0 {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// read is Conn.Read for buffered bytes. It commits also if there are none: bytes
// that the handler has consumed must not come back behind those that it reads
// from the socket now.
func (r *Reader) read(p []byte) int {
	n := copy(p, r.buf[r.start:r.end])
	r.start += n
	r.Commit()
	return n
}

// --- memory ---

// lender returns what a dialled connection takes room of size bytes from, nil if that comes
// from the garbage collector and is left to it. What it has when it closes is left to it in
// any case: Close may come from any goroutine while another looks at a slice.
func (r *Reader) lender(size int) *linkbuf.Pool {
	if size <= keepBytes || r.conn.config.Memory == nil {
		return nil
	}
	return &r.conn.config.Memory.pool
}

// room returns the free memory behind the content, at least least bytes. If
// there is less, the content moves, into first bytes or twice its own length:
// memory follows what has arrived, never what a peer announced.
func (r *Reader) room(first, least int) []byte {
	unread := r.Len()
	switch {
	case r.filled && len(r.buf) < readBytes:
		// More than that arrives at once: twice the room halves the reads. Not more than
		// keepBytes, which settle gives back: it would be taken again at once.
		r.move(max(first, min(2*len(r.buf), readBytes), r.grown()))
	case 0 < r.start && !r.shared && unread <= r.start && least <= len(r.buf)-unread:
		// At least as much was consumed as is moved, so the move is paid for.
		r.rebase(r.buf)
	case 0 < len(r.buf) && least <= len(r.buf)-r.end:
	default:
		r.move(max(first, r.grown()))
	}
	return r.buf[r.end:]
}

// wantFactor bounds the memory for bytes that are only announced, as a multiple
// of those that have arrived: few copies for an honest peer, and little for
// one that announces much and sends little.
const wantFactor = 8

// grown returns how much memory the content should have next.
func (r *Reader) grown() int {
	unread := r.Len()
	switch {
	case unread < waitBytes || r.want <= unread:
		return 2 * unread
	case r.want <= wantFactor*unread:
		return max(r.want, 2*unread)
	default:
		return wantFactor / 2 * unread
	}
}

// Memory returns how many bytes of memory the Reader holds for what has arrived.
func (r *Reader) Memory() int {
	if r.borrowed {
		return r.Len()
	}
	return len(r.buf)
}

// Shrink gives back memory that the unread bytes do not need. It is for a
// dialled connection that will not be used for a while; a served one does it by
// itself. Slices returned before become invalid.
func (r *Reader) Shrink() { r.settle() }

// settle gives back memory that the content does not need while the connection
// waits.
func (r *Reader) settle() {
	unread := r.Len()
	switch {
	case r.conn.listener == nil && len(r.buf) <= keepBytes:
	case unread == 0:
		r.release()
	case len(r.buf) > max(4*unread, 2*r.grown()) && len(r.buf) > waitBytes:
		// Four times, and growing by two: a message that arrives piece by piece
		// is not copied to and fro.
		r.move(unread)
	}
}

// move takes memory of at least size bytes for the content.
func (r *Reader) move(size int) {
	var memory []byte
	if l := r.conn.listener; l != nil {
		memory = l.pool.Get(size)
	} else if lender := r.lender(size); lender != nil {
		memory = lender.Lend(size)
	} else {
		memory = make([]byte, size)
	}
	old := r.buf
	r.rebase(memory[:cap(memory)])
	r.free(old)
}

// rebase puts the content at the start of memory, which may be where it is.
func (r *Reader) rebase(memory []byte) {
	n := copy(memory, r.buf[r.start:r.end])
	r.offset += uint64(r.start)
	r.buf, r.start, r.end, r.mark = memory, 0, n, 0
}

// release gives back all memory and what is in it.
func (r *Reader) release() {
	old := r.buf
	r.offset += uint64(r.end)
	r.buf, r.start, r.end, r.mark = nil, 0, 0, 0
	r.free(old)
}

func (r *Reader) free(memory []byte) {
	switch {
	case r.borrowed:
		r.borrowed = false
	case r.shared:
		r.shared = false
		r.conn.listener.pool.Forget(memory)
	case memory == nil:
	case r.conn.listener != nil:
		r.conn.listener.pool.Put(memory)
	default:
		if lender := r.lender(len(memory)); lender != nil {
			lender.Return(memory)
		}
	}
}

// borrow makes a Reader without memory read into somebody else's, until keep.
func (r *Reader) borrow(memory []byte) {
	if r.buf == nil {
		r.buf, r.borrowed = memory, true
	}
}

// share leaves the memory to the handler that was called in that turn, the last one, which
// goes on looking into it.
func (r *Reader) share(turn uint32) {
	if r.borrowed {
		// The goroutine of that handler keeps it.
		r.keep()
		return
	}
	earlier := r.shared // an earlier handler may look into it still
	r.shared = earlier || r.buf != nil && !r.done
	if r.Len() > 0 {
		return
	}
	if r.shared && !earlier && len(r.buf) >= readBytes {
		// It holds one long message. Left to the garbage collector, an echo of 1 MiB took
		// 872 us of the server's processor in place of 614 (decision 28).
		r.borrowed = r.conn.listener.left.add(leftBy{r.conn, turn}, r.buf) // not the Reader's any more
		r.shared = !r.borrowed
	}
	r.release()
}

// keep puts what is unread into memory of the Reader's own.
func (r *Reader) keep() {
	switch {
	case !r.borrowed:
	case r.Len() == 0:
		r.release()
	case r.want > r.Len() && r.Len() >= waitBytes:
		r.move(r.grown())
	default:
		r.move(r.Len())
	}
}
