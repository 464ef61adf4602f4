package linkbuf

import "github.com/fulmar-rpc/fulmar/internal/assert"

// Chunks start at 2 KiB, which holds a 1 KiB message with its headers, and
// grow with what is already written, so at most half of the memory is unused.
// They stop growing at 64 KiB: a larger chunk saves nothing (96 pieces carry
// 6 MiB, and one vectored write takes 1,024) and would wait in the pool.
const (
	chunkBytesFirst = 2 << 10
	chunkBytesLast  = 64 << 10
)

// segmentsKept bounds the list that a Buffer keeps when it is released, 2 KiB.
const segmentsKept = 64

// Buffer is a chain of bytes to be sent. Methods must be called by one
// goroutine at a time. A Buffer that was written to must be released; it must
// not be copied.
type Buffer struct {
	pool     *Pool
	segments []segment
	// free is the unused end of the newest chunk; its length is 0.
	free   []byte
	length int
}

// segment is a run of content. Only the bytes up to its length are content;
// the capacity reaches to the end of the chunk, over what later segments hold.
type segment struct {
	bytes  []byte
	origin origin
}

type origin uint8

const (
	// chunkStart is the first segment in a chunk. It owns the chunk.
	chunkStart origin = iota
	// chunkRest is a further segment in a chunk, after an inserted one.
	chunkRest
	// inserted is a slice of the caller's.
	inserted
)

// New returns an empty Buffer that takes its chunks from pool.
func New(pool *Pool) *Buffer {
	return &Buffer{pool: pool}
}

// Init makes a Buffer that is embedded in another struct ready to use.
func (b *Buffer) Init(pool *Pool) {
	assert.That(len(b.segments) == 0, "linkbuf: Init of a Buffer in use")
	b.pool = pool
}

// Len returns how many bytes the Buffer holds.
func (b *Buffer) Len() int { return b.length }

// Reserve adds n contiguous bytes of undefined content and returns them. They
// can be filled in and changed until Release, or until Truncate drops them.
func (b *Buffer) Reserve(n int) []byte {
	room := b.Room(n)[:n]
	b.Commit(room)
	return room[:n:n]
}

// Room returns the unused end of the Buffer: an empty slice with room for at
// least n bytes. Bytes that the caller appends to it become content with
// Commit; until then nothing is added. Any other method but Len makes the
// returned slice invalid.
func (b *Buffer) Room(n int) []byte {
	if cap(b.free) < n || cap(b.free) == 0 {
		b.grow(n)
	}
	return b.free
}

// Commit adds p, which is the slice of the last Room, extended within its
// capacity. It panics if p is another slice, for example because an append
// outgrew the room: its bytes would be lost.
func (b *Buffer) Commit(p []byte) {
	n := len(p)
	if n == 0 {
		return
	}
	if n > cap(b.free) || &p[0] != &b.free[:1][0] {
		panic("linkbuf: Commit of a slice that is not the extended Room")
	}
	last := &b.segments[len(b.segments)-1]
	if last.origin == inserted {
		b.segments = append(b.segments, segment{bytes: b.free[:n], origin: chunkRest})
	} else {
		last.bytes = last.bytes[:len(last.bytes)+n]
	}
	b.free = b.free[n:n]
	b.length += n
}

// Append adds a copy of p.
func (b *Buffer) Append(p []byte) {
	for len(p) > 0 {
		room := b.roomFor(len(p))
		n := min(len(p), cap(room))
		b.Commit(append(room, p[:n]...))
		p = p[n:]
	}
}

// AppendString adds a copy of s.
func (b *Buffer) AppendString(s string) {
	for len(s) > 0 {
		room := b.roomFor(len(s))
		n := min(len(s), cap(room))
		b.Commit(append(room, s[:n]...))
		s = s[n:]
	}
}

// roomFor returns the room that a copy of n bytes continues in: what is left
// of the newest chunk, or a new chunk if nothing is. A copy may be split, so
// it never asks for one long chunk.
func (b *Buffer) roomFor(n int) []byte {
	if cap(b.free) == 0 {
		b.grow(min(n, chunkBytesLast))
	}
	return b.free
}

// Insert adds p itself, without copying. The caller must not change p before
// Release.
func (b *Buffer) Insert(p []byte) {
	if len(p) == 0 {
		return
	}
	b.segments = append(b.segments, segment{bytes: p, origin: inserted})
	b.length += len(p)
}

// grow starts a new chunk with room for at least n bytes.
func (b *Buffer) grow(n int) {
	chunk := b.pool.Get(max(n, min(max(b.length, chunkBytesFirst), chunkBytesLast)))
	b.segments = append(b.segments, segment{bytes: chunk, origin: chunkStart})
	b.free = chunk
}

// Slices appends the content to dst, in order and without empty slices. The
// slices are valid until Truncate or Release.
func (b *Buffer) Slices(dst [][]byte) [][]byte {
	for _, s := range b.segments {
		if n := len(s.bytes); n > 0 {
			dst = append(dst, s.bytes[:n:n])
		}
	}
	return dst
}

// Truncate drops everything after the first n bytes, which must not be more
// than Len: what an encoder wrote before it failed.
func (b *Buffer) Truncate(n int) {
	if n < 0 || n > b.length {
		panic("linkbuf: Truncate beyond the content")
	}
	if n == b.length {
		return
	}
	for excess := b.length - n; excess > 0; {
		last := &b.segments[len(b.segments)-1]
		if keep := len(last.bytes) - excess; keep > 0 {
			last.bytes = last.bytes[:keep]
			break
		}
		excess -= len(last.bytes)
		b.dropLast()
	}
	b.length = n
	b.free = nil
	// After an inserted slice the rest of the chunk before it stays unused:
	// failed encodes are too rare to search for it.
	if count := len(b.segments); count > 0 && b.segments[count-1].origin != inserted {
		last := b.segments[count-1].bytes
		b.free = last[len(last):]
	}
}

// Release gives all chunks back to the pool. The Buffer is empty then and can
// be used again.
func (b *Buffer) Release() {
	for len(b.segments) > 0 {
		b.dropLast()
	}
	if cap(b.segments) > segmentsKept {
		b.segments = nil
	}
	b.free = nil
	b.length = 0
}

func (b *Buffer) dropLast() {
	last := &b.segments[len(b.segments)-1]
	if last.origin == chunkStart {
		b.pool.Put(last.bytes)
	}
	*last = segment{}
	b.segments = b.segments[:len(b.segments)-1]
}
