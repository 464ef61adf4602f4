package roundtrip_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// editWithin changes what is in a struct within a view and a struct: that of a field, of an
// element of a list or of a value of a map. It reports false if the field holds none.
func editWithin(v, field reflect.Value, name string, random *rand.Rand) bool {
	if has := v.MethodByName("Has" + name); has.IsValid() && !has.Call(nil)[0].Bool() {
		return false // a view makes it, with what the definition says
	}
	edit := func(method reflect.Value, arguments []reflect.Value, old reflect.Value) (edited reflect.Value) {
		edited = shallow(old)
		within := reflect.MakeFunc(method.Type().In(len(arguments)), func(passed []reflect.Value) []reflect.Value {
			inner := edited
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			donor := reflect.New(inner.Type()).Elem()
			filler{random: random}.fill(donor, nesting-2)
			for range random.IntN(3) {
				setOne(passed[0], inner, donor, random)
			}
			return nil
		})
		if results := method.Call(append(arguments, within)); len(results) > 0 && !results[0].Bool() {
			panic("there is no entry " + name)
		}
		return edited
	}
	isNil := func(value reflect.Value) bool { return value.Kind() == reflect.Pointer && value.IsNil() }
	if method := v.MethodByName("Edit" + name); method.IsValid() && !isNil(field) {
		field.Set(edit(method, nil, field))
		return true
	}
	if method := v.MethodByName("Edit" + name + "At"); method.IsValid() && field.Len() > 0 {
		i := random.IntN(field.Len())
		if isNil(field.Index(i)) {
			return false
		}
		changed := reflect.MakeSlice(field.Type(), field.Len(), field.Len())
		reflect.Copy(changed, field)
		changed.Index(i).Set(edit(method, []reflect.Value{reflect.ValueOf(i)}, field.Index(i)))
		field.Set(changed)
		return true
	}
	method := v.MethodByName("Edit" + name + "Entry")
	if !method.IsValid() || field.Len() == 0 {
		return false
	}
	keys := field.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	key := keys[random.IntN(len(keys))]
	if isNil(field.MapIndex(key)) {
		return false
	}
	changed := reflect.MakeMap(field.Type())
	for _, key := range keys {
		changed.SetMapIndex(key, field.MapIndex(key))
	}
	changed.SetMapIndex(key, edit(method, []reflect.Value{key}, field.MapIndex(key)))
	field.Set(changed)
	return true
}

// shallow returns a struct, or a pointer to one, that shares nothing that setOne changes:
// that replaces lists and maps, and structs only where editWithin has copied them.
func shallow(old reflect.Value) reflect.Value {
	if old.Kind() != reflect.Pointer {
		return reflect.Indirect(shallow(pointerTo(old)))
	}
	copied := reflect.New(old.Type().Elem())
	copied.Elem().Set(old.Elem())
	return copied
}

func pointerTo(value reflect.Value) reflect.Value {
	p := reflect.New(value.Type())
	p.Elem().Set(value)
	return p
}

// trees returns a view of a struct with leaves in a field, a list and a map, and its bytes.
func trees(t *testing.T) (v views.OptionalView, list views.ContainersView) {
	t.Helper()
	s := views.NewOptional()
	s.ALeaf = &views.Leaf{Number: 1, Text: thrift.Some("one")}
	s.Leaves = map[string]*views.Leaf{"k": {Number: 2}, "l": {Number: 3}}
	v, err := views.NewOptionalView(s)
	if err != nil {
		t.Fatal(err)
	}
	c := views.NewContainers()
	c.Leaves = views.Leaves{{Number: 10}, {Number: 11}, {Number: 12, Text: thrift.Some("twelve")}}
	if list, err = views.NewContainersView(c); err != nil {
		t.Fatal(err)
	}
	return v, list
}

