package roundtrip_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// setPart appends an element to a list of a view and of a struct, removes one, or sets or deletes an
// entry of a map; false if it did none of these.
func setPart(v, s, field reflect.Value, name string, random *rand.Rand) bool {
	add, set := v.MethodByName("Append"+name), v.MethodByName("Set"+name+"Entry")
	if !add.IsValid() && !set.IsValid() || random.IntN(2) == 0 {
		return false
	}
	if field.Kind() != reflect.Slice && field.Kind() != reflect.Map {
		return false
	}
	if read := v.MethodByName(name).Call(nil)[0]; field.IsNil() && read.MethodByName("Len").Call(nil)[0].Int() > 0 {
		return false // a view reads what was removed as the default, and changes that
	}
	element := reflect.New(field.Type().Elem()).Elem()
	filler{random: random}.fill(element, nesting-2)
	changed := reflect.Value{}
	if remove := v.MethodByName("Remove" + name + "At"); remove.IsValid() && field.Len() > 0 && random.IntN(2) == 0 {
		i := random.IntN(field.Len())
		remove.Call([]reflect.Value{reflect.ValueOf(i)})
		changed = reflect.AppendSlice(reflect.MakeSlice(field.Type(), 0, field.Len()), field.Slice(0, i))
		changed = reflect.AppendSlice(changed, field.Slice(i+1, field.Len()))
	} else if add.IsValid() {
		value, ok := passed(add.Type().In(0), element)
		if !ok {
			return true
		}
		add.Call([]reflect.Value{value})
		changed = reflect.Append(field.Slice3(0, field.Len(), field.Len()), element)
	} else {
		if field.Kind() != reflect.Map {
			return false
		}
		changed = reflect.MakeMap(field.Type())
		keys := field.MapKeys()
		for _, key := range keys {
			changed.SetMapIndex(key, field.MapIndex(key))
		}
		key := reflect.New(field.Type().Key()).Elem()
		filler{random: random}.fill(key, nesting-2)
		if len(keys) > 0 && random.IntN(2) == 0 {
			key = keys[random.IntN(len(keys))]
		}
		if random.IntN(3) == 0 {
			v.MethodByName("Delete" + name + "Entry").Call([]reflect.Value{key})
			if changed.SetMapIndex(key, reflect.Value{}); field.IsNil() {
				return true
			}
		} else {
			value, ok := passed(set.Type().In(1), element)
			if !ok {
				return true
			}
			set.Call([]reflect.Value{key, value})
			changed.SetMapIndex(key, element)
		}
	}
	if unions[s.Type()] {
		s.SetZero()
	}
	field.Set(changed)
	return true
}

// TestView_AppendsToLists appends to lists that are there, that are not, and that copies
// of the view share.
func TestView_AppendsToLists(t *testing.T) {
	v, err := views.NewContainersView(&views.Containers{Strings: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	v.SetStringsAt(1, "B")
	v.AppendStrings("c")
	fork := v
	v.AppendStrings("d")
	v.SetStringsAt(2, "C")
	fork.AppendStrings("of the fork")
	var empty views.ContainersView
	empty.AppendStrings("x")
	empty.AppendLongs(7)
	for name, test := range map[string]struct {
		v    *views.ContainersView
		want []string
	}{
		"all": {&v, []string{"a", "B", "C", "d"}}, "fork": {&fork, []string{"a", "B", "c", "of the fork"}}, "from nothing": {&empty, []string{"x"}},
	} {
		s, err := test.v.Struct()
		if err != nil {
			t.Fatal(err)
		}
		if got := test.v.Strings().AppendTo(nil); !slices.Equal(got, test.want) || !slices.Equal(s.Strings, test.want) {
			t.Errorf("%s: the view has %q, the struct %q, want %q", name, got, s.Strings, test.want)
		}
	}
	if got := empty.Longs().AppendTo(nil); !slices.Equal(got, []int64{7}) {
		t.Errorf("the longs are %d", got)
	}
	for _, i := range []int{-1, 4} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("element %d of four can be set", i)
				}
			}()
			v.SetStringsAt(i, "")
		}()
	}
}

// TestView_AppendsWithoutCopyingThoseBefore appends to one list so often that copies of
// all patches would be far more than is allowed.
func TestView_AppendsWithoutCopyingThoseBefore(t *testing.T) {
	const elements = 4_000
	least := uint64(math.MaxUint64)
	for range 3 {
		var v views.ContainersView
		least = min(least, allocated(func() {
			for range elements {
				v.AppendStrings("x")
			}
		}))
		if n := v.Strings().Len(); n != elements {
			t.Fatalf("%d elements", n)
		}
	}
	if least > 10<<20 {
		t.Errorf("%d bytes were allocated", least)
	}
}

