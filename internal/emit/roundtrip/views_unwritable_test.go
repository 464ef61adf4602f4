package roundtrip_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views/other"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// A list or map that cannot be written is not forgotten when something in it is changed:
// a struct would not be written either.
func TestView_KeepsWhatCannotBeWritten(t *testing.T) {
	good := leafView(t, &views.Leaf{Number: 3})
	for name, change := range map[string]func(v *views.ContainersView){
		"append":    func(v *views.ContainersView) { v.AppendChoices(choiceView(t)) },
		"set at":    func(v *views.ContainersView) { v.SetChoicesAt(0, choiceView(t)) },
		"remove at": func(v *views.ContainersView) { v.RemoveChoicesAt(0) },
		"edit at":   func(v *views.ContainersView) { v.EditChoicesAt(0, func(c *views.ChoiceView) { c.SetNumber(1) }) },
		"other":     func(v *views.ContainersView) { v.AppendInts(1) },
	} {
		var v views.ContainersView
		v.SetChoices([]views.Choice{{}})
		_, want := v.AppendTo(nil)
		change(&v)
		if _, err := v.AppendTo(nil); want == nil || err == nil || err.Error() != want.Error() {
			t.Errorf("%s: %v, before it %v", name, err, want)
		}
	}
	for name, change := range map[string]func(v *views.OptionalView){
		"set":    func(v *views.OptionalView) { v.SetLeavesEntry("b", good) },
		"delete": func(v *views.OptionalView) { v.DeleteLeavesEntry("a") },
		"edit": func(v *views.OptionalView) {
			if v.EditLeavesEntry("a", func(l *views.LeafView) { l.SetNumber(1) }) {
				t.Error("there is an entry to edit")
			}
		},
		"other": func(v *views.OptionalView) { v.SetAnI32(1) },
	} {
		var v views.OptionalView
		v.SetLeaves(map[string]*views.Leaf{"a": nil})
		_, want := v.AppendTo(nil)
		change(&v)
		if _, err := v.AppendTo(nil); want == nil || err == nil || err.Error() != want.Error() {
			t.Errorf("%s: %v, before it %v", name, err, want)
		}
	}
}

// What a nested view has set that cannot be written stays when it is got, changed and set.
func TestView_GetsWhatCannotBeWritten(t *testing.T) {
	var v views.NodeView
	v.SetValue(1)
	v.EditNext(func(next *views.NodeView) {
		next.SetValue(2)
		next.SetPlace(placeViewWithoutName())
	})
	next := v.Next()
	if next.Value() != 2 || !next.HasPlace() {
		t.Errorf("value %d", next.Value())
	}
	next.SetValue(3)
	v.SetNext(next)
	if _, err := v.AppendTo(nil); err == nil || !strings.Contains(err.Error(), "required but absent: name") {
		t.Errorf("error: %v", err)
	}
	place := next.Place()
	place.SetName("here")
	next.SetPlace(place)
	v.SetNext(next)
	s, err := v.Struct()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Next; got.Value != 3 || got.Place.Name != "here" {
		t.Errorf("%v", s)
	}
}

// A view that a getter returned is one of its own.
func TestView_GotIsACopyOfWhatWasSet(t *testing.T) {
	var v views.NodeView
	next := views.NodeView{}
	for i := range 6 {
		next.SetValue(int32(i))
		next.SetNamedEntry(fmt.Sprint(i), views.NodeView{})
	}
	v.SetNext(next)
	got := v.Next()
	got.SetValue(-1)
	got.SetNamedEntry("more", views.NodeView{})
	again := v.Next()
	if again.Value() != 5 || again.Named().Len() != 6 || got.Named().Len() != 7 {
		t.Errorf("%v after a change of %v", again, got)
	}
}

// An empty union is refused as that of a struct is.
func TestView_RefusesAnEmptyUnion(t *testing.T) {
	for name, empty := range map[string]func(c *views.ChoiceView){
		"zero":    func(*views.ChoiceView) {},
		"cleared": func(c *views.ChoiceView) { c.SetNumber(1); c.ClearNumber() },
		"loaded and cleared": func(c *views.ChoiceView) {
			*c = choiceView(t)
			c.ClearNumber()
		},
	} {
		var c views.ChoiceView
		empty(&c)
		_, want := thrift.Marshal(&views.Choice{})
		if _, err := c.AppendTo(nil); err == nil || err.Error() != want.Error() {
			t.Errorf("%s: %v, a struct: %v", name, err, want)
		}
		if _, _, err := c.AppendPieces(nil, nil); err == nil {
			t.Errorf("%s: no error for pieces", name)
		}
		var v views.OptionalView
		v.SetChoice(c)
		_, want = thrift.Marshal(&views.Optional{Choice: &views.Choice{}})
		if _, err := v.AppendTo(nil); err == nil || err.Error() != want.Error() {
			t.Errorf("%s: %v, a struct: %v", name, err, want)
		}
	}
}

func TestView_UnmarshalsJSON(t *testing.T) {
	want := &views.Preset{}
	*want = *views.NewPreset()
	want.AnI32, want.Tags = 5, []string{"a"}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var v views.PresetView
	v.SetAnI8(77) // does not matter
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Struct(); err != nil || !got.Equal(want) {
		t.Errorf("%v, %v", got, err)
	}
	if err := json.Unmarshal([]byte("null"), &v); err != nil || v.AnI32() != 5 {
		t.Errorf("null: %v, %v", v, err)
	}
	for _, wrong := range []string{`{"anI32":"x"}`, `[]`, `{`} {
		if err := json.Unmarshal([]byte(wrong), &v); err == nil || v.AnI32() != 5 {
			t.Errorf("%s: %v, %v", wrong, v, err)
		}
	}
	var c views.ChoiceView
	if err := json.Unmarshal([]byte("{}"), &c); err == nil {
		t.Error("a union without a field")
	}
}

