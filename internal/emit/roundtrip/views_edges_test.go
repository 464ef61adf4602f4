package roundtrip_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views/other"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// wire puts fields behind each other, and an end mark behind them.
func wire(fields ...string) []byte { return []byte(strings.Join(fields, "") + "\x00") }

func i32Field(id byte, value uint32) string {
	return "\x08\x00" + string(rune(id)) + string(binary.BigEndian.AppendUint32(nil, value))
}

func textField(id byte, text string) string {
	return "\x0b\x00" + string(rune(id)) + string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

func TestView_OfHostileMessages(t *testing.T) {
	const deep = limits.Depth + 1
	for name, test := range map[string]struct {
		v       view
		message []byte
		says    string
	}{
		"nests too deeply":          {new(views.NodeView), append(bytes.Repeat([]byte{12, 0, 2}, deep), make([]byte, deep+1)...), "nest deeper than 64"},
		"unknown nests too deeply":  {new(views.EmptyView), append(bytes.Repeat([]byte{12, 0, 2}, deep), make([]byte, deep+1)...), "nest deeper than 64"},
		"elements that do not come": {new(views.ContainersView), wire("\x0f\x00\x0b\x0c\x7f\xff\xff\xff"), "declares 2147483647 elements"},
		"numbers that do not come":  {new(views.PlainView), wire("\x0f\x00\x0c\x0a\x10\x00\x00\x00"), "declares 268435456 elements"},
		"entries that do not come":  {new(views.ContainersView), wire("\x0d\x00\x16\x0b\x0b\x7f\xff\xff\xff"), "declares 2147483647 elements"},
		"a negative count":          {new(views.ContainersView), wire("\x0f\x00\x15\x0c\xff\xff\xff\xff"), "list of -1 elements"},
		"a negative length":         {new(views.LeafView), wire("\x0b\x00\x02\xff\xff\xff\xff"), "string of -1 bytes"},
		"a type that is none":       {new(views.LeafView), wire("\x05\x00\x02\x00\x00\x00\x00"), "unknown type 5"},
		"required in an element":    {new(views.NodeView), wire("\x0f\x00\x06\x0c\x00\x00\x00\x01\x00"), "required but absent: name"},
		"bytes behind the end":      {new(views.LeafView), []byte("\x00\x00"), "1 bytes follow the end"},
		"nothing":                   {new(views.LeafView), nil, "field header needs 3 bytes, 0 are left"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.v.Load(test.message)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
			if again, err := test.v.AppendTo(nil); err == nil && !bytes.Equal(again, []byte{0}) {
				t.Errorf("after an error there is %x", again)
			}
		})
	}
}

// TestView_RepeatedFieldsCannotComeBack has fields twice: the last one counts, and whoever
// changes or removes it does not bring back the one before.
func TestView_RepeatedFieldsCannotComeBack(t *testing.T) {
	message := wire(i32Field(1, 1), textField(2, "first"), textField(99, "unknown"), textField(2, "second"), i32Field(1, 2))
	var v views.LeafView
	if err := v.Load(message); err != nil {
		t.Fatal(err)
	}
	if v.Number() != 2 || v.Text() != "second" {
		t.Errorf("%d, %q", v.Number(), v.Text())
	}
	if forwarded, err := v.AppendTo(nil); err != nil || !bytes.Equal(forwarded, message) {
		t.Errorf("unchanged it is %x, %v", forwarded, err)
	}
	v.ClearText()
	if v.HasText() || v.Text() != "" {
		t.Errorf("removed it is %q", v.Text())
	}
	want := wire(textField(99, "unknown"), i32Field(1, 2))
	if forwarded, err := v.AppendTo(nil); err != nil || !bytes.Equal(forwarded, want) {
		t.Errorf("without a text it is %x, %v; want %x", forwarded, err, want)
	}
	v.SetText("third")
	want = wire(textField(99, "unknown"), i32Field(1, 2), textField(2, "third"))
	if forwarded, err := thrift.Marshal(&v); err != nil || len(forwarded) != len(want) {
		t.Errorf("with another text it is %x, %v; want %x in any order", forwarded, err, want)
	}
}

// TestView_OfAnotherType has a number where a text should be: it is a field that the
// definition does not have, and stays.
func TestView_OfAnotherType(t *testing.T) {
	message := wire(i32Field(2, 7))
	var v views.LeafView
	if err := v.Load(message); err != nil || v.HasText() {
		t.Fatalf("%v, %v", err, v.HasText())
	}
	v.SetText("x")
	want := wire(i32Field(2, 7), textField(2, "x"))
	if forwarded, err := v.AppendTo(nil); err != nil || !bytes.Equal(forwarded, want) {
		t.Errorf("%x, %v; want %x", forwarded, err, want)
	}
}

