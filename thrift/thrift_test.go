package thrift_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// node has a field of every kind that the runtime knows, written as the
// generator writes it. Generated structs have their own tests in internal/emit;
// this one keeps the runtime's tests independent of the generator.
type node struct {
	Flag     bool
	Tiny     int8
	Short    int16
	Number   thrift.Opt[int32]
	Long     int64
	Ratio    float64
	Name     string
	Blob     []byte
	ID       thrift.UUID
	Labels   []string
	Scores   map[string]int64
	Children []node
	Next     *node
}

func (n *node) WriteThrift(w *thrift.Writer, b []byte) []byte {
	if !w.BeginStruct() {
		return b
	}
	b = w.Room(b, 61)
	fixed := (*[54]byte)(b[len(b) : len(b)+54])
	thrift.PutBool(fixed[0:4], 1, n.Flag)
	thrift.PutI8(fixed[4:8], 2, n.Tiny)
	thrift.PutI64(fixed[8:19], 5, n.Long)
	thrift.PutDouble(fixed[19:30], 6, n.Ratio)
	thrift.PutUUID(fixed[30:49], 9, n.ID)
	thrift.PutI16(fixed[49:54], 3, n.Short)
	b = b[:len(b)+54]
	if v, ok := n.Number.Get(); ok {
		thrift.PutI32(b[len(b):len(b)+7], 4, v)
		b = b[:len(b)+7]
	}
	b = w.FieldString(b, 7, n.Name)
	if n.Blob != nil {
		b = w.FieldBinary(b, 8, n.Blob)
	}
	b = w.StringList(b, thrift.Key(thrift.List, 10), n.Labels)
	b = w.BeginMap(b, thrift.Key(thrift.Map, 11), thrift.String, thrift.I64, len(n.Scores))
	for k, v := range n.Scores {
		b = w.String(b, k)
		b = w.I64(b, v)
	}
	w.EndMap()
	b = w.BeginList(b, thrift.Key(thrift.List, 12), thrift.StructType, len(n.Children))
	for i := range n.Children {
		b = n.Children[i].WriteThrift(w, b)
	}
	w.EndList()
	if n.Next != nil {
		b = thrift.PutField(w.Room(b, 4), thrift.Key(thrift.StructType, 13))
		b = n.Next.WriteThrift(w, b)
	}
	return w.EndStruct(b)
}

func (n *node) ReadThrift(r *thrift.Reader, p int) int {
	b := r.BeginStruct()
	var field thrift.FieldKey
fields:
	for len(b)-p >= 4 {
		switch field = thrift.KeyAt(b, p); field {
		case thrift.Key(thrift.Bool, 1):
			n.Flag, p = r.Bool(p + 3)
		case thrift.Key(thrift.I8, 2):
			n.Tiny, p = r.I8(p + 3)
		case thrift.Key(thrift.I16, 3):
			n.Short, p = r.I16(p + 3)
		case thrift.Key(thrift.I32, 4):
			if len(b)-p < 7 {
				p = r.Short(p+3, thrift.I32)
				break
			}
			n.Number.Set(thrift.I32At(b, p+3))
			p += 7
		case thrift.Key(thrift.I64, 5):
			n.Long, p = r.I64(p + 3)
		case thrift.Key(thrift.Double, 6):
			n.Ratio, p = r.Double(p + 3)
		case thrift.Key(thrift.String, 7):
			n.Name, p = r.String(p + 3)
		case thrift.Key(thrift.String, 8):
			n.Blob, p = r.Binary(p + 3)
		case thrift.Key(thrift.UUIDType, 9):
			n.ID, p = r.UUID(p + 3)
		case thrift.Key(thrift.List, 10):
			n.Labels, p = r.StringList(p+3, n.Labels)
		case thrift.Key(thrift.Map, 11):
			count, next, ok := r.BeginMap(p+3, thrift.String, thrift.I64)
			p = next
			if ok {
				scores := thrift.MakeMap[string, int64](r, p, count, nil)
				for i := 0; i < count && !r.Failed(); i++ {
					var key string
					key, p = r.String(p)
					scores[key], p = r.I64(p)
				}
				p = r.EndMap(p)
				n.Scores = scores
			}
		case thrift.Key(thrift.List, 12):
			count, next, ok := r.BeginList(p+3, thrift.StructType)
			p = next
			if ok {
				list := thrift.MakeSlice[node](r, p, count, nil)
				for i := 0; i < count && !r.Failed(); i++ {
					list = thrift.Extend(list)
					p = list[i].ReadThrift(r, p)
				}
				p = r.EndList(p)
				n.Children = list
			}
		case thrift.Key(thrift.StructType, 13):
			n.Next = thrift.Allocate[node](r, p)
			p = n.Next.ReadThrift(r, p+3)
		default:
			if field.IsStop() {
				break fields
			}
			p = r.Skip(p, field)
		}
	}
	return r.EndStruct(p, field, "test.node")
}

