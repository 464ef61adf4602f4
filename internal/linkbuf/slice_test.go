package linkbuf_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

func sliceOf(t *testing.T, s interface {
	Slice(from, to int) (*linkbuf.Slice, error)
}, from, to int,
) *linkbuf.Slice {
	t.Helper()
	part, err := s.Slice(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return part
}

func TestSlice_HasEveryPartOfTheContent(t *testing.T) {
	const text = "copied linked rest"
	for skipped := range 12 {
		for to := range len(text) - skipped + 1 {
			for from := range to + 1 {
				b := pieced(t)
				if err := b.Skip(skipped); err != nil {
					t.Fatal(err)
				}
				s := sliceOf(t, b, from, to)
				part := sliceOf(t, s, s.Len()/3, s.Len())
				b.Release()
				want := text[skipped+from : skipped+to]
				if got := joined(t, s.Slices(nil)); got != want || s.Len() != len(want) {
					t.Fatalf("after Skip(%d): Slice(%d, %d) = %q, want %q", skipped, from, to, got, want)
				}
				s.Release()
				if got := joined(t, part.Slices(nil)); got != want[len(want)/3:] {
					t.Fatalf("a Slice of %q from %d is %q", want, len(want)/3, got)
				}
				part.Release()
			}
		}
	}
}

func TestSlice_OutsideTheContentFails(t *testing.T) {
	b := pieced(t)
	whole := sliceOf(t, b, 0, 18)
	defer whole.Release()
	for _, test := range []struct {
		from, to int
		want     string
		eof      bool
	}{
		{-1, 2, "linkbuf slice: no range (from -1 to 2)", false},
		{3, 2, "linkbuf slice: no range (from 3 to 2)", false},
		{0, 19, "linkbuf slice: unexpected EOF (limit 18, got 19)", true},
		{math.MaxInt - 1, math.MaxInt, fmt.Sprintf("linkbuf slice: unexpected EOF (limit 18, got %d)", math.MaxInt), true},
	} {
		_, ofBuffer := b.Slice(test.from, test.to)
		_, ofSlice := whole.Slice(test.from, test.to)
		for _, err := range []error{ofBuffer, ofSlice} {
			if err == nil || err.Error() != test.want || errors.Is(err, io.ErrUnexpectedEOF) != test.eof {
				t.Errorf("Slice(%d, %d): %v", test.from, test.to, err)
			}
		}
	}
}

// TestSlice_LastReleaseGivesTheChunkBack releases in every order.
func TestSlice_LastReleaseGivesTheChunkBack(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		pool := linkbuf.NewPool()
		b := linkbuf.New(pool)
		b.AppendString("some text")
		first := sliceOf(t, b, 0, 4)
		owners := []interface{ Release() }{b, first, sliceOf(t, first, 1, 3)}
		for i, owner := range order {
			if got := pool.Outstanding(); got != 1 {
				t.Errorf("order %v: %d chunks are out with %d owners, want 1", order, got, 3-i)
			}
			owners[owner].Release()
		}
		if got := pool.Outstanding(); got != 0 {
			t.Errorf("order %v: %d chunks are out in the end", order, got)
		}
	}
}

func TestSlice_KeepsOnlyItsChunks(t *testing.T) {
	pool := linkbuf.NewPool()
	b := linkbuf.New(pool)
	b.Append(make([]byte, 1<<20))
	s := sliceOf(t, b, 500<<10, 500<<10+10)
	b.Release()
	if got := pool.Outstanding(); got != 1 {
		t.Errorf("a Slice of 10 bytes keeps %d chunks", got)
	}
	s.Release()
}

