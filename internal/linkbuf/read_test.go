package linkbuf_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// pieced holds "copied linked rest" in three pieces.
func pieced(t *testing.T) *linkbuf.Buffer {
	b := newBuffer(t)
	b.AppendString("copied ")
	b.InsertString("linked ")
	b.AppendString("rest")
	return b
}

func TestBuffer_PeekConsumesNothing(t *testing.T) {
	const text = "copied linked rest"
	for skipped := range len(text) {
		for n := range len(text) - skipped + 1 {
			b := pieced(t)
			if err := b.Skip(skipped); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				got, err := b.Peek(n)
				if err != nil || string(got) != text[skipped:skipped+n] || cap(got) != n {
					t.Fatalf("after Skip(%d): Peek(%d) = %q with capacity %d, %v", skipped, n, got, cap(got), err)
				}
			}
			if got := content(t, b); got != text[skipped:] {
				t.Fatalf("Peek left %q", got)
			}
		}
	}
}

func TestBuffer_PeekCopiesOnlyAcrossPieces(t *testing.T) {
	pool := linkbuf.NewPool()
	b := linkbuf.New(pool)
	defer b.Release()
	b.AppendString("copied ")
	b.AppendString("and ")
	b.Insert([]byte("linked"))
	first := b.Slices(nil)[0]
	if got, err := b.Peek(len(first)); err != nil || unsafe.SliceData(got) != unsafe.SliceData(first) {
		t.Errorf("Peek of one piece copied: %v", err)
	}
	for n := len(first) + 1; n <= b.Len(); n++ {
		if _, err := b.Peek(n); err != nil {
			t.Fatal(err)
		}
		if got := pool.Outstanding(); got != 2 {
			t.Fatalf("%d chunks are out while one is joined, want 2", got)
		}
	}
	if _, err := b.Peek(1); err != nil || pool.Outstanding() != 1 {
		t.Errorf("%d chunks are out after the next Peek, want 1: %v", pool.Outstanding(), err)
	}
}

func TestBuffer_ReadingBeyondTheContentFails(t *testing.T) {
	for _, test := range []struct {
		n    int
		want string
		eof  bool
	}{
		{-1, "negative length (got -1)", false},
		{19, "unexpected EOF (limit 18, got 19)", true},
		{math.MaxInt, fmt.Sprintf("unexpected EOF (limit 18, got %d)", math.MaxInt), true},
	} {
		b := pieced(t)
		_, peeked := b.Peek(test.n)
		for what, err := range map[string]error{"peek": peeked, "skip": b.Skip(test.n)} {
			if err == nil || err.Error() != "linkbuf "+what+": "+test.want || errors.Is(err, io.ErrUnexpectedEOF) != test.eof {
				t.Errorf("%s of %d bytes: %v", what, test.n, err)
			}
		}
		if got := content(t, b); got != "copied linked rest" {
			t.Errorf("a failure consumed: %q is left", got)
		}
	}
	empty := newBuffer(t)
	if got, err := empty.Peek(0); err != nil || len(got) != 0 {
		t.Errorf("Peek(0) of nothing = %q, %v", got, err)
	}
	if err := empty.Skip(0); err != nil {
		t.Errorf("Skip(0) of nothing: %v", err)
	}
	if _, err := empty.Peek(1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Peek(1) of nothing: %v", err)
	}
}

func TestBuffer_SkipGivesChunksBackAsItGoes(t *testing.T) {
	pool := linkbuf.NewPool()
	b := linkbuf.New(pool)
	const piece, count = 1000, 2000
	for i := range count {
		b.AppendString(strings.Repeat("x", piece-10))
		b.InsertString(fmt.Sprintf("%10d", i))
	}
	before := pool.Outstanding()
	for i := range count {
		if got, err := b.Peek(piece); err != nil || string(got[piece-10:]) != fmt.Sprintf("%10d", i) {
			t.Fatalf("piece %d: %v", i, err)
		}
		if err := b.Skip(piece); err != nil {
			t.Fatal(err)
		}
		// Chunks of 64 KiB, two of which a part is unread or unused, and shorter
		// ones in the beginning.
		if got, most := pool.Outstanding(), int64(b.Len()/(64<<10))+2; i > 200 && got > most {
			t.Fatalf("%d of %d chunks are out with %d bytes left, want at most %d", got, before, b.Len(), most)
		}
	}
	if got := pool.Outstanding(); got != 0 {
		t.Errorf("%d chunks are out of an empty Buffer", got)
	}
}