// TestView_KeepsNoMemoryThatIsLent reads a view of bytes that somebody uses again.
func TestView_KeepsNoMemoryThatIsLent(t *testing.T) {
	for _, policy := range []thrift.Strings{thrift.StringsAuto, thrift.StringsMessage, thrift.StringsOwn, thrift.StringsScoped} {
		message := wire(i32Field(1, 7), textField(2, "text"))
		var v views.LeafView
		_, err := thrift.Codec{Strings: policy}.ReadBody(message, &v, limits.DefaultMessage(), true)
		if err != nil {
			t.Fatalf("policy %d: %v", policy, err)
		}
		clear(message)
		if v.Number() != 7 || v.Text() != "text" {
			t.Errorf("policy %d: %d, %q", policy, v.Number(), v.Text())
		}
	}
}

// TestView_MovedTooDeep puts a view that nests as deep as it may into another one.
func TestView_MovedTooDeep(t *testing.T) {
	levels := func(n int) (v views.NodeView) {
		if err := v.Load(append(bytes.Repeat([]byte{12, 0, 2}, n-1), make([]byte, n)...)); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for n, fits := range map[int]bool{limits.Depth - 1: true, limits.Depth: false} {
		var around views.NodeView
		around.SetNext(levels(n))
		_, err := thrift.Marshal(&around)
		if fits != (err == nil) || err != nil && !strings.Contains(err.Error(), "deeper than 64") {
			t.Errorf("%d levels in another one: %v", n, err)
		}
		inner := around.Next()
		if !inner.HasNext() {
			t.Errorf("%d levels: the inner one is not what was set", n)
		}
	}
	v := levels(limits.Depth)
	if again, err := thrift.Marshal(&v); err != nil || len(again) != 4*limits.Depth-3 {
		t.Errorf("as deep as it may: %d bytes, %v", len(again), err)
	}
}

func TestView_FromNothing(t *testing.T) {
	var place other.PlaceView
	if _, err := place.AppendTo(nil); err == nil || !strings.Contains(err.Error(), "required but absent: name") {
		t.Errorf("without a name: %v", err)
	}
	place.SetName("here")
	s, err := place.Struct()
	if err != nil || s.Name != "here" || s.Floor != 1 || place.Floor() != 1 {
		t.Errorf("%v, %v", s, err)
	}
}

// TestView_CopiesAreIndependent changes more fields than patches have room in a view.
func TestView_CopiesAreIndependent(t *testing.T) {
	var first views.PlainView
	first.SetAnI8(1)
	first.SetAnI16(2)
	first.SetAnI32(3)
	first.SetAnI64(4)
	first.SetAString("five")
	first.SetADouble(6)
	second := first
	second.SetAnI8(10)
	second.SetABool(true)
	first.SetAString("fifty")
	first.SetNumbers([]int64{1, 2})
	first.SetNumbersAt(1, 20)
	if first.AnI8() != 1 || first.ABool() || first.AString() != "fifty" || !slices.Equal(first.Numbers().AppendTo(nil), []int64{1, 20}) {
		t.Errorf("the first one is %v", first)
	}
	if second.AnI8() != 10 || !second.ABool() || second.AString() != "five" || second.HasNumbers() || second.ADouble() != 6 {
		t.Errorf("the second one is %v", second)
	}
}

func TestView_TextJSONAndEqual(t *testing.T) {
	s := newFilled(views.NewOptional(), 3).(*views.Optional)
	v, err := views.NewOptionalView(s)
	if err != nil {
		t.Fatal(err)
	}
	if v.String() != s.String() {
		t.Errorf("%s, want %s", v, s)
	}
	same, other := v, v
	same.SetAnI32(v.AnI32() + 1)
	same.SetAnI32(v.AnI32())
	other.SetAnI32(v.AnI32() + 1)
	if !v.HasAnI32() || !v.Equal(&same) || v.Equal(&other) {
		t.Errorf("%v, %v: equal %v and %v", v, other, v.Equal(&same), v.Equal(&other))
	}
}

func TestView_IndexesThatAreNone(t *testing.T) {
	v, err := views.NewContainersView(&views.Containers{Ints: []int32{1}, Strings: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, use := range map[string]func(){
		"number": func() { v.Ints().At(1) }, "negative": func() { v.Ints().At(-1) }, "text": func() { v.Strings().At(1) },
		"set number": func() { v.SetIntsAt(1, 1) }, "set text": func() { v.SetStringsAt(-1, "") }, "set in nothing": func() { v.SetLongsAt(0, 1) },
	} {
		if !panics(use) {
			t.Errorf("%s: it did not panic", name)
		}
	}
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

// TestView_EqualToNothing is what structs do: nothing is equal to nothing only.
func TestView_EqualToNothing(t *testing.T) {
	var v, none = new(views.LeafView), (*views.LeafView)(nil)
	if v.Equal(nil) || none.Equal(v) || !none.Equal(nil) || !v.Equal(v) {
		t.Errorf("%v, %v, %v, %v", v.Equal(nil), none.Equal(v), none.Equal(nil), v.Equal(v))
	}
}

// TestView_AtPassesOverElements compares At with All, in lists of everything that has no
// fixed size.
func TestView_AtPassesOverElements(t *testing.T) {
	for seed := range uint64(40) {
		v, err := views.NewContainersView(newFilled(views.NewContainers(), seed).(*views.Containers))
		if err != nil {
			continue // a union without an arm
		}
		for i, text := range v.Strings().All() {
			if got := v.Strings().At(i); got != text {
				t.Errorf("seed %d, text %d: %q, want %q", seed, i, got, text)
			}
		}
		for i, node := range v.Nodes().All() {
			if got := v.Nodes().At(i); !got.Equal(&node) {
				t.Errorf("seed %d, node %d: %v, want %v", seed, i, got, node)
			}
		}
		for i, plane := range v.Cube().All() {
			if got := v.Cube().At(i); got.Len() != plane.Len() {
				t.Errorf("seed %d, plane %d: %d rows, want %d", seed, i, got.Len(), plane.Len())
			}
		}
	}
}

// TestView_ManyMayReadOne has goroutines that do all that changes nothing, of a view with
// patches of every form: the race detector finds what does.
func TestView_ManyMayReadOne(t *testing.T) {
	v, err := views.NewPlainView(&views.Plain{ABool: true, AString: "a", Numbers: []int64{1, 2, 3}, ALeaf: views.Leaf{Number: 4}})
	if err != nil {
		t.Fatal(err)
	}
	leaf := v.ALeaf()
	leaf.SetText("inner")
	v.SetALeaf(leaf)
	v.SetNumbersAt(1, 20)
	v.SetAnI64(7)
	v.SetAString("b")
	v.SetABinary([]byte("c"))
	want, err := v.AppendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				own, inner := v, v.ALeaf()
				own.SetAString("of one only")
				inner.SetNumber(8)
				got, err := v.AppendTo(nil)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%x, %v; want %x", got, err, want)
				}
				if v.AString() != "b" || v.Numbers().At(1) != 20 || v.ALeaf().String() == "" || !v.Equal(&v) {
					t.Errorf("%v", v)
				}
			}
		})
	}
	group.Wait()
}