// TestView_ChangesEntriesOfMaps changes a map that has a key twice, as no struct writes it.
func TestView_ChangesEntriesOfMaps(t *testing.T) {
	loaded := func() (v views.OptionalView) {
		t.Helper()
		one, two := views.NewLeaf(), views.NewLeaf()
		s := views.NewOptional()
		s.Leaves = map[string]*views.Leaf{"k": one, "l": two}
		message, err := thrift.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		// Both keys are of one letter.
		if message = bytes.Replace(message, []byte("\x00\x00\x00\x01l"), []byte("\x00\x00\x00\x01k"), 1); bytes.Count(message, []byte("\x01k")) != 2 {
			t.Fatalf("%x has not two equal keys", message)
		}
		if err := v.Load(message); err != nil {
			t.Fatal(err)
		}
		return v
	}
	var leaf views.LeafView
	keys := func(v *views.OptionalView) (keys []string) {
		for key := range v.Leaves().All() {
			keys = append(keys, key)
		}
		return keys
	}
	for name, test := range map[string]struct {
		change func(v *views.OptionalView)
		want   []string
	}{
		"set":             {func(v *views.OptionalView) { v.SetLeavesEntry("k", leaf) }, []string{"k"}},
		"delete":          {func(v *views.OptionalView) { v.DeleteLeavesEntry("k") }, nil},
		"delete another":  {func(v *views.OptionalView) { v.DeleteLeavesEntry("l") }, []string{"k", "k"}},
		"add":             {func(v *views.OptionalView) { v.SetLeavesEntry("m", leaf) }, []string{"k", "k", "m"}},
		"set twice":       {func(v *views.OptionalView) { v.SetLeavesEntry("k", leaf); v.SetLeavesEntry("k", leaf) }, []string{"k"}},
		"set, delete":     {func(v *views.OptionalView) { v.SetLeavesEntry("k", leaf); v.DeleteLeavesEntry("k") }, nil},
		"delete, set":     {func(v *views.OptionalView) { v.DeleteLeavesEntry("k"); v.SetLeavesEntry("k", leaf) }, []string{"k"}},
		"add, delete one": {func(v *views.OptionalView) { v.SetLeavesEntry("m", leaf); v.DeleteLeavesEntry("k") }, []string{"m"}},
	} {
		v := loaded()
		kept := v
		test.change(&v)
		if got := keys(&v); !slices.Equal(got, test.want) || v.Leaves().Len() != len(test.want) || !v.HasLeaves() {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		fork := v
		fork.SetLeavesEntry("of the fork", leaf)
		if got := keys(&v); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q after a change of a copy", name, got)
		}
		if got := keys(&kept); !slices.Equal(got, []string{"k", "k"}) {
			t.Errorf("%s: a copy from before has %q", name, got)
		}
	}
	var nothing views.OptionalView
	if nothing.DeleteLeavesEntry("k"); nothing.HasLeaves() {
		t.Error("there is a map of which something was deleted")
	}
}

// TestView_RemovesElements removes elements before, between and behind others that were
// changed and added.
func TestView_RemovesElements(t *testing.T) {
	v, err := views.NewContainersView(&views.Containers{Strings: []string{"a", "b", "c", "d"}})
	if err != nil {
		t.Fatal(err)
	}
	kept := v
	v.SetStringsAt(1, "B")
	v.RemoveStringsAt(0)
	v.SetStringsAt(0, "BB")
	v.AppendStrings("e")
	v.AppendStrings("f")
	fork := v
	v.RemoveStringsAt(1) // c
	v.RemoveStringsAt(2) // e
	v.AppendStrings("g")
	v.SetStringsAt(2, "F")
	for range 5 {
		fork.RemoveStringsAt(0)
	}
	for name, test := range map[string]struct {
		v    *views.ContainersView
		want []string
	}{"all": {&v, []string{"BB", "d", "F", "g"}}, "fork": {&fork, nil}, "before": {&kept, []string{"a", "b", "c", "d"}}} {
		if got := test.v.Strings().AppendTo(nil); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	for name, remove := range map[string]func(){
		"behind the last": func() { v.RemoveStringsAt(4) }, "of none": func() { fork.RemoveStringsAt(0) }, "negative": func() { v.RemoveStringsAt(-1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: an element was removed", name)
				}
			}()
			remove()
		}()
	}
}