func sample() *node {
	return &node{
		Flag: true, Tiny: -1, Short: math.MinInt16, Number: thrift.Some[int32](0), Long: math.MaxInt64, Ratio: -0.5,
		Name: "größe", Blob: []byte{}, ID: thrift.MustParseUUID("00112233-4455-6677-8899-aabbccddeeff"),
		Labels:   []string{"", "a", strings.Repeat("long ", 5000)},
		Scores:   map[string]int64{"x": 1, "y": -1},
		Children: []node{{Name: "c1", Labels: []string{}, Scores: map[string]int64{}, Children: []node{}}},
		Next:     &node{Name: "next", Labels: []string{}, Scores: map[string]int64{}, Children: []node{}},
	}
}

func TestMarshal_RoundTrip(t *testing.T) {
	want := sample()
	b, err := thrift.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got node
	if err := thrift.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&got, want) {
		t.Errorf("read back %+v, want %+v", got, want)
	}
	size, err := thriftwire.Skip(b, thrift.StructType, 64, 64)
	if err != nil || size != len(b) {
		t.Errorf("Skip of what Marshal wrote: %d of %d bytes, %v", size, len(b), err)
	}
}

func TestUnmarshal_KeepsNoReference(t *testing.T) {
	b, err := thrift.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	var got node
	if err := thrift.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] = 0xdb
	}
	if !reflect.DeepEqual(&got, sample()) {
		t.Error("the struct changed with the bytes it was read from")
	}
}

func TestUnmarshal_RefusesEveryTruncation(t *testing.T) {
	small := &node{Name: "n", Labels: []string{"l"}, Scores: map[string]int64{"k": 1}, Children: []node{{}}, Next: &node{}}
	b, err := thrift.Marshal(small)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range b {
		var wireError *thrift.Error
		if err := thrift.Unmarshal(b[:cut], &node{}); !errors.As(err, &wireError) {
			t.Fatalf("Unmarshal of %d of %d bytes: %v; want a *thrift.Error", cut, len(b), err)
		}
	}
	if err := thrift.Unmarshal(append(b, 0), &node{}); err == nil || !strings.Contains(err.Error(), "1 bytes follow") {
		t.Errorf("Unmarshal with a byte too many: %v", err)
	}
}

func TestUnmarshal_SaysWhere(t *testing.T) {
	b, err := thrift.Marshal(&node{Next: &node{Name: "abc"}})
	if err != nil {
		t.Fatal(err)
	}
	// The length of the inner name.
	at := bytes.Index(b, []byte("abc")) - 4
	b[at+2] = 0x7f
	err = thrift.Unmarshal(b, &node{})
	const want = "thrift: test.node: field 13: test.node: field 7: string needs 32515 bytes"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Unmarshal: %v; want %q and more", err, want)
	}
}

