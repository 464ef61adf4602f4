package roundtrip_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views/other"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// A list or map that cannot be written is not forgotten when something in it is changed:
// a struct would not be written either.
func TestView_KeepsWhatCannotBeWritten(t *testing.T) {
	good := made(views.NewLeafView(&views.Leaf{Number: 3}))
	for name, change := range map[string]func(v *views.ContainersView){
		"append":    func(v *views.ContainersView) { v.AppendChoices(numberChoice()) },
		"set at":    func(v *views.ContainersView) { v.SetChoicesAt(0, numberChoice()) },
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
			*c = numberChoice()
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

// made returns what the constructor of a view returned.
func made[V any](v V, err error) V {
	if err != nil {
		panic(err) // of a struct that the test has made
	}
	return v
}

func numberChoice() views.ChoiceView {
	return made(views.NewChoiceView(&views.Choice{Number: thrift.Some[int64](1)}))
}

func placeViewWithoutName() (place other.PlaceView) {
	place.SetFloor(2)
	return place
}
