package thrift_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func TestAppend_GoesOnBehindWhatIsThere(t *testing.T) {
	want := sample()
	b, err := thrift.Append([]byte("before"), want)
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := bytes.CutPrefix(b, []byte("before"))
	if !ok {
		t.Fatalf("the message begins with %.10q, want what was there before it", b)
	}
	var got node
	if err := thrift.Unmarshal(rest, &got); err != nil || !reflect.DeepEqual(&got, want) {
		t.Errorf("read back %+v, %v; want %+v", got, err, want)
	}
}

func TestAppend_ReusesMemory(t *testing.T) {
	first, err := thrift.Append(nil, sample())
	if err != nil {
		t.Fatal(err)
	}
	again, err := thrift.Append(first[:0], sample())
	if err != nil || len(again) != len(first) || &again[0] != &first[0] {
		t.Errorf("the second message of %d bytes is not where the first of %d bytes was: %v", len(again), len(first), err)
	}
}

// TestAppend_WritesToMemoryThatIsThere: without an allocation but that of the Writer.
func TestAppend_WritesToMemoryThatIsThere(t *testing.T) {
	s := sized(1000)
	s.Scores = nil
	want := mustMarshal(t, s)
	buffer := make([]byte, 3, len(want)+8)
	allocations := testing.AllocsPerRun(20, func() {
		b, err := thrift.Append(buffer[:3], s)
		if err != nil || &b[0] != &buffer[0] || !bytes.Equal(b[3:], want) {
			t.Fatalf("%d bytes, %v; want %d behind the 3 that were there", len(b), err, len(want))
		}
	})
	if allocations > 1 {
		t.Errorf("%v allocations, want 1", allocations)
	}
	for room := range 40 {
		small := append(make([]byte, 0, 3+room), "abc"...)
		b, err := thrift.Append(small, s)
		if err != nil || string(b[:3]) != "abc" || !bytes.Equal(b[3:], want) {
			t.Fatalf("with room for %d bytes: %d bytes, %v", room, len(b), err)
		}
	}
}

func TestAppend_ReturnsItsArgumentOnError(t *testing.T) {
	loop := &node{}
	loop.Next = loop
	for _, room := range []int{0, 1000, 1 << 20} {
		given := append(make([]byte, 0, 3+room), "abc"...)
		b, err := thrift.Append(given, loop)
		var wireError *thrift.Error
		if !errors.As(err, &wireError) || string(b) != "abc" || &b[0] != &given[0] {
			t.Errorf("with room for %d bytes: %q, %v", room, b, err)
		}
	}
	long := &node{Name: strings.Repeat("n", limits.MessageBytes)}
	if b, err := thrift.Append([]byte("abc"), long); string(b) != "abc" || err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("%d bytes, %v; want the limit", len(b), err)
	}
}

// TestAppend_StringsOfEveryLength writes strings of all short lengths, as fields and as
// elements, into memory that ends at any place within them.
func TestAppend_StringsOfEveryLength(t *testing.T) {
	text := strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz", 3)
	for length := range 40 {
		want := node{Name: text[1 : 1+length], Labels: []string{text[2 : 2+length], "", text[:length]}, Scores: map[string]int64{}}
		whole := mustMarshal(t, &want)
		for capacity := range len(whole) + 20 {
			memory := bytes.Repeat([]byte{0xee}, 3+capacity+16)
			dst := append(memory[:0:3+capacity], "abc"...)
			b, err := thrift.Append(dst, &want)
			if after := memory[3+capacity:]; bytes.Count(after, []byte{0xee}) != len(after) {
				t.Fatalf("strings of %d bytes into %d: wrote behind the capacity: %x", length, capacity, after)
			}
			if err != nil || !bytes.Equal(b[3:], whole) || string(b[:3]) != "abc" {
				t.Fatalf("strings of %d bytes into %d: %x, %v; want %x", length, capacity, b, err, whole)
			}
			if enough := capacity >= len(whole); enough != (&b[0] == &dst[0]) {
				t.Fatalf("%d bytes in memory for %d: memory for more was made: %v", len(whole), capacity, enough)
			}
		}
		var got node
		if err := thrift.Unmarshal(whole, &got); err != nil || got.Name != want.Name || !slices.Equal(got.Labels, want.Labels) {
			t.Fatalf("strings of %d bytes: %q and %q, %v", length, got.Name, got.Labels, err)
		}
	}
}

// TestAppendBody_LinksStringsAndCopiesBinaries: what is written may leave after the call
// that wrote it has ended. Nobody can change a string by then, but a binary.
func TestAppendBody_LinksStringsAndCopiesBinaries(t *testing.T) {
	for _, length := range []int{1, 600, limits.LinkedStringBytes - 1, limits.LinkedStringBytes, 1 << 20} {
		s := &node{Name: strings.Repeat("n", length), Blob: bytes.Repeat([]byte("b"), length)}
		want := mustMarshal(t, s)
		pool := linkbuf.NewPool()
		out := linkbuf.New(pool)
		if err := thrift.Binary.AppendBody(out, s, limits.DefaultMessage()); err != nil {
			t.Fatal(err)
		}
		clear(s.Blob)
		chunks := out.Slices(nil)
		if !bytes.Equal(bytes.Join(chunks, nil), want) {
			t.Errorf("%d bytes: the message changed with the binary that it was written from", length)
		}
		linked := slices.ContainsFunc(chunks, func(chunk []byte) bool {
			return unsafe.SliceData(chunk) == unsafe.StringData(s.Name)
		})
		if linked != (length >= limits.LinkedStringBytes) {
			t.Errorf("%d bytes: the string is linked: %v", length, linked)
		}
		out.Release()
	}
}

// TestAppend_RefusesNil wants an error, not a panic.
func TestAppend_RefusesNil(t *testing.T) {
	dst := []byte("abc")
	for name, s := range map[string]thrift.Struct{"*thrift_test.node": (*node)(nil), "<nil>": nil} {
		want := "thrift: " + name + ": nil where a struct is required"
		if b, err := thrift.Append(dst, s); string(b) != "abc" || err == nil || err.Error() != want {
			t.Errorf("%q, %v, want %s", b, err, want)
		}
		if b, err := thrift.Marshal(s); b != nil || err == nil || err.Error() != want {
			t.Errorf("%q, %v, want %s", b, err, want)
		}
	}
}

// BenchmarkAppend writes a short struct to memory that is there.
func BenchmarkAppend(b *testing.B) {
	s := &node{Name: "first"}
	dst := make([]byte, 0, 4096)
	for b.Loop() {
		if _, err := thrift.Append(dst, s); err != nil {
			b.Fatal(err)
		}
	}
}