func TestUnmarshal_IsLiberalWhereTheSpecificationIs(t *testing.T) {
	cases := map[string]struct {
		bytes string
		want  node
	}{
		"unknown field":            {"\x0f\x00\x63\x08\x00\x00\x00\x01\x00\x00\x00\x05" + "\x0b\x00\x07\x00\x00\x00\x01n\x00", node{Name: "n"}},
		"field of another type":    {"\x0a\x00\x07\x00\x00\x00\x00\x00\x00\x00\x01\x00", node{}},
		"elements of another type": {"\x0f\x00\x0a\x08\x00\x00\x00\x01\x00\x00\x00\x05\x00", node{}},
		"map of another type":      {"\x0d\x00\x0b\x0b\x08\x00\x00\x00\x01\x00\x00\x00\x01k\x00\x00\x00\x01\x00", node{}},
		"empty list of any type":   {"\x0f\x00\x0a\x00\x00\x00\x00\x00\x00", node{Labels: []string{}}},
		"empty map of no type":     {"\x0d\x00\x0b\x00\x00\x00\x00\x00\x00\x00", node{Scores: map[string]int64{}}},
		"a set for a list":         {"\x0e\x00\x0a\x0b\x00\x00\x00\x00\x00", node{}},
		"last duplicate wins":      {"\x0b\x00\x07\x00\x00\x00\x01a\x0b\x00\x07\x00\x00\x00\x01b\x00", node{Name: "b"}},
		"a bool of 2 is false":     {"\x02\x00\x01\x02\x00", node{}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var got node
			if err := thrift.Unmarshal([]byte(test.bytes), &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestUnmarshal_BombsCostLittle: what a few bytes declare must not be believed
// (P2). Each input is refused, and on average of a thousand times that takes far
// less memory than the budget of a message would allow: 610 bytes measured,
// most of them for the error.
func TestUnmarshal_BombsCostLittle(t *testing.T) {
	list := func(field, element byte, count string) string {
		return "\x0f\x00" + string(field) + string(element) + count
	}
	const twentyMillion = "\x01\x31\x2d\x00"
	cases := map[string]string{
		"strings":         list(10, 11, twentyMillion),
		"structs":         list(12, 12, twentyMillion),
		"structs, padded": list(12, 12, "\x00\x00\x00\x20") + strings.Repeat("\x00", 16),
		"map":             "\x0d\x00\x0b\x0b\x0a" + twentyMillion,
		"string":          "\x0b\x00\x07\x7f\xff\xff\xff",
		"unknown list":    list(99, 12, twentyMillion),
		"unknown map":     "\x0d\x00\x63\x0b\x0c" + twentyMillion,
		"negative list":   list(10, 11, "\xff\xff\xff\xff"),
		"negative string": "\x0b\x00\x07\xff\xff\xff\xff",
		"unknown type":    "\x80\x00\x07\xff\xff\xff\xff",
	}
	for name, input := range cases {
		t.Run(name, func(t *testing.T) {
			const runs, allowed = 1000, 4 << 10
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range runs {
				if err := thrift.Unmarshal([]byte(input), &node{}); err == nil {
					t.Fatal("accepted")
				}
			}
			runtime.ReadMemStats(&after)
			if perRun := (after.TotalAlloc - before.TotalAlloc) / runs; perRun > allowed {
				t.Errorf("%d bytes allocated for a message of %d bytes, want at most %d", perRun, len(input), allowed)
			}
		})
	}
}

// TestUnmarshal_BudgetHolds: a legal message whose Go form is far larger than
// its bytes is refused before that memory is taken.
func TestUnmarshal_BudgetHolds(t *testing.T) {
	const count = 1 << 16
	b := append([]byte{0x0f, 0, 12, 12, 0, 1, 0, 0}, make([]byte, count+1)...)
	err := thrift.Unmarshal(b, &node{})
	var wireError *thrift.Error
	if !errors.As(err, &wireError) || wireError.Kind != thriftwire.LimitExceeded || !strings.Contains(err.Error(), "more memory") {
		t.Errorf("%d empty structs in %d bytes: %v; want the memory limit", count, len(b), err)
	}
}

func TestUnmarshal_DepthIsBounded(t *testing.T) {
	nest := func(depth int) []byte {
		return append(bytes.Repeat([]byte{0x0c, 0, 13}, depth-1), make([]byte, depth)...)
	}
	if err := thrift.Unmarshal(nest(limits.Depth), &node{}); err != nil {
		t.Errorf("%d levels: %v", limits.Depth, err)
	}
	for _, depth := range []int{limits.Depth + 1, 1_000_000} {
		want := fmt.Sprintf("deeper than %d (at byte %d)", limits.Depth, 3*limits.Depth)
		if err := thrift.Unmarshal(nest(depth), &node{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d levels: %v; want the depth limit", depth, err)
		}
	}
}

func TestMarshal_RefusesCycles(t *testing.T) {
	cycle := &node{}
	cycle.Next = cycle
	if _, err := thrift.Marshal(cycle); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("deeper than %d", limits.Depth)) {
		t.Errorf("Marshal of a struct that contains itself: %v; want the depth limit", err)
	}
}

func TestAppendBody_LeavesNothingOnError(t *testing.T) {
	pool := linkbuf.NewPool()
	out := linkbuf.New(pool)
	out.AppendString("before")
	m := limits.DefaultMessage()
	m.Bytes = 1000
	for _, big := range []*node{
		{Name: strings.Repeat("x", 1000)},
		{Blob: make([]byte, 100_000)},
		{Labels: make([]string, 300)},
	} {
		err := thrift.Binary.AppendBody(out, big, m)
		if err == nil || !strings.Contains(err.Error(), "limit 1000") {
			t.Errorf("AppendBody of a long message: %v; want the limit", err)
		}
		if out.Len() != len("before") {
			t.Errorf("AppendBody left %d bytes, want %d", out.Len(), len("before"))
		}
	}
	if err := thrift.Binary.AppendBody(out, "no struct", m); err == nil {
		t.Error("AppendBody of a string succeeded")
	}
	out.Release()
	if n := pool.Outstanding(); n != 0 {
		t.Errorf("%d chunks not given back", n)
	}
}

func TestWriter_KeepsTheFirstError(t *testing.T) {
	bad := structFunc(func(w *thrift.Writer, b []byte) []byte {
		w.BeginStruct()
		w.FailUnion("test.Choice", 2)
		w.FailNil("test.node")
		b = w.FieldString(b, 1, strings.Repeat("x", 1<<20))
		return w.EndStruct(b)
	})
	_, err := thrift.Marshal(bad)
	const want = "thrift: union test.Choice: exactly one field must be set, 2 are"
	if err == nil || err.Error() != want {
		t.Errorf("Marshal: %v; want %q", err, want)
	}
}

// structFunc is a Struct that is only written.
type structFunc func(w *thrift.Writer, b []byte) []byte

func (f structFunc) WriteThrift(w *thrift.Writer, b []byte) []byte { return f(w, b) }
func (f structFunc) ReadThrift(_ *thrift.Reader, p int) int        { return p }

func TestOpt_JSON(t *testing.T) {
	type document struct {
		A thrift.Opt[int32]  `json:"a,omitzero"`
		B thrift.Opt[string] `json:"b,omitzero"`
		C thrift.Opt[bool]   `json:"c"`
	}
	want := document{A: thrift.Some[int32](0)}
	text, err := json.Marshal(want)
	if err != nil || string(text) != `{"a":0,"c":null}` {
		t.Fatalf("Marshal = %s, %v", text, err)
	}
	var got document
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("Unmarshal = %+v, %v; want %+v", got, err, want)
	}
	if err := json.Unmarshal([]byte(`{"a":"x"}`), &got); err == nil {
		t.Error("Unmarshal of a string into an i32 succeeded")
	}
}

func TestUUID_Text(t *testing.T) {
	const text = "01234567-89ab-cdef-0123-456789abcdef"
	id, err := thrift.ParseUUID(strings.ToUpper(text))
	if err != nil || id.String() != text {
		t.Fatalf("ParseUUID = %v, %v", id, err)
	}
	for _, bad := range []string{"", text[1:], text + "0", strings.Replace(text, "-", "0", 1), strings.Replace(text, "a", "-", 1), strings.Replace(text, "a", "g", 1)} {
		if _, err := thrift.ParseUUID(bad); err == nil {
			t.Errorf("ParseUUID(%q) succeeded", bad)
		}
	}
}

// FuzzUnmarshal: no input panics; Unmarshal and Skip agree on what is a struct,
// except for what only a decoder refuses (memory); and what was read can be
// written, read and written again to the same value.
func FuzzUnmarshal(f *testing.F) {
	// Short seeds: the fuzzer minimizes long ones instead of trying more.
	short := sample()
	short.Labels = []string{"", "a"}
	for _, s := range []*node{{}, short, {Children: []node{{}, {}}}} {
		b, err := thrift.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var first node
		err := thrift.Unmarshal(b, &first)
		size, skipErr := thriftwire.Skip(b, thrift.StructType, limits.Depth, limits.Depth)
		if err != nil {
			var wireError *thrift.Error
			if !errors.As(err, &wireError) {
				t.Fatalf("%v is not a *thrift.Error", err)
			}
			if skipErr == nil && size == len(b) && !strings.Contains(err.Error(), "more memory") {
				t.Fatalf("Skip accepts what Unmarshal refuses: %v", err)
			}
			return
		}
		if skipErr != nil || size != len(b) {
			t.Fatalf("Skip refuses what Unmarshal accepts: %d of %d, %v", size, len(b), skipErr)
		}
		again, err := thrift.Marshal(&first)
		if err != nil {
			t.Fatal(err)
		}
		var second node
		if err := thrift.Unmarshal(again, &second); err != nil {
			t.Fatal(err)
		}
		third, err := thrift.Marshal(&second)
		if err != nil || len(third) != len(again) {
			t.Fatalf("written again: %d bytes, then %d, %v", len(again), len(third), err)
		}
	})
}
