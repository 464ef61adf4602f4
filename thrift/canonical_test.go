package thrift_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// written is a struct that is its bytes already, as a view is.
type written []byte

func (s written) WriteThrift(w *thrift.Writer, b []byte) []byte {
	return append(w.Room(b, len(s)), s...)
}

func (s written) ReadThrift(*thrift.Reader, int) int { panic("not readable") }

// The parts of messages.
func fieldOf(t thrift.Type, id int16, value ...[]byte) []byte {
	return slices.Concat(binary.BigEndian.AppendUint16([]byte{byte(t)}, uint16(id)), slices.Concat(value...))
}

func structOf(fields ...[]byte) []byte { return append(slices.Concat(fields...), 0) }

func listOf(element thrift.Type, values ...[]byte) []byte {
	return slices.Concat(binary.BigEndian.AppendUint32([]byte{byte(element)}, uint32(len(values))), slices.Concat(values...))
}

// mapOf takes keys and values in turn.
func mapOf(key, value thrift.Type, entries ...[]byte) []byte {
	return slices.Concat(binary.BigEndian.AppendUint32([]byte{byte(key), byte(value)}, uint32(len(entries)/2)), slices.Concat(entries...))
}

func textOf(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func i32Of(v int32) []byte      { return binary.BigEndian.AppendUint32(nil, uint32(v)) }
func doubleOf(v uint64) []byte  { return binary.BigEndian.AppendUint64(nil, v) }
func concat(b ...[]byte) []byte { return slices.Concat(b...) }

func TestAppendCanonical_OrdersWhatHasNoOrder(t *testing.T) {
	const negativeZero, nan, otherNaN = 1 << 63, 0x7ff8000000000001, 0xfff0000000000007
	a, b := textOf("a"), textOf("b")
	for _, c := range []struct {
		name       string
		from, want []byte
	}{
		{"empty", structOf(), structOf()}, {
			"fields, negative ids first",
			structOf(fieldOf(thrift.I32, 2, i32Of(2)), fieldOf(thrift.String, 1, a), fieldOf(thrift.I8, -1, []byte{7})),
			structOf(fieldOf(thrift.I8, -1, []byte{7}), fieldOf(thrift.String, 1, a), fieldOf(thrift.I32, 2, i32Of(2))),
		},
		{
			"of a field twice the last one stays the last",
			structOf(fieldOf(thrift.I32, 2, i32Of(9)), fieldOf(thrift.I32, 1, i32Of(8)), fieldOf(thrift.I32, 1, i32Of(3)), fieldOf(thrift.String, 1, a)),
			structOf(fieldOf(thrift.I32, 1, i32Of(8)), fieldOf(thrift.I32, 1, i32Of(3)), fieldOf(thrift.String, 1, a), fieldOf(thrift.I32, 2, i32Of(9))),
		},
		{
			"texts",
			structOf(fieldOf(thrift.Map, 1, mapOf(thrift.String, thrift.I32, b, i32Of(1), textOf("long"), i32Of(2), a, i32Of(3)))),
			structOf(fieldOf(thrift.Map, 1, mapOf(thrift.String, thrift.I32, a, i32Of(3), b, i32Of(1), textOf("long"), i32Of(2)))),
		},
		{
			"keys of no bytes that differ: their values",
			structOf(fieldOf(thrift.Map, 1, mapOf(thrift.StructType, thrift.I32, structOf(), i32Of(2), structOf(), i32Of(1)))),
			structOf(fieldOf(thrift.Map, 1, mapOf(thrift.StructType, thrift.I32, structOf(), i32Of(1), structOf(), i32Of(2)))),
		},
		{
			"doubles",
			structOf(fieldOf(thrift.Double, 1, doubleOf(negativeZero)), fieldOf(thrift.List, 2, listOf(thrift.Double, doubleOf(otherNaN), doubleOf(negativeZero), doubleOf(1)))),
			structOf(fieldOf(thrift.Double, 1, doubleOf(0)), fieldOf(thrift.List, 2, listOf(thrift.Double, doubleOf(nan), doubleOf(0), doubleOf(1)))),
		},
		{
			"keys that are doubles",
			structOf(fieldOf(thrift.Map, 1, mapOf(thrift.Double, thrift.I8, doubleOf(otherNaN), []byte{3}, doubleOf(nan), []byte{2}, doubleOf(negativeZero), []byte{1}))),
			structOf(fieldOf(thrift.Map, 1, mapOf(thrift.Double, thrift.I8, doubleOf(0), []byte{1}, doubleOf(nan), []byte{2}, doubleOf(nan), []byte{3}))),
		},
		{
			"maps in keys and values, before what they are in",
			structOf(fieldOf(thrift.Map, 1, mapOf(thrift.Map, thrift.Map,
				mapOf(thrift.I32, thrift.I32, i32Of(5), i32Of(0), i32Of(4), i32Of(0)), mapOf(thrift.String, thrift.String, b, a, a, b),
				mapOf(thrift.I32, thrift.I32, i32Of(4), i32Of(0), i32Of(3), i32Of(0)), mapOf(thrift.String, thrift.String)))),
			structOf(fieldOf(thrift.Map, 1, mapOf(thrift.Map, thrift.Map,
				mapOf(thrift.I32, thrift.I32, i32Of(3), i32Of(0), i32Of(4), i32Of(0)), mapOf(thrift.String, thrift.String),
				mapOf(thrift.I32, thrift.I32, i32Of(4), i32Of(0), i32Of(5), i32Of(0)), mapOf(thrift.String, thrift.String, a, b, b, a)))),
		},
		{
			"structs in lists and as keys",
			structOf(fieldOf(thrift.List, 1, listOf(thrift.StructType, structOf(fieldOf(thrift.I8, 2, []byte{1}), fieldOf(thrift.I8, 1, []byte{2})))),
				fieldOf(thrift.Map, 2, mapOf(thrift.StructType, thrift.Bool,
					structOf(fieldOf(thrift.I8, 2, []byte{1}), fieldOf(thrift.I8, 1, []byte{2})), []byte{1},
					structOf(fieldOf(thrift.I8, 1, []byte{1}), fieldOf(thrift.I8, 2, []byte{2})), []byte{0}))),
			structOf(fieldOf(thrift.List, 1, listOf(thrift.StructType, structOf(fieldOf(thrift.I8, 1, []byte{2}), fieldOf(thrift.I8, 2, []byte{1})))),
				fieldOf(thrift.Map, 2, mapOf(thrift.StructType, thrift.Bool,
					structOf(fieldOf(thrift.I8, 1, []byte{1}), fieldOf(thrift.I8, 2, []byte{2})), []byte{0},
					structOf(fieldOf(thrift.I8, 1, []byte{2}), fieldOf(thrift.I8, 2, []byte{1})), []byte{1}))),
		},
		{
			"sets, and lists that keep their order",
			structOf(fieldOf(thrift.Set, 1, listOf(thrift.String, b, a, b)), fieldOf(thrift.List, 2, listOf(thrift.I32, i32Of(2), i32Of(1))),
				fieldOf(thrift.Set, 3, listOf(thrift.I8, []byte{2}, []byte{1})), fieldOf(thrift.Set, 4, listOf(thrift.Double, doubleOf(1), doubleOf(negativeZero)))),
			structOf(fieldOf(thrift.Set, 1, listOf(thrift.String, a, b, b)), fieldOf(thrift.List, 2, listOf(thrift.I32, i32Of(2), i32Of(1))),
				fieldOf(thrift.Set, 3, listOf(thrift.I8, []byte{1}, []byte{2})), fieldOf(thrift.Set, 4, listOf(thrift.Double, doubleOf(0), doubleOf(1)))),
		},
	} {
		if got, err := thrift.AppendCanonical(nil, written(c.from)); err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %x, %v\nwant %x", c.name, got, err, c.want)
		}
	}
}