// TestSlice_StaysAsItIs does to the Buffer what could overwrite a Slice of it.
func TestSlice_StaysAsItIs(t *testing.T) {
	for name, disturb := range map[string]func(b *linkbuf.Buffer){
		"append":             func(b *linkbuf.Buffer) { b.AppendString("XXXX") },
		"insert":             func(b *linkbuf.Buffer) { b.InsertStringAt(5, "XXXX") },
		"truncate":           func(b *linkbuf.Buffer) { b.Truncate(5); b.AppendString("XXXXXXXXXX") },
		"truncate to less":   func(b *linkbuf.Buffer) { b.Truncate(1); b.Reserve(10)[3] = 'X' },
		"truncate to none":   func(b *linkbuf.Buffer) { b.Truncate(0); b.AppendString("XXXXXXXXXX") },
		"skip":               func(b *linkbuf.Buffer) { _ = b.Skip(6); b.AppendString("XXXX") },
		"skip everything":    func(b *linkbuf.Buffer) { _ = b.Skip(10); b.AppendString("XXXX") },
		"release and reuse":  func(b *linkbuf.Buffer) { b.Release(); b.AppendString("XXXXXXXXXX") },
		"append to what has": func(b *linkbuf.Buffer) { _ = append(b.Slices(nil)[0], "XXXX"...) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuffer(t)
			b.AppendString("0123456789")
			s := sliceOf(t, b, 3, 8)
			defer s.Release()
			// After the Buffer's end of the chunk, so that a write would show.
			for range 2 {
				disturb(b)
				if got := joined(t, s.Slices(nil)); got != "34567" {
					t.Errorf("the Slice holds %q", got)
				}
				b.Release()
				b.AppendString("0123456789")
			}
		})
	}
}

// TestSlice_TruncateUsesAChunkAgainThatNobodySharesAnyMore: a share that was
// given back costs nothing later.
func TestSlice_TruncateUsesAChunkAgainThatNobodySharesAnyMore(t *testing.T) {
	pool := linkbuf.NewPool()
	b := linkbuf.New(pool)
	defer b.Release()
	b.AppendString("0123456789")
	for range 100 {
		sliceOf(t, b, 0, 5).Release()
		b.Truncate(5)
		b.AppendString("56789")
	}
	if got := pool.Outstanding(); got != 1 {
		t.Errorf("%d chunks are out, want 1", got)
	}
}

// TestSlice_OwnersMayBeOnManyGoroutines sends one message to many, while its
// Buffer is used again.
func TestSlice_OwnersMayBeOnManyGoroutines(t *testing.T) {
	pool := linkbuf.NewPool()
	b := linkbuf.New(pool)
	var group sync.WaitGroup
	for round := range 50 {
		text := strings.Repeat(string(rune('a'+round%26)), 3000)
		b.AppendString(text)
		for receiver := range 8 {
			s := sliceOf(t, b, 0, len(text))
			group.Go(func() {
				part := sliceOf(t, s, receiver, 2500)
				s.Release()
				if joined(t, part.Slices(nil)) != text[receiver:2500] {
					t.Error("the content changed")
				}
				part.Release()
			})
		}
		b.Release()
	}
	group.Wait()
	if got := pool.Outstanding(); got != 0 {
		t.Errorf("%d chunks are out", got)
	}
}

func TestSlice_CostsOneAllocation(t *testing.T) {
	if assert.Enabled {
		t.Skip("the checks of this build allocate")
	}
	b := newBuffer(t)
	b.AppendString("some text")
	defer sliceOf(t, b, 0, 1).Release()
	if got := testing.AllocsPerRun(1000, func() { sliceOf(t, b, 2, 7).Release() }); got > 1 {
		t.Errorf("a Slice in one piece allocates %v times", got)
	}
}

