package linkbuf_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// FuzzBuffer runs its input as a program against a Buffer and against a plain
// slice, and compares them after every step. Two bytes are one step: what to
// do, and how much.
func FuzzBuffer(f *testing.F) {
	f.Add([]byte{0, 4, 1, 200, 3, 9, 2, 30, 5, 100, 6, 0, 1, 255, 7, 0})
	f.Add(bytes.Repeat([]byte{1, 255, 3, 255, 4, 8}, 40))
	f.Add([]byte{4, 0, 3, 1, 4, 1, 5, 2, 3, 255, 5, 255, 0, 255, 5, 128})
	f.Add([]byte{1, 99, 10, 50, 8, 128, 9, 60, 9, 90, 11, 200, 12, 80, 13, 0, 1, 9, 11, 255})
	f.Fuzz(runModel)
}

// TestBuffer_IsAsAPlainSlice runs random programs, which the seed repeats.
func TestBuffer_IsAsAPlainSlice(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 4))
		program := make([]byte, 2*(1+random.IntN(200)))
		for i := range program {
			program[i] = byte(random.UintN(256))
		}
		runModel(t, program)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func runModel(t *testing.T, program []byte) {
	pool := linkbuf.NewPool()
	b := linkbuf.New(pool)
	m := model{t: t, buffer: b}
	for i := 0; i+1 < len(program) && m.total < 1<<20; i += 2 {
		m.step(program[i], int(program[i+1]))
		if got := content(t, b); got != string(m.content) {
			t.Fatalf("step %d, operation %d: content differs: %d bytes, want %d", i/2, program[i]%operations, len(got), len(m.content))
		}
		for _, s := range m.slices {
			s.compare(t)
		}
	}
	b.Release()
	for _, s := range m.slices {
		s.compare(t)
		s.slice.Release()
	}
	if got := pool.Outstanding(); got != 0 {
		t.Fatalf("%d chunks are out after Release", got)
	}
}

// model keeps what a Buffer, and Slices of it, should hold.
type model struct {
	t        *testing.T
	buffer   *linkbuf.Buffer
	content  []byte
	reserved []reservation
	slices   []sliced
	next     byte // fills new content with changing bytes
	total    int  // bounds the work of one program
}

// reservation is a patchable piece, and where it lies in the content.
type reservation struct {
	bytes  []byte
	offset int
}

// sliced is a Slice and what it should hold.
type sliced struct {
	slice *linkbuf.Slice
	want  string
}

func (s sliced) compare(t *testing.T) {
	t.Helper()
	if got := joined(t, s.slice.Slices(nil)); got != s.want || s.slice.Len() != len(s.want) {
		t.Fatalf("a Slice changed: %d bytes, Len() = %d, want %d", len(got), s.slice.Len(), len(s.want))
	}
}

const operations = 14

func (m *model) step(operation byte, amount int) {
	// Some pieces must be longer than a chunk.
	n := amount
	if amount > 250 {
		n = amount << 8
	}
	switch operation % operations {
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
		m.truncate(m.portion(amount))
	case 6:
		m.patch(amount)
	case 7:
		m.buffer.Release()
		m.content, m.reserved = nil, nil
	case 8:
		m.insertAt(m.portion(amount), 1+amount%40)
	case 9:
		m.peek(m.portion(amount))
	case 10:
		m.buffer.InsertString(string(m.fill(n)))
	case 11:
		m.skip(m.portion(amount))
	default:
		m.stepSlices(operation%operations == 12, amount)
	}
}

// portion returns a part of the length of the content.
func (m *model) portion(amount int) int { return len(m.content) * amount / 255 }

func (m *model) truncate(n int) {
	m.buffer.Truncate(n)
	m.content = m.content[:n:n]
	m.reserved = slices.DeleteFunc(m.reserved, func(r reservation) bool { return r.offset+len(r.bytes) > n })
}

// patch changes reserved bytes, unless a Slice may cover them.
func (m *model) patch(amount int) {
	if len(m.reserved) == 0 || len(m.slices) > 0 {
		return
	}
	r := m.reserved[amount%len(m.reserved)]
	for i := range r.bytes {
		r.bytes[i] ^= 0xff
		m.content[r.offset+i] ^= 0xff
	}
}

func (m *model) insertAt(offset, n int) {
	length := len(m.content)
	piece := slices.Clone(m.fill(n))
	if n%2 == 0 {
		m.buffer.InsertAt(offset, piece)
	} else {
		m.buffer.InsertStringAt(offset, string(piece))
	}
	m.content = slices.Insert(m.content[:length:length], offset, piece...)
	// A reservation that was split is left alone.
	m.reserved = slices.DeleteFunc(m.reserved, func(r reservation) bool {
		return r.offset < offset && offset < r.offset+len(r.bytes)
	})
	for i := range m.reserved {
		if m.reserved[i].offset >= offset {
			m.reserved[i].offset += n
		}
	}
}

func (m *model) peek(n int) {
	got, err := m.buffer.Peek(n)
	if err != nil || !bytes.Equal(got, m.content[:n]) || cap(got) != len(got) {
		m.t.Fatalf("Peek(%d) = %d bytes with capacity %d, %v", n, len(got), cap(got), err)
	}
}

func (m *model) skip(n int) {
	if err := m.buffer.Skip(n); err != nil {
		m.t.Fatalf("Skip(%d) of %d: %v", n, len(m.content), err)
	}
	m.content = m.content[n:]
	for i := range m.reserved {
		m.reserved[i].offset -= n
	}
	m.reserved = slices.DeleteFunc(m.reserved, func(r reservation) bool { return r.offset < 0 })
}

// stepSlices makes a Slice of the Buffer, or one of a Slice in place of that.
func (m *model) stepSlices(ofBuffer bool, amount int) {
	if ofBuffer && len(m.slices) < 8 {
		to := m.portion(amount)
		from := to * (amount % 16) / 16
		s, err := m.buffer.Slice(from, to)
		if err != nil {
			m.t.Fatalf("Slice(%d, %d) of %d: %v", from, to, len(m.content), err)
		}
		m.slices = append(m.slices, sliced{s, string(m.content[from:to])})
		return
	}
	if len(m.slices) == 0 {
		return
	}
	i := amount % len(m.slices)
	old := m.slices[i]
	m.slices = slices.Delete(m.slices, i, i+1)
	if amount%3 > 0 {
		from, to := len(old.want)/4, len(old.want)*3/4
		s, err := old.slice.Slice(from, to)
		if err != nil {
			m.t.Fatalf("Slice(%d, %d) of a Slice of %d: %v", from, to, len(old.want), err)
		}
		m.slices = append(m.slices, sliced{s, old.want[from:to]})
	}
	old.slice.Release()
}

// fill returns n fresh bytes and adds them to the expected content.
func (m *model) fill(n int) []byte {
	piece := make([]byte, n)
	for i := range piece {
		m.next++
		piece[i] = m.next
	}
	// The content must not be where patches of it would change what was inserted.
	m.content = append(m.content[:len(m.content):len(m.content)], piece...)
	m.total += n
	return piece
}