func TestAppendCanonical_GoesOnBehindWhatIsThere(t *testing.T) {
	want := mustCanonical(t, sample())
	before := bytes.Repeat([]byte("b"), 1000)
	got, err := thrift.AppendCanonical(before, sample())
	if err != nil || !bytes.Equal(got, concat(before, want)) {
		t.Errorf("got %x, %v; want %x behind what was there", got, err, want)
	}
	var again node
	if err := thrift.Unmarshal(want, &again); err != nil || !bytes.Equal(mustCanonical(t, &again), want) {
		t.Errorf("read and written again it is other bytes, %v", err)
	}
}

// TestAppendCanonical_OfManyEntries: in the order of Go nothing is.
func TestAppendCanonical_OfManyEntries(t *testing.T) {
	s := &node{Scores: map[string]int64{}}
	for i := range int64(1000) {
		s.Scores[strings.Repeat("k", int(i%7))+string(rune('a'+i))] = i
	}
	want := mustCanonical(t, s)
	for range 5 {
		again := &node{Scores: map[string]int64{}}
		for key, value := range s.Scores {
			again.Scores[key] = value
		}
		if !bytes.Equal(mustCanonical(t, again), want) {
			t.Fatal("a map of the same entries is other bytes")
		}
	}
	if same := bytes.Equal(mustMarshal(t, s), want); same {
		t.Error("Marshal sorts as well: nothing is shown")
	}
}

