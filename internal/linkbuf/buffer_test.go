package linkbuf_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// content joins what a vectored write would send, and checks the slices on
// the way.
func content(t *testing.T, b *linkbuf.Buffer) string {
	t.Helper()
	content := joined(t, b.Slices(nil))
	if len(content) != b.Len() {
		t.Errorf("Len() = %d, the slices hold %d bytes", b.Len(), len(content))
	}
	return content
}

func joined(t *testing.T, pieces [][]byte) string {
	t.Helper()
	var joined []byte
	for i, s := range pieces {
		if len(s) == 0 {
			t.Errorf("slice %d is empty", i)
		}
		if len(s) != cap(s) {
			t.Errorf("slice %d has capacity %d beyond its length %d: an append would overwrite its neighbour", i, cap(s), len(s))
		}
		joined = append(joined, s...)
	}
	return string(joined)
}

func newBuffer(t *testing.T) *linkbuf.Buffer {
	t.Helper()
	pool := linkbuf.NewPool()
	b := linkbuf.New(pool)
	t.Cleanup(func() {
		b.Release()
		if got := content(t, b); got != "" {
			t.Errorf("content after Release: %q", got)
		}
		if got := pool.Outstanding(); got != 0 {
			t.Errorf("%d chunks are out after Release", got)
		}
	})
	return b
}

func TestBuffer_KeepsOrderAcrossAllWays(t *testing.T) {
	b := newBuffer(t)
	length := b.Reserve(4)
	b.Append([]byte("appended "))
	b.AppendString("string ")
	b.Insert([]byte("inserted "))
	b.Commit(append(b.Room(10), "committed "...))
	b.Insert(nil)
	b.Append(nil)
	b.AppendString("")
	b.Commit(b.Room(3))
	b.InsertString("")
	b.InsertString("end")
	binary.BigEndian.PutUint32(length, uint32(b.Len()-4))

	want := "\x00\x00\x00\x26appended string inserted committed end"
	if got := content(t, b); got != want {
		t.Errorf("content %q, want %q", got, want)
	}
}

func TestBuffer_SharesAChunkAroundAnInsertedSlice(t *testing.T) {
	pool := linkbuf.NewPool()
	b := linkbuf.New(pool)
	for range 20 {
		b.AppendString("small ")
		b.Insert([]byte("linked "))
	}
	if got := content(t, b); got != strings.Repeat("small linked ", 20) {
		t.Errorf("content %q", got)
	}
	if got := pool.Outstanding(); got != 1 {
		t.Errorf("%d chunks, want 1", got)
	}
	b.Release()
}

func TestBuffer_InsertDoesNotCopy(t *testing.T) {
	b := newBuffer(t)
	p := []byte("linked")
	b.AppendString("before ")
	b.Insert(p)
	b.AppendString(" after")
	if got := b.Slices(nil)[1]; unsafe.SliceData(got) != unsafe.SliceData(p) {
		t.Error("Insert copied")
	}
	s := "a string"
	b.InsertString(s)
	if got := b.Slices(nil)[3]; unsafe.SliceData(got) != unsafe.StringData(s) {
		t.Error("InsertString copied")
	}
}

func TestBuffer_ReservedBytesStayPatchable(t *testing.T) {
	b := newBuffer(t)
	var reserved [][]byte
	for i := range 300 {
		reserved = append(reserved, b.Reserve(8))
		b.Append(bytes.Repeat([]byte{'.'}, i))
	}
	var want []byte
	for i, r := range reserved {
		if len(r) != 8 || cap(r) != 8 {
			t.Fatalf("Reserve(8): length %d, capacity %d", len(r), cap(r))
		}
		binary.BigEndian.PutUint64(r, uint64(i))
		want = binary.BigEndian.AppendUint64(want, uint64(i))
		want = append(want, bytes.Repeat([]byte{'.'}, i)...)
	}
	if content(t, b) != string(want) {
		t.Error("content differs after patching")
	}
}

func TestBuffer_ReserveIsContiguousAboveTheLargestClass(t *testing.T) {
	b := newBuffer(t)
	b.AppendString("x")
	large := b.Reserve(3 << 20)
	if len(large) != 3<<20 {
		t.Fatalf("length %d", len(large))
	}
	b.AppendString("y")
	got := content(t, b)
	if len(got) != 3<<20+2 || got[0] != 'x' || got[len(got)-1] != 'y' {
		t.Error("neighbours of the large piece are wrong")
	}
}

