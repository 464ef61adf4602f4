package linkbuf

import (
	"fmt"
	"io"

	"github.com/fulmar-rpc/fulmar/internal/assert"
)

// compactAfter is how many consumed segments a Buffer carries along, 1 KiB,
// before it looks whether moving the rest pays.
const compactAfter = 32

// reading is what a Buffer needs to be read and sliced.
type reading struct {
	// head is the first segment with unread content, consumed how much of it was
	// read. A segment in front of head is kept only if it owns the chunk of a
	// later one; the others are empty.
	head     int
	consumed int
	// joined is the memory in which Peek puts bytes of several segments together.
	joined []byte
	// shared has the chunks of which Slices have a share, by their first byte.
	shared map[*byte]*sharedChunk
}

// start returns the segment with the first unread byte, and how much of it was
// read.
func (b *Buffer) start() (segment, consumed int) {
	if b.reading == nil {
		return 0, 0
	}
	return b.reading.head, b.reading.consumed
}

func (b *Buffer) startReading() *reading {
	if b.reading == nil {
		b.reading = new(reading)
	}
	return b.reading
}

// Peek returns the next n bytes, for reading, and does not consume them. They
// are copied only if they lie in several pieces; the memory for that is the
// Buffer's, once and no larger than its content. They are valid until the next
// Peek, Skip, Truncate or Release. The error is io.ErrUnexpectedEOF, wrapped, if
// less than n bytes are there.
func (b *Buffer) Peek(n int) ([]byte, error) {
	if err := checkLength("peek", n, b.length); err != nil {
		return nil, err
	}
	b.dropJoined()
	if n == 0 {
		return nil, nil
	}
	i, consumed := b.start()
	for len(b.segments[i].bytes) == consumed {
		i, consumed = i+1, 0
	}
	if first := b.segments[i].bytes[consumed:]; len(first) >= n {
		return first[:n:n], nil
	}
	joined := b.pool.Get(n)
	for ; len(joined) < n; i, consumed = i+1, 0 {
		piece := b.segments[i].bytes[consumed:]
		joined = append(joined, piece[:min(len(piece), n-len(joined))]...)
	}
	b.startReading().joined = joined
	return joined[:n:n], nil
}

// Skip consumes the next n bytes, and gives back chunks of which nothing is
// left. It fails as Peek does, and has consumed nothing then.
func (b *Buffer) Skip(n int) error {
	if err := checkLength("skip", n, b.length); err != nil {
		return err
	}
	if n == b.length {
		b.Release()
		return nil
	}
	b.dropJoined()
	b.length -= n
	for r := b.startReading(); n > 0; {
		s := &b.segments[r.head]
		took := min(n, len(s.bytes)-r.consumed)
		if assert.Enabled && s.origin != inserted && !b.isShared(r.head) {
			spoil(s.bytes[r.consumed : r.consumed+took])
		}
		n -= took
		if r.consumed += took; r.consumed == len(s.bytes) {
			b.passHead()
		}
	}
	b.compact()
	return nil
}

// passHead goes on to the next segment, which exists.
func (b *Buffer) passHead() {
	r := b.reading
	if s := &b.segments[r.head]; s.origin == inserted {
		s.check.verify(s.bytes)
		*s = segment{origin: inserted}
	}
	r.head++
	r.consumed = 0
	if b.segments[r.head].origin != chunkStart {
		return
	}
	if i := b.ownerOf(r.head - 1); i >= 0 {
		b.dropChunk(b.segments[i].bytes)
		b.segments[i] = segment{origin: inserted}
	}
}

// compact forgets consumed segments once they are half of all, so each is moved
// once at most for one that was read.
func (b *Buffer) compact() {
	r := b.reading
	if r.head < compactAfter || r.head < len(b.segments)/2 {
		return
	}
	kept := 0
	if b.segments[r.head].origin != chunkStart {
		if i := b.ownerOf(r.head - 1); i >= 0 {
			b.segments[0] = b.segments[i]
			kept = 1
		}
	}
	count := kept + copy(b.segments[kept:], b.segments[r.head:])
	clear(b.segments[count:])
	b.segments = b.segments[:count]
	r.head = kept
}

// ownerOf returns the segment that owns the chunk of segment i, or of the one
// before it that is in a chunk; -1 if there is none.
func (b *Buffer) ownerOf(i int) int {
	for i >= 0 && b.segments[i].origin != chunkStart {
		i--
	}
	return i
}

// sharedChunk returns the count of a chunk's shares, nil if it has none.
func (b *Buffer) sharedChunk(chunk []byte) *sharedChunk {
	if b.reading == nil || len(b.reading.shared) == 0 {
		return nil
	}
	return b.reading.shared[firstByte(chunk)]
}

// isShared reports whether a Slice may cover the chunk of segment i. It cannot
// become true meanwhile: the first Slice of a chunk comes from its Buffer.
func (b *Buffer) isShared(i int) bool {
	if b.reading == nil || len(b.reading.shared) == 0 {
		return false
	}
	shared := b.sharedChunk(b.segments[b.ownerOf(i)].bytes)
	return shared != nil && shared.shares.Load() > 1
}

func (b *Buffer) dropJoined() {
	if b.reading != nil && b.reading.joined != nil {
		b.pool.Put(b.reading.joined)
		b.reading.joined = nil
	}
}

// checkLength fails if there are no n bytes. A peer may have sent n.
func checkLength(what string, n, there int) error {
	switch {
	case n < 0:
		return fmt.Errorf("linkbuf %s: negative length (got %d)", what, n)
	case n > there:
		return fmt.Errorf("linkbuf %s: %w (limit %d, got %d)", what, io.ErrUnexpectedEOF, there, n)
	default:
		return nil
	}
}