// TestView_ChangesElementsOneByOne changes every element of a list, and does not copy all
// changes before for each: that were 250 MB. Copies that were made on the way stay as they
// were, and go on by themselves.
func TestView_ChangesElementsOneByOne(t *testing.T) {
	const elements = 4_000
	v, err := views.NewContainersView(&views.Containers{Strings: make([]string, elements)})
	if err != nil {
		t.Fatal(err)
	}
	var half views.ContainersView
	size := allocated(func() {
		for i := range elements {
			if i == elements/2 {
				half = v
			}
			v.SetStringsAt(i, "x")
		}
	})
	if size > 10<<20 {
		t.Errorf("%d bytes were allocated", size)
	}
	fork := half
	fork.SetStringsAt(elements/2, "of the fork")
	half.SetStringsAt(elements-1, "of the half")
	half.SetStringsAt(1, "one before")
	for name, test := range map[string]struct {
		v    *views.ContainersView
		want map[int]string
	}{
		"all":  {&v, map[int]string{0: "x", 1: "x", elements / 2: "x", elements - 1: "x"}},
		"fork": {&fork, map[int]string{1: "x", elements/2 - 1: "x", elements / 2: "of the fork", elements - 1: ""}},
		"half": {&half, map[int]string{0: "x", 1: "one before", elements/2 - 1: "x", elements / 2: "", elements - 1: "of the half"}},
	} {
		for i, want := range test.want {
			if got := test.v.Strings().At(i); got != want {
				t.Errorf("%s, element %d: %q, want %q", name, i, got, want)
			}
		}
	}
}