// TestBuffer_StreamsInConstantMemory writes and reads for long without ever
// emptying the Buffer.
func TestBuffer_StreamsInConstantMemory(t *testing.T) {
	pool := linkbuf.NewPool()
	b := linkbuf.New(pool)
	defer b.Release()
	linked := []byte("linked")
	b.AppendString("first")
	step := func() {
		b.AppendString("copied")
		b.Insert(linked)
		if err := b.Skip(12); err != nil {
			t.Fatal(err)
		}
	}
	for range 5000 {
		step()
		if got := pool.Outstanding(); got > 2 {
			t.Fatalf("%d chunks hold %d bytes", got, b.Len())
		}
	}
	if got := content(t, b); len(got) != 5 {
		t.Errorf("%q is left", got)
	}
	if assert.Enabled {
		return // the checks of this build allocate
	}
	many := func() {
		for range 10000 {
			step()
		}
	}
	if got := testing.AllocsPerRun(3, many); got >= 1 {
		t.Errorf("10,000 steps allocate %v times", got)
	}
}

// TestBuffer_SkipLetsGoOfInsertedMemory: what was read is not kept by a list
// that still has room for it.
func TestBuffer_SkipLetsGoOfInsertedMemory(t *testing.T) {
	b := newBuffer(t)
	b.AppendString("chunk")
	var inserted []weak.Pointer[byte]
	for range 200 {
		p := make([]byte, 1000)
		b.Insert(p)
		inserted = append(inserted, weak.Make(&p[0]))
	}
	b.AppendString("rest")
	for b.Len() > 4 {
		if err := b.Skip(min(500, b.Len()-4)); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	kept := 0
	for _, p := range inserted {
		if p.Value() != nil {
			kept++
		}
	}
	if kept > 0 {
		t.Errorf("%d of %d inserted slices are kept after they were read", kept, len(inserted))
	}
	if got := content(t, b); got != "rest" {
		t.Errorf("%q is left", got)
	}
}

func TestBuffer_ReadingAllocatesNothing(t *testing.T) {
	if assert.Enabled {
		t.Skip("the checks of this build allocate")
	}
	b := newBuffer(t)
	linked := make([]byte, 20<<10)
	read := func() {
		b.Append(linked[:1024])
		b.Insert(linked)
		for b.Len() > 0 {
			if _, err := b.Peek(min(b.Len(), 3000)); err != nil {
				t.Fatal(err)
			}
			if err := b.Skip(min(b.Len(), 1000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	read()
	if got := testing.AllocsPerRun(1000, read); got > 0.1 {
		t.Errorf("reading allocates %v times", got)
	}
}

func TestBuffer_InsertAtPutsMemoryInTheMiddle(t *testing.T) {
	const text = "copied linked rest"
	for skipped := range 10 {
		for offset := range len(text) - skipped + 1 {
			for keep := range len(text) - skipped + 4 {
				b := pieced(t)
				if err := b.Skip(skipped); err != nil {
					t.Fatal(err)
				}
				if offset%2 == 0 {
					b.InsertAt(offset, []byte("NEW"))
				} else {
					b.InsertStringAt(offset, "NEW")
				}
				want := text[skipped:skipped+offset] + "NEW" + text[skipped+offset:]
				b.Truncate(keep)
				b.AppendString("more")
				if got := content(t, b); got != want[:keep]+"more" {
					t.Fatalf("Skip(%d), InsertAt(%d), Truncate(%d): %q, want %q", skipped, offset, keep, got, want[:keep]+"more")
				}
			}
		}
	}
}

func TestBuffer_InsertAtMovesNothing(t *testing.T) {
	b := newBuffer(t)
	reserved := b.Reserve(8)
	value := "value"
	b.InsertStringAt(4, value)
	b.InsertAt(2, nil)
	copy(reserved, "headtail")
	if got := content(t, b); got != "headvaluetail" {
		t.Errorf("content %q", got)
	}
	if got := b.Slices(nil)[1]; unsafe.SliceData(got) != unsafe.StringData(value) {
		t.Error("InsertStringAt copied")
	}
}