// TestView_EditsWithin changes one field of structs in a field, a list and a map, more than
// once, and looks at all of them, and at copies from before.
func TestView_EditsWithin(t *testing.T) {
	v, list := trees(t)
	kept, keptList := v, list
	number := func(n int32) func(*views.LeafView) { return func(leaf *views.LeafView) { leaf.SetNumber(n) } }
	text := func(s string) func(*views.LeafView) { return func(leaf *views.LeafView) { leaf.SetText(s) } }
	v.EditALeaf(number(21))
	v.EditALeaf(text("twentyone"))
	list.EditLeavesAt(2, number(32))
	list.EditLeavesAt(0, text("ten"))
	list.EditLeavesAt(2, func(leaf *views.LeafView) {
		if leaf.Number() != 32 {
			t.Errorf("what was changed before is %d", leaf.Number())
		}
		leaf.ClearText()
	})
	list.RemoveLeavesAt(0)
	list.EditLeavesAt(0, number(31))
	var added views.LeafView
	list.AppendLeaves(added)
	list.EditLeavesAt(2, text("added"))
	if !v.EditLeavesEntry("l", number(23)) || !v.EditLeavesEntry("l", text("twentythree")) || v.EditLeavesEntry("m", number(0)) {
		t.Error("entries that are there are not found, or others are")
	}
	s, err := v.Struct()
	if err != nil {
		t.Fatal(err)
	}
	c, err := list.Struct()
	if err != nil {
		t.Fatal(err)
	}
	want := views.NewOptional()
	want.ALeaf = &views.Leaf{Number: 21, Text: thrift.Some("twentyone")}
	want.Leaves = map[string]*views.Leaf{"k": {Number: 2}, "l": {Number: 23, Text: thrift.Some("twentythree")}}
	if !s.Equal(want) {
		t.Errorf("got %v, want %v", s, want)
	}
	if leaves := (&views.Containers{Leaves: views.Leaves{{Number: 31}, {Number: 32}, {Text: thrift.Some("added")}}}).Leaves; !slices.EqualFunc(c.Leaves, leaves, func(a, b views.Leaf) bool { return a.Equal(&b) }) {
		t.Errorf("got %v, want %v", c.Leaves, leaves)
	}
	if s, _ := kept.Struct(); s.ALeaf.Number != 1 || s.Leaves["l"].Number != 3 {
		t.Errorf("a copy from before has changed: %v", s)
	}
	if c, _ := keptList.Struct(); c.Leaves[0].Text.IsSet() || c.Leaves[2].Number != 12 {
		t.Errorf("a copy from before has changed: %v", c)
	}
}

// TestView_EditsWhatIsAbsent makes a struct with what the definition says, and no element
// or entry.
func TestView_EditsWhatIsAbsent(t *testing.T) {
	var optional views.OptionalView
	optional.EditALeaf(func(leaf *views.LeafView) { leaf.SetNumber(4) })
	if leaf := optional.ALeaf(); leaf.Number() != 4 || leaf.HasText() {
		t.Errorf("the leaf is %v", leaf)
	}
	var preset views.PresetView
	preset.EditOther(func(leaf *views.LeafView) { leaf.SetNumber(9) })
	if leaf := preset.Other(); leaf.Number() != 9 || leaf.Text() != "t" {
		t.Errorf("the leaf is %v, want the rest of its default", leaf)
	}
	fail := func(*views.LeafView) { t.Error("called for something that is not there") }
	if optional.EditLeavesEntry("k", fail) || optional.HasLeaves() {
		t.Error("there is a map of which an entry was to be changed")
	}
	_, list := trees(t)
	var empty views.ContainersView
	for i, v := range map[int]*views.ContainersView{-1: &list, 3: &list, 0: &empty} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("element %d can be changed", i)
				}
			}()
			v.EditLeavesAt(i, fail)
		}()
	}
}

// TestView_EditsInPlace changes a struct in each of many that are long together: neither
// are those before passed over for each, nor is anything put together anew.
func TestView_EditsInPlace(t *testing.T) {
	const n = 2_000
	c := views.NewContainers()
	for range n {
		c.Leaves = append(c.Leaves, views.Leaf{Text: thrift.Some(strings.Repeat("x", 1_000))})
	}
	message, err := thrift.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	least := uint64(math.MaxUint64)
	for range 3 {
		var v views.ContainersView
		if err := v.Load(message); err != nil {
			t.Fatal(err)
		}
		least = min(least, allocated(func() {
			for i := range n {
				v.EditLeavesAt(i, func(leaf *views.LeafView) { leaf.SetNumber(int32(i)) })
			}
		}))
		for i, leaf := range v.Leaves().All() {
			if leaf.Number() != int32(i) || len(leaf.Text()) != 1_000 {
				t.Fatalf("element %d is %v", i, leaf)
			}
		}
	}
	if least > uint64(len(message)) {
		t.Errorf("%d bytes were allocated for a list of %d bytes", least, len(message))
	}
}
