package thrift_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// keeper is a generated struct without fields that keeps those that come.
type keeper struct{ unknown thrift.Unknown }

func (k *keeper) WriteThrift(w *thrift.Writer, b []byte) []byte {
	if !w.BeginStruct() {
		return b
	}
	b = w.Unknown(b, k.unknown)
	return w.EndStruct(b)
}

func (k *keeper) ReadThrift(r *thrift.Reader, p int) int {
	b := r.BeginStruct()
	var field thrift.FieldKey
	unknown := r.KeepUnknown()
	for len(b)-p >= 4 {
		if field = thrift.KeyAt(b, p); field.IsStop() {
			break
		}
		p = unknown.Add(r, p, field)
	}
	p = unknown.Store(r, p, &k.unknown)
	return r.EndStruct(p, field, "keeper")
}

// TestUnknown_IsWrittenAsItCame writes fields of lengths for which the writer has room,
// takes the next chunk, copies into further ones, and links.
func TestUnknown_IsWrittenAsItCame(t *testing.T) {
	pool := linkbuf.NewPool()
	for _, n := range []int{0, 1, 500, 512, 600, 20_000, 40_000, 500_000} {
		message := mustMarshal(t, &node{Name: strings.Repeat("n", n), Blob: []byte{}, Labels: []string{"a"}})
		var k keeper
		if err := thrift.Unmarshal(message, &k); err != nil {
			t.Fatal(err)
		}
		if got := k.unknown.SizeThrift(); got != len(message)-1 {
			t.Errorf("%d bytes kept of %d", got, len(message))
		}
		for _, capacity := range []int{0, 100, len(message) + 6, len(message) + 100} {
			dst := append(make([]byte, 0, capacity), "before"...)
			if got, err := thrift.Append(dst, &k); err != nil || string(got) != "before"+string(message) {
				t.Errorf("%d bytes behind others, room for %d: wrote something else, %v", n, capacity, err)
			}
		}
		m := limits.DefaultMessage()
		for m.Bytes = len(message); m.Bytes >= len(message)-1; m.Bytes-- {
			out := linkbuf.New(pool)
			out.Append([]byte("before"))
			err := thrift.Binary.AppendBody(out, &k, m)
			got := bytes.Join(out.Slices(nil), nil)
			if m.Bytes == len(message) && (err != nil || !bytes.Equal(got[len("before"):], message)) {
				t.Errorf("%d bytes into a chain: wrote something else, %v", n, err)
			}
			if m.Bytes < len(message) && (err == nil || !strings.Contains(err.Error(), "limit") || string(got) != "before") {
				t.Errorf("%d bytes more than may be: %v, %d bytes are left", n, err, len(got))
			}
			out.Release()
		}
	}
	if n := pool.Outstanding(); n != 0 {
		t.Errorf("%d chunks not given back", n)
	}
}

// TestUnknown_NestsNoDeeperThanKnownFields puts a struct with deep unknown fields into
// others: what nests too deeply for a reader is not written.
func TestUnknown_NestsNoDeeperThanKnownFields(t *testing.T) {
	const most = limits.Depth
	for _, deep := range []int{1, 10, most - 2, most - 1} {
		for _, more := range []string{"", strings.Repeat("x", 1000)} {
			var k keeper
			// A long text in front of the deep field, or nothing.
			text := append(binary.BigEndian.AppendUint32([]byte{byte(thrift.String), 0, 1}, uint32(len(more))), more...)
			levels := bytes.Repeat([]byte{byte(thrift.StructType), 0, 2}, deep)
			message := slices.Concat(text, levels, make([]byte, deep+1))
			if err := thrift.Unmarshal(message, &k); err != nil {
				t.Fatal(err)
			}
			for within := range most {
				outer := thrift.Struct(&k)
				for range within {
					outer = &wrapper{outer}
				}
				got, err := thrift.Marshal(outer)
				// The keeper is a level itself, and so is each wrapper.
				if fits := within+1+deep <= most; fits != (err == nil) {
					t.Fatalf("%d levels within %d: %v", deep, within, err)
				}
				if err == nil && !bytes.Contains(got, message[:len(message)-1]) {
					t.Fatalf("%d levels within %d: something else was written", deep, within)
				}
			}
		}
	}
}

// wrapper is a struct with another one as its only field.
type wrapper struct{ inner thrift.Struct }

func (o *wrapper) WriteThrift(w *thrift.Writer, b []byte) []byte {
	if !w.BeginStruct() {
		return b
	}
	b = thrift.PutField(w.Room(b, 4), thrift.Key(thrift.StructType, 1))
	return w.EndStruct(o.inner.WriteThrift(w, b))
}

func (*wrapper) ReadThrift(_ *thrift.Reader, p int) int { return p }
