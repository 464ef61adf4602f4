package linkbuf_test

import (
	"bytes"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// FuzzBuffer runs its input as a program of writes against a Buffer and
// against a plain slice, and compares them after every step. Two bytes are one
// step: what to do, and how much.
func FuzzBuffer(f *testing.F) {
	f.Add([]byte{0, 4, 1, 200, 3, 9, 2, 30, 5, 100, 6, 0, 1, 255, 7, 0})
	f.Add(bytes.Repeat([]byte{1, 255, 3, 255, 4, 8}, 40))
	f.Add([]byte{4, 0, 3, 1, 4, 1, 5, 2, 3, 255, 5, 255, 0, 255, 5, 128})
	f.Fuzz(func(t *testing.T, program []byte) {
		pool := linkbuf.NewPool()
		b := linkbuf.New(pool)
		m := model{buffer: b}
		for i := 0; i+1 < len(program) && m.total < 1<<20; i += 2 {
			m.step(program[i], int(program[i+1]))
			if b.Len() != len(m.content) {
				t.Fatalf("step %d: Len() = %d, want %d", i/2, b.Len(), len(m.content))
			}
		}
		if got := content(t, b); got != string(m.content) {
			t.Fatalf("content differs: %d bytes, want %d", len(got), len(m.content))
		}
		b.Release()
		if got := pool.Outstanding(); got != 0 {
			t.Fatalf("%d chunks are out after Release", got)
		}
	})
}

// model keeps what a Buffer should hold.
type model struct {
	buffer   *linkbuf.Buffer
	content  []byte
	reserved []reservation
	next     byte // fills new content with changing bytes
	total    int  // bounds the work of one program
}

// reservation is a patchable piece, and where it lies in the content.
type reservation struct {
	bytes  []byte
	offset int
}

func (m *model) step(operation byte, amount int) {
	// Some pieces must be longer than a chunk.
	n := amount
	if amount > 250 {
		n = amount << 8
	}
	switch operation % 8 {
	case 0:
		piece := m.buffer.Reserve(n)
		m.reserved = append(m.reserved, reservation{piece, len(m.content)})
		copy(piece, m.fill(n))
	case 1:
		m.buffer.Append(m.fill(n))
	case 2:
		m.buffer.AppendString(string(m.fill(n)))
	case 3:
		m.buffer.Insert(m.fill(n))
	case 4:
		room := m.buffer.Room(n)
		m.buffer.Commit(append(room, m.fill(min(cap(room), n/2))...))
	case 5:
		m.truncate(len(m.content) * amount / 255)
	case 6:
		if len(m.reserved) > 0 {
			r := m.reserved[amount%len(m.reserved)]
			for i := range r.bytes {
				r.bytes[i] ^= 0xff
				m.content[r.offset+i] ^= 0xff
			}
		}
	case 7:
		m.buffer.Release()
		m.content, m.reserved = nil, nil
	}
}

func (m *model) truncate(n int) {
	m.buffer.Truncate(n)
	m.content = m.content[:n]
	kept := m.reserved[:0]
	for _, r := range m.reserved {
		if r.offset+len(r.bytes) <= n {
			kept = append(kept, r)
		}
	}
	m.reserved = kept
}

// fill returns n fresh bytes and adds them to the expected content.
func (m *model) fill(n int) []byte {
	piece := make([]byte, n)
	for i := range piece {
		m.next++
		piece[i] = m.next
	}
	m.content = append(m.content, piece...)
	m.total += n
	return piece
}
