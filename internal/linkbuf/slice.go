package linkbuf

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/fulmar-rpc/fulmar/internal/assert"
)

// Slice is a part of a Buffer's content that stays as it is when the Buffer
// goes on, is released or is used again. It is not a copy: it has a share of
// the chunks that it covers, which go back to the pool with the last share.
// Inserted bytes in it are still the caller's, who must not change them.
//
// Methods must be called by one goroutine at a time; that need not be the one
// of the Buffer, or of other Slices of the same bytes. A Slice must be released
// once; it must not be copied.
type Slice struct {
	pieces []piece
	// single is where a Slice of one piece keeps it, as most do.
	single   [1]piece
	length   int
	released bool
}

// piece is a part of a segment. chunk is nil if that was inserted.
type piece struct {
	bytes []byte
	chunk *sharedChunk
	check contentCheck
}

// sharedChunk counts the shares of a chunk: one of each piece of a Slice, and
// the Buffer's. It is safe for concurrent use.
type sharedChunk struct {
	pool   *Pool
	chunk  []byte
	shares atomic.Int64
}

func (s *sharedChunk) release() {
	left := s.shares.Add(-1)
	assert.That(left >= 0, "linkbuf: a chunk was given back more often than it was shared")
	if left == 0 {
		s.pool.Put(s.chunk)
	}
}

// Slice returns the bytes from offset from up to offset to, without copying.
// The error is io.ErrUnexpectedEOF, wrapped, if they are not all there.
func (b *Buffer) Slice(from, to int) (*Slice, error) {
	if err := checkRange(from, to, b.length); err != nil {
		return nil, err
	}
	out := newSlice()
	i, consumed := b.start()
	owner := b.ownerOf(min(i, len(b.segments)-1))
	for ; to > 0; i, consumed = i+1, 0 {
		s := &b.segments[i]
		if s.origin == chunkStart {
			owner = i
		}
		content := s.bytes[consumed:]
		if first, end := max(from, 0), min(to, len(content)); first < end {
			var chunk *sharedChunk
			if s.origin != inserted {
				chunk = b.share(b.segments[owner].bytes)
			}
			out.add(content[first:end], chunk)
		}
		from -= len(content)
		to -= len(content)
	}
	return out, nil
}

// share returns the count of a chunk's shares, which has one for the Buffer.
func (b *Buffer) share(chunk []byte) *sharedChunk {
	if shared := b.sharedChunk(chunk); shared != nil {
		return shared
	}
	r := b.startReading()
	if r.shared == nil {
		r.shared = make(map[*byte]*sharedChunk, 1)
	}
	shared := &sharedChunk{pool: b.pool, chunk: chunk}
	shared.shares.Store(1)
	r.shared[firstByte(chunk)] = shared
	return shared
}

// firstByte is how a chunk is recognised, whatever is cut off its end.
func firstByte(chunk []byte) *byte { return &chunk[:1][0] }

func newSlice() *Slice {
	s := new(Slice)
	s.pieces = s.single[:0]
	return s
}

// add takes a share of chunk, unless it is nil.
func (s *Slice) add(content []byte, chunk *sharedChunk) {
	if chunk != nil {
		chunk.shares.Add(1)
	}
	s.pieces = append(s.pieces, piece{bytes: content[:len(content):len(content)], chunk: chunk, check: newContentCheck(content)})
	s.length += len(content)
}

// Len returns how many bytes the Slice holds.
func (s *Slice) Len() int { return s.length }

// Slices appends the content to dst, in order and without empty slices. The
// slices are for reading, and valid until Release.
func (s *Slice) Slices(dst [][]byte) [][]byte {
	assert.That(!s.released, "linkbuf: use of a Slice after Release")
	for _, p := range s.pieces {
		dst = append(dst, p.bytes)
	}
	return dst
}

// Slice returns a part of the Slice, with shares of its own. It fails as that
// of a Buffer does.
func (s *Slice) Slice(from, to int) (*Slice, error) {
	assert.That(!s.released, "linkbuf: use of a Slice after Release")
	if err := checkRange(from, to, s.length); err != nil {
		return nil, err
	}
	out := newSlice()
	for _, p := range s.pieces {
		if first, end := max(from, 0), min(to, len(p.bytes)); first < end {
			out.add(p.bytes[first:end], p.chunk)
		}
		from -= len(p.bytes)
		to -= len(p.bytes)
	}
	return out, nil
}

// Release gives the shares back. The Slice is empty then.
func (s *Slice) Release() {
	assert.That(!s.released, "linkbuf: Release of a Slice that was released before")
	for _, p := range s.pieces {
		p.check.verify(p.bytes)
	}
	for _, p := range s.pieces {
		if p.chunk != nil {
			p.chunk.release()
		}
	}
	*s = Slice{released: true}
}

func checkRange(from, to, there int) error {
	switch {
	case from < 0 || from > to:
		return fmt.Errorf("linkbuf slice: no range (from %d to %d)", from, to)
	case to > there:
		return fmt.Errorf("linkbuf slice: %w (limit %d, got %d)", io.ErrUnexpectedEOF, there, to)
	default:
		return nil
	}
}
