package linkbuf

import (
	"slices"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/assert"
)

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

// Buffer is a chain of bytes, written at its end and read from its start.
// Methods must be called by one goroutine at a time. A Buffer that was written
// to must be released; it must not be copied.
type Buffer struct {
	pool     *Pool
	segments []segment
	// free is the unused end of the newest chunk; its length is 0.
	free   []byte
	length int
	// reading is nil until the Buffer is read or sliced, as few are.
	reading *reading
}

// segment is a run of content. Only the bytes up to its length are content;
// the capacity reaches to the end of the chunk, over what later segments hold.
// The segments of a chunk follow each other, with inserted ones in between.
type segment struct {
	bytes []byte
	// check is of inserted bytes.
	check  contentCheck
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

// Len returns how many bytes the Buffer holds that Skip has not consumed.
func (b *Buffer) Len() int { return b.length }

// Reserve adds n contiguous bytes of undefined content and returns them. They
// can be filled in and changed until Release, or until Truncate or Skip drops
// them; not while a Slice covers them.
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
// Release of the Buffer and of the Slices that cover it.
func (b *Buffer) Insert(p []byte) { b.InsertAt(b.length, p) }

// InsertString adds s itself, without copying.
func (b *Buffer) InsertString(s string) { b.InsertStringAt(b.length, s) }

// InsertAt adds p itself, as Insert does, in front of what is at offset, which
// was Len at some time since the last Skip: nothing is moved, so what was
// reserved stays where it is. It panics if offset is beyond the content.
func (b *Buffer) InsertAt(offset int, p []byte) {
	if offset < 0 || offset > b.length {
		panic("linkbuf: InsertAt beyond the content")
	}
	if len(p) == 0 {
		return
	}
	link := segment{bytes: p, origin: inserted, check: newContentCheck(p)}
	if offset == b.length {
		b.segments = append(b.segments, link)
	} else {
		b.link(offset, link)
	}
	b.length += len(p)
}

// InsertStringAt adds s itself, as InsertAt does.
func (b *Buffer) InsertStringAt(offset int, s string) {
	// The bytes of a string must never be written to. Nothing here does, and
	// nobody else may: what a Buffer returns of them is for reading only.
	b.InsertAt(offset, unsafe.Slice(unsafe.StringData(s), len(s)))
}

// link puts a segment in front of what is at offset, before the end.
func (b *Buffer) link(offset int, link segment) {
	i, consumed := b.start()
	for offset >= len(b.segments[i].bytes)-consumed {
		offset -= len(b.segments[i].bytes) - consumed
		i, consumed = i+1, 0
	}
	cut := consumed + offset
	if cut == 0 {
		b.segments = slices.Insert(b.segments, i, link)
		return
	}
	front := &b.segments[i]
	rest := segment{bytes: front.bytes[cut:], origin: chunkRest}
	if front.origin == inserted {
		front.check.verify(front.bytes)
		front.check = newContentCheck(front.bytes[:cut])
		rest.origin, rest.check = inserted, newContentCheck(rest.bytes)
	}
	front.bytes = front.bytes[:cut]
	b.segments = slices.Insert(b.segments, i+1, link, rest)
	if offset == 0 {
		// All of front is consumed, which the link now follows.
		b.passHead()
	}
}

// grow starts a new chunk with room for at least n bytes.
func (b *Buffer) grow(n int) {
	chunk := b.pool.Get(max(n, min(max(b.length, chunkBytesFirst), chunkBytesLast)))
	b.segments = append(b.segments, segment{bytes: chunk, origin: chunkStart})
	b.free = chunk
}

// Slices appends the content to dst, in order and without empty slices. The
// slices are for reading, and valid until Skip, Truncate or Release.
func (b *Buffer) Slices(dst [][]byte) [][]byte {
	first, consumed := b.start()
	for _, s := range b.segments[first:] {
		if n := len(s.bytes); n > consumed {
			dst = append(dst, s.bytes[consumed:n:n])
		}
		consumed = 0
	}
	return dst
}

// Truncate drops everything after the first n bytes, which must not be more
// than Len: what an encoder wrote before it failed.
func (b *Buffer) Truncate(n int) {
	switch {
	case n < 0 || n > b.length:
		panic("linkbuf: Truncate beyond the content")
	case n == b.length:
		return
	case n == 0:
		b.Release()
		return
	}
	b.dropJoined()
	for excess := b.length - n; excess > 0; {
		last := &b.segments[len(b.segments)-1]
		if keep := len(last.bytes) - excess; keep > 0 {
			b.cutLast(keep)
			break
		}
		excess -= len(last.bytes)
		b.cutLast(0)
		b.dropLast()
	}
	b.length = n
	b.free = nil
	// After an inserted slice the rest of the chunk before it stays unused:
	// failed encodes are too rare to search for it. What was dropped of a chunk
	// with shares may belong to a Slice.
	if count := len(b.segments); b.segments[count-1].origin != inserted && !b.isShared(count-1) {
		last := b.segments[count-1].bytes
		b.free = last[len(last):]
	}
}

// cutLast shortens the last segment.
func (b *Buffer) cutLast(keep int) {
	i := len(b.segments) - 1
	last := &b.segments[i]
	if last.origin == inserted {
		last.check.verify(last.bytes)
		last.check = newContentCheck(last.bytes[:keep])
	} else if assert.Enabled && !b.isShared(i) {
		spoil(last.bytes[keep:])
	}
	last.bytes = last.bytes[:keep]
}

// Release gives all chunks back to the pool, those with Slices when the last of
// them is released. The Buffer is empty then and can be used again.
func (b *Buffer) Release() {
	b.dropJoined()
	for len(b.segments) > 0 {
		b.dropLast()
	}
	if cap(b.segments) > segmentsKept {
		b.segments = nil
	}
	if b.reading != nil {
		b.reading.head, b.reading.consumed = 0, 0
	}
	b.free = nil
	b.length = 0
}

func (b *Buffer) dropLast() {
	last := &b.segments[len(b.segments)-1]
	switch last.origin {
	case chunkStart:
		b.dropChunk(last.bytes)
	case inserted:
		last.check.verify(last.bytes)
	}
	*last = segment{}
	b.segments = b.segments[:len(b.segments)-1]
}

// dropChunk gives a chunk back, or the Buffer's share of it.
func (b *Buffer) dropChunk(chunk []byte) {
	if shared := b.sharedChunk(chunk); shared != nil {
		delete(b.reading.shared, firstByte(chunk))
		shared.release()
		return
	}
	b.pool.Put(chunk)
}