// TestBuffer_ChecksFire breaks the rules of ownership, each of which the checks
// must notice.
func TestBuffer_ChecksFire(t *testing.T) {
	if !assert.Enabled {
		t.Skip("needs the invariants tag or the race detector")
	}
	released := func(b *linkbuf.Buffer) *linkbuf.Slice {
		s := sliceOf(t, b, 0, 4)
		s.Release()
		return s
	}
	// insertChanged inserts bytes and changes them; repair changes them back.
	insertChanged := func(b *linkbuf.Buffer) (repair func()) {
		p := []byte("mine")
		b.Insert(p)
		p[1]++
		return func() { p[1]-- }
	}
	for name, test := range map[string]struct {
		prepare func(b *linkbuf.Buffer) (repair func())
		misuse  func(b *linkbuf.Buffer)
	}{
		"slice released twice":       {nil, func(b *linkbuf.Buffer) { released(b).Release() }},
		"slice read after release":   {nil, func(b *linkbuf.Buffer) { released(b).Slices(nil) }},
		"slice sliced after release": {nil, func(b *linkbuf.Buffer) { _, _ = released(b).Slice(0, 0) }},
		"released":                   {insertChanged, func(b *linkbuf.Buffer) { b.Release() }},
		"truncated":                  {insertChanged, func(b *linkbuf.Buffer) { b.Truncate(b.Len() - 1) }},
		"read":                       {insertChanged, func(b *linkbuf.Buffer) { b.AppendString("x"); _ = b.Skip(b.Len() - 1) }},
		"split":                      {insertChanged, func(b *linkbuf.Buffer) { b.InsertStringAt(b.Len()-1, "x") }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuffer(t)
			b.AppendString("text")
			if test.prepare != nil {
				defer test.prepare(b)()
			}
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			test.misuse(b)
		})
	}
	t.Run("reserved bytes changed under a slice", func(t *testing.T) {
		b := newBuffer(t)
		reserved := b.Reserve(4)
		s := sliceOf(t, b, 1, 3)
		reserved[1]++
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
			reserved[1]--
			s.Release()
		}()
		s.Release()
	})
}

// TestBuffer_SpoilsWhatIsGone looks at slices that have become invalid.
func TestBuffer_SpoilsWhatIsGone(t *testing.T) {
	if !assert.Enabled {
		t.Skip("needs the invariants tag or the race detector")
	}
	for name, test := range map[string]struct {
		spoil func(b *linkbuf.Buffer)
		want  string
	}{
		"skip":     {func(b *linkbuf.Buffer) { _ = b.Skip(2) }, "\xdb\xdb23"},
		"truncate": {func(b *linkbuf.Buffer) { b.Truncate(3) }, "012\xdb"},
		"release":  {func(b *linkbuf.Buffer) { b.Release() }, "\xdb\xdb\xdb\xdb"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuffer(t)
			b.AppendString("0123")
			view := b.Slices(nil)[0]
			test.spoil(b)
			if string(view) != test.want {
				t.Errorf("the old slice holds %q, want %q", view, test.want)
			}
		})
	}
	t.Run("last release of a slice", func(t *testing.T) {
		b := newBuffer(t)
		b.AppendString("0123")
		s := sliceOf(t, b, 0, 4)
		view := s.Slices(nil)[0]
		b.Release()
		if string(view) != "0123" {
			t.Errorf("the Slice holds %q", view)
		}
		s.Release()
		if string(view) != "\xdb\xdb\xdb\xdb" {
			t.Errorf("the old slice holds %q", view)
		}
	})
	for name, end := range map[string]func(b *linkbuf.Buffer){
		"peek":     func(b *linkbuf.Buffer) { _, _ = b.Peek(1) },
		"skip":     func(b *linkbuf.Buffer) { _ = b.Skip(1) },
		"truncate": func(b *linkbuf.Buffer) { b.Truncate(b.Len() - 1) },
		"release":  func(b *linkbuf.Buffer) { b.Release() },
	} {
		t.Run("peek across pieces before "+name, func(t *testing.T) {
			b := pieced(t)
			view, err := b.Peek(10)
			if err != nil {
				t.Fatal(err)
			}
			if end(b); view[9] != 0xdb {
				t.Errorf("the old slice holds %q", view)
			}
		})
	}
}

// TestSlice_IsEmptyAfterRelease: where no check stops it, a second Release takes
// nothing from other owners.
func TestSlice_IsEmptyAfterRelease(t *testing.T) {
	if assert.Enabled {
		t.Skip("in this build it panics")
	}
	pool := linkbuf.NewPool()
	b := linkbuf.New(pool)
	defer b.Release()
	b.AppendString("some text")
	s := sliceOf(t, b, 0, 4)
	for range 3 {
		s.Release()
	}
	if got := pool.Outstanding(); got != 1 || s.Len() != 0 || len(s.Slices(nil)) != 0 {
		t.Errorf("%d chunks are out, want 1; the Slice has %d bytes", got, s.Len())
	}
}