// TestBuffer_MemoryFollowsContent bounds the unused part: chunks grow with
// the content, so neither one byte nor 6 MiB cost more than their share.
func TestBuffer_MemoryFollowsContent(t *testing.T) {
	for _, test := range []struct {
		bytes     int
		chunksMax int64
	}{{1, 1}, {2 << 10, 1}, {2<<10 + 1, 2}, {6 << 20, 6<<20/(64<<10) + 6}} {
		pool := linkbuf.NewPool()
		b := linkbuf.New(pool)
		b.Append(make([]byte, test.bytes))
		if got := pool.Outstanding(); got > test.chunksMax {
			t.Errorf("%d bytes take %d chunks, want at most %d", test.bytes, got, test.chunksMax)
		}
		b.Release()
	}
}

func TestBuffer_TruncateDropsTheEnd(t *testing.T) {
	const text = "reserved appended inserted rest"
	build := func(b *linkbuf.Buffer) {
		copy(b.Reserve(9), "reserved ")
		b.AppendString("appended ")
		b.Insert([]byte("inserted "))
		b.AppendString("rest")
	}
	for keep := range len(text) + 1 {
		b := newBuffer(t)
		build(b)
		b.Truncate(keep)
		if got := content(t, b); got != text[:keep] {
			t.Errorf("Truncate(%d) left %q", keep, got)
		}
		b.AppendString("new")
		b.Insert([]byte("linked"))
		if got, want := content(t, b), text[:keep]+"newlinked"; got != want {
			t.Errorf("after Truncate(%d) and writing: %q, want %q", keep, got, want)
		}
	}
}

func TestBuffer_TruncateGivesChunksBack(t *testing.T) {
	pool := linkbuf.NewPool()
	b := linkbuf.New(pool)
	b.AppendString("kept")
	for range 10 {
		b.Append(make([]byte, 1<<20))
		b.Truncate(4)
	}
	if got := pool.Outstanding(); got != 1 {
		t.Errorf("%d chunks are out, want 1", got)
	}
	b.Release()
}

func TestBuffer_MisusePanics(t *testing.T) {
	for name, misuse := range map[string]func(b *linkbuf.Buffer){
		"commit of another slice":   func(b *linkbuf.Buffer) { b.Room(1); b.Commit([]byte("other")) },
		"commit without room":       func(b *linkbuf.Buffer) { b.Commit([]byte("other")) },
		"commit beyond the room":    func(b *linkbuf.Buffer) { room := b.Room(1); b.Commit(append(room, make([]byte, cap(room)+1)...)) },
		"commit of an old room":     func(b *linkbuf.Buffer) { room := b.Room(1); b.AppendString("x"); b.Commit(room[:1]) },
		"insert below zero":         func(b *linkbuf.Buffer) { b.InsertAt(-1, []byte("x")) },
		"insert beyond the end":     func(b *linkbuf.Buffer) { b.AppendString("x"); b.InsertStringAt(2, "x") },
		"truncate below zero":       func(b *linkbuf.Buffer) { b.Truncate(-1) },
		"truncate beyond the end":   func(b *linkbuf.Buffer) { b.AppendString("x"); b.Truncate(2) },
		"truncate of an empty list": func(b *linkbuf.Buffer) { b.Truncate(1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuffer(t)
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			misuse(b)
		})
	}
}

func TestBuffer_CanBeUsedAgainAfterRelease(t *testing.T) {
	var owner struct{ out linkbuf.Buffer }
	pool := linkbuf.NewPool()
	owner.out.Init(pool)
	for range 3 {
		owner.out.AppendString("once")
		if got := content(t, &owner.out); got != "once" {
			t.Errorf("content %q", got)
		}
		owner.out.Release()
	}
	if got := pool.Outstanding(); got != 0 {
		t.Errorf("%d chunks are out", got)
	}
}

func TestBuffer_ReuseAllocatesNothing(t *testing.T) {
	if assert.Enabled {
		t.Skip("the checks of this build allocate")
	}
	b := newBuffer(t)
	body := make([]byte, 20<<10)
	slices := make([][]byte, 0, 16)
	write := func() {
		binary.BigEndian.PutUint32(b.Reserve(4), 1)
		b.Append(body[:1024])
		b.Insert(body)
		slices = b.Slices(slices[:0])
		b.Release()
	}
	write()
	if got := testing.AllocsPerRun(1000, write); got > 0.1 {
		t.Errorf("a message allocates %v times", got)
	}
}