// Containers of views have the text and the JSON of what a struct has for them.
func TestView_ContainersHaveTexts(t *testing.T) {
	s := &views.Containers{
		Bools: []bool{true, false}, Ints: []int32{1, -2}, Doubles: []float64{0.5}, Strings: []string{"a", "b\"c"},
		Binaries: [][]byte{{1, 2}}, Colors: []views.Color{views.Color_RED}, Leaves: []views.Leaf{{Number: 1}, {Number: 2}},
		Cube: [][][]int64{{{1}, {}}, {}}, Maps: map[int16]map[int64][]float64{-1: {2: {3}}}, ByBool: map[bool]views.Color{true: views.Color_BLUE},
		Texts: map[string]string{"k<": "v"},
	}
	v, err := views.NewContainersView(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		got, like  any
		text, json string
	}{
		{v.Bools(), s.Bools, "[true, false]", ""},
		{v.Ints(), s.Ints, "[1, -2]", ""},
		{v.Doubles(), s.Doubles, "[0.5]", ""},
		{v.Strings(), s.Strings, `["a", "b\"c"]`, ""},
		{v.Binaries(), s.Binaries, `["\x01\x02"]`, ""},
		{v.Colors(), s.Colors, "[RED]", ""},
		{v.Leaves(), s.Leaves, "[views.Leaf(number: 1), views.Leaf(number: 2)]", ""},
		{v.Cube(), s.Cube, "[[[1], []], []]", ""},
		{v.Maps(), s.Maps, "{-1: {2: [3]}}", ""},
		{v.ByBool(), nil, "{true: BLUE}", `[{"key":true,"value":2}]`},
		{v.Texts(), s.Texts, `{"k<": "v"}`, ""},
		{v.UUIDs(), []thrift.UUID{}, "[]", ""},
		{v.ByBinary(), map[string]int{}, "{}", ""},
	} {
		if text := fmt.Sprint(test.got); text != test.text {
			t.Errorf("text %s, not %s", text, test.text)
		}
		got, err := json.Marshal(test.got)
		if err != nil {
			t.Error(err)
			continue
		}
		want := []byte(test.json)
		if test.json == "" {
			if want, err = json.Marshal(test.like); err != nil {
				t.Fatal(err)
			}
		}
		if string(got) != string(want) {
			t.Errorf("%s: JSON %s, not %s", test.text, got, want)
		}
	}
	v.SetDoubles([]float64{0, 1 / zero})
	if b, err := json.Marshal(v.Doubles()); err == nil {
		t.Errorf("infinity: %s", b)
	}
}

var zero float64

// Of keys that are there twice the JSON has the last, as a Go map.
func TestView_JSONHasTheLastEntry(t *testing.T) {
	const texts = "\x0d\x00\x16\x0b\x0b\x00\x00\x00\x03" +
		"\x00\x00\x00\x01a\x00\x00\x00\x011" + "\x00\x00\x00\x01b\x00\x00\x00\x012" + "\x00\x00\x00\x01a\x00\x00\x00\x013" + "\x00"
	var v views.ContainersView
	if err := v.Load([]byte(texts)); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v.Texts())
	var got map[string]string
	if err != nil || json.Unmarshal(b, &got) != nil || !reflect.DeepEqual(got, map[string]string{"a": "3", "b": "2"}) {
		t.Errorf("%s, %v", b, err)
	}
	if text := v.Texts().String(); text != `{"a": "1", "b": "2", "a": "3"}` {
		t.Error(text)
	}
}

// A detached view keeps nothing but what it is, and is what it was.
func TestView_Detaches(t *testing.T) {
	s := views.NewNode()
	s.Value, s.Next = 1, views.NewNode()
	s.Next.Value = 2
	b, err := thrift.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var v views.NodeView
	if err := v.Load(b); err != nil {
		t.Fatal(err)
	}
	next := v.Next()
	next.EditNext(func(n *views.NodeView) { n.SetValue(3) })
	next.Detach()
	v.SetValue(5)
	v.Detach()
	for i := range b {
		b[i] = 0xff
	}
	want := views.NewNode()
	want.Value, want.Next = 2, views.NewNode()
	want.Next.Value = 3
	if got, err := next.Struct(); err != nil || !got.Equal(want) {
		t.Errorf("%v, %v", got, err)
	}
	if next := v.Next(); v.Value() != 5 || next.Value() != 2 {
		t.Errorf("%v", v)
	}
	var incomplete views.NodeView
	incomplete.SetPlace(placeViewWithoutName())
	incomplete.SetValue(4)
	if incomplete.Detach(); incomplete.Value() != 4 {
		t.Errorf("%d", incomplete.Value())
	}
	if _, err := incomplete.AppendTo(nil); err == nil {
		t.Error("what is missing was forgotten")
	}
}

func leafView(t *testing.T, s *views.Leaf) views.LeafView {
	t.Helper()
	v, err := views.NewLeafView(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func choiceView(t *testing.T) views.ChoiceView {
	t.Helper()
	v, err := views.NewChoiceView(&views.Choice{Number: thrift.Some[int64](1)})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func placeViewWithoutName() (place other.PlaceView) {
	place.SetFloor(2)
	return place
}