// TestCodec_CanonicalBodies: short ones are copied, long ones linked.
func TestCodec_CanonicalBodies(t *testing.T) {
	codec := thrift.Codec{Canonical: true}
	for _, size := range []int{10, 100, 10_000} {
		s := sized(size)
		s.Scores = map[string]int64{"b": 1, "a": 2, "c": 3}
		out := linkbuf.New(linkbuf.NewPool())
		if err := codec.AppendBody(out, s, limits.DefaultMessage()); err != nil {
			t.Fatal(err)
		}
		if want := mustCanonical(t, s); !bytes.Equal(bytes.Join(out.Slices(nil), nil), want) {
			t.Errorf("a body of %d bytes is not what AppendCanonical returns, which is %d bytes", out.Len(), len(want))
		}
		tight := limits.DefaultMessage()
		tight.Bytes = out.Len() - 1
		out.Release()
		if err := codec.AppendBody(out, s, tight); err == nil || !strings.Contains(err.Error(), "limit") || out.Len() != 0 {
			t.Errorf("with room for a byte less: %v, %d bytes", err, out.Len())
		}
	}
	out := linkbuf.New(linkbuf.NewPool())
	if err := codec.AppendBody(out, "no struct", limits.DefaultMessage()); err == nil {
		t.Error("a text was written")
	}
}

// TestAppendCanonical_RefusesWhatIsNoMessage has what a view can write that was loaded in
// part.
func TestAppendCanonical_RefusesWhatIsNoMessage(t *testing.T) {
	deep := bytes.Repeat([]byte{byte(thrift.StructType), 0, 1}, limits.DefaultMessage().Depth+1)
	for name, message := range map[string][]byte{
		"nothing":          {},
		"without an end":   fieldOf(thrift.I32, 1, i32Of(1)),
		"more behind it":   {0, 0},
		"a long text":      structOf(fieldOf(thrift.String, 1, i32Of(math.MaxInt32))),
		"a negative count": structOf(fieldOf(thrift.Map, 1, []byte{8, 8}, i32Of(-1))),
		"an unknown type":  structOf(fieldOf(thrift.Type(0x80), 1, i32Of(1))),
		"too deep":         append(deep, make([]byte, len(deep))...),
	} {
		if got, err := thrift.AppendCanonical([]byte("x"), written(message)); err == nil || string(got) != "x" {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
}

func mustCanonical(t *testing.T, s thrift.Struct) []byte {
	t.Helper()
	b, err := thrift.AppendCanonical(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzAppendCanonical: any message has one canonical form, which is a message of the same
// length, and reads as well as it does.
func FuzzAppendCanonical(f *testing.F) {
	f.Add([]byte{0})
	f.Add(structOf(fieldOf(thrift.I32, 2, i32Of(2)), fieldOf(thrift.String, 1, textOf("a"))))
	f.Add(structOf(fieldOf(thrift.Map, 11, mapOf(thrift.String, thrift.I64, textOf("b"), doubleOf(1), textOf("a"), doubleOf(2)))))
	f.Add(structOf(fieldOf(thrift.Map, 1, mapOf(thrift.Map, thrift.Double, mapOf(thrift.I32, thrift.I32, i32Of(5), i32Of(0), i32Of(4), i32Of(0)), doubleOf(1<<63)))))
	f.Fuzz(func(t *testing.T, message []byte) {
		got, err := thrift.AppendCanonical(nil, written(message))
		var plain, canonical node
		before := thrift.Unmarshal(message, &plain)
		if err != nil {
			if before == nil {
				t.Fatalf("%x can be read, but has no canonical form: %v", message, err)
			}
			return
		}
		if len(got) != len(message) {
			t.Fatalf("%x became %x", message, got)
		}
		if again, err := thrift.AppendCanonical(nil, written(got)); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%x became %x, and that %x, %v", message, got, again, err)
		}
		if after := thrift.Unmarshal(got, &canonical); (before == nil) != (after == nil) {
			t.Fatalf("%x: %v, but in canonical form: %v", message, before, after)
		}
	})
}
